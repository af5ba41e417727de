"""``qagate decide``: two results of another tool become two runs of ours, and gates decide."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qagate.cases.config import GatesFile, load_gates
from qagate.cases.dataset import Threshold
from qagate.cases.labels import Scale
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.commands.given_runs import OUT, RecordedRunParser
from qagate.reports.extras.decide.comparability import (
    accepted_changes,
    remarks,
    same_run,
)
from qagate.reports.extras.decide.decisive import Decisive, decisive_scores
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.form_table import ROLES, forms
from qagate.reports.extras.decide.imported_run import MAX_DROP, ImportedRun, slug
from qagate.reports.extras.decide.paths import field_path
from qagate.reports.extras.decide.pool import TASKS, Pools
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.extras.decide.stated import (
    contradictions,
    with_one_value_an_item,
)
from qagate.reports.render import console
from qagate.reports.render.writer import Files, write, write_files
from qagate.reports.run import report_folder
from qagate.reports.run.baseline import load_baseline
from qagate.reports.run.clean import line
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, ReportInputs, account

OLD = "-baseline"
"""What the name of the folder ends with that holds the baseline as a run of ours."""
_TEXTS = {
    "slice": (
        "PATH",
        "a metadata field, column or path; each of its values is a slice",
    ),
    "cluster": (
        "PATH",
        "a metadata field, column or path that dependent samples share",
    ),
    "rows": ("PATH", "where the rows are, in a JSON object with several lists"),
    "new": (
        "NAME",
        "the provider, model or prompt of the new run, where a file has several",
    ),
    "old": ("NAME", "the same of the old run"),
}
"""The options that take a word: what it stands for, and its help."""


def main(argv: Sequence[str]) -> int:
    """Decide over two results of another tool; write the report and return the exit code."""
    options = _parser().parse_args(argv)
    with report_folder.refusing(options.to):
        return _decided(options)


def _decided(options: argparse.Namespace) -> int:
    new, old = _imported_runs(options)
    gates = None
    if options.pool and (options.gates or options.labels):
        raise UsageError("--pool: --gates and --labels are of each task; leave one out")
    if options.gates is not None:
        gates = _foreign_gates(options.gates, new)
    old_inputs, old_facts = _account_of(old, None, None, pool=options.pool)
    new_inputs, new_facts = _account_of(new, gates, options.labels, pool=options.pool)
    old_folder = options.to.with_name(options.to.name + OLD)
    old_report = account(old_inputs, old_facts, None)
    write_files(Files(old_report, ["json"]), old_folder)
    report = account(new_inputs, new_facts, load_baseline(old_folder))
    page = next(path for path in write(report, options.to) if path.suffix == ".html")
    lines = []
    if not options.gates:
        lines.append(
            f"no --gates: the deciding score may drop by {options.margin:g} in each slice, "
            "and in all together"
        )
    lines += _smallest_drops(report)
    lines += console.gates(report)
    lines += console.verdict_lines(report)
    lines.append(f"report: {page}")
    lines += console.next_step(report, options.to)
    lines.append(report.decision.line)
    say(sys.stdout, *map(line, lines))
    return report.decision.code


def _account_of(
    imported: ImportedRun, gates: GatesFile | None, labels: Path | None, *, pool: bool
) -> tuple[ReportInputs, Facts]:
    """Return what the report of a side is made of, its tasks put together if asked for."""
    inputs = imported.inputs(gates, labels)
    facts = imported.facts(inputs)
    if not pool:
        return inputs, facts
    pool_of = {}
    for name, task in imported.run.tasks.items():
        pool_of[slug(name)] = slug(task.group) if task.group else TASKS
    pools = Pools(pool_of=pool_of)
    return pools.inputs(inputs), pools.facts(facts)


def _smallest_drops(report: Report) -> Iterator[str]:
    """Yield which change the pairs of each gate can show, before what they did show.

    As far as the interval reaches below the estimate: with no change at all, a margin below
    that would stay undecided.
    """
    for gate in report.decision.gates:
        interval = gate.estimate.interval
        value = gate.estimate.value
        if interval is None or value is None or not gate.threshold.paired:
            continue
        reach = max(value - interval[0], interval[1] - value)
        pairs = plural(gate.estimate.n, "pair")
        yield f"{gate.slice}: {pairs} can show a {gate.name} from {reach:.3f} on"


def _imported_runs(options: argparse.Namespace) -> tuple[ImportedRun, ImportedRun]:
    """Return NEW and OLD, with the scores that decide. Raises UsageError."""
    new_choice = Choice(
        metrics=tuple(options.metric),
        slice=options.slice,
        cluster=options.cluster,
        scale=options.scale,
        side=options.new,
        columns=dict(options.column),
        words=dict(options.score),
        rows=options.rows,
    )
    old_choice = replace(new_choice, side=options.old)
    new = read_run(options.result, options.form, new_choice)
    old = read_run(options.baseline, options.form, old_choice)
    for column in new.lacks:
        if column in old.lacks:
            raise UsageError(f"--column {column}: neither result has such a column")
    if new.form != old.form:
        raise UsageError(
            f"{new.path} is of {new.tool}, {old.path} of {old.tool}; give two of one tool"
        )
    tasks = decisive_scores([new, old], new_choice)
    same = same_run(new, old, new_choice, old_choice)
    new = replace(new, notes=(*new.notes, *remarks(new, old)))
    main_scores = {task: main.name for task, main in tasks.items()}
    new_doubts = contradictions(new, main_scores)
    old_doubts = contradictions(old, main_scores)
    for task, main in tasks.items():
        new = with_one_value_an_item(new, task, main.name)
        old = with_one_value_an_item(old, task, main.name)
    unused = Decisive(name="", two_way=True)
    """Of a task that NEW lacks: nobody needs its scores."""
    old_tasks = {name: tasks.get(name, unused) for name in old.tasks}
    return (
        ImportedRun(
            run=new,
            tasks=tasks,
            choice=new_choice,
            margin=options.margin,
            doubt=same,
            doubts=new_doubts,
            accepted=accepted_changes(options.accept_changed, new, old),
        ),
        ImportedRun(
            run=old,
            tasks=old_tasks,
            choice=old_choice,
            margin=options.margin,
            doubts=old_doubts,
        ),
    )


def _foreign_gates(path: Path, new: ImportedRun) -> GatesFile:
    """Return the gates of a file on scores of a run.

    Raises UsageError where a gate takes more for better of a score that less is better of.
    """
    names: list[str] = []
    less_is_better = set()
    for task in new.run.tasks.values():
        for score in task.scores.values():
            names.append(slug(score.name))
            if score.less_is_better or score.looks_less:
                less_is_better.add(slug(score.name))
    if new.choice.scale is not None:
        less_is_better -= {slug(main.name) for main in new.tasks.values()}
    gates = load_gates(path, names)
    wrong = set()
    for dataset in gates.datasets.values():
        for thresholds in (*dataset.languages.values(), dataset.pooled):
            wrong |= less_is_better & set(map(_wants_more_of, thresholds))
    if wrong:
        raise UsageError(
            f"--gates: less {min(wrong)} is better; decide by it alone, with --metric"
        )
    return gates


def _wants_more_of(threshold: Threshold) -> str:
    """Return the metric that a threshold takes more of for better; empty for none."""
    if threshold.measure == DROP:
        return threshold.of
    if threshold.min is not None:
        return threshold.measure
    return ""


def _parser() -> RecordedRunParser:
    parser = RecordedRunParser(
        "decide",
        "Decide over two results of another tool: inspect_ai, lm-evaluation-harness, promptfoo, "
        "deepeval, MLflow, azure-ai-evaluation, pydantic-evals, Langfuse, OpenAI Evals, "
        "Braintrust, ragas, HELM, lighteval, or any table with an id and a score. "
        "No model is asked.",
        "0 every gate passed, 1 a gate failed, 3 the report could not be written, 4 wrong "
        "arguments or no readable result, 6 INCONCLUSIVE",
    )
    text = "the new result: a file, or the folder that the tool wrote"
    parser.add_argument("result", metavar="NEW", type=Path, help=text)
    text = "the result to compare with, of the same tool and the same items"
    parser.add_argument(
        "--baseline", metavar="OLD", type=Path, required=True, help=text
    )
    known_forms = [form.name for form in forms().values() if not form.instead]
    text = f"what the results are, of {', '.join(known_forms)} (default: found by their content)"
    parser.add_argument(
        "--from", dest="form", choices=known_forms, metavar="FORM", help=text
    )
    repeated: dict[str, Any] = {"action": "append", "default": []}
    text = "the score that decides; may be repeated: of each task the first that it has"
    parser.add_argument("--metric", metavar="NAME", help=text, **repeated)
    for name, (metavar, text) in _TEXTS.items():
        kind = _check_path if metavar == "PATH" else str
        parser.add_argument(
            f"--{name}", metavar=metavar, type=kind, default="", help=text
        )
    text = f"how much the deciding score may drop, in each slice and in all (default: {MAX_DROP:g})"
    parser.add_argument(
        "--margin", metavar="SHARE", type=_margin, default=MAX_DROP, help=text
    )
    text = "one verdict over all tasks, or over each group that the tool names"
    parser.add_argument("--pool", action="store_true", help=text)
    text = "thresholds, in place of --margin"
    parser.add_argument("--gates", metavar="FILE", type=Path, help=text)
    text = "a CSV with id and verdict: what a person says of answers of NEW; measures the scorer"
    parser.add_argument("--labels", metavar="FILE", type=Path, help=text)
    text = "the worst and the best score, if not 0 and 1: such as 1:5, or 5:1 where 1 is best"
    parser.add_argument("--scale", metavar="WORST:BEST", type=_scale, help=text)
    text = (
        "a field in which the results were measured otherwise, with what it is now, as the "
        "verdict prints it; may be repeated"
    )
    parser.add_argument(
        "--accept-changed", metavar="FIELD=NEW", type=_change, help=text, **repeated
    )
    text = "what a word is worth as a score, from 0 to 1; may be repeated"
    parser.add_argument(
        "--score", metavar="WORD=NUMBER", type=_word, help=text, **repeated
    )
    roles = "; ".join(f"{role}: {meaning}" for role, meaning in ROLES.items())
    text = (
        "where in a row a role stands: a column, or a path such as metrics.*.value or "
        f"scores[name].value; may be repeated. {roles}"
    )
    parser.add_argument(
        "--column", metavar="ROLE=PATH", type=_column, help=text, **repeated
    )
    parser.add_to(
        f"a folder for the report; the baseline's goes to DIR{OLD} (default: {OUT})"
    )
    parser.set_defaults(to=OUT, form="")
    return parser


def _scale(text: str) -> Scale:
    try:
        return Scale.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _margin(text: str) -> float:
    try:
        margin = float(text)
    except ValueError:
        margin = -1.0
    if not 0 < margin < 1:
        raise argparse.ArgumentTypeError(
            f"want a share between 0 and 1, such as 0.03; got {text!r}"
        )
    return margin


def _word(text: str) -> tuple[str, float]:
    word, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not word or not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(
            f"want WORD=NUMBER, the number from 0 to 1, such as fair=0.5; got {text!r}"
        )
    return word.strip().casefold(), value


def _change(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals or not value:
        raise argparse.ArgumentTypeError(
            f"want FIELD=NEW, as the verdict prints it; got {text!r}"
        )
    return name, value


def _column(text: str) -> tuple[str, str]:
    role, _, path = text.partition("=")
    if role not in ROLES or not path:
        raise argparse.ArgumentTypeError(
            f"want ROLE=PATH, ROLE one of {', '.join(ROLES)}; got {text!r}"
        )
    _check_path(path)
    return role, path


def _check_path(text: str) -> str:
    """Return a path as it is given, or nothing. Raises ArgumentTypeError for what is none."""
    try:
        if text:
            field_path(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text

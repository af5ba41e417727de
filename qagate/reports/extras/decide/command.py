"""``qagate decide``: two results of another tool become two runs of ours, and gates decide."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qagate.cases.config import GatesFile, load_gates
from qagate.cases.dataset import Threshold
from qagate.cases.labels import Scale
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.commands.given_runs import OUT, RecordedRunParser
from qagate.reports.doors import FOREIGN_RESULTS
from qagate.reports.extras.decide import forms
from qagate.reports.extras.decide.foreign import (
    MAX_DROP,
    Choice,
    ForeignRun,
    ImportedRun,
    Scorer,
    slug,
    tasks_of,
)
from qagate.reports.render import console
from qagate.reports.render.writer import Files, write, write_files
from qagate.reports.run import report_folder
from qagate.reports.run.baseline import load_baseline
from qagate.reports.run.clean import line
from qagate.reports.verdict.assemble import account

OLD = "-baseline"  # what the name of the folder ends with that holds the baseline as a run of ours
_TEXTS = {
    "metric": ("NAME", "the score that decides (default: the tool's own first)"),
    "slice": ("FIELD", "a metadata field or column; each of its values is a slice"),
    "cluster": ("FIELD", "a metadata field or column that dependent samples share"),
    "new": ("MODEL", "the provider or model of the new run, where a file has several"),
    "old": ("MODEL", "the provider or model of the old run, where a file has several"),
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
    if options.gates is not None:
        gates = _foreign_gates(options.gates, new.run)
    old_inputs = old.inputs(None)
    new_inputs = new.inputs(gates, options.labels)
    old_folder = options.to.with_name(options.to.name + OLD)
    old_report = account(old_inputs, old.facts(old_inputs), None)
    write_files(Files(old_report, ["json"]), old_folder)
    report = account(new_inputs, new.facts(new_inputs), load_baseline(old_folder))
    page = next(path for path in write(report, options.to) if path.suffix == ".html")
    lines = []
    if not options.gates:
        lines.append(
            f"no --gates: the main score may drop by {MAX_DROP:g} in each slice, "
            "and in all together"
        )
    lines += console.gates(report)
    lines += console.verdict_lines(report)
    lines.append(f"report: {page}")
    lines += console.next_step(report, options.to)
    lines.append(report.decision.line)
    say(sys.stdout, *map(line, lines))
    return report.decision.code


def _imported_runs(options: argparse.Namespace) -> tuple[ImportedRun, ImportedRun]:
    """Return NEW and OLD, with the scorers that decide. Raises UsageError."""
    new_choice = Choice(
        metric=options.metric,
        slice=options.slice,
        cluster=options.cluster,
        scale=options.scale,
        provider=options.new,
        columns=dict(options.column),
    )
    old_choice = replace(new_choice, provider=options.old)
    new = forms.load(options.result, options.form, new_choice)
    old = forms.load(options.baseline, options.form, old_choice)
    for column in new.lacks:
        if column in old.lacks:
            raise UsageError(f"--column {column}: neither result has such a column")
    tasks = tasks_of([new, old], new_choice)
    unused = Scorer(name="", two_way=True)
    """Of a task that NEW lacks: nobody needs its scores."""
    old_tasks = {name: tasks.get(name, unused) for name in old.scorers}
    return (
        ImportedRun(path=options.result, run=new, tasks=tasks, choice=new_choice),
        ImportedRun(path=options.baseline, run=old, tasks=old_tasks, choice=old_choice),
    )


def _foreign_gates(path: Path, run: ForeignRun) -> GatesFile:
    """Return the gates of a file on scores of a run.

    Raises UsageError where a gate takes more for better of a score that less is better of.
    """
    scorers = [scorer for task in run.scorers.values() for scorer in task]
    gates = load_gates(path, [slug(scorer.name) for scorer in scorers])
    less_is_better = {slug(scorer.name) for scorer in scorers if scorer.lower_is_better}
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
        "Decide over two results of another tool: inspect_ai logs, samples of "
        "lm-evaluation-harness, results.json of promptfoo, test runs of deepeval, or any CSV or "
        "JSONL with an id and a score. No model is asked.",
        "0 every gate passed, 1 a gate failed, 3 the report could not be written, 4 wrong "
        "arguments or no readable result, 6 INCONCLUSIVE",
    )
    text = "the new result: a file, or the folder that the tool wrote"
    parser.add_argument("result", metavar="NEW", type=Path, help=text)
    text = "the result to compare with, of the same tool and the same items"
    parser.add_argument(
        "--baseline", metavar="OLD", type=Path, required=True, help=text
    )
    known_forms = ", ".join(FOREIGN_RESULTS)
    text = f"what the results are, of {known_forms} (default: found by their content)"
    parser.add_argument(
        "--from", dest="form", choices=list(FOREIGN_RESULTS), metavar="FORM", help=text
    )
    for name, (metavar, text) in _TEXTS.items():
        parser.add_argument(f"--{name}", metavar=metavar, default="", help=text)
    text = f"thresholds (default: the main score may drop by {MAX_DROP:g} in each slice and in all)"
    parser.add_argument("--gates", metavar="FILE", type=Path, help=text)
    text = "a CSV with id and verdict: what a person says of answers of NEW; measures the scorer"
    parser.add_argument("--labels", metavar="FILE", type=Path, help=text)
    text = "the worst and the best score, if not 0 and 1: such as 1:5, or 5:1 where 1 is best"
    parser.add_argument("--scale", metavar="WORST:BEST", type=_scale, help=text)
    roles = "; ".join(f"{role}: {what}" for role, what in forms.ROLES.items())
    text = f"a table's column for a role; may be repeated. {roles}"
    columns: dict[str, Any] = {"type": _column, "action": "append", "default": []}
    parser.add_argument("--column", metavar="ROLE=NAME", **columns, help=text)
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


def _column(text: str) -> tuple[str, str]:
    role, _, name = text.partition("=")
    if role not in forms.ROLES or not name:
        what = f"want ROLE=NAME, ROLE one of {', '.join(forms.ROLES)}; got {text!r}"
        raise argparse.ArgumentTypeError(what)
    return role, name

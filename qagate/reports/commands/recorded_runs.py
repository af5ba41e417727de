"""The commands of ``qagate`` on recorded runs and other tools' results, which call no model."""

import argparse
import glob
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from qagate.cases.adjudication_files import load_adjudications
from qagate.cases.config import GatesFile, load_gates
from qagate.cases.dataset import Threshold
from qagate.cases.labels import Scale
from qagate.evaluators import command_line
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say, visible
from qagate.evaluators.statistics.metrics import DROP
from qagate.evaluators.text import hint, shown
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
from qagate.reports.extras.merge.recount import merged, rebuilt, regated
from qagate.reports.extras.sequential.audit import load_plan
from qagate.reports.render import console
from qagate.reports.render.views import date
from qagate.reports.render.writer import FORMATS, Files, WriteError, write, write_files
from qagate.reports.run import report_folder
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.baselines import BASELINES, check_name, find_run, promoted
from qagate.reports.run.clean import line
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report, Role
from qagate.reports.run.report_folder import (
    PREVIOUS,
    RUN_FILE,
    TRANSCRIPTS,
    check_apart,
    keep,
    previous,
)
from qagate.reports.run.run_json import load_report, load_run
from qagate.reports.run.transcripts import Source, calls_of, of_files, parts, title
from qagate.reports.verdict.assemble import account

OUT = Path("reports", "out")
RUN_HELP = "a report folder, its run.json, or the name of a promoted run"
LAST: Any = {
    "metavar": "RUN",
    "nargs": "?",
    "default": OUT,
    "help": f"{RUN_HELP} ({OUT})",
}
OLD = "-baseline"  # what the name of the folder ends with that holds the baseline as a run of ours
_DECIDE_TEXTS = {
    "metric": ("NAME", "the score that decides (default: the tool's own first)"),
    "slice": ("FIELD", "a metadata field or column; each of its values is a slice"),
    "cluster": ("FIELD", "a metadata field or column that dependent samples share"),
    "new": ("MODEL", "the provider or model of the new run, where a file has several"),
    "old": ("MODEL", "the provider or model of the old run, where a file has several"),
}
"""The options that take a word: what it stands for, and its help."""


class Parser(command_line.CommandParser):
    """The parser of one command on recorded runs."""

    def __init__(self, name: str, description: str, codes: str) -> None:
        super().__init__(
            prog=f"qagate {name}",
            description=description,
            epilog=f"exit codes: {codes}",
            allow_abbrev=False,
        )

    def add_to(self, text: str, *, required: bool = False) -> None:
        """Declare ``--to DIR``."""
        self.add_argument(
            "--to", metavar="DIR", type=folder, required=required, help=text
        )

    def add_earlier(self) -> None:
        """Declare ``--baseline RUN``, ``--adjudications FILE`` and ``--anchor RUN``."""
        text = "the run to compare with; by default the one that the run itself was compared with"
        self.add_argument("--baseline", metavar="RUN", help=text)
        text = "verdicts by people, for gates with `evidence: audited`"
        self.add_argument("--adjudications", metavar="FILE", type=Path, help=text)
        self.add_anchor()

    def add_anchor(self) -> None:
        """Declare ``--anchor RUN``."""
        text = "a fixed earlier run that drop and rise gates must pass too (default: the run's own)"
        self.add_argument("--anchor", metavar="RUN", help=text)


def folder(text: str) -> Path:
    """Return the path of a folder to write to, which need not exist."""
    path = Path(text)
    if not text or (path.exists() and not path.is_dir()):
        what = f"{text!r} is not a folder; name one, it is made where it does not exist"
        raise argparse.ArgumentTypeError(what)
    return path


def whole_number(text: str) -> int:
    """Return a number of at least 0 from the command line."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(
            f"a whole number of at least 0 is needed, got {text!r}"
        )
    return int(text)


def read_baseline(
    given: str | None,
    reports: Sequence[Report],
    role: Role = "baseline",
    people: Path | None = None,
    to: Path | None = None,
) -> Baseline | None:
    """Return the run to compare with: the one given, else the one that these were compared with.

    Raises UsageError for one that cannot be read, lies in ``to``, or is not the one compared with:
    without it the drop gates would be gone, and a failed run could pass.
    """
    if given is None:
        baseline = _recorded_baseline(reports, role)
    else:
        baseline = load_baseline(find_run(given), role)
    if baseline is None:
        return None
    if to:
        check_apart(Path(baseline.path), to, role, "--to")
    if people:
        return replace(
            baseline, people=load_adjudications(people), plan=load_plan(people)
        )
    return baseline


def _recorded_baseline(reports: Sequence[Report], role: Role) -> Baseline | None:
    """Return the run that these were compared with; None where they were not."""
    if role == "baseline":
        paths = {report.baseline for report in reports if report.baseline}
        comparisons = [report.comparison for report in reports]
    else:
        paths = {report.anchor for report in reports if report.anchor}
        comparisons = [report.since_anchor for report in reports]
    if not paths:
        return None
    if len(paths) > 1:
        named = " and ".join(sorted(paths))
        raise UsageError(
            f"the runs were compared with {named}; say which with --{role}=RUN"
        )
    try:
        baseline = load_baseline(Path(*paths), role)
    except UsageError as problem:
        raise UsageError(
            f"the run was compared with its {role}: {problem}; "
            f"or say where with --{role}=RUN"
        ) from None
    for comparison in comparisons:
        if comparison and comparison.sha256 != baseline.sha256:
            raise UsageError(
                f"{baseline.path} is no longer what the run was compared with; "
                f"give --{role}=RUN"
            )
    return baseline


def home(run: Path) -> Path:
    """Return the folder of a run that is given by it or by its ``run.json``."""
    return run if run.is_dir() else run.parent


def transcripts_of(*runs: Path) -> Source | None:
    """Return what was sent and returned in these runs, None where no file says so."""
    return of_files(home(run) / TRANSCRIPTS for run in runs)


def save(report: Report, to: Path | None, *runs: Path) -> list[str]:
    """Write the report whole into a folder, if one is given; return the lines that say so."""
    paths = write(report, to, transcripts_of(*runs)) if to else ()
    return [f"report: {path}" for path in paths if path.suffix == ".html"]


def render(argv: Sequence[str]) -> int:
    """Write the files and name them; return the exit code."""
    parser = Parser(
        "render",
        "Write the files of a report again from run.json and records.jsonl, offline.",
        "0 written, 3 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("run", metavar="RUN", type=find_run, help=RUN_HELP)
    parser.add_to("where to write; by default the folder of run.json")
    text, every = f"which files, of {','.join(FORMATS)} (default: all)", tuple(FORMATS)
    parser.add_argument(
        "--format", metavar="WORD,WORD", type=_formats, default=every, help=text
    )
    options = parser.parse_args(argv)
    files = Files(load_report(options.run), options.format, transcripts_of(options.run))
    say(sys.stdout, *map(str, write_files(files, options.to or home(options.run))))
    return 0


def _formats(text: str) -> tuple[str, ...]:
    words, known = (
        tuple(filter(None, map(str.strip, text.split(",")))),
        ", ".join(FORMATS),
    )
    if unknown := [word for word in words if word not in FORMATS]:
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is no format; there are {known}"
        )
    if not words:
        raise argparse.ArgumentTypeError(f"name a format: {known}")
    return words


def compare(argv: Sequence[str]) -> int:
    """Print what changed from the first run to the second, and write it where asked."""
    parser = Parser(
        "compare",
        "Compare two runs item by item: differences are NEW - OLD. Gates decide nothing here.",
        "0 compared, 3 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("old", metavar="OLD", help=RUN_HELP)
    parser.add_argument("new", metavar="NEW", type=find_run, help=RUN_HELP)
    parser.add_anchor()
    parser.add_to("a folder for the report of NEW compared with OLD")
    options = parser.parse_args(argv)
    report = load_report(options.new)
    anchor = read_baseline(options.anchor, [report], "anchor", to=options.to)
    compared = rebuilt(
        report, read_baseline(options.old, [report], to=options.to), anchor
    )
    if compared.comparison is None or not any(
        one.shared for one in compared.comparison.slices
    ):
        what = "have no item in common; compare runs of one dataset"
        raise UsageError(f"{options.old} and {options.new} {what}")
    say(
        sys.stdout,
        *console.comparison(compared),
        *save(compared, options.to, options.new),
    )
    return 0


def gate(argv: Sequence[str]) -> int:
    """Print the gates and return the exit code that the run would have had with them."""
    parser = Parser(
        "gate",
        "Decide on a recorded run again, with other gates or another baseline; asks no model.",
        "0 every gate passed, 1 a gate failed, 2 the run was interrupted, 3 the report could not "
        "be written, 4 wrong arguments or no readable run, 6 INCONCLUSIVE",
    )
    parser.add_argument("run", metavar="RUN", type=find_run, help=RUN_HELP)
    text = "thresholds over the run's own of those names (dataset: {language: {metric: {min: …}}})"
    parser.add_argument("--gates", metavar="FILE", type=Path, help=text)
    parser.add_earlier()
    parser.add_to("a folder for the report with these gates")
    options = parser.parse_args(argv)
    with report_folder.refusing(options.to, options.run):
        report = load_report(options.run)
        earlier = _earlier(options, [report])
        gates = None if options.gates is None else load_gates(options.gates)
        decided = (
            rebuilt(report, *earlier)
            if gates is None
            else regated(report, gates, *earlier)
        )
        decided = _with_people(decided, options.adjudications)
    return _say_decided(
        decided, options.to, options.to or home(options.run), options.run
    )


def merge(argv: Sequence[str]) -> int:
    """Write the report of all runs together and return the exit code that it would have had."""
    parser = Parser(
        "merge",
        "Put the runs of CI shards together. Refuses runs of different models, judges, seeds, data "
        "files, prompts, rubrics or gates; an item in two of them must have the same record in "
        "both. If a shard is missing, the verdict is INCONCLUSIVE and names it.",
        "those of the whole run: 0 every gate passed, 1 a gate failed, 2 a shard was interrupted, "
        "3 the report could not be written, 4 wrong arguments or runs that do not belong "
        "together, 6 INCONCLUSIVE",
    )
    text = f"{RUN_HELP}; or all that a pattern in quotes matches, such as 'shards/*'"
    parser.add_argument("runs", metavar="RUN", nargs="+", help=text)
    parser.add_earlier()
    parser.add_to("a folder for the report of the whole", required=True)
    options = parser.parse_args(argv)
    with report_folder.refusing(options.to, *map(Path, options.runs)):
        paths = list(
            dict.fromkeys(path for text in options.runs for path in _matching(text))
        )
        reports = [load_report(path) for path in paths]
        report = _with_people(
            merged(reports, *_earlier(options, reports)), options.adjudications
        )
    return _say_decided(report, options.to, options.to, *paths)


def _matching(text: str) -> Iterator[Path]:
    found = [text]
    if (
        glob.has_magic(text) and not Path(text).exists()
    ):  # without runs that others replaced
        found = [run for run in sorted(glob.glob(text)) if not run.endswith(PREVIOUS)]  # noqa: PTH207
    if not found:
        raise UsageError(f"{text}: no report folder matches")
    return map(Path, found)


def _earlier(
    options: argparse.Namespace, reports: Sequence[Report]
) -> tuple[Baseline | None, Baseline | None]:
    people, to = options.adjudications, options.to
    baseline = read_baseline(options.baseline, reports, people=people, to=to)
    return baseline, read_baseline(options.anchor, reports, "anchor", people, to)


def _with_people(report: Report, people: Path | None) -> Report:
    """Return the report. Raises UsageError where no gate of it asks for people's verdicts."""
    if people and not any(one.audit for one in report.decision.gates):
        raise UsageError(
            "--adjudications: decides nothing without --baseline and an audited gate"
        )
    return report


def _say_decided(report: Report, to: Path | None, folder: Path, *runs: Path) -> int:
    saved, then = save(report, to, *runs), console.next_step(report, folder)
    lines = *console.gates(report, folder), *saved, *then
    say(sys.stdout, *map(line, (*lines, report.decision.line)))
    return report.decision.code


def promote(argv: Sequence[str]) -> int:
    """Keep a run's report under a name; return the exit code."""
    parser = Parser(
        "promote",
        f"Keep what a comparison needs of a run in {BASELINES}/NAME, for --baseline=NAME and for "
        "the trend of later reports. Commit that folder.",
        "0 kept, 3 could not be written, 4 wrong arguments, no readable run, or one that did not "
        "pass",
    )
    parser.add_argument("name", metavar="NAME", help="such as 2026-11 or gpt-4.1")
    parser.add_argument("run", type=find_run, **LAST)
    parser.add_argument(
        "--replace", action="store_true", help="in place of the run of that name"
    )
    text = "all files of the report: page, tables, prompts and replies"
    parser.add_argument("--whole", action="store_true", help=text)
    parser.add_argument(
        "--anyway", action="store_true", help="also a run that did not pass"
    )
    options = parser.parse_args(argv)
    to = BASELINES / check_name(options.name)
    run, records = load_run(options.run)
    verdict = run.get("verdict")
    if verdict != "PASS" and not options.anyway:
        what = (
            "and a baseline is a run that passed; say --anyway to keep it all the same"
        )
        raise UsageError(f"{options.run}: its verdict is {verdict}, {what}")
    if to.exists() and not options.replace:
        what = (
            f"{to}: a run of that name is there; choose another name, or say --replace"
        )
        raise UsageError(what)
    source = home(options.run)
    try:
        keep(source, to, packed=not options.whole)
    except OSError as error:
        raise WriteError(
            to, sum(file.stat().st_size for file in source.glob("*")), error
        ) from None
    say(
        sys.stdout,
        f"{to}: {verdict}, {plural(len(records), 'item')}; --baseline={options.name}",
    )
    return 0


def list_runs(argv: Sequence[str]) -> int:
    """Print the promoted runs, the last run and the one that decided before it; return 0."""
    what = "List the promoted runs and the last ones: name, when, verdict, items, model, judge."
    Parser("list", what, "0 listed").parse_args(argv)
    last = [folder for folder in (previous(OUT), OUT) if (folder / RUN_FILE).is_file()]
    lines = []
    for one in (*promoted(Path()), *last):
        name = one.name if one.parent == BASELINES else str(OUT.with_name(one.name))
        try:
            report = load_report(one, items=False)
        except UsageError as problem:
            lines.append(f"{name:<24} cannot be read: {problem}")
            continue
        when, items = (
            date(report.run.get("started")),
            plural(report.counts.planned, "item"),
        )
        told = f"{report.verdict:<12} {items:>12}  {report.model}  {report.judge}"
        lines.append(f"{name:<24} {when}  {told}")
    none = f"no run yet: `pytest cases/` writes {OUT}, `qagate promote NAME` keeps it"
    say(sys.stdout, *(lines or [none]))
    return 0


def show(argv: Sequence[str]) -> int:
    """Print an item with every prompt and reply behind it; return the exit code."""
    parser = Parser(
        "show",
        "Print one item: question, answer, verdict, and each prompt and reply in its exact words.",
        "0 shown, 4 wrong arguments, no such item or no readable run",
    )
    parser.add_argument(
        "item", metavar="ITEM", help="as in records.jsonl and on the page"
    )
    parser.add_argument("run", type=find_run, **LAST)
    options = parser.parse_args(argv)
    _, records = load_run(options.run)
    name = options.item.rpartition("[")[2].removesuffix("]")  # a test's node id will do
    named = {record.key: record for record in records}
    alike = (
        [named[name]] if name in named else [one for one in records if one.id == name]
    )
    if len(alike) != 1:
        known = [record.key for record in alike] or list(named)
        raise UsageError(f"no item {shown(name)} in this run; {hint(name, known)}")
    record = alike[0]
    lines = [f"{record.key}: {record.outcome} {record.result}".rstrip()]
    for heading, text in _texts_of(record):
        lines += _part(heading, text)
    if not record.calls:
        none = "No model was asked: the answer is recorded, and rules or a person judged it."
        failed = record.error or record.answer is None
        lines.append(
            "No reply is kept: the call failed or was not made." if failed else none
        )
    source = transcripts_of(options.run)
    found = calls_of(source, record.calls) if source else {}
    for number, key in enumerate(record.calls, 1):
        call = found.get(key)
        unkept = f"call {key}: neither prompt nor reply is kept with this run"
        lines += ["", f"{number}. {title(call) if call else unkept}"]
        lines += (one for part in (parts(call) if call else ()) for one in _part(*part))
    say(sys.stdout, *lines)
    return 0


def _texts_of(record: Record) -> Iterator[tuple[str, str]]:
    """Yield each text of an item that is not empty, after its heading."""
    texts = {
        "question": record.question,
        "context": record.context,
        "expected": record.expected,
        "answer": record.answer,
        "reason": record.reason,
        "error": record.error,
    }
    for heading, text in texts.items():
        if text:
            yield heading, text
    for vote in record.votes:
        yield f"vote of {vote.judge}", f"{vote.label} {vote.reason or vote.error}"


def _part(name: str, text: str) -> list[str]:
    return [f"  {name}:", *(f"    {one}" for one in visible(text).split("\n"))]


def decide(argv: Sequence[str]) -> int:
    """Decide over two results of another tool; write the report and return the exit code."""
    options = _decide_parser().parse_args(argv)
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


def _decide_parser() -> Parser:
    parser = Parser(
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
    text = f"what the results are, of {', '.join(forms.FORMS)} (default: found by their content)"
    parser.add_argument(
        "--from", dest="form", choices=list(forms.FORMS), metavar="FORM", help=text
    )
    for name, (metavar, text) in _DECIDE_TEXTS.items():
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

"""The commands of ``qagate`` on recorded runs, which call no model."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from qagate.cases.config import load_gates
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say, visible
from qagate.evaluators.text import hint, shown
from qagate.reports.commands.given_runs import (
    OUT,
    RUN_HELP,
    RecordedRunParser,
    check_people_decide,
    folder_of,
    read_baseline,
    read_earlier,
    save,
    say_decided,
    transcripts_of,
)
from qagate.reports.render import console
from qagate.reports.render.views import date
from qagate.reports.render.writer import FORMATS, Files, WriteError, write_files
from qagate.reports.run import report_folder
from qagate.reports.run.baselines import BASELINES, check_name, find_run, promoted
from qagate.reports.run.record import Record
from qagate.reports.run.report_folder import RUN_FILE, keep, previous
from qagate.reports.run.run_json import load_report, load_run
from qagate.reports.run.sent_calls import calls_of, parts, title
from qagate.reports.verdict.rebuild import rebuilt, regated


def render(argv: Sequence[str]) -> int:
    """Write the files and name them; return the exit code."""
    parser = RecordedRunParser(
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
    say(sys.stdout, *map(str, write_files(files, options.to or folder_of(options.run))))
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
    parser = RecordedRunParser(
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
    parser = RecordedRunParser(
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
        baseline, anchor = read_earlier(options, [report])
        if options.gates is None:
            decided = rebuilt(report, baseline, anchor)
        else:
            decided = regated(report, load_gates(options.gates), baseline, anchor)
        check_people_decide(decided, options.adjudications)
    folder = options.to or folder_of(options.run)
    return say_decided(decided, options.to, folder, options.run)


def promote(argv: Sequence[str]) -> int:
    """Keep a run's report under a name; return the exit code."""
    parser = RecordedRunParser(
        "promote",
        f"Keep what a comparison needs of a run in {BASELINES}/NAME, for --baseline=NAME and for "
        "the trend of later reports. Commit that folder.",
        "0 kept, 3 could not be written, 4 wrong arguments, no readable run, or one that did not "
        "pass",
    )
    parser.add_argument("name", metavar="NAME", help="such as 2026-11 or gpt-4.1")
    parser.add_last_run()
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
    source = folder_of(options.run)
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
    RecordedRunParser("list", what, "0 listed").parse_args(argv)
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
    parser = RecordedRunParser(
        "show",
        "Print one item: question, answer, verdict, and each prompt and reply in its exact words.",
        "0 shown, 4 wrong arguments, no such item or no readable run",
    )
    parser.add_argument(
        "item", metavar="ITEM", help="as in records.jsonl and on the page"
    )
    parser.add_last_run()
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

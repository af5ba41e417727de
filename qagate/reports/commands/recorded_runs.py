"""The commands of ``qagate`` on recorded runs, which call no model."""

import argparse
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

from qagate.cases.config import load_gates
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say, visible
from qagate.evaluators.text import hint, one_line, shown
from qagate.reports.commands.given_runs import (
    OUT,
    RUN_HELP,
    RecordedRunParser,
    check_people_decide,
    load_run_to_decide,
    read_earlier,
    say_decided,
    transcripts_of,
)
from qagate.reports.gates.decide import INCONCLUSIVE, OK
from qagate.reports.render import console
from qagate.reports.render.words import date
from qagate.reports.render.writer import FORMATS, Files, WriteError, write_files
from qagate.reports.run import report_folder
from qagate.reports.run.baselines import (
    BASELINES,
    Promotion,
    check_name,
    find_run,
    promoted,
    write_promotion,
)
from qagate.reports.run.clean import line
from qagate.reports.run.decisions import why_no_baseline
from qagate.reports.run.judge_replies import of_folders
from qagate.reports.run.known_decisions import decisions_in_folders
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import (
    RUN_FILE,
    folder_of,
    keep,
    later_command,
    mark,
    previous,
)
from qagate.reports.run.run_json import load_report, load_run
from qagate.reports.run.sent_calls import calls_of, parts, title
from qagate.reports.verdict.assemble import superseded_text
from qagate.reports.verdict.rebuild import rebuilt, regated

MAX_REASON_LENGTH = 200
"""Characters of ``--anyway REASON`` that are kept: it stands in every last line."""


def render(argv: Sequence[str]) -> int:
    """Write the files, name them and the verdict; return the exit code, which is the run's own."""
    parser = RecordedRunParser(
        "render",
        "Write the files of a report again from run.json and records.jsonl, offline.",
        "the run's own (0 every gate passed, 1 a gate failed, 2 interrupted, 6 INCONCLUSIVE); "
        "3 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("run", metavar="RUN", type=find_run, help=RUN_HELP)
    parser.add_to("where to write; by default the folder of run.json")
    parser.add_argument(
        "--format",
        metavar="WORD,WORD",
        type=_formats,
        default=tuple(FORMATS),
        help=f"which files, of {','.join(FORMATS)} (default: all)",
    )
    options = parser.parse_args(argv)
    report = load_report(options.run)
    files = Files(
        report,
        options.format,
        transcripts_of(options.run),
        judge_replies=of_folders([folder_of(options.run)]),
    )
    folder = options.to or folder_of(options.run)
    paths = write_files(files, folder)
    say(sys.stdout, *map(str, paths), line(report.decision.line))
    later = later_command(folder_of(options.run))
    if later:
        mark(folder, later)
    if not later or report.decision.code != OK:
        return report.decision.code
    say(
        sys.stdout,
        line(f"INCONCLUSIVE: exit {INCONCLUSIVE}; {superseded_text(later)}"),
    )
    return INCONCLUSIVE


def _formats(text: str) -> tuple[str, ...]:
    known_formats = ", ".join(FORMATS)
    formats = [word.strip() for word in text.split(",") if word.strip()]
    for word in formats:
        if word not in FORMATS:
            raise argparse.ArgumentTypeError(
                f"{word!r} is no format; there are {known_formats}"
            )
    if not formats:
        raise argparse.ArgumentTypeError(f"name a format: {known_formats}")
    return tuple(formats)


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
        report = load_run_to_decide(options.run)
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
        "0 kept, 3 could not be written, 4 wrong arguments, no readable run, or one that may be "
        "no baseline",
    )
    parser.add_argument("name", metavar="NAME", help="such as 2026-11 or gpt-4.1")
    parser.add_last_run()
    text = "in place of the run of that name"
    parser.add_argument("--replace", action="store_true", help=text)
    text = "all files of the report: page, tables, prompts and replies"
    parser.add_argument("--whole", action="store_true", help=text)
    parser.add_argument(
        "--anyway",
        metavar="REASON",
        help="also a run that may be no baseline by itself; each run against it repeats the "
        "reason in its last line",
    )
    options = parser.parse_args(argv)
    to = BASELINES / check_name(options.name)
    report = load_report(options.run)
    source = folder_of(options.run)
    _check_promotable(report, options.run, options.anyway)
    if to.exists() and not options.replace:
        raise UsageError(
            f"{to}: a run of that name is there; choose another name, or say --replace"
        )
    try:
        keep(source, to, packed=not options.whole)
        anyway = one_line(options.anyway or "", MAX_REASON_LENGTH)
        write_promotion(to, Promotion(name=options.name, anyway=anyway))
    except OSError as error:
        size = sum(file.stat().st_size for file in source.glob("*"))
        raise WriteError(to, size, error) from None
    items = plural(len(report.records), "item")
    say(sys.stdout, f"{to}: {report.verdict}, {items}; --baseline={options.name}")
    return 0


def _check_promotable(report: Report, run: Path, anyway: str | None) -> None:
    """Raise UsageError for a run that may be no baseline, unless a reason is given."""
    if anyway is not None and not anyway.strip():
        raise UsageError("--anyway: empty; say why this run may be a baseline")
    if anyway is not None:
        return
    later = later_command(folder_of(run))
    if later:
        why = superseded_text(later)
    else:
        why = why_no_baseline(report, decisions_in_folders(Path()))
    if why:
        raise UsageError(
            f"{run}: {why}; a baseline is a run that passed: say --anyway REASON to keep it all "
            "the same"
        )


def list_runs(argv: Sequence[str]) -> int:
    """Print the promoted runs, the last run and the one that decided before it; return 0."""
    RecordedRunParser(
        "list",
        "List the promoted runs and the last ones: name, when, verdict, items, model, judge.",
        "0 listed",
    ).parse_args(argv)
    lines = [_list_line(run.name, run) for run in promoted(Path())]
    for folder in (previous(OUT), OUT):
        if (folder / RUN_FILE).is_file():
            lines.append(_list_line(str(OUT.with_name(folder.name)), folder))
    if not lines:
        lines = [
            f"no run yet: `pytest cases/` writes {OUT}, `qagate promote NAME` keeps it"
        ]
    say(sys.stdout, *lines)
    return 0


def _list_line(name: str, run: Path) -> str:
    try:
        report = load_report(run, items=False)
    except UsageError as problem:
        return f"{name:<24} cannot be read: {problem}"
    started = date(report.run.get("started"))
    items = plural(report.counts.planned, "item")
    line = (
        f"{name:<24} {started}  {report.verdict:<12} {items:>12}  "
        f"{report.model}  {report.judge}"
    )
    later = later_command(run)
    if later:
        line += f"  (no report of the later command: {later})"
    return line


def show(argv: Sequence[str]) -> int:
    """Print an item with every prompt and reply behind it; return the exit code."""
    parser = RecordedRunParser(
        "show",
        "Print one item: question, answer, verdict, and each prompt and reply in its exact words, "
        "on lines as wide as the terminal.",
        "0 shown, 4 wrong arguments, no such item or no readable run",
    )
    parser.add_argument(
        "item", metavar="ITEM", help="as in records.jsonl and on the page"
    )
    parser.add_last_run()
    parser.add_argument(
        "--unwrapped",
        action="store_true",
        help="leave lines as long as they are, to copy them",
    )
    options = parser.parse_args(argv)
    _, items = load_run(options.run)
    record = _named_record(options.item, items.records)
    lines = [f"{record.key}: {record.outcome} {record.result}".rstrip()]
    for heading, text in _texts_of(record):
        lines += _block(heading, text)
    lines += _call_lines(record, options.run)
    if not options.unwrapped:
        lines = [part for line in lines for part in _wrapped(line)]
    say(sys.stdout, *lines)
    return 0


def _named_record(text: str, records: Sequence[Record]) -> Record:
    """Return the record with this key, or the only one with this id; a test's node id will do.

    Raises UsageError where there is none, or several.
    """
    name = text.rpartition("[")[2].removesuffix("]")
    by_key = {record.key: record for record in records}
    if name in by_key:
        return by_key[name]
    of_this_id = [record for record in records if record.id == name]
    if len(of_this_id) == 1:
        return of_this_id[0]
    keys = [record.key for record in of_this_id] or list(by_key)
    raise UsageError(f"no item {shown(name)} in this run; {hint(name, keys)}")


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


def _call_lines(record: Record, run: Path) -> list[str]:
    """Return each prompt and reply of an item, as far as they are kept with the run."""
    if not record.calls:
        if record.error or record.answer is None:
            return ["No reply is kept: the call failed or was not made."]
        return [
            "No model was asked: the answer is recorded, and rules or a person judged it."
        ]
    source = transcripts_of(run)
    kept_calls = calls_of(source, record.calls) if source else {}
    lines = []
    for number, key in enumerate(record.calls, 1):
        call = kept_calls.get(key)
        lines.append("")
        if call is None:
            lines.append(
                f"{number}. call {key}: neither prompt nor reply is kept with this run"
            )
            continue
        lines.append(f"{number}. {title(call)}")
        for heading, text in parts(call):
            lines += _block(heading, text)
    return lines


def _block(heading: str, text: str) -> list[str]:
    """Return a heading and the lines of a text below it, indented."""
    lines = [f"    {line}" for line in visible(text).split("\n")]
    return [f"  {heading}:", *lines]


def _wrapped(line: str) -> list[str]:
    """Return a line on lines as wide as the terminal, all indented as it is.

    Words stay whole, and so does what is between two words of one line.
    """
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        line,
        console.width(),
        subsequent_indent=indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines or [line]

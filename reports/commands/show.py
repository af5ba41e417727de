"""``qagate show``: all that is known of one item, and the exact words of its calls."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import hint, shown
from reports.commands.recorded_runs import RUN_HELP, Parser, transcripts_of
from reports.render.call_text import parts, title
from reports.run.clean import visible
from reports.run.record import Record
from reports.run.run_reader import load_run
from reports.run.transcripts import Source, calls_of

HERE = Path("reports", "out")
_INDENT = "    "


def main(argv: Sequence[str]) -> int:
    """Print an item with every prompt and reply behind it; return the exit code."""
    parser = Parser(
        "show",
        "Print one item: question, answer, verdict, and each prompt and reply in its exact words.",
        "0 shown, 4 wrong arguments, no such item or no readable run",
    )
    parser.add_argument("item", metavar="ITEM", help="as in records.jsonl and on the page")
    parser.add_argument(
        "run", metavar="RUN", type=Path, nargs="?", default=HERE, help=f"{RUN_HELP} ({HERE})"
    )
    options = parser.parse_args(argv)
    _, records = load_run(options.run)
    record = _find(options.item, records)
    say(sys.stdout, *_about(record), *_calls(record, transcripts_of(options.run)))
    return 0


def _find(item: str, records: Sequence[Record]) -> Record:
    """Return the record with this key, or the only one with this id; a test's node id will do."""
    name = item.rpartition("[")[2].removesuffix("]")
    named = {record.key: record for record in records}
    alike = [named[name]] if name in named else [one for one in records if one.id == name]
    if len(alike) == 1:
        return alike[0]
    known = [record.key for record in alike] or list(named)
    raise UsageError(f"no item {shown(name)} in this run; {hint(name, known)}")


def _about(record: Record) -> Iterator[str]:
    yield f"{record.key}: {record.outcome} {record.result}".rstrip()
    for name in ("question", "context", "expected", "answer", "reason", "error"):
        if text := getattr(record, name):
            yield from _part(name, text)
    for vote in record.votes:
        yield from _part(f"vote of {vote.judge}", f"{vote.label} {vote.reason or vote.error}")


def _calls(record: Record, source: Source | None) -> Iterator[str]:
    if not record.calls:
        yield "No model was asked: the answer is recorded, and rules or a person judged it."
        return
    found = calls_of(source, record.calls) if source else {}
    for number, key in enumerate(record.calls, 1):
        yield ""
        if key not in found:
            yield f"{number}. call {key}: neither prompt nor reply is kept beside this run"
        else:
            yield f"{number}. {title(found[key])}"
            for name, text in parts(found[key]):
                yield from _part(name, text)


def _part(name: str, text: str) -> Iterator[str]:
    yield f"  {name}:"
    yield from (f"{_INDENT}{line}" for line in visible(text).split("\n"))

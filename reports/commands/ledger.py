"""``qagate ledger``: look into a ledger, carry it elsewhere, remove old rows."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.ledger import LedgerError, upkeep
from evaluators.ledger.opening import exists, open_store
from evaluators.ledger.rows import StoreError
from evaluators.ledger.upkeep import LedgerStats, RowFilter
from evaluators.ledger_place import Place, read_place
from evaluators.models.catalogue import load_catalogue
from evaluators.models.keys import KEY_ENV, MODELS_FILE
from evaluators.output import aligned_table, plural, say, write_whole
from evaluators.runtime.budget import money
from evaluators.runtime.prices import pricer
from evaluators.secrets import one_line
from reports.commands.ledger_batches import batches

DEFAULT = Path(".qa/ledger.sqlite3")
DONE, REFUSED = 0, 4
DAY_S = 86_400.0
MAX_NAMED = 20  # bad lines that are named one by one
HEAD = (
    *("model", "calls", "tokens in", "cached", "tokens out"),
    *("call time", "cost", "first", "last"),
)
COUNTED = {
    "damaged": ("damaged row", ": the next run sets aside what it needs"),
    "unsigned": ("unsigned row", ": the next run sets aside what it needs"),
    "set aside": ("row", " set aside by earlier runs"),
    "imported": ("row", " imported"),
    "documents": ("document", " with them"),
}
NOTE = "exit codes: 0 done, 1 the disk or the file refuses, 4 wrong arguments or bad lines"

Options = argparse.Namespace


def stats(options: Options) -> int:
    """Print rows, tokens, time and cost by model."""
    cost = pricer(load_catalogue(own=options.models), datetime.now(UTC).date())
    with closing(open_store(options.ledger, read_only=True)) as opened:
        say(sys.stderr, *opened.notes)
        found = upkeep.ledger_stats(opened, cost)
        say(sys.stdout, *_stats_lines(options.ledger, found, opened.size))
    return DONE


def _stats_lines(place: Place, found: LedgerStats, size: int) -> Iterator[str]:
    calls = sum(total.calls for total in found.models.values())
    yield f"{place}: {calls:,} replies, {size / 1e6:,.1f} MB"
    rows = [
        (
            one_line(spec),
            f"{total.calls:,}",
            f"{total.input_tokens:,}",
            f"{total.cache_read_tokens:,}",
            f"{total.output_tokens:,}",
            f"{total.seconds:,.0f} s",
            "unknown" if total.cost is None else money(total.cost),
            _day(total.first),
            _day(total.last),
        )
        for spec, total in found.models.items()
    ]
    if rows:
        yield from aligned_table([HEAD, *rows])
    for name, (what, rest) in COUNTED.items():
        if count := found.counts[name]:
            yield f"{plural(count, what)}{rest}"
    if any(total.cost is None for total in found.models.values()):
        yield "cost unknown: neither models.yaml nor genai-prices has a price"


def _day(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "no date"


def export(options: Options) -> int:
    """Write rows as JSON lines, to a file or to stdout."""
    left_out: list[str] = []
    with closing(open_store(options.ledger, read_only=True)) as opened:
        selection = RowFilter(spec=options.model, since=options.since)
        lines = upkeep.export_lines(opened, selection, left_out)
        if options.file is None:
            sys.stdout.writelines(lines)
        else:
            write_whole(options.file, map(str.encode, lines))
    if left_out:
        say(sys.stderr, f"{plural(len(left_out), 'damaged row')} left out")
    return DONE


def import_(options: Options) -> int:
    """Add the rows of an exported file."""
    with closing(open_store(options.ledger)) as opened:
        say(sys.stderr, *opened.notes)
        done = upkeep.import_rows(opened, options.file)
    say(sys.stderr, *done.refused[:MAX_NAMED])
    if len(done.refused) > MAX_NAMED:
        say(sys.stderr, f"{plural(len(done.refused), 'bad line')}; the first {MAX_NAMED} are named")
    say(sys.stdout, f"{done.new:,} new, {done.known:,} known, {len(done.refused):,} refused")
    return REFUSED if done.refused else DONE


def prune(options: Options) -> int:
    """Say how many rows would go; with --yes remove them."""
    if options.older_than is None and options.model is None:
        raise UsageError("prune: say what to remove: --older-than 90d, --model SPEC, or both")
    before = None if options.older_than is None else time.time() - options.older_than
    selection = RowFilter(spec=options.model, before=before)
    with closing(open_store(options.ledger)) as opened:
        if not opened.alone():
            raise UsageError(
                f"{options.ledger}: a run is using this ledger; prune it once the run has ended"
            )
        rows, size = upkeep.count(opened, selection)
        if options.yes and rows:
            upkeep.prune(opened, selection)
    done = "removed" if options.yes else "would go; --yes removes them"
    say(sys.stdout, f"{plural(rows, 'row')} with {size:,} bytes of replies {done}")
    return DONE


def _date(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day such as 2026-05-31") from None


def _days(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,5})d", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of days such as 90d")
    return int(match[1]) * DAY_S


COMMANDS: Mapping[str, tuple[str, Callable[[Options], int]]] = {
    "stats": ("what it holds and what that cost", stats),
    "export": ("rows as JSON lines, to a file or to stdout", export),
    "import": ("add the rows of an exported file", import_),
    "prune": ("remove rows by age or model", prune),
    "batches": ("what providers have in batches; cancel one", batches),
}


def main(argv: Sequence[str]) -> int:
    """Run one subcommand and return the exit code.

    Raises UsageError for wrong arguments, LedgerError if the file or the disk refuses.
    """
    options = _parser().parse_args(argv)
    if options.command != "import" and not exists(options.ledger):
        raise UsageError(f"{options.ledger}: no ledger there; give its path as --ledger")
    try:
        _, run = COMMANDS[options.command]
        return run(options)
    except (OSError, StoreError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LedgerError(
            f"{options.ledger}: {options.command} could not be done ({reason}); nothing is lost"
        ) from None


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="qagate ledger",
        description="Look into a ledger, carry it elsewhere, remove old rows.",
        epilog=NOTE,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    adds = {}
    for name, (what, _) in COMMANDS.items():
        one = commands.add_parser(name, help=what, description=what, epilog=NOTE)
        adds[name] = one.add_argument
        text = f"a file (default: {DEFAULT}) or postgresql://HOST/DATABASE"
        one.add_argument("--ledger", metavar="PATH", type=read_place, default=DEFAULT, help=text)
    for name in ("stats", "batches"):
        adds[name]("--models", metavar="FILE", type=Path, help=MODELS_FILE)
    for name in ("export", "prune"):
        adds[name]("--model", metavar="SPEC", help="only the replies of this model")
    adds["import"]("file", type=Path, help="what `ledger export` wrote")
    adds["export"]("file", nargs="?", type=Path, help="the file to write (default: stdout)")
    text = "only from this day on (UTC)"
    adds["export"]("--since", metavar="DATE", type=_date, help=text)
    adds["prune"]("--older-than", metavar="DAYS", type=_days, help="such as 90d")
    adds["prune"]("--yes", action="store_true", help="remove them; without it only count")
    adds["batches"]("--cancel", metavar="ID", help="stop a batch; calls that are done stay")
    adds["batches"]("--key-env", metavar="URL=NAME", action="append", default=[], help=KEY_ENV)
    return parser

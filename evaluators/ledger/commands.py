"""``python -m evaluators ledger``: look into a ledger, carry it elsewhere, take old rows out."""

import argparse
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from evaluators.command_line import Parser
from evaluators.core import UsageError
from evaluators.ledger import transfer, upkeep
from evaluators.ledger.opening import open_to_read, open_to_write
from evaluators.ledger.pricing import pricer
from evaluators.ledger.rows import LedgerError
from evaluators.ledger.table import stock_lines
from evaluators.ledger.transfer import Chosen
from evaluators.models.catalogue import load_catalogue
from evaluators.output import PRIVATE, plural, say, write_whole

DEFAULT = Path(".qa/ledger.sqlite3")
DONE, REFUSED = 0, 4
DAY = 86_400.0
SHOWN = 20  # bad lines that are named one by one
NOTE = "exit codes: 0 done, 1 the disk or the file refuses, 4 wrong arguments or bad lines"

Options = argparse.Namespace


def stats(options: Options) -> int:
    """Print rows, tokens, time and cost by model."""
    cost = pricer(load_catalogue(), datetime.now(UTC).date())
    with closing(open_to_read(options.ledger)) as opened:
        say(sys.stderr, *opened.notes)
        (aside,) = opened.connection.execute("SELECT count(*) FROM damaged").fetchone()
        stock = upkeep.ledger_stats(transfer.rows(opened.connection, Chosen()), int(aside), cost)
    say(sys.stdout, *stock_lines(options.ledger, upkeep.size_of(options.ledger), stock))
    return DONE


def export(options: Options) -> int:
    """Write rows as JSON lines, to a file or to stdout."""
    chosen = Chosen(spec=options.model, since=options.since)
    left_out: list[str] = []
    with closing(open_to_read(options.ledger)) as opened:
        found = transfer.rows(opened.connection, chosen)
        content = transfer.lines(transfer.sound(found, left_out))
        if options.file is None:
            sys.stdout.writelines(content)
        else:
            write_whole(options.file, map(str.encode, content), PRIVATE)
    if left_out:
        say(sys.stderr, f"{plural(len(left_out), 'damaged row')} left out")
    return DONE


def import_(options: Options) -> int:
    """Add the rows of an exported file."""
    with closing(open_to_write(options.ledger)) as opened:
        say(sys.stderr, *opened.notes)
        done = transfer.take_in(opened.connection, options.file, skip_bad=options.skip_bad)
    say(sys.stderr, *done.refused[:SHOWN])
    if done.refused and not options.skip_bad:
        more = f" (the first {SHOWN} are named above)" if len(done.refused) > SHOWN else ""
        bad = plural(len(done.refused), "bad line")
        say(sys.stderr, f"{bad}{more}: nothing imported; --skip-bad takes the others")
        return REFUSED
    say(sys.stdout, f"{done.new:,} new, {done.known:,} known, {len(done.refused):,} refused")
    return DONE


def prune(options: Options) -> int:
    """Say which rows would go; with --yes take them out."""
    if options.older_than is None and options.model is None:
        msg = "prune: say what is to go: --older-than 90d, --model SPEC, or both"
        raise UsageError(msg)
    before = None if options.older_than is None else time.time() - options.older_than
    chosen = Chosen(spec=options.model, before=before)
    with closing(open_to_write(options.ledger)) as opened:
        if opened.claims is not None and not opened.claims.alone():
            msg = f"{options.ledger}: a run is using this ledger; prune it once the run has ended"
            raise UsageError(msg)
        rows, size = upkeep.count(opened.connection, chosen)
        if options.yes and rows:
            upkeep.prune(opened.connection, chosen)
    done = "removed" if options.yes else "would go; --yes removes them"
    say(sys.stdout, f"{plural(rows, 'row')} with {size:,} bytes of replies {done}")
    return DONE


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: what it does, its own arguments, and what runs it."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], object]
    run: Callable[[Options], int]


def _for_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, help="where to (default: stdout)")
    parser.add_argument("--model", metavar="SPEC", help="only the replies of this model")
    parser.add_argument("--since", metavar="DATE", type=_date, help="only from this day on (UTC)")


def _for_import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="what `ledger export` wrote")
    parser.add_argument("--skip-bad", action="store_true", help="take the good lines all the same")


def _for_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--older-than", metavar="DAYS", type=_days, help="such as 90d")
    parser.add_argument("--model", metavar="SPEC", help="only the replies of this model")
    parser.add_argument("--yes", action="store_true", help="remove them; without it only count")


COMMANDS: Mapping[str, Command] = {
    "stats": Command("what is in it and what it cost", lambda parser: None, stats),
    "export": Command("rows as JSON lines, to a file or to stdout", _for_export, export),
    "import": Command("add the rows of an exported file", _for_import, import_),
    "prune": Command("take out rows by age or model", _for_prune, prune),
}


def main(argv: Sequence[str]) -> int:
    """Run one subcommand and return the exit code.

    Raises UsageError for wrong arguments, LedgerError where the file or the disk refuses.
    """
    options = _parser().parse_args(argv)
    if options.command != "import" and not options.ledger.exists():
        msg = f"{options.ledger}: no ledger there; give its path as --ledger"
        raise UsageError(msg)
    try:
        return COMMANDS[options.command].run(options)
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{options.ledger}: {options.command} could not be done ({reason}); nothing is lost"
        raise LedgerError(msg) from None


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m evaluators ledger",
        description="Look into a ledger, carry it elsewhere, take old rows out.",
        epilog=NOTE,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.help, description=command.help, epilog=NOTE)
        one.add_argument(
            "--ledger", metavar="PATH", type=Path, default=DEFAULT, help=f"default: {DEFAULT}"
        )
        command.arguments(one)
    return parser


def _date(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        msg = f"{text!r} is not a day such as 2026-05-31"
        raise argparse.ArgumentTypeError(msg) from None


def _days(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,5})d", text, re.ASCII)
    if match is None:
        msg = f"{text!r} is not a number of days such as 90d"
        raise argparse.ArgumentTypeError(msg)
    return int(match[1]) * DAY

"""``qagate ledger``: look into a ledger, carry it elsewhere, remove old rows."""

import argparse
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from qagate.evaluators import doors
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger import LedgerError, damage, upkeep
from qagate.evaluators.ledger.place import PostgresUrl, read_place
from qagate.evaluators.ledger.rows import StoreError
from qagate.evaluators.ledger.sqlite import exists, open_store
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.keys import KEY_ENV
from qagate.evaluators.models.pricing import pricer
from qagate.evaluators.models.spec import MODELS_FILE
from qagate.evaluators.number_text import money, part_of_cost
from qagate.evaluators.output import aligned_table, plural, say, write_whole
from qagate.evaluators.text import one_line

DEFAULT = Path(".qa/ledger.sqlite3")
DONE, DAMAGED, REFUSED = 0, 1, 4
DAY_S = 86_400.0
MAX_NAMED = 20  # bad lines that are named one by one
HEAD = (
    *("model", "calls", "tokens in", "cached", "tokens out"),
    *("call time", "cost", "first", "last"),
)
SET_ASIDE_LATER = ": the next run sets aside what it needs"
COUNTED = {
    "damaged": ("damaged row", SET_ASIDE_LATER),
    "unsigned": ("unsigned row", SET_ASIDE_LATER),
    "aside": ("row", " set aside by earlier runs"),
    "imported": ("row", " imported"),
    "documents": ("document", " with them"),
}
NOTE = (
    "exit codes: 0 done, 1 the disk or the file refused, or `check` found damage, 4 wrong "
    "arguments or bad lines"
)

Options = argparse.Namespace


def stats(options: Options) -> int:
    """Print rows, tokens, time and cost by model."""
    price = pricer(load_catalogue(own=options.models), datetime.now(UTC).date())
    with closing(open_store(options.ledger, read_only=True)) as opened:
        say(sys.stderr, *opened.notes)
        models, found = upkeep.ledger_stats(opened, price)
        calls = sum(usage.earlier for usage, *_ in models.values())
        say(
            sys.stdout,
            f"{options.ledger}: {calls:,} replies, {opened.size / 1e6:,.1f} MB",
        )
    rows = []
    for spec, (one, *ends) in models.items():
        tokens = one.input_tokens, one.cache_read_tokens, one.output_tokens
        cost = part_of_cost(one.known) if one.cost is None else money(one.known)
        counts = (f"{count:,}" for count in (one.earlier, *tokens))
        rows.append(
            (one_line(spec), *counts, f"{one.seconds:,.0f} s", cost, *map(_day, ends))
        )
    lines = aligned_table([HEAD, *rows]) if rows else []
    for name, (what, rest) in COUNTED.items():
        lines += [f"{plural(count, what)}{rest}"] if (count := found[name]) else []
    if names := [
        one_line(spec) for spec, (usage, *_) in models.items() if usage.cost is None
    ]:
        known = part_of_cost(sum(usage.known for usage, *_ in models.values()))
        what = f"neither models.yaml nor genai-prices has a price of {', '.join(names)}"
        lines.append(f"cost {known}: {what}")
    say(sys.stdout, *lines)
    return DONE


def _day(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "no date"


def export(options: Options) -> int:
    """Write rows as JSON lines, to a file or to stdout."""
    left_out: list[str] = []
    with closing(open_store(options.ledger, read_only=True)) as opened:
        wanted = upkeep.where(spec=options.model, since=options.since)
        lines = upkeep.export_lines(opened, wanted, left_out)
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
        new, known, refused = upkeep.import_rows(opened, options.file)
    say(sys.stderr, *refused[:MAX_NAMED])
    if len(refused) > MAX_NAMED:
        say(
            sys.stderr,
            f"{plural(len(refused), 'bad line')}; the first {MAX_NAMED} are named",
        )
    say(sys.stdout, f"{new:,} new, {known:,} known, {len(refused):,} refused")
    return REFUSED if refused else DONE


def prune(options: Options) -> int:
    """Say how many rows would go; with --yes remove them."""
    if options.older_than is None and options.model is None:
        raise UsageError(
            "prune: say what to remove: --older-than 90d, --model SPEC, or both"
        )
    before = None if options.older_than is None else time.time() - options.older_than
    wanted = upkeep.where(spec=options.model, before=before)
    with closing(open_store(options.ledger)) as opened:
        if not opened.alone():
            what = "a run is using this ledger; prune it once the run has ended"
            raise UsageError(f"{options.ledger}: {what}")
        rows, size = upkeep.prune(opened, wanted, remove=options.yes)
    done = "removed" if options.yes else "would go; --yes removes them"
    say(sys.stdout, f"{plural(rows, 'row')} with {size:,} bytes of replies {done}")
    return DONE


def check(options: Options) -> int:
    """Read all of the ledger and say what is damaged; with --mend put a new file in its place."""
    problems: list[str] = []
    if not isinstance(
        options.ledger, PostgresUrl
    ):  # whose server looks after its pages
        problems = damage.problems_of(options.ledger)
    if problems:
        return _mended(options, problems)
    with closing(open_store(options.ledger, read_only=True)) as opened:
        say(sys.stderr, *opened.notes)
        counts = upkeep.count_rows(opened)
    say(sys.stdout, f"{options.ledger}: sound replies: {counts.sound:,}")
    if counts.damaged:
        say(sys.stdout, f"{plural(counts.damaged, 'damaged row')}{SET_ASIDE_LATER}")
    if counts.unsigned:
        say(sys.stdout, f"{plural(counts.unsigned, 'unsigned row')}{SET_ASIDE_LATER}")
    return DAMAGED if counts.damaged or counts.unsigned else DONE


def _mended(options: Options, problems: Sequence[str]) -> int:
    """Say what is wrong with the pages of a ledger file; with --mend set it aside."""
    say(sys.stderr, *(f"{options.ledger}: damaged: {problem}" for problem in problems))
    if not options.mend:
        say(
            sys.stderr,
            f"{options.ledger}: a run sets it aside when it meets the damage; --mend does so now",
        )
        return DAMAGED
    with closing(open_store(options.ledger)) as opened:
        if not opened.times_mended and not opened.notes:
            opened.mend(problems[0])
        say(sys.stdout, *opened.notes)
    return DONE


def _date(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a day such as 2026-05-31"
        ) from None


def _days(text: str) -> float:
    match = re.fullmatch(r"([0-9]{1,5})d", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of days such as 90d"
        )
    return int(match[1]) * DAY_S


def batches(options: Options) -> int:
    """Print the batches that the ledger remembers; with ``--cancel`` cancel one of them."""
    run = doors.load_ledger_command("batches")
    return run(options)


COMMANDS: Mapping[str, tuple[str, Callable[[Options], int]]] = {
    "stats": ("print what the ledger holds and what it cost", stats),
    "export": ("write rows as JSON lines, to a file or to stdout", export),
    "import": ("add the rows of an exported file", import_),
    "prune": ("remove rows by age or model", prune),
    "check": ("read all of it and say what is damaged", check),
    "batches": ("list the batches that providers have; cancel one", batches),
}


def main(argv: Sequence[str]) -> int:
    """Run one subcommand and return the exit code. Raises UsageError and LedgerError."""
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
        one.add_argument(
            "--ledger", metavar="PATH", type=read_place, default=DEFAULT, help=text
        )
    for name in ("stats", "batches"):
        adds[name]("--models", metavar="FILE", type=Path, help=MODELS_FILE)
    for name in ("export", "prune"):
        adds[name]("--model", metavar="SPEC", help="only the replies of this model")
    adds["import"]("file", type=Path, help="what `ledger export` wrote")
    adds["export"](
        "file", nargs="?", type=Path, help="the file to write (default: stdout)"
    )
    text = "only from this day on (UTC)"
    adds["export"]("--since", metavar="DATE", type=_date, help=text)
    adds["prune"]("--older-than", metavar="DAYS", type=_days, help="such as 90d")
    adds["prune"](
        "--yes", action="store_true", help="remove them; without it only count"
    )
    adds["check"](
        "--mend",
        action="store_true",
        help="set a damaged file aside; rows that verify go on in a new one",
    )
    adds["batches"](
        "--cancel", metavar="ID", help="stop a batch; calls that are done stay"
    )
    adds["batches"](
        "--key-env", metavar="URL=NAME", action="append", default=[], help=KEY_ENV
    )
    options = parser.parse_args(argv)
    if options.command != "import" and not exists(options.ledger):
        raise UsageError(
            f"{options.ledger}: no ledger there; give its path as --ledger"
        )
    try:
        _, run = COMMANDS[options.command]
        return run(options)
    except BrokenPipeError:
        raise  # as `| head` does to any command
    except (OSError, StoreError) as error:
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, StoreError) and error.is_damage:
            reason = (
                f"it is damaged: {error}; `qagate ledger check --mend` sets it aside"
            )
        what = f"{options.ledger}: {options.command} could not be done ({reason}); nothing is lost"
        raise LedgerError(what) from None

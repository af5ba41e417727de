"""``python -m cases download``: fetch a public benchmark or labelled set, and verify it."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cases.download.benchmarks import Benchmark, load_benchmarks
from cases.download.labelled_sets import LabelledSet, bring_to_form, load_labelled_sets
from cases.download.public_files import (
    DATA_FOLDER,
    Order,
    PublicFile,
    is_sha256,
    obtain,
    recorded_hash,
)
from cases.download.resumable import DownloadError, check_address
from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import shown

NOTE = """\
exit codes: 0 the file is there and right, 1 it could not be fetched or is not right,
4 wrong arguments, or a file that is not as the set says, 130 interrupted. Run again after 1 or 130:
what has come is kept."""


def main(argv: Sequence[str]) -> int:
    """Fetch and verify a benchmark or a labelled set, print how to use it, and return 0.

    Raises UsageError for wrong arguments, DownloadError where a file cannot be had.
    """
    benchmarks, sets = load_benchmarks(), load_labelled_sets()
    options = _parser(benchmarks, sets).parse_args(argv)
    if options.name in sets:
        lines = _labelled(sets[options.name], options)
    else:
        lines = _benchmark(benchmarks[options.name], options)
    say(sys.stdout, *lines)
    return 0


def _benchmark(one: Benchmark, options: argparse.Namespace) -> list[str]:
    order = _order(one.source, options, options.url, options.sha256)
    items = shlex.quote(f"{one.dataset}:{one.language}={order.target}")
    return [
        _had(order),
        f"pytest -n 8 cases/{one.dataset} --items {items} {one.run}",
    ]


def _labelled(one: LabelledSet, options: argparse.Namespace) -> list[str]:
    """Get the files of a labelled set and bring them to the one form; return what was done."""
    orders = [_order(one.source, options, options.url, options.sha256)]
    orders += [_order(one.golds, options)] if one.golds else []
    had = [_had(order) for order in orders]
    path = one.path(options.to)
    with _in_place(path):
        found = bring_to_form(one, options.to)
    by_hand = [shlex.quote(str(path)), *(["--scale", one.scale] if one.scale else [])]
    words = [one.name] if options.to == DATA_FOLDER else by_hand
    return [
        *had,
        f"{path}: {found.summary}; labelled by people ({one.citation})",
        f"python -m evaluators calibrate --judge PROVIDER:NAME {' '.join(words)}",
    ]


def _had(order: Order) -> str:
    """Make sure that a file is there, and return how it came there."""
    with _in_place(order.target):
        how = obtain(order, sys.stderr)
        size = order.target.stat().st_size
    return f"{order.target}: {how}, {size:,} bytes, licence {order.file.licence}"


@contextmanager
def _in_place(target: Path) -> Iterator[None]:
    """Turn an OSError about a file into a DownloadError that says what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename or target
        reason = error.strerror or type(error).__name__
        raise DownloadError(
            f"{where}: cannot be written or read ({reason}); mend that, or choose another --to"
        ) from None


def _parser(
    benchmarks: Mapping[str, Benchmark], sets: Mapping[str, LabelledSet]
) -> argparse.ArgumentParser:
    table = "\n".join(_table(benchmarks, sets))
    parser = CommandParser(
        prog="python -m cases download",
        description="Fetch and verify a public benchmark, or answers that people labelled.",
        epilog=f"{table}\n\n{NOTE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", choices=[*benchmarks, *sets], help="which benchmark or labelled set")
    add("--to", metavar="FOLDER", type=Path, default=DATA_FOLDER, help="default: %(default)s")
    add(
        "--sha256",
        metavar="HEX",
        default="",
        help="the hash that the file must have, in place of the pinned or recorded one",
    )
    add("--url", default="", help="another address of the same file")
    return parser


def _table(benchmarks: Mapping[str, Benchmark], sets: Mapping[str, LabelledSet]) -> Iterator[str]:
    yield "benchmarks:"
    for name, one in benchmarks.items():
        yield f"  {name:<12}{one.source.licence}, for {one.dataset}:{one.language}"
        yield f"{'':14}{one.source.url}"
    yield "answers that people labelled, for python -m evaluators calibrate:"
    for name, labelled in sets.items():
        yield f"  {name:<12}{labelled.citation}; licence: {labelled.source.licence}"
        yield from (f"{'':14}{file.url}" for file in labelled.files)


def _order(file: PublicFile, options: argparse.Namespace, url: str = "", sha256: str = "") -> Order:
    given = sha256.strip().lower()
    if sha256 and not is_sha256(given):
        raise UsageError(f"download: --sha256 {shown(sha256)}: 64 hexadecimal digits are needed")
    check_address(url or file.url)
    target = options.to / file.file
    expected = given or file.sha256 or recorded_hash(target)
    return Order(file=file, url=url or file.url, target=target, expected=expected)

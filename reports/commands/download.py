"""``python -m cases download``: fetch a public benchmark in its official form, and verify it."""

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.tools.download.benchmarks import (
    Benchmark,
    Order,
    is_sha256,
    load_benchmarks,
    obtain,
    recorded_hash,
)
from cases.tools.download.resumable import DownloadError, check_address
from evaluators.command_line import Parser
from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import shown

FOLDER = Path(".qa/data")
NOTE = """\
exit codes: 0 the file is there and right, 1 it could not be fetched or is not right,
4 wrong arguments, 130 interrupted. Run again after 1 or 130: what has come is kept."""


def main(argv: Sequence[str]) -> int:
    """Fetch and verify a benchmark, print how to run it, and return 0.

    Raises UsageError for wrong arguments, DownloadError where the file cannot be had.
    """
    benchmarks = load_benchmarks()
    order = _order(benchmarks, _parser(benchmarks).parse_args(argv))
    try:
        how = obtain(order, sys.stderr)
    except OSError as error:
        where = error.filename or order.target
        reason = error.strerror or type(error).__name__
        msg = f"{where}: cannot be written or read ({reason}); mend that, or choose another --to"
        raise DownloadError(msg) from None
    one = order.benchmark
    items = shlex.quote(f"{one.dataset}:{one.language}={order.target}")
    say(
        sys.stdout,
        f"{order.target}: {how}, {order.target.stat().st_size:,} bytes, licence {one.licence}",
        f"pytest -n 8 cases/{one.dataset} --items {items} --model PROVIDER:NAME",
    )
    return 0


def _parser(benchmarks: Mapping[str, Benchmark]) -> argparse.ArgumentParser:
    table = "\n".join(
        f"  {name:<12}{one.licence}, for {one.dataset}:{one.language}\n{'':14}{one.url}"
        for name, one in benchmarks.items()
    )
    parser = Parser(
        prog="python -m cases download",
        description="Fetch a public benchmark in its official form, and verify it.",
        epilog=f"benchmarks:\n{table}\n\n{NOTE}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=list(benchmarks), help="which benchmark")
    parser.add_argument(
        "--to", metavar="FOLDER", type=Path, default=FOLDER, help="default: %(default)s"
    )
    parser.add_argument(
        "--sha256",
        metavar="HEX",
        default="",
        help="the hash that the file must have, in place of the pinned or recorded one",
    )
    parser.add_argument("--url", default="", help="another address of the same file")
    return parser


def _order(benchmarks: Mapping[str, Benchmark], options: argparse.Namespace) -> Order:
    benchmark = benchmarks[options.name]
    given = options.sha256.strip().lower()
    if options.sha256 and not is_sha256(given):
        msg = f"download: --sha256 {shown(options.sha256)}: 64 hexadecimal digits are needed"
        raise UsageError(msg)
    url = options.url or benchmark.url
    check_address(url)
    target = options.to / benchmark.file
    expected = given or benchmark.sha256 or recorded_hash(target)
    return Order(benchmark=benchmark, url=url, target=target, expected=expected)

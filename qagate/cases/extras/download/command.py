"""``qagate download``: fetch a public file, verify it, and say how to use it."""

import re
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from qagate.cases.extras.download.public_files import (
    DATA_FOLDER,
    Benchmark,
    LabelledSet,
    bring_to_form,
    check_address,
    file_errors,
    load_benchmarks,
    load_labelled_sets,
    write_items,
)
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.optional import require
from qagate.evaluators.output import plural, say
from qagate.evaluators.text import shown

DONE = 0
_EXIT_CODES = """\
exit codes: 0 the file is there and right, 1 it could not be fetched or is not right,
4 wrong arguments, or a file that is not as the set says, 130 interrupted"""


def main(argv: Sequence[str]) -> int:
    """Fetch and verify a file, print how to use it, return 0. Raises UsageError, DownloadError."""
    benchmarks = load_benchmarks()
    labelled_sets = load_labelled_sets()
    options = _parser(benchmarks, labelled_sets).parse_args(argv)
    sha256 = options.sha256.strip().lower()
    if options.sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        raise UsageError(
            f"download: --sha256 {shown(options.sha256)}: 64 hexadecimal digits are needed"
        )
    if options.url:
        check_address(options.url)
    if options.name in labelled_sets:
        labelled_set = labelled_sets[options.name]
        report = labelled_set.obtain(options.to, options.url, sha256)
        lines = _made_ready(labelled_set, options.to)
    else:
        benchmark = benchmarks[options.name]
        if benchmark.is_parquet:
            require("pyarrow", f"download {benchmark.name}")
        report = benchmark.obtain(options.to, options.url, sha256)
        lines = []
        if benchmark.is_parquet:
            lines.append(_items_written(benchmark, options.to))
        lines += _run_of(benchmark, options.to)
    say(sys.stdout, report, *lines)
    return DONE


def _parser(
    benchmarks: Mapping[str, Benchmark], labelled_sets: Mapping[str, LabelledSet]
) -> CommandParser:
    table = [*_benchmark_lines(benchmarks), *_labelled_lines(labelled_sets)]
    parser = CommandParser(
        prog="qagate download",
        description="Fetch and verify a public benchmark, or answers that people labelled.",
        epilog="\n".join([*table, "", _EXIT_CODES]),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name",
        metavar="NAME",
        choices=[*benchmarks, *labelled_sets],
        help="a benchmark or labelled set",
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        type=Path,
        default=DATA_FOLDER,
        help="default: %(default)s",
    )
    parser.add_argument(
        "--sha256", metavar="HEX", default="", help="the hash that the file must have"
    )
    parser.add_argument("--url", default="", help="another address of the same file")
    return parser


def _benchmark_lines(benchmarks: Mapping[str, Benchmark]) -> list[str]:
    lines = ["benchmarks:"]
    for name, benchmark in benchmarks.items():
        place = f"{benchmark.dataset}:{benchmark.language}"
        lines.append(f"  {name:<19}{benchmark.licence}, for {place}")
        lines.append(f"{'':14}{benchmark.url}")
    return lines


def _labelled_lines(labelled_sets: Mapping[str, LabelledSet]) -> list[str]:
    lines = ["answers that people labelled, for qagate calibrate:"]
    for name, labelled_set in labelled_sets.items():
        source = f"{labelled_set.citation}; licence: {labelled_set.licence}"
        lines.append(f"  {name:<19}{source}")
        lines.append(f"{'':14}{labelled_set.url}")
        if labelled_set.golds:
            lines.append(f"{'':14}{labelled_set.golds.url}")
    return lines


def _items_written(benchmark: Benchmark, folder: Path) -> str:
    """Write a Parquet file's rows as items; return what was done."""
    path = benchmark.items(folder)
    with file_errors(path):
        count = write_items(benchmark, folder)
    return f"{path}: {plural(count, 'item')} of {benchmark.file}"


def _run_of(benchmark: Benchmark, folder: Path) -> list[str]:
    """Return the commands that run a model over a benchmark that was fetched."""
    file = benchmark.items(folder)
    dataset, language = benchmark.dataset, benchmark.language
    items = quote(f"{dataset}:{language}={file}")
    if benchmark.kind:
        new = f"qagate new {dataset} --kind {benchmark.kind} --lang {language}"
        return [new, f"qagate run {dataset} --items {items} {benchmark.run}"]
    return [f"pytest -n 8 cases/{dataset} --items {items} {benchmark.run}"]


def _made_ready(labelled_set: LabelledSet, folder: Path) -> list[str]:
    """Fetch a labelled set's golds, write its one form; return what was done and what is next."""
    lines = []
    if labelled_set.golds:
        lines.append(labelled_set.golds.obtain(folder))
    path = labelled_set.path(folder)
    with file_errors(path):
        rows, left_out = bring_to_form(labelled_set, folder)
    questions = plural(len({row["question"] for row in rows}), "question")
    reasons = [f"{count:,} for {reason}" for reason, count in left_out.items()]
    lines.append(
        f"{path}: {plural(len(rows), 'answer')} to {questions}; "
        f"left out: {', '.join(reasons) or 'none'}; "
        f"labelled by people ({labelled_set.citation})"
    )
    words = [quote(f"{path}")]
    if labelled_set.scale:
        words += ["--scale", labelled_set.scale]
    if folder == DATA_FOLDER:  # there `qagate calibrate` looks for it by its name
        words = [labelled_set.name]
    lines.append(f"qagate calibrate --judge PROVIDER:NAME {' '.join(words)}")
    return lines

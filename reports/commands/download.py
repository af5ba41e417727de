"""``qagate download``: fetch a public benchmark or labelled set, and verify it."""

import argparse
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.download import public_files
from evaluators.command_line import CommandParser
from evaluators.core import UsageError
from evaluators.output import say
from evaluators.text import shown

NOTE = """\
exit codes: 0 the file is there and right, 1 it could not be fetched or is not right,
4 wrong arguments, or a file that is not as the set says, 130 interrupted"""


def main(argv: Sequence[str]) -> int:
    """Fetch and verify a file, print how to use it, return 0. Raises UsageError, DownloadError."""
    benchmarks, sets = public_files.load_benchmarks(), public_files.load_labelled_sets()
    options = _parser(benchmarks, sets).parse_args(argv)
    sha256 = options.sha256.strip().lower()
    if options.sha256 and not re.fullmatch(r"[0-9a-f]{64}", sha256):
        what = f"--sha256 {shown(options.sha256)}: 64 hexadecimal digits are needed"
        raise UsageError(f"download: {what}")
    public_files.check_address(options.url or "https://localhost")
    one = sets.get(options.name) or benchmarks[options.name]
    lines = [one.obtain(options.to, options.url, sha256)]
    if isinstance(one, public_files.Benchmark):
        items = shlex.quote(f"{one.dataset}:{one.language}={options.to / one.file}")
        lines.append(f"pytest -n 8 cases/{one.dataset} --items {items} {one.run}")
    else:
        lines += _formed(one, options.to)
    say(sys.stdout, *lines)
    return 0


def _formed(one: public_files.LabelledSet, folder: Path) -> list[str]:
    lines = [one.golds.obtain(folder)] if one.golds else []
    path = one.path(folder)
    with public_files.file_errors(path):
        found = public_files.bring_to_form(one, folder)
    by_hand = [shlex.quote(f"{path}"), *(["--scale", one.scale] if one.scale else [])]
    words = [one.name] if folder == public_files.DATA_FOLDER else by_hand
    return [
        *lines,
        f"{path}: {found.summary}; labelled by people ({one.citation})",
        f"qagate calibrate --judge PROVIDER:NAME {' '.join(words)}",
    ]


def _parser(
    benchmarks: Mapping[str, public_files.Benchmark], sets: Mapping[str, public_files.LabelledSet]
) -> argparse.ArgumentParser:
    table = ["benchmarks:"]
    for name, one in benchmarks.items():
        table.append(f"  {name:<12}{one.licence}, for {one.dataset}:{one.language}")
        table.append(f"{'':14}{one.url}")
    table.append("answers that people labelled, for qagate calibrate:")
    for name, labelled in sets.items():
        table.append(f"  {name:<12}{labelled.citation}; licence: {labelled.licence}")
        golds = [labelled.golds.url] if labelled.golds else []
        table += (f"{'':14}{url}" for url in (labelled.url, *golds))
    parser = CommandParser(
        prog="qagate download",
        description="Fetch and verify a public benchmark, or answers that people labelled.",
        epilog="\n".join((*table, "", NOTE)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", choices=[*benchmarks, *sets], help="which benchmark or labelled set")
    folder = public_files.DATA_FOLDER
    add("--to", metavar="FOLDER", type=Path, default=folder, help="default: %(default)s")
    add("--sha256", metavar="HEX", default="", help="the hash that the file must have")
    add("--url", default="", help="another address of the same file")
    return parser

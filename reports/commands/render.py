"""``python -m reports render``: the files of a report again, from ``run.json`` and its records."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from evaluators.output import say
from reports.commands.common import RUN_HELP, Parser
from reports.render.report_files import FORMATS, Files
from reports.run_reader import load_report
from reports.writer import write_files


def main(argv: Sequence[str]) -> int:
    """Write the files and name them; return the exit code."""
    options = _parser().parse_args(argv)
    report = load_report(options.run)
    home = options.run if options.run.is_dir() else options.run.parent
    paths = write_files(Files(report, options.format), options.to or home)
    say(sys.stdout, *map(str, paths))
    return 0


def _parser() -> Parser:
    parser = Parser(
        "render",
        "Write the files of a report again from run.json and records.jsonl, offline.",
        "0 written, 1 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help=RUN_HELP)
    parser.add_to("where to write; by default beside run.json")
    words = ",".join(FORMATS)
    parser.add_argument(
        "--format",
        metavar="WORD,WORD",
        type=_formats,
        default=tuple(FORMATS),
        help=f"which files, of {words} (default: all)",
    )
    return parser


def _formats(text: str) -> tuple[str, ...]:
    words = tuple(filter(None, map(str.strip, text.split(","))))
    for word in words:
        if word not in FORMATS:
            msg = f"{word!r} is no format; there are {', '.join(FORMATS)}"
            raise argparse.ArgumentTypeError(msg)
    if not words:
        msg = f"name a format: {', '.join(FORMATS)}"
        raise argparse.ArgumentTypeError(msg)
    return words

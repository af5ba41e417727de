"""``python -m reports compare``: two recorded runs, item by item."""

import sys
from collections.abc import Sequence
from pathlib import Path

from evaluators.core import UsageError
from evaluators.output import say
from reports.commands.common import RUN_HELP, Parser, read_baseline, save
from reports.recount import rebuilt
from reports.render import console
from reports.run_reader import load_report


def main(argv: Sequence[str]) -> int:
    """Print what changed from the first run to the second, and write it where asked."""
    options = _parser().parse_args(argv)
    report = load_report(options.new)
    compared = rebuilt(report, read_baseline(options.old, [report]))
    if compared.comparison is None or not any(one.shared for one in compared.comparison.slices):
        msg = f"{options.old} and {options.new} have no item in common; compare runs of one dataset"
        raise UsageError(msg)
    say(sys.stdout, *console.comparison(compared), *save(compared, options.to))
    return 0


def _parser() -> Parser:
    parser = Parser(
        "compare",
        "Compare two runs item by item: differences are NEW - OLD. Gates decide nothing here.",
        "0 compared, 1 could not be written, 4 wrong arguments or no readable run",
    )
    parser.add_argument("old", metavar="OLD", type=Path, help=RUN_HELP)
    parser.add_argument("new", metavar="NEW", type=Path, help=RUN_HELP)
    parser.add_to("a folder for the report of NEW beside OLD")
    return parser

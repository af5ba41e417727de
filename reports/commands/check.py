"""``qagate check``: find what is wrong with data sets although they can be loaded."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from cases.check.checks import check_datasets, check_files
from cases.check.item_checks import BUNDLED
from cases.config import FILE
from evaluators.command_line import CommandParser
from evaluators.output import plural, say
from reports.plugin.options import dataset_files

CLEAN, FOUND, USAGE = 0, 1, 4

_EPILOG = """\
exit codes: 0 no errors (warnings are allowed unless --strict), 1 errors found,
4 wrong arguments, or a file that cannot be loaded at all"""


def main(argv: Sequence[str]) -> int:
    """Check data sets, print findings and a summary, return the exit code. Raises UsageError."""
    parser = CommandParser(
        prog="qagate check",
        description="Find repeated items, leaks, wrong letters, and gates that can show nothing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    text = (
        f"a {FILE}, or a folder with some below it (default: those below the working folder; "
        "the bundled ones where it has none)"
    )
    add("files", nargs="*", type=Path, metavar="FILE", help=text)
    text = "the files are data files: check them as items of this bundled dataset and language"
    add("--as", dest="as_", metavar="DATASET:LANG", default="", help=text)
    add("--strict", action="store_true", help="exit with 1 on warnings too")
    options = parser.parse_args(argv)
    paths, here = options.files, Path.cwd()
    if not (paths or options.as_):
        paths = [one for one in dataset_files(["."], here, here) if not one.is_relative_to(BUNDLED)]
    result = check_files(paths, options.as_) if options.as_ else check_datasets(paths)
    found = sum(finding.severity == "error" for finding in result.findings)
    errors, warnings = found + len(result.refused), len(result.findings) - found
    refused = f", {len(result.refused)} not loaded" if result.refused else ""
    checked = f"{plural(result.items, 'item')} in {plural(result.files, 'file')}{refused}"
    summary = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}: {checked}"
    say(sys.stdout, *result.lines, *result.waived, summary)
    say(sys.stderr, *result.refused)
    code = FOUND if errors or (options.strict and warnings) else CLEAN
    return USAGE if result.refused else code

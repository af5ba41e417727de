"""``qagate check``: look for what is wrong with data sets although they can be loaded."""

import sys
from collections.abc import Sequence
from pathlib import Path

from qagate.bundled import CASES
from qagate.cases.discovery import dataset_files
from qagate.cases.extras.check.checks import CheckResult, check_datasets, check_files
from qagate.evaluators.command_line import FAILED, USAGE, CommandParser
from qagate.evaluators.output import plural, say

DONE = 0


def main(argv: Sequence[str]) -> int:
    """Check data sets, print findings and a summary, return the exit code. Raises UsageError."""
    options = _parser().parse_args(argv)
    if options.as_:
        result = check_files(options.files, options.as_)
    elif options.files:
        result = check_datasets(options.files)
    else:
        result = check_datasets(_paths_below(Path.cwd()))
    told = (*result.lines, *result.waived, *result.labelled, *result.drops)
    say(sys.stdout, *told, _summary(result))
    say(sys.stderr, *result.refused)
    if result.refused:
        return USAGE
    if result.errors or (options.strict and result.findings):
        return FAILED
    return DONE


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="qagate check",
        description="Find repeated items, leaks, wrong letters, and gates that can show nothing.",
        epilog="exit codes: 0 no errors (warnings are allowed unless --strict), 1 errors found, 4 "
        "wrong arguments, or a file that cannot be loaded at all",
    )
    parser.add_argument(
        "files",
        nargs="*",
        type=Path,
        metavar="FILE",
        help="a dataset.yaml, or a folder with some below it (default: those below the working "
        "folder; the bundled ones where it has none)",
    )
    parser.add_argument(
        "--as",
        dest="as_",
        metavar="DATASET:LANG",
        default="",
        help="the files are data files: check them as items of this bundled dataset and language",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 1 on warnings too"
    )
    return parser


def _paths_below(here: Path) -> list[Path]:
    """Return the data sets below a folder; the bundled ones among them by their one folder."""
    files = dataset_files(["."], here, here)
    paths = [file for file in files if not file.is_relative_to(CASES)]
    if len(paths) < len(files):
        paths.append(CASES.relative_to(here))
    return paths


def _summary(result: CheckResult) -> str:
    errors = result.errors + len(result.refused)
    warnings = len(result.findings) - result.errors
    checked = f"{plural(result.items, 'item')} in {plural(result.files, 'file')}"
    summary = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}: {checked}"
    if result.refused:
        summary += f", {len(result.refused)} not loaded"
    return summary

"""``python -m cases check``: look for what is wrong with datasets although they can be loaded."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.config import FILE, load_dataset, with_items
from cases.dataset import Dataset
from cases.tools.check.checks import check_dataset, check_slice
from cases.tools.check.findings import Finding, Subject, read_subject
from evaluators.command_line import Parser
from evaluators.core import UsageError
from evaluators.output import plural, say
from evaluators.text import hint, shown

BUNDLED = Path(__file__).parent
CLEAN, FOUND, USAGE = 0, 1, 4

_EPILOG = """\
exit codes: 0 no errors (warnings are allowed unless --strict), 1 errors found,
4 wrong arguments, or a file that cannot be loaded at all"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What was found. ``refused`` holds the messages about files that could not be loaded."""

    files: int = 0
    items: int = 0
    findings: tuple[Finding, ...] = ()
    refused: tuple[str, ...] = ()


def main(argv: Sequence[str]) -> int:
    """Check datasets, print a line for each finding and a summary, and return the exit code."""
    try:
        options = _parser().parse_args(argv)
        result = _run([Path(name) for name in options.files], options.as_)
    except UsageError as problem:
        say(sys.stderr, str(problem))
        return USAGE
    say(sys.stdout, *(finding.line for finding in result.findings), _summary(result))
    say(sys.stderr, *result.refused)
    return _code(result, strict=options.strict)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m cases check",
        description="Look for duplicates, leaks, wrong letters, gaps and weak gates in datasets.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help=f"a {FILE}, or a folder with some below it; the bundled datasets where none is given",
    )
    parser.add_argument(
        "--as",
        dest="as_",
        metavar="DATASET:LANG",
        default="",
        help="the files are data files: check them as items of this bundled dataset and language",
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 on warnings too")
    return parser


def _run(paths: Sequence[Path], as_: str) -> _Result:
    if as_ and not paths:
        msg = f"check: --as {as_}: no file given; name the data files to check"
        raise UsageError(msg)
    if as_:
        return _joined([_check_file(path, as_) for path in paths])
    return _joined([_check_dataset(path) for path in _dataset_files(paths or [_here(BUNDLED)])])


def _dataset_files(paths: Iterable[Path]) -> list[Path]:
    """Return the dataset files that are named, or that are in the folders that are named."""
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(_below(path))
    return list(found)


def _below(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(path.rglob(FILE))
        if not files:
            msg = f"{path}: no {FILE} in this folder or below it; name another"
            raise UsageError(msg)
        return files
    if path.name != FILE:
        msg = f"{path}: neither a folder nor a {FILE}; say --as DATASET:LANG to check a data file"
        raise UsageError(msg)
    return [path]


def _here(path: Path) -> Path:
    """Return a path as seen from the working folder where it is below it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _check_dataset(path: Path) -> _Result:
    dataset = load_dataset(path)
    subjects: dict[str, Subject] = {}
    refused = []
    for language, slice_ in dataset.slices.items():
        try:
            subjects[language] = read_subject(slice_)
        except UsageError as problem:
            refused.append(str(problem))
    findings = [finding for subject in subjects.values() for finding in check_slice(subject)]
    return _Result(
        files=len(dataset.slices),
        items=sum(len(subject.cases) for subject in subjects.values()),
        findings=(*findings, *check_dataset(dataset, subjects)),
        refused=tuple(refused),
    )


def _check_file(path: Path, as_: str) -> _Result:
    """Check a data file as the items of a bundled dataset's language, without its gates."""
    name, _, language = as_.partition(":")
    dataset = with_items(_bundled(name, as_), language, path)
    try:
        subject = read_subject(dataset.slices[language])
    except UsageError as problem:
        return _Result(files=1, refused=(str(problem),))
    return _Result(files=1, items=len(subject.cases), findings=tuple(check_slice(subject)))


def _bundled(name: str, as_: str) -> Dataset:
    files = {path.parent.name: path for path in sorted(BUNDLED.rglob(FILE))}
    if name not in files or ":" not in as_:
        msg = f"check: --as {shown(as_)}: want DATASET:LANG; {hint(name, files)}"
        raise UsageError(msg)
    return load_dataset(files[name])


def _joined(results: Sequence[_Result]) -> _Result:
    found = {finding for result in results for finding in result.findings}
    return _Result(
        files=sum(result.files for result in results),
        items=sum(result.items for result in results),
        findings=tuple(sorted(found, key=_place)),
        refused=tuple(message for result in results for message in result.refused),
    )


def _place(finding: Finding) -> tuple[str, int, str, str]:
    return str(finding.file), finding.row, finding.check, finding.message


def _summary(result: _Result) -> str:
    errors = sum(finding.severity == "error" for finding in result.findings)
    warnings = len(result.findings) - errors
    refused = f", {len(result.refused)} not loaded" if result.refused else ""
    looked = f"{plural(result.items, 'item')} in {plural(result.files, 'file')}{refused}"
    return f"{plural(errors, 'error')}, {plural(warnings, 'warning')}: {looked}"


def _code(result: _Result, *, strict: bool) -> int:
    if result.refused:
        return USAGE
    serious = ("error", "warning") if strict else ("error",)
    return FOUND if any(finding.severity in serious for finding in result.findings) else CLEAN

"""What the commands share: their arguments, reading runs, writing reports and lines."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from evaluators import command_line
from evaluators.core import UsageError
from reports.report import Report
from reports.run_reader import load_run
from reports.trust import Baseline
from reports.writer import write

RUN_HELP = "a report folder or its run.json"


class Parser(command_line.Parser):
    """The parser of one command on recorded runs."""

    def __init__(self, name: str, description: str, codes: str) -> None:
        super().__init__(
            prog=f"python -m reports {name}",
            description=description,
            epilog=f"exit codes: {codes}",
            allow_abbrev=False,
        )

    def add_to(self, text: str, *, required: bool = False) -> None:
        """Declare ``--to DIR``."""
        self.add_argument("--to", metavar="DIR", type=folder, required=required, help=text)

    def add_baseline(self) -> None:
        """Declare ``--baseline RUN``."""
        text = "the run to compare with; by default the one that the run itself was compared with"
        self.add_argument("--baseline", metavar="RUN", type=Path, help=text)


def folder(text: str) -> Path:
    """Return the path of a folder to write to, which need not exist."""
    path = Path(text)
    if not text or (path.exists() and not path.is_dir()):
        msg = f"{text!r} is not a folder; name one, it is made where it does not exist"
        raise argparse.ArgumentTypeError(msg)
    return path


def read_baseline(given: Path | None, reports: Sequence[Report]) -> Baseline | None:
    """Return the run to compare with: the one given, else the one that these were compared with.

    Raises UsageError where that cannot be read, or where they were compared with different ones:
    without it the drop gates would be gone, and a failed run could pass.
    """
    known = sorted({report.baseline for report in reports if report.baseline})
    if given is not None:
        return _baseline(given)
    if len(known) > 1:
        msg = f"the runs were compared with {' and '.join(known)}; say which with --baseline=RUN"
        raise UsageError(msg)
    if not known:
        return None
    try:
        found = _baseline(Path(known[0]))
    except UsageError as problem:
        msg = f"the run was compared with a baseline: {problem}; or say where with --baseline=RUN"
        raise UsageError(msg) from None
    if any(one.comparison and one.comparison.sha256 != found.sha256 for one in reports):
        msg = f"{found.path} is no longer what the run was compared with; give --baseline=RUN"
        raise UsageError(msg)
    return found


def _baseline(path: Path) -> Baseline:
    run, records = load_run(path)
    return Baseline(path=str(path), run=run, records=records)


def save(report: Report, to: Path | None) -> list[str]:
    """Write the whole report where a folder is given; return the lines that say so.

    Raises WriteError.
    """
    if to is None:
        return []
    paths = write(report, to)
    page = next(path for path in paths if path.suffix == ".html")
    return [f"report: {page}"]

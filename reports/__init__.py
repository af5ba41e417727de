"""What a run showed: records, metrics, gates, and the files and plugin that show them.

In a notebook: ``reports.load("reports/out").frame()``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reports.run.notebook import Run

__all__ = ["load"]


def load(path: str | Path) -> Run:
    """Return a recorded run, given its report folder or ``run.json``. Raises UsageError."""
    from reports.run.notebook import Run  # noqa: PLC0415  # keeps the package light
    from reports.run.run_json import load_report  # noqa: PLC0415

    return Run(report=load_report(Path(path)))

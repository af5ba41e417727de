"""What came of it: records, measures, gates, and the files and plugin that show them.

In a notebook: ``reports.load("reports/out").frame()``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from reports.run.notebook import Run

__all__ = ["load"]


def load(path: str | Path) -> Run:
    """Return a recorded run, given its report folder or ``run.json``. Raises UsageError."""
    from reports.run.notebook import load as load_run  # noqa: PLC0415  # keeps the package light

    return load_run(path)

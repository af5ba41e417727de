"""Decide whether a language-model upgrade may ship.

In a notebook: ``qagate.load("reports/out").frame()``, and ``qagate.compare("v1", "v2", "v3")`` for
several runs. pytest loads this module as a plugin
(entry point ``pytest11``), and with it only the light door; see ``qagate/door.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from qagate.reports.extras.notebook.notebook import Run

__all__ = ["compare", "load"]

pytest_plugins = ("qagate.door",)


def load(path: str | Path) -> Run:
    """Return a recorded run, given its report folder or ``run.json``. Raises UsageError."""
    from qagate.reports.extras.notebook.notebook import Run  # noqa: PLC0415  # importing does nothing
    from qagate.reports.run.run_json import load_report  # noqa: PLC0415

    return Run(report=load_report(Path(path)))


def compare(first: str | Path, *others: str | Path) -> pd.DataFrame:
    """Return the figures of several runs beside the first: a row a figure, with its range.

    Columns are those of ``compare.csv``. Raises UsageError for a run that cannot be read, or
    shares no item with the first; ImportError without pandas.
    """
    from qagate.reports.extras.side_by_side.tidy import frame  # noqa: PLC0415  # importing does nothing

    return frame(first, *others)

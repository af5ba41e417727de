"""Decide whether a language-model upgrade may ship.

In a notebook: ``qagate.load("reports/out").frame()``. pytest loads this module as a plugin
(entry point ``pytest11``), and with it only the light door; see ``qagate/door.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qagate.reports.extras.notebook.notebook import Run

__all__ = ["load"]

pytest_plugins = ("qagate.door",)


def load(path: str | Path) -> Run:
    """Return a recorded run, given its report folder or ``run.json``. Raises UsageError."""
    from qagate.reports.extras.notebook.notebook import Run  # noqa: PLC0415  # importing does nothing
    from qagate.reports.run.run_json import load_report  # noqa: PLC0415

    return Run(report=load_report(Path(path)))

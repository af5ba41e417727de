"""The door of cases: public answers that people labelled, which ``qagate download`` fetches.

The trunk knows the rooms in ``extras/`` by this table alone; "module:object" is loaded when it is
asked for. The commands of the rooms are in ``qagate/reports/doors.py``, with all others.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from qagate.evaluators.doors import load_object

LABELLED_SETS = "qagate.cases.extras.download.public_files:load_labelled_sets"


class PublicLabels(Protocol):
    """A public set of labelled answers, which may be fetched or not."""

    @property
    def name(self) -> str:
        """The word for ``qagate download`` and ``qagate calibrate``."""

    @property
    def scale(self) -> str:
        """``WORST:BEST`` of its ratings, empty for grades."""

    def path(self) -> Path:
        """Return the file that stands there once it was fetched."""


def load_labelled_sets() -> Mapping[str, PublicLabels]:
    """Return the public labelled sets by name."""
    load: Callable[[], Mapping[str, PublicLabels]] = load_object(LABELLED_SETS)
    return load()

"""A change between two runs as its gate sees it: an interval for each treatment of what is missing.

Values alone: ``shares.py``, ``tables.py``, ``means.py`` and ``usage_changes.py`` make them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.compare.shares import JudgedShare, PairedDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCase:
    """New - old of a figure under one treatment of what is missing."""

    change: Estimate
    """With its 95 % interval."""
    strict: Estimate
    """With the interval that a PASS has to show; the same for the first set of answers."""
    share: JudgedShare | None = None
    """The pairs behind a share of all items; None for other figures."""
    scaled: "Callable[[float], ChangeCase] | None" = None
    """Returns the case over so many times as many items; None where that cannot be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """New - old of a figure in all treatments of what is missing."""

    cases: Sequence[ChangeCase]
    """The first is over the pairs that are known in both runs; alone where all are."""
    units: float
    """The independent units behind the first: facts, groups or single items."""
    counts: PairedDifference | None = None
    """The known pairs counted, for a share of all items."""

    @property
    def seen(self) -> Estimate:
        """New - old over the pairs that are known in both runs."""
        return self.cases[0].change

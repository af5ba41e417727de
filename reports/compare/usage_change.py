"""How far what answers take moved between two runs: seconds, tokens and USD, pair by pair."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cases.dataset import Threshold
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.metrics import USAGE
from evaluators.statistics.usage_estimates import UsageMetric
from reports.compare.differences import Change, ResampledDifference, change_of
from reports.compare.pair_counts import Sides, matches_of
from reports.run.usage_summary import (
    BEST,
    WORST,
    Unknown,
    UsageShift,
    taken,
    usage_change,
    usage_shift,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChange:
    """A metric of what answers take, in both runs; ``relative`` to its old value, or not."""

    sides: Sides
    row: UsageMetric
    relative: bool

    @property
    def pairs(self) -> list[tuple[Cluster, float | None, float | None]]:
        """Every item with what its answer took then and takes now, graded or not."""
        return list(_pairs(self.sides, self.row))

    def obstacle(self) -> str:
        """Return why nobody can say how far it moved: what is not known has no bound."""
        unknown = sum(None in pair for pair in self.pairs)
        if unknown and not all(one.estimate.interval for one in self.extremes()):
            return f"{self.row.name} is not known of {plural(unknown, 'item')} in both runs"
        return ""

    def seen(self) -> ResampledDifference:
        """Return the change over the pairs that are known on both sides."""
        return self._change((None, None))

    def extremes(self) -> tuple[ResampledDifference, ...]:
        """Return the changes with all that is not known at its worst, and at its best."""
        if not any(None in pair for pair in self.pairs):
            return ()
        return self._change(WORST), self._change(BEST)

    def _change(self, unknown: Unknown) -> ResampledDifference:
        found = usage_change(self.pairs, self.row, relative=self.relative, unknown=unknown)
        return ResampledDifference(estimate=found)


def _pairs(sides: Sides, row: UsageMetric) -> Iterator[tuple[Cluster, float | None, float | None]]:
    for side, old, new in matches_of(sides):
        yield side.slice_.cluster_of(new), taken(old, row), taken(new, row)


def change_for(threshold: Threshold, sides: Sides) -> Change | UsageChange | None:
    """Return the change that a threshold is about; None where these slices do not have it."""
    if not threshold.of_usage:
        return change_of(threshold.of, sides)
    return UsageChange(sides=sides, row=USAGE[threshold.of], relative=threshold.relative)


def usage_shifts(sides: Sides) -> dict[str, UsageShift]:
    """Return every metric of what answers take beside the other run's, where pairs know it."""
    found = {name: usage_shift(list(_pairs(sides, row)), row) for name, row in USAGE.items()}
    return {
        name: one
        for name, one in found.items()
        if one and one.factor.value is not None and math.isfinite(one.factor.value)
    }

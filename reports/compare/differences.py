"""How far a metric moved between two runs, over the pairs of items that both have.

A share of all items has Tango's interval, any other metric a bootstrap over clusters of items that
depend on each other (``Slice.cluster_of``). The gates and the comparison show the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.intervals import UNDEFINED, Estimate, cluster_sums, unseen_share
from evaluators.statistics.metrics import Metric
from evaluators.statistics.paired import (
    growth_needed,
    moved,
    moved_interval,
    resample_pairs,
)
from evaluators.statistics.sparse import Fill
from reports.compare.pair_counts import (
    Sides,
    blank_table,
    count_pairs,
    counted_outcomes,
    matches_of,
    metric_rows,
    not_asked,
)
from reports.compare.pairs import (
    Hit,
    PairedDifference,
    PairedSlice,
    paired_difference,
    passes,
)
from reports.metrics.summary import gold_of, missing_extras
from reports.run.record import Record

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledDifference:
    """New - old of a metric, with its bootstrap interval over clusters of pairs."""

    estimate: Estimate

    @property
    def n(self) -> int:
        """The number of pairs."""
        return self.estimate.n

    def basis(self, of: str) -> str:
        """Return the pairs that it rests on, in words."""
        return plural(self.estimate.n, "pair")

    def pairs_to_decide(self, bound: float) -> int | None:
        """Return how many pairs would show, with 80 % power, on which side of a bound it lies.

        The difference is taken to be as seen. None where no number would, or none can be named.
        """
        value, interval, n = self.estimate.value, self.estimate.interval, self.estimate.n
        if value is None or interval is None or abs(value - bound) < 1e-9:
            return None
        needed = n * growth_needed(value - bound, interval)
        return max(n + 1, math.ceil(float(f"{needed:.1e}")))  # two digits: it should not look exact


Difference = PairedDifference | ResampledDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareChange:
    """A share of all items, in both runs; ``hit`` says which items it counts."""

    sides: Sides
    hit: Hit = passes

    def obstacle(self) -> str:
        """Return nothing: the extremes of a share are always known."""
        return ""

    def seen(self) -> PairedDifference:
        """Return the difference over the pairs graded in both runs."""
        return paired_difference(self.sides, hit=self.hit)

    def extremes(self) -> tuple[PairedDifference, ...]:
        """Return the differences with all that is not known at its lowest, and at its highest.

        In between, clusters may hang together more than at either end; so no more pairs count as
        independent at one end than at the other, or among those that are known.
        """
        seen = self.seen()
        if seen.n == sum(len(list(side.matches)) for side in self.sides):
            return (seen,)  # nothing is unknown
        ends = [paired_difference(self.sides, fill, self.hit) for fill in (False, True)]
        weight = min(one.weight for one in (seen, *ends))
        return tuple(replace(one, weight=weight) for one in ends)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricChange:
    """Any other metric of a kind, in both runs, over the items of all these slices together."""

    sides: Sides
    row: Metric

    def obstacle(self) -> str:
        """Return why nobody can say how far the metric moved, or nothing."""
        name = self.row.name
        if not _are_alike(self.sides):
            return f"{name} is not the same in all languages: penalty, labels or scores differ"
        if self._unknown() and not self.row.bounded:
            if lost := next(not_asked(self.sides), ""):
                return f"{name} has no bounds with {lost}; compare with a run of the same items"
            unknown = plural(self._unknown(), "ungraded item")
            return f"{name} has no bounds with {unknown}; run the same command again"
        return ""

    def _unknown(self) -> int:
        return len(list(matches_of(self.sides))) - count_pairs(self.sides).pairs

    def seen(self) -> ResampledDifference:
        """Return the difference over the pairs graded in both runs."""
        return self._difference(({}, {}))

    def extremes(self) -> tuple[ResampledDifference, ...]:
        """Return the differences over all items for each way the unknown may all have come out.

        Those of the old run matter through its metric alone, hence at its lowest and highest.
        Where all is known there is none.
        """
        if not self._unknown():
            return ()
        fills = count_pairs(self.sides).run(1).worst_case_bounds()
        ranked = sorted(fills, key=self._old_value)
        every = product((ranked[0], ranked[-1]), fills)
        return tuple(self._difference(both) for both in every)

    def _old_value(self, fill: Fill) -> float:
        return count_pairs(self.sides, (fill, fill)).run(0).value(self.row.name) or 0.0

    def _difference(self, fills: tuple[Fill, Fill]) -> ResampledDifference:
        counted = count_pairs(self.sides, fills)
        return ResampledDifference(estimate=counted.difference(self.row, counted.drawn()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraChange:
    """The mean of an extra metric, 0 to 1, in both runs, over the pairs measured in both."""

    sides: Sides
    name: str

    def obstacle(self) -> str:
        """Return why nobody can say how far the mean moved, or nothing."""
        lacking = len(list(matches_of(self.sides))) - len(list(self._values()))
        what = f"{self.name} could not be taken of {plural(lacking, 'item')} in both runs"
        return f"{what}; see the notes" if lacking else ""

    def _values(self) -> Iterator[tuple[Cluster, float, float]]:
        for side, before, now in matches_of(self.sides):
            old, new = (one.measures.get(self.name) if one else None for one in (before, now))
            if old is not None and new is not None:
                yield side.slice_.cluster_of(now), old, new

    def seen(self) -> ResampledDifference:
        """Return the difference over the pairs with both values."""
        import numpy as np

        rows = list(self._values())
        if not rows:
            return ResampledDifference(estimate=UNDEFINED)
        pairs = np.array([[[[old, 1.0]], [[new, 1.0]]] for _, old, new in rows])
        sums = cluster_sums(pairs, [cluster for cluster, *_ in rows])
        n = len(sums)
        value = float(moved(_mean, sums.sum(axis=0))[0])
        interval = moved_interval(_mean, resample_pairs(sums, np.ones(n)), n)
        share = unseen_share(n)
        centre = value * (1 - share)
        interval = interval or (centre - share, centre + share)
        return ResampledDifference(estimate=Estimate.of(value, interval, len(rows)))

    def extremes(self) -> tuple[ResampledDifference, ...]:
        """Return the difference as seen: what was not measured is an obstacle."""
        return (self.seen(),)


Change = ShareChange | MetricChange | ExtraChange


def change_of(name: str, sides: Sides) -> Change | None:
    """Return the change of a metric over all pairs of these slices, None where there is none.

    An empty name is the share that passes.
    """
    if not name:
        return ShareChange(sides=sides)
    if name in _extras(sides):
        return ExtraChange(sides=sides, name=name)
    row = metric_rows(sides).get(name)
    if row is None:
        return None
    if row.every_item:
        return ShareChange(sides=sides, hit=_hit(row, sides))
    return MetricChange(sides=sides, row=row)


def differences(sides: Sides) -> dict[str, Estimate]:
    """Return new - old of each metric over the pairs graded in both runs; empty without a pair.

    The share that passes is not among them. A metric that is undefined has no difference.
    """
    counted = count_pairs(sides) if _are_alike(sides) else None
    found = {}
    if counted and counted.pairs:
        drawn = counted.drawn()
        for name, row in metric_rows(sides).items():
            if row.compared and row.every_item:
                found[name] = paired_difference(sides, hit=_hit(row, sides)).estimate
            elif row.compared:
                found[name] = counted.difference(row, drawn)
    for name in _extras(sides):
        found[name] = ExtraChange(sides=sides, name=name).seen().estimate
    return {name: one for name, one in found.items() if one.value is not None}


def _extras(sides: Sides) -> Mapping[str, int]:
    return missing_extras([new for _, _, new in matches_of(sides)])


def _are_alike(sides: Sides) -> bool:
    """Say whether a metric counts the same in all these slices."""
    scores = [one.slice_.rubric.scores if one.slice_.rubric else {} for one in sides]
    own = [(one.slice_.labels, one.slice_.penalty) for one in sides]
    return all(one == scores[0] for one in scores) and len(set(own)) == 1


def _hit(row: Metric, sides: Sides) -> Hit:
    """Return which records a share of all items counts."""
    counted = {side.slice_.name: counted_outcomes(row, side) for side in sides}
    known = set(blank_table(sides).outcomes)

    def hit(side: PairedSlice, record: Record) -> bool | None:
        if not record.is_graded or record.result not in known:
            return None
        return (gold_of(record, side.slice_.kind), record.result) in counted[side.slice_.name]

    return hit


def _mean(sums: Array) -> tuple[Array, Array]:
    return sums[..., 0, 0], sums[..., 0, 1]

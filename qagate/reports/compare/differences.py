"""How far a metric moved between two runs, over pairs of the same items.

A share of all items has Tango's interval; any other metric has a bootstrap over clusters of
dependent items (``Slice.cluster_of``). The gates and the comparison show the same figures.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product

from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import count_table, intervals
from qagate.evaluators.statistics.count_table import CountTable, Fill, count_patterns
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    cluster_sums,
    unseen_share,
)
from qagate.evaluators.statistics.metrics import USAGE, Metric, Sample, metrics_of
from qagate.evaluators.statistics.paired import moved, resample_pairs
from qagate.evaluators.statistics.usage_estimates import UsageMetric
from qagate.reports.compare import pairs
from qagate.reports.compare.pairs import Hit, PairedDifference, PairedSlice, Sides
from qagate.reports.metrics import summary
from qagate.reports.run.evidence import UsageShift
from qagate.reports.run.record import Record
from qagate.reports.run.usage import taken


def matches_of(sides: Sides) -> Iterator[tuple[PairedSlice, Record | None, Record]]:
    """Yield every pair of these slices as slice, old, new (``PairedSlice.matches``)."""
    return ((side, old, new) for side in sides for old, new in side.matches)


def not_asked(sides: Sides) -> Iterator[str]:
    """Yield how many items of the other run should have been asked again, if any."""
    if dropped := sum(len(one.pairing.dropped) for one in sides):
        yield f"{plural(dropped, 'item')} of the {sides[0].role} not asked again"


def elsewhere(threshold: Threshold, sides: Sides) -> Iterator[str]:
    """Yield which languages only the other run has, for a threshold that pools all."""
    if threshold.pool and sides[0].elsewhere:
        yield f"the {sides[0].role} also has {', '.join(sides[0].elsewhere)}"


def scopes(dataset: Dataset, sides: Sides) -> Iterator[tuple[Threshold, Sides]]:
    """Yield every threshold on a change with its slices; those that pool languages last."""
    for one in sides:
        yield from ((gate, [one]) for gate in one.slice_.thresholds if gate.paired)
    if sides:
        yield from ((gate, sides) for gate in dataset.pooled if gate.paired)


def blank_table(sides: Sides) -> CountTable:
    """Return a table without items, with the outcomes and the settings of the first slice."""
    import numpy as np

    slice_ = sides[0].slice_
    graded = [
        one for side in sides for pair in side.graded for one in (pair.old, pair.new)
    ]
    every = [
        *graded,
        *(new for _, _, new in matches_of(sides)),
    ]  # one may have a label of its own
    cells = {
        summary.cell_of(one, slice_) for one in every if summary.is_counted(one, slice_)
    }
    golds, outcomes = summary.axes_of(cells, slice_)
    counts = np.zeros((len(golds), len(outcomes)))
    return summary.count_table(
        slice_, counts, (golds, outcomes), summary.scores_of(graded, slice_)
    )


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """The tables of both runs, counted by cluster."""

    kind: str
    patterns: CountTable
    """The different tables of a cluster; its axes are tables, runs, golds, outcomes."""
    clusters: intervals.Array
    """The number of clusters that have each table."""
    pairs: int
    """The number of pairs of items."""

    def run(self, number: int) -> Sample:
        """Return the items of the old run (0) or of the new one (1)."""
        patterns = replace(self.patterns, counts=self.patterns.counts[:, number])
        return Sample(
            kind=self.kind, patterns=patterns, items=self.clusters, clustered=True
        )

    @cached_property
    def drawn(self) -> intervals.Array:
        """The resampled counts of both runs."""
        return resample_pairs(self.patterns.counts, self.clusters)

    def difference(self, row: Metric) -> Estimate:
        """Return new - old of a metric, with its interval from the resampled counts."""

        def ratio(counts: intervals.Array) -> tuple[intervals.Array, intervals.Array]:
            return row.parts(replace(self.patterns, counts=counts))

        runs = self.run(0), self.run(1)
        old, new = (row.value(one.whole) for one in runs)
        if old is None or new is None:
            return Estimate.of(None, None, self.pairs)
        interval = intervals.percentile(
            *moved(ratio, self.drawn), self.clusters.sum(), math.inf
        )
        if row.bounded and not interval:  # all resamples agree: what unseen items allow
            size = float(self.clusters.sum())
            ends = (
                count_table.unvaried_interval(row.parts, one.whole, size)
                for one in runs
            )
            (old_low, old_high), (new_low, new_high) = ends
            interval = new_low - old_high, new_high - old_low
        return Estimate.of(new - old, interval, self.pairs)


def count_pairs(sides: Sides, fills: tuple[Fill, Fill] = ({}, {})) -> PairCounts:
    """Count the pairs that have a grade in both runs.

    ``fills`` give outcomes to the items of the old and of the new run whose own is unknown.
    """
    kind, blank = sides[0].slice_.kind, blank_table(sides)
    places = {outcome: place for place, outcome in enumerate(blank.outcomes)}
    clusters: dict[Cluster, list[tuple[int, int, int]]] = defaultdict(list)
    for side, old, new in matches_of(sides):
        if not summary.is_counted(new, side.slice_):
            continue
        label, cells = (
            summary.on_axis(summary.gold_of(new, kind), blank.golds, side.slice_),
            [],
        )
        for run, one in enumerate((old, new)):
            said = summary.on_axis(
                one.result if one else "", blank.outcomes, side.slice_
            )
            place = places.get(said, places.get(fills[run].get(label, "")))
            cells += [] if place is None else [(run, blank.golds.index(label), place)]
        if len(cells) == 2:
            clusters[side.slice_.cluster_of(new)] += cells
    counts, sizes = count_patterns(clusters.values(), (2, *blank.counts.shape))
    return PairCounts(
        kind=kind,
        patterns=replace(blank, counts=counts),
        clusters=sizes,
        pairs=sum(map(len, clusters.values())) // 2,
    )


MetricChange = tuple[Estimate, Sequence[Estimate], PairedDifference | None]
"""New - old of a figure over the pairs known in both runs; over all pairs for each extreme of the
unknown results, none where every result is known; and of a share of all items its pairs counted."""


def share_change(sides: Sides, hit: Hit) -> MetricChange:
    """Return the change of a share of all items; ``hit`` says which items it counts.

    Both extremes use the fewest independent pairs, as clusters may correlate more in between.
    """
    alone = hit is pairs.passes and len(sides) == 1
    seen = sides[0].difference if alone else pairs.paired_difference(sides, hit=hit)
    if seen.n == sum(len(side.matches) for side in sides):
        return seen.estimate, (), seen
    ends = [pairs.paired_difference(sides, fill, hit) for fill in (False, True)]
    weight = min(one.weight for one in (seen, *ends))
    return seen.estimate, [replace(one, weight=weight).estimate for one in ends], seen


def _metric_change(sides: Sides, row: Metric) -> MetricChange | str:
    """Return the change of any other metric of a kind, or why it is unknown."""
    if not _are_alike(sides):
        return f"{row.name} is not the same in all languages: penalty, labels or scores differ"

    def before(fill: Fill) -> float:
        return count_pairs(sides, (fill, fill)).run(0).value(row.name) or 0.0

    counted = count_pairs(sides)
    seen = counted.difference(row)
    unknown = sum(len(side.matches) for side in sides) - seen.n
    if not unknown:
        return seen, (), None
    if not row.bounded:
        if lost := next(not_asked(sides), ""):
            return f"{row.name} has no bounds with {lost}; compare with a run of the same items"
        ungraded = plural(unknown, "ungraded item")
        return f"{row.name} has no bounds with {ungraded}; run the same command again"
    fills = count_table.worst_case_fills(counted.patterns)
    ranked = sorted(fills, key=before)  # old results matter only through their metric
    every = product((ranked[0], ranked[-1]), fills)
    return seen, [count_pairs(sides, both).difference(row) for both in every], None


def _extra_difference(sides: Sides, name: str, fill: float | None = None) -> Estimate:
    """Return how far the mean of an extra metric, 0 to 1, moved.

    ``fill`` is for unknown new values, and 1 less it for old ones; None leaves such pairs out.
    """
    import numpy as np

    def mean(sums: intervals.Array) -> tuple[intervals.Array, intervals.Array]:
        return sums[..., 0, 0], sums[..., 0, 1]

    values, clusters = [], []
    for side, before, now in matches_of(sides):
        old, new = (one.measures.get(name) if one else None for one in (before, now))
        if fill is not None:
            old, new = 1 - fill if old is None else old, fill if new is None else new
        if old is not None and new is not None:
            values.append([[[old, 1.0]], [[new, 1.0]]])
            clusters.append(side.slice_.cluster_of(now))
    if not values:
        return UNDEFINED
    sums = cluster_sums(np.array(values), clusters)
    n = len(sums)
    value = float(moved(mean, sums.sum(axis=0))[0])
    drawn = intervals.percentile(
        *moved(mean, resample_pairs(sums, np.ones(n))), n, math.inf
    )
    share = unseen_share(n)  # few items may vary little by chance
    centre = value * (1 - share)
    low, high = drawn or (centre, centre)
    return Estimate.of(
        value, (min(low, centre - share), max(high, centre + share)), len(values)
    )


_ENDS = ((0.0, math.inf), (math.inf, 0.0))
"""The bounds of a change where a rise is harmful: unknown old and new figures at their extremes."""


def _figures(
    sides: Sides,
    row: UsageMetric,
    fills: tuple[float | None, float | None] = (None, None),
) -> tuple[list[float], list[float], list[Cluster]]:
    """Return old figures, new figures and clusters of the pairs.

    ``fills`` stand for unknown figures, old and new; None leaves such a pair out.
    """
    before, now, clusters = list[float](), list[float](), []
    for side, then, later in matches_of(sides):
        known = taken(then, row), taken(later, row)
        old, new = (
            u if one is None else one for one, u in zip(known, fills, strict=True)
        )
        if old is not None and new is not None:
            before.append(old)
            now.append(new)
            clusters.append(side.slice_.cluster_of(later))
    return before, now, clusters


def _usage_change(
    sides: Sides, row: UsageMetric, *, relative: bool
) -> MetricChange | str:
    """Return the change of seconds, tokens or cost, graded or not, or why it is unknown."""
    known = _figures(sides, row)
    unknown = sum(len(side.matches) for side in sides) - len(known[0])
    filled = [_figures(sides, row, fills) for fills in _ENDS] if unknown else []
    seen, *ends = (row.change(*one, relative=relative) for one in (known, *filled))
    if not all(one.interval for one in ends):
        return f"{row.name} is not known of {plural(unknown, 'item')} in both runs"
    return seen, ends, None


def change_for(threshold: Threshold, sides: Sides) -> MetricChange | str:
    """Return the change that a threshold is about, or why it is unknown."""
    name = threshold.of
    if threshold.of_usage:
        return _usage_change(sides, USAGE[name], relative=threshold.relative)
    if name in _extras(sides):
        seen = _extra_difference(sides, name)
        known = seen.n == sum(len(side.matches) for side in sides)
        fills = () if known else (0.0, 1.0)
        return seen, [_extra_difference(sides, name, end) for end in fills], None
    if hit := share_hit(name, sides):
        return share_change(sides, hit)
    if row := metrics_of(sides[0].slice_.kind, blank_table(sides)).get(name):
        return _metric_change(sides, row)
    return f"{name} is not measured on {sides[0].slice_.name}"


def share_hit(name: str, sides: Sides) -> Hit | None:
    """Return which records a share of all items counts, by no name those that pass; else None."""
    if not name:
        return pairs.passes
    blank = blank_table(sides)
    row = metrics_of(sides[0].slice_.kind, blank).get(name)
    is_share = row and row.every_item and name not in _extras(sides)
    return _hit(row, sides, blank) if row and is_share else None


def differences(sides: Sides) -> dict[str, Estimate]:
    """Return new - old of each defined metric but the share that passes, over graded pairs."""
    counted = count_pairs(sides) if _are_alike(sides) else None
    found = {}
    if counted and counted.pairs:
        blank = blank_table(sides)
        for name, row in metrics_of(counted.kind, blank).items():
            if row.compared and row.every_item:
                hit = _hit(row, sides, blank)
                found[name] = pairs.paired_difference(sides, hit=hit).estimate
            elif row.compared:
                found[name] = counted.difference(row)
    for name in _extras(sides):
        found[name] = _extra_difference(sides, name)
    return {name: one for name, one in found.items() if one.value is not None}


def _extras(sides: Sides) -> Mapping[str, int]:
    return summary.missing_extras([new for _, _, new in matches_of(sides)])


def _are_alike(sides: Sides) -> bool:
    scores = [one.slice_.rubric.scores if one.slice_.rubric else {} for one in sides]
    own = [(one.slice_.labels, one.slice_.penalty) for one in sides]
    return all(one == scores[0] for one in scores) and len(set(own)) == 1


def _hit(row: Metric, sides: Sides, blank: CountTable) -> Hit:
    """Return which records a share of all items counts; ``blank`` has the axes of all slices."""
    axes = blank.golds, blank.outcomes
    slices = {side.slice_.name: side.slice_ for side in sides}
    tables = {
        name: summary.count_table(one, blank.counts, axes, blank.scores)
        for name, one in slices.items()
    }
    counted = {
        name: summary.counted_outcomes(row, table) for name, table in tables.items()
    }

    @cache
    def counts(name: str, gold: str, result: str) -> bool | None:
        said = summary.on_axis(result, blank.outcomes, slices[name])
        found = (summary.on_axis(gold, blank.golds, slices[name]), said) in counted[
            name
        ]
        return found if said in blank.outcomes else None

    def hit(side: PairedSlice, record: Record) -> bool | None:
        gold = summary.gold_of(record, side.slice_.kind)
        return (
            counts(side.slice_.name, gold, record.result) if record.is_graded else None
        )

    return hit


def usage_shifts(sides: Sides) -> dict[str, UsageShift]:
    """Return what answers took then and now, by each usage metric that some pairs know."""
    found = {}
    for name, row in USAGE.items():
        old, new, clusters = _figures(sides, row)
        change = row.change(old, new, clusters, relative=True)
        ends = (change.value, change.low, change.high)
        value, low, high = (None if one is None else one + 1 for one in ends)
        if value is not None and math.isfinite(value):
            found[name] = UsageShift(
                before=row.estimate(old, clusters),
                now=row.estimate(new, clusters),
                factor=replace(change, value=value, low=low, high=high),
            )
    return found

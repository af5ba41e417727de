"""The pairs of two runs as count tables, and how far a metric over such tables moved.

A share of all items is counted pair by pair (``shares.py``). Any other metric of a kind is a
ratio of two sums over a table of labels and outcomes; its change has a bootstrap over clusters.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import product

from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import count_table, intervals
from qagate.evaluators.statistics.count_table import CountTable, Fill, count_patterns
from qagate.evaluators.statistics.intervals import TAIL, Estimate
from qagate.evaluators.statistics.metrics import Metric, Sample, metrics_of
from qagate.evaluators.statistics.paired import moved, resample_pairs
from qagate.reports.compare.change import ChangeCase, MetricChange
from qagate.reports.compare.shares import (
    TREATMENTS,
    JudgedShare,
    share_difference,
)
from qagate.reports.compare.sides import Hit, PairedSlice, Sides, passes
from qagate.reports.compare.states import Pair
from qagate.reports.metrics import summary
from qagate.reports.run.record import Record


def pairs_of(sides: Sides) -> Iterator[tuple[PairedSlice, Pair]]:
    """Yield every pair of these slices."""
    for side in sides:
        for pair in side.pairs:
            yield side, pair


def blank_table(sides: Sides) -> CountTable:
    """Return a table without items, with the outcomes and the settings of the first slice."""
    import numpy as np

    slice_ = sides[0].slice_
    graded: list[Record] = []
    cells = set()
    for side in sides:
        before = side.old_column
        now = side.new_column
        graded += [record for record in before.kinds if record.is_graded]
        graded += [record for record in now.kinds if record.is_graded]
        # An item that is not graded may have a label that no other has.
        for record in (*before.kinds, *now.kinds):
            if summary.is_counted(record, slice_):
                cells.add(summary.cell_of(record, slice_))
    golds, outcomes = summary.axes_of(cells, slice_)
    counts = np.zeros((len(golds), len(outcomes)))
    scores = summary.scores_of(graded, slice_)
    return summary.count_table(slice_, counts, (golds, outcomes), scores)


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

    def scaled(self, times: float) -> PairCounts:
        """Return the same tables, each of so many times as many clusters, a whole number."""
        return replace(
            self, clusters=self.clusters * times, pairs=int(self.pairs * times)
        )

    @cached_property
    def drawn(self) -> intervals.Array:
        """The resampled counts of both runs."""
        return resample_pairs(self.patterns.counts, self.clusters)

    def difference(self, row: Metric, tail: float = TAIL) -> Estimate:
        """Return new - old of a metric, with its interval from the resampled counts."""

        def ratio(counts: intervals.Array) -> tuple[intervals.Array, intervals.Array]:
            return row.parts(replace(self.patterns, counts=counts))

        runs = self.run(0), self.run(1)
        old, new = (row.value(run.whole) for run in runs)
        if old is None or new is None:
            return Estimate.of(None, None, self.pairs)
        drawn = self.drawn
        if tail != TAIL:
            drawn = resample_pairs(self.patterns.counts, self.clusters, tail)
        interval = intervals.percentile(
            *moved(ratio, drawn), self.clusters.sum(), math.inf, tail
        )
        if row.bounded and not interval:  # all resamples agree: what unseen items allow
            size = float(self.clusters.sum())
            old_low, old_high = count_table.unvaried_interval(
                row.parts, runs[0].whole, size, tail
            )
            new_low, new_high = count_table.unvaried_interval(
                row.parts, runs[1].whole, size, tail
            )
            interval = new_low - old_high, new_high - old_low
        return Estimate.of(new - old, interval, self.pairs)


def count_pairs(sides: Sides, fills: tuple[Fill, Fill] = ({}, {})) -> PairCounts:
    """Count the pairs that have a grade in both runs.

    ``fills`` give outcomes to the items of the old and of the new run whose own is unknown.
    """
    kind = sides[0].slice_.kind
    blank = blank_table(sides)
    places = {outcome: place for place, outcome in enumerate(blank.outcomes)}
    clusters: dict[Cluster, list[tuple[int, int, int]]] = defaultdict(list)
    for side, pair in pairs_of(sides):
        if not summary.is_counted(pair.new, side.slice_):
            continue
        gold = summary.gold_of(pair.new, kind)
        label = summary.on_axis(gold, blank.golds, side.slice_)
        cells = []
        for run, record in enumerate((pair.old, pair.new)):
            result = record.result if record.is_graded else ""
            outcome = summary.on_axis(result, blank.outcomes, side.slice_)
            place = places.get(outcome, places.get(fills[run].get(label, "")))
            if place is not None:
                cells.append((run, blank.golds.index(label), place))
        if len(cells) == 2:
            clusters[side.cluster_of(pair)] += cells
    counts, sizes = count_patterns(clusters.values(), (2, *blank.counts.shape))
    return PairCounts(
        kind=kind,
        patterns=replace(blank, counts=counts),
        clusters=sizes,
        pairs=sum(map(len, clusters.values())) // 2,
    )


# A share of all items


def share_change(sides: Sides, hit: Hit, tail: float = TAIL) -> MetricChange:
    """Return the change of a share of all items; ``hit`` says which items it counts."""
    seen = share_difference(sides, hit)
    treatments = TREATMENTS
    if seen.n == sum(side.size for side in sides):
        treatments = TREATMENTS[:1]
    cases = []
    for treatment in treatments:
        difference = seen
        if treatment != "left out":
            difference = share_difference(sides, hit, treatment)
        share = JudgedShare(
            difference=difference, sides=sides, hit=hit, treatment=treatment
        )
        cases.append(_share_case(share, tail, 1.0))
    return MetricChange(cases=cases, units=seen.clusters, counts=seen)


def _share_case(share: JudgedShare, tail: float, times: float) -> ChangeCase:
    scaled = share
    if times != 1:
        difference = share.difference.scaled(times)
        scaled = replace(share, difference=difference, times=times)
    change = scaled.difference.estimate
    strict = change
    if tail != TAIL:
        strict = scaled.difference.estimate_at(tail)
    return ChangeCase(
        change=change,
        strict=strict,
        share=scaled,
        scaled=partial(_share_case, share, tail),
    )


def share_hit(name: str, sides: Sides) -> Hit | None:
    """Return which records a share of all items counts, by no name those that pass; else None."""
    if not name:
        return passes
    if name in extra_names(sides):
        return None
    blank = blank_table(sides)
    row = metrics_of(sides[0].slice_.kind, blank).get(name)
    if row is None or not row.every_item:
        return None
    return hit_of(row, sides, blank)


def hit_of(row: Metric, sides: Sides, blank: CountTable) -> Hit:
    """Return which records a share of all items counts; ``blank`` has the axes of all slices."""
    axes = blank.golds, blank.outcomes
    slices = {side.slice_.name: side.slice_ for side in sides}
    counted = {}
    for name, slice_ in slices.items():
        table = summary.count_table(slice_, blank.counts, axes, blank.scores)
        counted[name] = summary.counted_outcomes(row, table)

    @cache
    def counts(name: str, gold: str, result: str) -> bool | None:
        outcome = summary.on_axis(result, blank.outcomes, slices[name])
        if outcome not in blank.outcomes:
            return None
        label = summary.on_axis(gold, blank.golds, slices[name])
        return (label, outcome) in counted[name]

    def hit(side: PairedSlice, record: Record) -> bool | None:
        if not record.is_graded:
            return None
        gold = summary.gold_of(record, side.slice_.kind)
        return counts(side.slice_.name, gold, record.result)

    return hit


# Any other metric of a kind


def metric_change(sides: Sides, row: Metric, tail: float = TAIL) -> MetricChange | str:
    """Return the change of a metric that is no share of all items, or why it is unknown.

    What is missing gets each fill under which the metric may have its extremes.
    """
    if not are_alike(sides):
        return f"{row.name} is not the same in all languages: penalty, labels or scores differ"
    counted = count_pairs(sides)
    cases = [_metric_case(counted, row, tail, 1.0)]
    units = float(counted.clusters.sum())
    unknown = sum(len(side.pairs) for side in sides) - counted.pairs
    if not unknown:
        return MetricChange(cases=cases, units=units)
    if not row.bounded:
        missing = plural(unknown, "item")
        return (
            f"{row.name} has no bounds with {missing} missing or without a grade; "
            "run the same command again, or compare with a run of the same items"
        )

    def value_before(fill: Fill) -> float:
        return count_pairs(sides, (fill, fill)).run(0).value(row.name) or 0.0

    fills = count_table.worst_case_fills(counted.patterns)
    ranked = sorted(fills, key=value_before)
    for both in product((ranked[0], ranked[-1]), fills):
        cases.append(_metric_case(count_pairs(sides, both), row, tail, 1.0))
    return MetricChange(cases=cases, units=units)


def _metric_case(
    counted: PairCounts, row: Metric, tail: float, times: float
) -> ChangeCase:
    scaled = counted if times == 1 else counted.scaled(times)
    change = scaled.difference(row)
    strict = change if tail == TAIL else scaled.difference(row, tail)
    return ChangeCase(
        change=change,
        strict=strict,
        scaled=partial(_metric_case, counted, row, tail),
    )


def extra_names(sides: Sides) -> list[str]:
    """Return the extra metrics that records of the new run have."""
    names: dict[str, None] = {}
    for side in sides:
        names |= dict.fromkeys(side.extra_names)
    return list(names)


def are_alike(sides: Sides) -> bool:
    """Whether a metric means the same in all these slices."""
    first = _meaning_of(sides[0])
    return all(_meaning_of(side) == first for side in sides)


def _meaning_of(side: PairedSlice) -> tuple[object, ...]:
    slice_ = side.slice_
    scores = dict(slice_.rubric.scores) if slice_.rubric else {}
    return scores, slice_.labels, slice_.penalty

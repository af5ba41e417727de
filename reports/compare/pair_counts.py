"""The pairs of two runs counted: how often each outcome became which, cluster by cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cases.dataset import Dataset, Threshold
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.count_table import CountTable, count_patterns
from evaluators.statistics.intervals import Estimate, Interval
from evaluators.statistics.metrics import Metric, metrics_of
from evaluators.statistics.paired import moved_interval, resample_pairs
from evaluators.statistics.sample import Sample
from evaluators.statistics.sparse import Fill
from reports.compare.pairs import PairedSlice
from reports.metrics.summary import axes_of, count_table, gold_of, scores_of
from reports.run.record import Record

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

Sides = Sequence[PairedSlice]
"""The slices of one dataset that are looked at together: one of them, or all its languages."""


def matches_of(sides: Sides) -> Iterator[tuple[PairedSlice, Record | None, Record]]:
    """Yield every item of these slices that has, or may have had, a partner: slice, old, new."""
    return ((side, old, new) for side in sides for old, new in side.matches)


def not_asked(sides: Sides) -> Iterator[str]:
    """Yield how many items of the other run should have been asked again, if any."""
    if dropped := sum(len(one.pairing.dropped) for one in sides):
        yield f"{plural(dropped, 'item')} of the {sides[0].role} not asked again"


def elsewhere(sides: Sides, language: str) -> Iterator[str]:
    """Yield which languages only the other run has, for a gate that pools: ``language`` is ""."""
    if sides[0].elsewhere and not language:
        yield f"the {sides[0].role} also has {', '.join(sides[0].elsewhere)}"


def scopes(
    dataset: Dataset, sides: Sequence[PairedSlice]
) -> Iterator[tuple[str, Sequence[PairedSlice], Threshold]]:
    """Yield every threshold on a change with its language (empty where it pools) and slices."""
    found = [(one.slice_.language, [one], one.slice_.thresholds) for one in sides]
    if sides:
        found.append(("", list(sides), dataset.pooled))
    for language, scope, thresholds in found:
        for threshold in thresholds:
            if threshold.paired:
                yield language, scope, threshold


def metric_rows(sides: Sides) -> Mapping[str, Metric]:
    """Return the metrics that make sense for the items of these slices."""
    return metrics_of(sides[0].slice_.kind, blank_table(sides))


def blank_table(sides: Sides) -> CountTable:
    """Return a table without items, with the outcomes and the settings of the first slice."""
    import numpy as np

    slice_ = sides[0].slice_
    graded = [one for side in sides for pair in side.graded for one in (pair.old, pair.new)]
    every = [*graded, *(new for _, _, new in matches_of(sides))]  # one may have a label of its own
    golds, outcomes = axes_of(every, slice_)
    counts = np.zeros((len(golds), len(outcomes)))
    return count_table(slice_, counts, (golds, outcomes), scores_of(graded, slice_))


def counted_outcomes(row: Metric, side: PairedSlice) -> set[tuple[str, str]]:
    """Return the (gold label, outcome) pairs that a share of all items counts."""
    import numpy as np

    blank = blank_table([side])
    cells = [(gold, outcome) for gold in blank.golds for outcome in blank.outcomes]
    alone = np.eye(len(cells)).reshape(-1, *blank.counts.shape)
    hits, _ = row.parts(replace(blank, counts=alone))
    return {cell for cell, hit in zip(cells, hits, strict=True) if hit}


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCounts:
    """The tables of the two runs, cluster by cluster: the axes are tables, runs, golds, outcomes.

    ``clusters`` is how many clusters have each table, ``pairs`` how many pairs of items there are.
    """

    kind: str
    patterns: CountTable
    clusters: Array
    pairs: int

    def run(self, number: int) -> Sample:
        """Return the items of the old run (0) or of the new one (1)."""
        patterns = replace(self.patterns, counts=self.patterns.counts[:, number])
        return Sample(kind=self.kind, patterns=patterns, items=self.clusters, clustered=True)

    def drawn(self) -> Array:
        """Return the resampled counts of both runs."""
        return resample_pairs(self.patterns.counts, self.clusters)

    def difference(self, row: Metric, drawn: Array) -> Estimate:
        """Return new - old of a metric, with its interval from the resampled counts."""

        def ratio(counts: Array) -> tuple[Array, Array]:
            return row.parts(replace(self.patterns, counts=counts))

        old, new = (row.value(self.run(number).whole) for number in (0, 1))
        if old is None or new is None:
            return Estimate.of(None, None, self.pairs)
        interval = moved_interval(ratio, drawn, self.clusters.sum())
        return Estimate.of(new - old, interval or self._unvaried(row, old, new), self.pairs)

    def _unvaried(self, row: Metric, old: float, new: float) -> Interval | None:
        """Return what unseen items leave open in either run where no resample differs."""
        if not row.bounded:
            return None
        before, now = self.run(0), self.run(1)
        old_low, old_high = before.unvaried_interval(row, before.whole)
        new_low, new_high = now.unvaried_interval(row, now.whole)
        return new_low - old_high, new_high - old_low


def count_pairs(sides: Sides, fills: tuple[Fill, Fill] = ({}, {})) -> PairCounts:
    """Count the pairs that have a grade in both runs.

    ``fills``, of the old run and of the new one, say to what the items came of which that is not
    known: they have no grade, or the old one's is of another kind, or there is no old one.
    """
    kind, blank = sides[0].slice_.kind, blank_table(sides)
    places = {outcome: place for place, outcome in enumerate(blank.outcomes)}
    clusters: dict[Cluster, list[tuple[int, int, int]]] = defaultdict(list)
    for side, old, new in matches_of(sides):
        label = gold_of(new, kind)
        gold = blank.golds.index(label)
        found = (
            places.get(one.result if one else "", places.get(fill.get(label, "")))
            for one, fill in zip((old, new), fills, strict=True)
        )
        cells = [(run, gold, place) for run, place in enumerate(found) if place is not None]
        if len(cells) == 2:
            clusters[side.slice_.cluster_of(new)] += cells
    counts, sizes = count_patterns(clusters.values(), (2, *blank.counts.shape))
    return PairCounts(
        kind=kind,
        patterns=replace(blank, counts=counts),
        clusters=sizes,
        pairs=sum(map(len, clusters.values())) // 2,
    )

"""Counted items: their metrics with intervals, and what ungraded items could make of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import CountTable
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import (
    Interval,
    clustered_rate,
    percentile,
    resample,
    wilson,
)
from evaluators.statistics.metrics import Metric, metrics_of
from evaluators.statistics.sparse import Fill, unvaried_interval, worst_case_fills

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counted items: ``items[i]`` of them have the count table ``patterns.counts[i]``.

    ``clustered`` says that some item was asked more than once.
    """

    kind: str
    patterns: CountTable
    items: Array
    clustered: bool

    @property
    def whole(self) -> CountTable:
        """All items in one table."""
        import numpy as np

        return replace(self.patterns, counts=np.tensordot(self.items, self.patterns.counts, 1))

    def value(self, name: str) -> float | None:
        """Return one metric without interval, None where it is undefined."""
        whole = self.whole
        return metrics_of(self.kind, whole)[name].value(whole)

    def estimates(self, names: Collection[str] = ()) -> dict[str, Estimate]:
        """Return the metrics of the sample with their intervals: all of them, or those named."""
        whole = self.whole
        rows = metrics_of(self.kind, whole)
        wanted = {name: row for name, row in rows.items() if not names or name in names}
        drawn = None
        if len(self.items) and not all(row.rate or row.interval for row in wanted.values()):
            counts = resample(self.patterns.counts, self.items)
            drawn = replace(self.patterns, counts=counts)
        return {name: self._estimate(row, whole, drawn) for name, row in wanted.items()}

    def _estimate(self, row: Metric, whole: CountTable, drawn: CountTable | None) -> Estimate:
        value = row.value(whole)
        top, bottom = row.parts(whole)
        n = int(bottom if row.rate else whole.total)
        if value is None:
            return Estimate.of(None, None, n)
        if row.interval:
            interval = row.interval(self.patterns, self.items)
        elif row.rate and self.clustered:
            interval = clustered_rate(*row.parts(self.patterns), self.items)
        elif row.rate:
            interval = wilson(float(top), float(bottom))
        else:
            sizes = float(self.items.sum()), float(whole.total)
            interval = percentile(*row.parts(drawn), *sizes) if drawn else None
            interval = interval or self.unvaried_interval(row, whole)
        return Estimate.of(value, interval, n)

    def unvaried_interval(self, row: Metric, whole: CountTable) -> Interval:
        """Return the interval of a bounded, defined metric that no resample moved."""
        return unvaried_interval(row.parts, whole, float(self.items.sum()))

    def worst_case_bounds(self) -> tuple[Fill, ...]:
        """Return the fills of ungraded items among which every bounded metric has its extremes."""
        return worst_case_fills(self.patterns)

    def self_agreement(self) -> Estimate:
        """Return how often two judgements of one answer agree, over items judged more than once.

        The share is over pairs of judgements of one item, its interval clustered by item.
        """
        counts = self.patterns.counts
        asked = counts.sum(axis=(-2, -1))
        hits = (counts * (counts - 1) / 2).sum(axis=(-2, -1))
        sizes = asked * (asked - 1) / 2
        pairs = float((self.items * sizes).sum())
        agreed = float((self.items * hits).sum()) / pairs
        return Estimate.of(agreed, clustered_rate(hits, sizes, self.items), round(pairs))

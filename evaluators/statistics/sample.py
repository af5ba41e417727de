"""Counted items: their metrics with intervals, worst cases of ungraded items, and repeats."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import CountTable
from evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    Interval,
    clustered_rate,
    percentile,
    resample,
    unseen_share,
    wilson,
)
from evaluators.statistics.metrics import Metric, metrics_of
from evaluators.statistics.sparse import Fill, unvaried_interval, worst_case_fills

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counted items: ``items[i]`` of them have the count table ``patterns.counts[i]``."""

    kind: str
    patterns: CountTable
    items: Array
    clustered: bool
    """Whether an item was asked more than once."""

    @property
    def whole(self) -> CountTable:
        """All items in one table."""
        import numpy as np

        return replace(self.patterns, counts=np.tensordot(self.items, self.patterns.counts, 1))

    def value(self, name: str) -> float | None:
        """Return one metric without interval, None if it is undefined."""
        whole = self.whole
        return metrics_of(self.kind, whole)[name].value(whole)

    def estimates(self, names: Collection[str] = ()) -> dict[str, Estimate]:
        """Return all metrics of the sample, or those named, with their intervals."""
        whole = self.whole
        rows = metrics_of(self.kind, whole)
        wanted = {name: row for name, row in rows.items() if not names or name in names}
        drawn = None
        if len(self.items) and not all(row.rate or row.interval for row in wanted.values()):
            drawn = replace(self.patterns, counts=resample(self.patterns.counts, self.items))
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
        """Return the interval of a bounded, defined metric that is equal in all resamples."""
        return unvaried_interval(row.parts, whole, float(self.items.sum()))

    def worst_case_bounds(self) -> tuple[Fill, ...]:
        """Return the fills of ungraded items among which every bounded metric has its extremes."""
        return worst_case_fills(self.patterns)

    def self_agreement(self) -> Estimate:
        """Return the share of pairs of judgements of one item that agree, clustered by item."""
        counts = self.patterns.counts
        asked = counts.sum(axis=(-2, -1))
        hits = (counts * (counts - 1) / 2).sum(axis=(-2, -1))
        sizes = asked * (asked - 1) / 2
        pairs = float((self.items * sizes).sum())
        agreed = float((self.items * hits).sum()) / pairs
        return Estimate.of(agreed, clustered_rate(hits, sizes, self.items), round(pairs))


ANY, ALL = "pass@", "pass^"
_NAME = re.compile(r"pass[@^][1-9][0-9]?")


def is_repeated(name: str) -> bool:
    """Return whether a metric is about k tries of an item: ``pass@k`` or ``pass^k``, k to 99."""
    return _NAME.fullmatch(name) is not None


def tries_of(name: str) -> int:
    """Return the k of ``pass@k`` or ``pass^k``."""
    return int(name[len(ANY) :])


def chance(name: str, tries: int, passed: int) -> float | None:
    """Return the estimated chance that one (pass@k), or all (pass^k), of k further tries pass.

    It is unbiased. pass@k is 1 - C(n - c, k) / C(n, k): Chen et al. (2021), Evaluating Large
    Language Models Trained on Code, arXiv 2107.03374, section 2.1. pass^k is C(c, k) / C(n, k):
    Yao et al. (2024), tau-bench, arXiv 2406.12045, section 3. None for fewer tries than k.
    """
    picked = tries_of(name)
    ways = math.comb(tries, picked)
    if not ways:
        return None
    if name.startswith(ALL):
        return math.comb(passed, picked) / ways
    return 1.0 - math.comb(tries - passed, picked) / ways


def clustered_mean(clusters: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of values from 0 to 1; undefined for none.

    The interval is a bootstrap over whole clusters, and at least as wide as unseen clusters
    require.
    """
    import numpy as np

    n = sum(map(len, clusters))
    if not n:
        return UNDEFINED
    mean = sum(map(sum, clusters)) / n
    sums: Array = np.array([[sum(values), len(values)] for values in clusters], dtype=np.float64)
    patterns, clusters_of = np.unique(sums, axis=0, return_counts=True)
    drawn = resample(patterns, clusters_of.astype(np.float64))
    share = unseen_share(len(clusters))
    low, high = percentile(drawn[:, 0], drawn[:, 1], len(clusters), math.inf) or (mean, mean)
    least = mean * (1 - share)
    return Estimate.of(mean, (min(low, least), max(high, least + share)), n)

"""Time, tokens and cost of answers: means, quantiles and their changes, with intervals.

An unknown item counts as infinite or as 0, the worse of the two. No distribution is assumed: times
and token counts have long tails.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qagate.evaluators.statistics import intervals, probabilities
from qagate.evaluators.statistics.intervals import (
    TAIL,
    UNDEFINED,
    Array,
    Estimate,
    Interval,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FEWEST_ROUNDS = 500
"""Of a bootstrap over very many items, where more would take seconds."""

FEW_ALIKE = 30
"""So many clusters without any spread may hide one that differs."""

ROUNDING = 1e-12
"""A share of the largest sum: less is no spread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageMetric:
    """One row of the table: the mean or a quantile of a figure over all answers."""

    name: str
    title: str
    field: str
    """The figure's name in a record."""
    quantile: float | None = None
    """From 0 to 1; None for the mean."""

    def estimate(
        self, values: Sequence[float], clusters: Sequence[Hashable]
    ) -> Estimate:
        """Return the metric over items, each in a cluster; undefined if it is infinite.

        A quantile has no interval where an end of it would be infinite.
        """
        if not values:
            return UNDEFINED
        import numpy as np

        figures = np.array(values, dtype=np.float64)
        n = len(figures)
        value = self._value(figures)
        if not math.isfinite(value):
            return Estimate.of(None, None, n)
        if self.quantile is not None:
            interval = quantile_interval(figures, clusters, self.quantile)
            return Estimate.of(value, interval, n)
        return Estimate.of(value, _mean_interval(figures, clusters), n)

    def change(
        self,
        old: Sequence[float],
        new: Sequence[float],
        clusters: Sequence[Hashable],
        *,
        relative: bool,
        tail: float = TAIL,
    ) -> Estimate:
        """Return new - old over pairs of items, or new / old - 1 if ``relative``.

        ``tail`` is the error that each end of the interval may have.

        A mean's change has the interval of a ratio of sums. A quantile's change has a bootstrap
        over clusters, each drawn with both sides (Efron and Tibshirani 1993, chapters 8 and 13),
        and no interval if one side has none. Undefined if a side is infinite, or the old one 0.
        """
        if not old:
            return UNDEFINED
        import numpy as np

        sides = _Sides(
            old=np.array(old, dtype=np.float64), new=np.array(new, dtype=np.float64)
        )
        n = len(old)
        old_value = self._value(sides.old)
        new_value = self._value(sides.new)
        base = old_value if relative else 1.0
        if not (math.isfinite(old_value) and math.isfinite(new_value) and base):
            return Estimate.of(None, None, n)
        value = (new_value - old_value) / base
        if self.quantile is not None:
            interval = _moved_quantile(
                sides, clusters, self.quantile, base if relative else None, tail
            )
            return Estimate.of(value, interval, n)
        bottoms = sides.old if relative else np.ones(n)
        rows = np.stack([sides.new - sides.old, bottoms], axis=1)
        top_sums, bottom_sums = intervals.cluster_sums(rows, clusters).T
        largest = max(float(sides.old.max()), float(sides.new.max()))
        most = largest / base + abs(value)
        interval = ratio_interval(top_sums, bottom_sums, most, tail)
        return Estimate.of(value, interval, n)

    def _value(self, values: Array) -> float:
        if self.quantile is None:
            return float(values.mean())
        rank = _rank(self.quantile, len(values))
        return float(sorted(values)[rank - 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """One figure of the same items in two runs."""

    old: Array
    new: Array


def _mean_interval(figures: Array, clusters: Sequence[Hashable]) -> Interval:
    """Return the interval of the mean of finite figures that are never negative.

    A mean is a ratio of two sums over clusters: of the figures, and of the items.
    """
    import numpy as np

    figures_and_ones = np.stack([figures, np.ones(len(figures))], axis=1)
    sums, sizes = intervals.cluster_sums(figures_and_ones, clusters).T
    low, high = ratio_interval(sums, sizes, float(figures.max()))
    return max(0.0, low), high


def _rank(share: float, n: float) -> int:
    """Return the rank, from 1, of the smallest value that a ``share`` of values do not exceed."""
    return max(1, math.ceil(share * n - 1e-9))


def quantile_interval(
    values: Array, clusters: Sequence[Hashable], share: float, tail: float = TAIL
) -> Interval | None:
    """Return the interval of a quantile, between two of the values; None for too few values.

    The number of values below the true quantile is binomial for any distribution, which gives the
    ranks of the ends: David and Nagaraja (2003), Order Statistics, section 7.1. Clustered items
    count as their effective size: Woodruff (1952), J. Am. Stat. Assoc. 47:635. The 95th percentile
    has an upper end from 72 independent items on.
    """
    import numpy as np

    n = len(values)
    ranked = np.sort(values)
    quantile = ranked[_rank(share, n) - 1]
    size = _effective_size_below(quantile, values, clusters)
    chances = np.cumsum(
        [probabilities.binomial(below, size, share) for below in range(size + 1)]
    )
    fewest_below = int(np.searchsorted(chances, tail))
    most_below = int(np.searchsorted(chances, 1 - tail))
    # Ranks, from 1, among all values; the binomial is over the effective size.
    low_rank = math.floor(fewest_below * n / size)
    high_rank = math.ceil((most_below + 1) * n / size)
    if low_rank < 1 or high_rank > n:
        return None
    low = float(ranked[low_rank - 1])
    high = float(ranked[high_rank - 1])
    if not math.isfinite(high):
        return None
    return low, high


def _effective_size_below(
    limit: float, values: Array, clusters: Sequence[Hashable]
) -> int:
    """Return how many independent values say as much about the share that is up to a limit."""
    import numpy as np

    n = len(values)
    is_below = values <= limit
    rows = np.stack([is_below, np.ones(n)], axis=1).astype(np.float64)
    below, sizes = intervals.cluster_sums(rows, clusters).T
    if len(sizes) == n:
        return n
    rate = float(is_below.mean())
    residuals = below - rate * sizes
    alike = np.ones(len(sizes))
    return int(intervals.effective_size(residuals, sizes, alike, rate * (1 - rate)))


def ratio_interval(
    tops: Array, bottoms: Array, most: float, tail: float = TAIL
) -> Interval:
    """Return the interval of a ratio of two sums over clusters.

    It is the ratio estimator's with Student's quantile: Cochran (1977), Sampling Techniques,
    section 6.4; over clusters as in Miller (2024), arXiv 2411.00640, section 2.2. If no cluster
    deviates, it is the ratio itself over more than ``FEW_ALIKE`` clusters; over fewer it allows for
    unseen ones whose ratio is up to ``most`` away.
    """
    count = len(tops)
    top = float(tops.sum())
    bottom = float(bottoms.sum())
    ratio = top / bottom
    residuals = tops - ratio * bottoms
    if count > 1 and abs(residuals).max() > ROUNDING * abs(tops).max():
        spread = math.sqrt(float((residuals**2).sum()) * count / (count - 1))
        reach = intervals.quantile(count, math.inf, tail) * spread / bottom
    elif count > FEW_ALIKE:
        reach = 0.0
    else:
        reach = intervals.unseen_share(count, tail) * most
    return ratio - reach, ratio + reach


def _moved_quantile(
    sides: _Sides,
    clusters: Sequence[Hashable],
    share: float,
    base: float | None,
    tail: float,
) -> Interval | None:
    """Return the interval of new - old, or of new / old - 1 if ``base`` is the old value.

    Where the bootstrap has no interval, as pairs do not vary, it spans what the intervals of both
    sides allow. None if one of them has none, or if a value that is not known reaches into it.
    """
    import numpy as np

    old_interval = quantile_interval(sides.old, clusters, share, tail)
    new_interval = quantile_interval(sides.new, clusters, share, tail)
    if old_interval is None or new_interval is None:
        return None
    old, new = _resampled_quantiles(sides, clusters, share, tail)
    total = len(set(clusters))
    bottoms = old if base else np.ones(len(old))
    interval = intervals.percentile(new - old, bottoms, total, math.inf, tail)
    if interval is None:
        old_low, old_high = old_interval
        new_low, new_high = new_interval
        divisor = base or 1.0
        return (new_low - old_high) / divisor, (new_high - old_low) / divisor
    low, high = interval
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return interval


def _resampled_quantiles(
    sides: _Sides, clusters: Sequence[Hashable], share: float, tail: float
) -> tuple[Array, Array]:
    """Return the quantile of both sides in each resample of clusters.

    A few clusters, for the unseen share, are drawn separately for the two sides, as by
    ``resample_pairs``: pairs that agree by luck do not make an interval narrow.
    """
    import numpy as np

    names = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    places = np.array([names[cluster] for cluster in clusters])
    total = len(names)
    separate = round(total * intervals.unseen_share(total, tail))
    random = np.random.default_rng(intervals.SEED)
    rounds_at_once = max(1, intervals.BLOCK // len(places))
    rounds = min(intervals.ROUNDS, max(FEWEST_ROUNDS, rounds_at_once))
    old_quantiles = np.empty(rounds)
    new_quantiles = np.empty(rounds)
    old_order = np.argsort(sides.old, kind="stable")
    new_order = np.argsort(sides.new, kind="stable")
    for start in range(0, rounds, rounds_at_once):
        end = min(start + rounds_at_once, rounds)
        together = random.multinomial(
            total - separate, np.full(total, 1 / total), size=end - start
        )
        weights = _with_separate(together, separate, random)
        old_quantiles[start:end] = _weighted_quantiles(
            sides.old[old_order], weights[:, places[old_order]], share
        )
        weights = _with_separate(together, separate, random)
        new_quantiles[start:end] = _weighted_quantiles(
            sides.new[new_order], weights[:, places[new_order]], share
        )
    return old_quantiles, new_quantiles


def _with_separate(
    together: npt.NDArray[np.int64], separate: int, random: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Return how often each cluster is drawn for one side, in each resample.

    ``together`` says how often for both sides; so many more are drawn ``separate``.
    """
    import numpy as np

    rounds, total = together.shape
    weights = together.astype(np.int32)  # half the memory, and half the time
    drawn = random.integers(0, total, size=(rounds, separate))
    np.add.at(weights, (np.arange(rounds)[:, None], drawn), 1)
    return weights


def _weighted_quantiles(
    ranked: Array, weights: npt.NDArray[np.int32], share: float
) -> Array:
    """Return the quantile of ranked values that count as often as their weights, by resample."""
    import numpy as np

    weight_so_far = weights.cumsum(axis=1, dtype=np.int32)
    needed = np.ceil(share * weight_so_far[:, -1:] - 1e-9)
    places = (weight_so_far >= needed).argmax(axis=1)
    quantiles: Array = ranked[places]
    return quantiles

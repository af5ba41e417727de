"""Time, tokens and cost of answers: means, quantiles and their changes, with intervals.

An unknown item counts as infinite or as 0, the worse of the two. No distribution is assumed: times
and token counts have long tails.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from qagate.evaluators.statistics import intervals, probabilities
from qagate.evaluators.statistics.intervals import UNDEFINED, Array, Estimate, Interval

FEWEST_ROUNDS = (
    500  # of a bootstrap over very many items, where more would take seconds
)
FEW_ALIKE = 30  # clusters without any spread that may hide one
ROUNDING = 1e-12  # a share of the largest sum: less is no spread


@dataclass(frozen=True, slots=True)
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
        """Return the metric over items, each in a cluster; undefined if it is infinite."""
        if not values:
            return UNDEFINED
        import numpy as np

        seen = np.array(values, dtype=np.float64)
        value = self._value(seen)
        if not math.isfinite(value):
            return Estimate.of(None, None, len(seen))
        if self.quantile is not None:
            return Estimate.of(
                value, quantile_interval(seen, clusters, self.quantile), len(seen)
            )
        sums = intervals.cluster_sums(
            np.stack([seen, np.ones(len(seen))], axis=1), clusters
        )
        low, high = ratio_interval(sums[:, 0], sums[:, 1], float(seen.max()))
        return Estimate.of(value, (max(0.0, low), high), len(seen))

    def change(
        self, old: Sequence[float], new: Sequence[float], clusters: Sequence[Hashable],
        *, relative: bool,
    ) -> Estimate:  # fmt: skip
        """Return new - old over pairs of items, or new / old - 1 if ``relative``.

        A mean's change has the interval of a ratio of sums. A quantile's change has a bootstrap
        over clusters, each drawn with both sides (Efron and Tibshirani 1993, chapters 8 and 13),
        and no interval if one side has none. Undefined if a side is infinite, or the old one 0.
        """
        if not old:
            return UNDEFINED
        import numpy as np

        sides = [np.array(side, dtype=np.float64) for side in (old, new)]
        before, now = map(self._value, sides)
        base = before if relative else 1.0
        if not (math.isfinite(before) and math.isfinite(now) and base):
            return Estimate.of(None, None, len(old))
        value = (now - before) / base
        interval: Interval | None
        if self.quantile is None:
            bottom = sides[0] if relative else np.ones(len(old))
            sums = intervals.cluster_sums(
                np.stack([sides[1] - sides[0], bottom], axis=1), clusters
            )
            most = max(float(side.max()) for side in sides) / base + abs(value)
            interval = ratio_interval(sums[:, 0], sums[:, 1], most)
        else:
            interval = _moved_quantile(
                sides, clusters, self.quantile, base if relative else None
            )
        return Estimate.of(value, interval, len(old))

    def _value(self, values: Array) -> float:
        if self.quantile is None:
            return float(values.mean())
        return float(sorted(values)[_rank(self.quantile, len(values)) - 1])


def _rank(share: float, n: float) -> int:
    """Return the rank, from 1, of the smallest value that a ``share`` of values do not exceed."""
    return max(1, math.ceil(share * n - 1e-9))


def quantile_interval(
    values: Array, clusters: Sequence[Hashable], share: float
) -> Interval | None:
    """Return the 95 % interval of a quantile, between two of the values; None for too few values.

    The number of values below the true quantile is binomial for any distribution, which gives the
    ranks of the ends: David and Nagaraja (2003), Order Statistics, section 7.1. Clustered items
    count as their effective size: Woodruff (1952), J. Am. Stat. Assoc. 47:635. The 95th percentile
    has an upper end from 72 independent items on.
    """
    import numpy as np

    ranked = np.sort(values)
    below = values <= ranked[_rank(share, len(values)) - 1]
    pairs = np.stack([below, np.ones(len(values))], axis=1)
    hits, sizes = intervals.cluster_sums(pairs.astype(np.float64), clusters).T
    size = len(values)
    if len(sizes) < size:
        rate = float(below.mean())
        spread = hits - rate * sizes
        size = int(
            intervals.effective_size(
                spread, sizes, np.ones(len(sizes)), rate * (1 - rate)
            )
        )
    chances = np.cumsum(
        [probabilities.binomial(hits, size, share) for hits in range(size + 1)]
    )
    low, high = (int(np.searchsorted(chances, tail)) for tail in (0.025, 0.975))
    first, last = (
        math.floor(low * len(values) / size),
        math.ceil((high + 1) * len(values) / size),
    )
    if first < 1 or last > len(values) or not math.isfinite(ranked[last - 1]):
        return None
    return float(ranked[first - 1]), float(ranked[last - 1])


def ratio_interval(tops: Array, bottoms: Array, most: float) -> Interval:
    """Return the 95 % interval of a ratio of two sums over clusters.

    It is the ratio estimator's with Student's quantile: Cochran (1977), Sampling Techniques,
    section 6.4; over clusters as in Miller (2024), arXiv 2411.00640, section 2.2. If no cluster
    deviates, it is the ratio itself over more than ``FEW_ALIKE`` clusters; over fewer it allows for
    unseen ones whose ratio is up to ``most`` away.
    """
    count, top, bottom = len(tops), float(tops.sum()), float(bottoms.sum())
    ratio = top / bottom
    apart = tops - ratio * bottoms
    if count > 1 and abs(apart).max() > ROUNDING * abs(tops).max():
        spread = math.sqrt(float((apart**2).sum()) * count / (count - 1))
        reach = intervals.quantile(count, math.inf) * spread / bottom
    else:
        reach = 0.0 if count > FEW_ALIKE else intervals.unseen_share(count) * most
    return ratio - reach, ratio + reach


def _moved_quantile(
    sides: Sequence[Array],
    clusters: Sequence[Hashable],
    share: float,
    base: float | None,
) -> Interval | None:
    """Return the interval of new - old, or of new / old - 1 if ``base`` is the old value.

    A few clusters, for the unseen share, are drawn separately for the two sides, as by
    ``resample_pairs``: pairs that agree by luck do not make an interval narrow.
    """
    import numpy as np

    own = [quantile_interval(side, clusters, share) for side in sides]
    if None in own:
        return None
    names = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    places = np.array([names[cluster] for cluster in clusters])
    random, total = np.random.default_rng(intervals.SEED), len(names)
    unseen = round(total * intervals.unseen_share(total))
    orders = [np.argsort(side, kind="stable") for side in sides]
    step = max(1, intervals.BLOCK // len(places))
    drawn = np.empty((2, min(intervals.ROUNDS, max(FEWEST_ROUNDS, step))))
    for start in range(0, drawn.shape[1], step):
        block = drawn[:, start : start + step]
        size = block.shape[1]
        both = random.multinomial(total - unseen, np.full(total, 1 / total), size=size)
        for found, side, order in zip(block, sides, orders, strict=True):
            weights = both.astype(np.int32)  # half the memory, and half the time
            apart = random.integers(0, total, size=(size, unseen))
            np.add.at(weights, (np.arange(size)[:, None], apart), 1)
            so_far = weights[:, places[order]].cumsum(axis=1, dtype=np.int32)
            needed = np.ceil(share * so_far[:, -1:] - 1e-9)
            found[:] = side[order[(so_far >= needed).argmax(axis=1)]]
    old, new = drawn
    moved = intervals.percentile(
        new - old, old if base else np.ones(len(old)), total, math.inf
    )
    if moved and not all(map(math.isfinite, moved)):
        return None  # what is not known reaches into the interval
    (old_low, old_high), (new_low, new_high) = (one or (0.0, 0.0) for one in own)
    return moved or (
        (new_low - old_high) / (base or 1.0),
        (new_high - old_low) / (base or 1.0),
    )

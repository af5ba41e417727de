"""How far any ratio of sums moved between two runs over the same items: a bootstrap by clusters.

Every array of counts has the two runs, old and new, on its first axis but for those in front that
tell resamples or clusters apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from evaluators.statistics.intervals import (
    BLOCK,
    ROUNDS,
    SEED,
    Z95,
    Interval,
    percentile,
    unseen_share,
)

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Ratio = Callable[[Array], tuple[Array, Array]]

Z80 = 0.8416212335729143  # the 80 % point of the normal distribution


def resample_pairs(patterns: Array, clusters: Array) -> Array:
    """Return ``ROUNDS`` pairs of count tables, old and new, drawn cluster by cluster.

    ``patterns[i]`` holds the two tables of a cluster, ``clusters[i]`` how many clusters have them.
    A cluster is drawn with both its tables, so that what the two runs share cancels out; but for
    the share that nobody has seen, of which the two tables are drawn apart. So a few clusters that
    agree by luck do not make an interval narrow, as Tango's is not narrow where no pair differs;
    and as both runs keep their own tables, nothing is biased. What nobody has seen is the share
    that so few clusters leave open as there are of the rarest gold label (``unseen_share``).
    The seed is fixed: the same data always give the same interval.
    """
    import numpy as np

    total = int(clusters.sum())
    labelled = clusters @ (patterns[:, 1].sum(axis=-1) > 0)
    unseen = unseen_share(float(labelled[labelled > 0].min()))
    shares = clusters / total
    old, new = (patterns[:, run].reshape(len(patterns), -1) for run in (0, 1))
    random = np.random.default_rng(SEED)
    drawn = np.empty((ROUNDS, 2, old.shape[1]))
    step = max(1, BLOCK // len(patterns))
    for start in range(0, ROUNDS, step):
        block = drawn[start : start + step]
        apart = random.binomial(total, unseen, size=len(block))
        both = random.multinomial(total - apart, shares)
        block[:, 0] = (both + random.multinomial(apart, shares)) @ old
        block[:, 1] = (both + random.multinomial(apart, shares)) @ new
    return drawn.reshape(ROUNDS, *patterns.shape[1:])


def moved(ratio: Ratio, counts: Array) -> tuple[Array, Array]:
    """Return new - old with 1 as denominator, 0 where it is undefined on either side.

    ``ratio`` returns numerator and denominator of one run's table, which has two axes.
    """
    import numpy as np

    (old_top, old_bottom), (new_top, new_bottom) = (ratio(counts[..., run, :, :]) for run in (0, 1))
    defined = (old_bottom != 0) & (new_bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = new_top / new_bottom - old_top / old_bottom
    return np.where(defined, gap, np.nan), defined.astype(np.float64)


def moved_interval(ratio: Ratio, drawn: Array, clusters: float) -> Interval | None:
    """Return the 95 % interval of new - old from resampled counts, None where none differs.

    It is as wide as a small sample asks for (``percentile``), whatever the size of the clusters.
    """
    return percentile(*moved(ratio, drawn), clusters, math.inf)


def growth_needed(gap: float, interval: Interval) -> float:
    """Return how many times the pairs would show, with 80 % power, a bound to be outside.

    ``gap``, not 0, is how far the difference is from the bound. An interval shrinks with the
    square root of the number of pairs.
    """
    low, high = interval
    return float(((1 + Z80 / Z95) * (high - low) / 2 / gap) ** 2)

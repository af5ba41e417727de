"""Two runs over the same items: the difference of a rate or ratio, its interval and its power.

``fixed`` counts pairs that turned from wrong to right, ``broke`` from right to wrong. The
difference is new - old: (fixed - broke) / n. Ratios of sums have a bootstrap by clusters; its
arrays have the runs, old and new, on the first axis behind those of resamples or clusters.

Power is exact, by Tango's own interval: every table (fixed, broke) that may come up is weighed by
its multinomial probability and counted if its interval clears the bound. ``discordance`` is the
chance that a pair differs, ``difference`` the true new - old. A normal formula (Liu et al. 2002,
Stat. Med. 21:231) promises 80 % where these tables give 54 % at 29 pairs and 76 % at 240.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from qagate.evaluators.statistics import intervals, probabilities
from qagate.evaluators.statistics.intervals import (
    BLOCK,
    ROUNDS,
    SEED,
    Z95,
    Array,
    Interval,
)

Ratio = Callable[[Array], tuple[Array, Array]]

_FAR = 1e9  # an infinite score


@lru_cache(4096)  # simulated runs ask for the same few counts again and again
def tango(fixed: float, broke: float, n: float, z: float = Z95) -> Interval | None:
    """Return Tango's score interval of the paired difference, or None for ``n`` = 0.

    Tango (1998), Stat. Med. 17:891, equations 24 to 26. The counts need not be whole. ``z`` is more
    than 1.96 where the counts were shrunk by an estimate (``intervals.quantile``).
    """
    if n <= 0:
        return None
    difference = (fixed - broke) / n

    def beyond(delta: float, target: float) -> float:
        return tango_score(fixed, broke, n, delta) - target

    low = (
        -1.0
        if difference <= -1
        else probabilities.root(lambda at: beyond(at, z), -1.0, difference)
    )
    high = (
        1.0
        if difference >= 1
        else probabilities.root(lambda at: beyond(at, -z), difference, 1.0)
    )
    return low, high


def tango_score(fixed: float, broke: float, n: float, delta: float) -> float:
    """Return the score statistic of the hypothesis that the true difference is ``delta``."""
    linear = (2 * n - fixed + broke) * delta - fixed - broke
    constant = -broke * delta * (1 - delta)
    root = math.sqrt(max(0.0, linear**2 - 8 * n * constant))
    share = (root - linear) / (
        4 * n
    )  # P(right before, wrong now), most likely under delta
    variance = n * (2 * share + delta * (1 - delta))
    excess = fixed - broke - n * delta
    if variance <= 0:
        return math.copysign(_FAR, excess) if excess else 0.0
    return excess / math.sqrt(variance)


def mcnemar(fixed: int, broke: int) -> float:
    """Return the exact two-sided p-value of McNemar's test (1947); 1 where no pair differs."""
    return min(
        1.0, 2 * probabilities.binomial_at_most(min(fixed, broke), fixed + broke, 0.5)
    )


def odds_ratio(
    fixed: int, broke: int
) -> tuple[float | None, float | None, float | None]:
    """Return fixed / broke, the paired odds ratio, with its exact 95 % interval (low, high).

    None means infinity, or undefined where no pair differs: then all three are None. Clopper and
    Pearson (1934), Biometrika 26:404, for the share of fixed among the pairs that differ.
    """
    if fixed + broke == 0:
        return None, None, None
    low = probabilities.beta_quantile(fixed, broke + 1, 0.025) if fixed else 0.0
    high = probabilities.beta_quantile(fixed + 1, broke, 0.975) if broke else 1.0
    value = fixed / broke if broke else None
    return value, low / (1 - low), high / (1 - high) if high < 1 else None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for their number. Holm (1979), Scand. J. Stat. 6:65."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(
        sorted(range(len(p_values)), key=p_values.__getitem__)
    ):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def shrink(sums: Array, squares: Array, sizes: Array) -> float:
    """Return the share of clustered pairs that count as independent (above 0, at most 1).

    Per item: the sum of its differences, the sum of their squares, and its number of pairs.
    """
    import numpy as np

    n = float(sizes.sum())
    mean = float(sums.sum()) / n
    variance = float(squares.sum()) / n - mean**2
    return (
        intervals.effective_size(
            sums - mean * sizes, sizes, np.ones_like(sizes), variance
        )
        / n
    )


def p_value_beyond(value: float, low: float, bound: float) -> float:
    """Return the two-sided p-value of "the truth is above ``bound``", from an interval.

    ``low`` is the lower end of the 95 % interval of ``value``. The p-value is below 0.05 exactly if
    ``low`` is above the bound. Altman and Bland (2011), BMJ 343:d2304, with this side's width.
    """
    if value <= bound:
        return 1.0
    if value <= low:
        return 0.0
    return math.erfc(Z95 * (value - bound) / (value - low) / math.sqrt(2))


def smallest_n(margin: float) -> int:
    """Return the fewest pairs that can show that "the drop is below ``margin``": none differs.

    Tango's lower end is then -z²/(n + z²). Raises ValueError unless ``margin`` is between 0 and 1.
    """
    if not 0 < margin < 1:
        raise ValueError(f"a margin is above 0 and below 1, got {margin!r}")
    return math.floor(Z95**2 * (1 - margin) / margin) + 1


Z80 = 0.8416212335729143  # the 80 % point of the normal distribution


def resample_pairs(patterns: Array, clusters: Array) -> Array:
    """Return ``ROUNDS`` pairs of count tables, old and new, drawn cluster by cluster.

    ``patterns[i]`` holds the two tables of a cluster, ``clusters[i]`` how many clusters have them.
    A cluster is drawn with both its tables, so that variation common to the runs cancels out. For
    the unseen share (``unseen_share`` of the clusters with the rarest gold label) the two tables
    are drawn separately, so that a few clusters that agree by luck do not make an interval narrow.
    The seed is fixed: the same data always give the same interval.
    """
    import numpy as np

    total = int(clusters.sum())
    labelled = clusters @ (patterns[:, 1].sum(axis=-1) > 0)
    unseen = intervals.unseen_share(float(labelled[labelled > 0].min()))
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
    """Return new - old of a ratio of one run's table, and 1; 0 if undefined on either side."""
    import numpy as np

    (old_top, old_bottom), (new_top, new_bottom) = (
        ratio(counts[..., run, :, :]) for run in (0, 1)
    )
    defined = (old_bottom != 0) & (new_bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = new_top / new_bottom - old_top / old_bottom
    return np.where(defined, gap, np.nan), defined.astype(np.float64)


POWER = 0.8
"""The power that ``confirmed_margin`` and ``pairs_needed`` require."""

_TAIL = 6.0  # standard deviations beyond which tables are ignored
_HALVINGS = 14  # of the interval 0 to 1, for a margin to within 0.0001
_MOST = 1_000_000  # pairs


def power(n: int, bound: float, discordance: float, difference: float = 0.0) -> float:
    """Return the probability that the interval of ``n`` pairs excludes a bound on the right side.

    ``bound`` is within -1 to 1, both excluded. An unchanged model passes a drop gate of margin m
    with ``power(n, -m, discordance)``.
    """
    if difference < bound:
        return power(n, -bound, discordance, -difference)
    rate = min(1.0, max(discordance, abs(difference)))
    centre, reach = n * rate, _TAIL * math.sqrt(n * rate * (1 - rate)) + 1
    totals = range(
        max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach)) + 1
    )
    share = (
        (rate - difference) / (2 * rate) if rate else 0.0
    )  # of the pairs that differ, broke
    below = _shown(n, bound, totals, share)
    chances = (
        probabilities.binomial(it, n, rate) * part
        for it, part in zip(totals, below, strict=True)
    )
    return min(1.0, math.fsum(chances))


def _shown(
    n: int, bound: float, totals: Sequence[int], share: float
) -> Iterator[float]:
    """Yield the probability that the bound is cleared, for each number of discordant pairs.

    A ``share`` of them broke. The totals rise by 1 and the most broken pairs that clear the bound
    never fall, so that each probability follows from the one before: with one pair more it falls by
    ``share`` times the chance of exactly so many.
    """

    def misses(total: int, broke: int) -> bool:
        return tango_score(total - broke, broke, n, bound) <= Z95

    first = totals[0]
    broke = bisect_left(range(first + 1), True, key=lambda count: misses(first, count))
    found = probabilities.binomial_at_most(broke - 1, first, share)
    for total in totals:
        while broke <= total and not misses(total, broke):
            found += probabilities.binomial(broke, total, share)
            broke += 1
        yield min(1.0, max(0.0, found))
        if broke:
            found -= share * probabilities.binomial(broke - 1, total, share)


def confirmed_margin(n: int, discordance: float) -> float | None:
    """Return the smallest margin that ``n`` pairs confirm with 80 % power if nothing changed.

    It is exact to 0.0001, and 1 if no smaller margin is confirmed; None for ``n`` = 0.
    """
    if n <= 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (
            (low, middle) if power(n, -middle, discordance) >= POWER else (middle, high)
        )
    return high


def pairs_needed(bound: float, discordance: float, difference: float) -> int | None:
    """Return about how many pairs exclude a bound with 80 % power, to within a hundredth.

    Counts are whole, so that slightly more pairs may have slightly less power. None if the true
    difference is so near the bound that a million pairs are not enough.
    """
    gap = abs(difference - bound)
    usual = (Z95 + Z80) ** 2 * (max(discordance, abs(difference)) - difference**2)
    if usual >= _MOST * gap**2:
        return None
    fewest, most = (
        0,
        max(1, round(usual / gap**2)),
    )  # what a normal difference would need
    while power(most, bound, discordance, difference) < POWER:
        if most > _MOST:
            return None
        fewest, most = most, most + most // 8 + 1
    while most - fewest > 1 + most // 200:
        middle = (fewest + most) // 2
        enough = power(middle, bound, discordance, difference) >= POWER
        fewest, most = (fewest, middle) if enough else (middle, most)
    return most

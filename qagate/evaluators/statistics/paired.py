"""Two runs over the same items: the difference of a rate or ratio, its interval and its power.

``fixed`` counts pairs that turned from wrong to right, ``broke`` from right to wrong. The
difference is new - old: (fixed - broke) / n. Ratios of sums have a bootstrap by clusters; its
arrays have the runs, old and new, on the first axis behind those of resamples or clusters.

Power is the probability that an interval excludes a bound. It is exact, by Tango's own interval:
every table (fixed, broke) that may come up is weighed by its multinomial probability and counted if
its interval clears the bound. ``discordance`` is the chance that a pair differs, ``difference`` the
true new - old. A normal formula (Liu et al. 2002, Stat. Med. 21:231) promises 80 % where these
tables give 54 % at 29 pairs and 76 % at 240.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qagate.evaluators.number_text import figure
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
"""Returns the numerator and the denominator of one run's count tables."""

_INFINITE_SCORE = 1e9


@lru_cache(4096)  # simulated runs ask for the same few counts again and again
def tango(fixed: float, broke: float, n: float, z: float = Z95) -> Interval | None:
    """Return Tango's score interval of the paired difference, or None for ``n`` = 0.

    Tango (1998), Stat. Med. 17:891, equations 24 to 26. It holds every difference that the score
    test does not reject. The counts need not be whole. ``z`` is more than 1.96 where the counts
    were shrunk by an estimate (``intervals.quantile``).
    """
    if n <= 0:
        return None
    difference = (fixed - broke) / n

    def above_low(delta: float) -> float:
        return tango_score(fixed, broke, n, delta) - z

    def above_high(delta: float) -> float:
        return tango_score(fixed, broke, n, delta) + z

    low = -1.0
    if difference > -1:
        low = probabilities.root(above_low, -1.0, difference)
    high = 1.0
    if difference < 1:
        high = probabilities.root(above_high, difference, 1.0)
    return low, high


def tango_score(fixed: float, broke: float, n: float, delta: float) -> float:
    """Return the score statistic of the hypothesis that the true difference is ``delta``.

    It falls as ``delta`` rises, and is 0 at the observed difference. Its variance is that of the
    most likely table under the hypothesis, whose share of broken pairs solves a quadratic equation.
    """
    linear = (2 * n - fixed + broke) * delta - fixed - broke
    constant = -broke * delta * (1 - delta)
    discriminant = max(0.0, linear**2 - 8 * n * constant)
    share_broke = (math.sqrt(discriminant) - linear) / (4 * n)
    variance = n * (2 * share_broke + delta * (1 - delta))
    excess = fixed - broke - n * delta
    if variance > 0:
        return excess / math.sqrt(variance)
    if not excess:
        return 0.0
    return math.copysign(_INFINITE_SCORE, excess)


def mcnemar(fixed: int, broke: int) -> float:
    """Return the exact two-sided p-value of McNemar's test; 1 where no pair differs.

    McNemar (1947), Psychometrika 12:153: without a change, a pair that differs is as likely to be
    fixed as to be broken.
    """
    smaller_tail = probabilities.binomial_at_most(min(fixed, broke), fixed + broke, 0.5)
    return min(1.0, 2 * smaller_tail)


def odds_ratio(
    fixed: int, broke: int
) -> tuple[float | None, float | None, float | None]:
    """Return fixed / broke, the paired odds ratio, with its exact 95 % interval (low, high).

    None means infinity, or undefined where no pair differs: then all three are None. Clopper and
    Pearson (1934), Biometrika 26:404, for the share of fixed among the pairs that differ.
    """
    if fixed + broke == 0:
        return None, None, None
    value = fixed / broke if broke else None
    low_share = 0.0
    if fixed:
        low_share = probabilities.beta_quantile(fixed, broke + 1, 0.025)
    high_share = 1.0
    if broke:
        high_share = probabilities.beta_quantile(fixed + 1, broke, 0.975)
    low = low_share / (1 - low_share)
    high = high_share / (1 - high_share) if high_share < 1 else None
    return value, low, high


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for their number, in the same order.

    Holm (1979), Scand. J. Stat. 6:65. The smallest of m is multiplied by m, the next by m - 1, and
    so on; none gets below one before it, or above 1.
    """
    smallest_first = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(smallest_first):
        factor = len(p_values) - rank
        highest = max(highest, min(1.0, factor * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def shrink(sums: Array, squares: Array, sizes: Array) -> float:
    """Return the share of clustered pairs that count as independent (above 0, at most 1).

    Per cluster: the sum of its pairs' differences, the sum of their squares, and its number of
    pairs. The share is that of ``intervals.effective_size``.
    """
    import numpy as np

    n = float(sizes.sum())
    mean = float(sums.sum()) / n
    variance = float(squares.sum()) / n - mean**2
    residuals = sums - mean * sizes
    clusters = np.ones_like(sizes)
    return intervals.effective_size(residuals, sizes, clusters, variance) / n


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBounds:
    """What is known of clusters of pairs, of which some have an unknown difference.

    One number a cluster: its pairs, and the least and the most that the sum of their differences
    and the sum of its squares may be.
    """

    sizes: Array
    low_sums: Array
    high_sums: Array
    low_squares: Array
    high_squares: Array


def lowest_shrink(bounds: ClusterBounds) -> float:
    """Return a share of independent pairs that ``shrink`` keeps to, whatever is still unknown.

    A missing pair may make clusters more alike or less, so the share of the best and of the worst
    case are no bounds for what lies between. Each part of ``intervals.effective_size`` is taken
    at its extreme instead: the spread of the clusters' sums is a convex function of the mean, so
    that its highest value lies at an end of the range of the mean.
    """
    import numpy as np

    sizes = bounds.sizes
    n = float(sizes.sum())
    clusters = float(len(sizes))
    if clusters == n:
        return 1.0
    if clusters < 2:
        return 1 / n
    low_mean = float(bounds.low_sums.sum()) / n
    high_mean = float(bounds.high_sums.sum()) / n
    highest_square_of_mean = max(low_mean**2, high_mean**2)
    lowest_square_of_mean = 0.0
    if low_mean * high_mean > 0:
        lowest_square_of_mean = min(low_mean**2, high_mean**2)
    low_total = float(bounds.low_squares.sum()) - n * highest_square_of_mean
    high_total = float(bounds.high_squares.sum()) - n * lowest_square_of_mean

    def farthest(mean: float) -> Array:
        below = np.abs(bounds.low_sums - mean * sizes)
        above = np.abs(bounds.high_sums - mean * sizes)
        return np.maximum(below, above)

    ends = [farthest(low_mean), farthest(high_mean)]
    lowest_residuals = bounds.low_sums - high_mean * sizes
    highest_residuals = bounds.high_sums - low_mean * sizes
    straddles_zero = (lowest_residuals <= 0) & (highest_residuals >= 0)
    nearest = np.where(
        straddles_zero,
        0.0,
        np.minimum(np.abs(lowest_residuals), np.abs(highest_residuals)),
    )
    most_spread = max(float((residuals**2).sum()) for residuals in ends)
    most_fourth = max(float((residuals**4).sum()) for residuals in ends)
    least_spread = float((nearest**2).sum())
    least_fourth = float((nearest**4).sum())

    effect_of_whole = float((sizes**2).sum()) / n
    # Cauchy and Schwarz: no clusters spread more than their largest one that moves as a whole.
    effect_seen = float(sizes.max())
    if low_total > 0:
        effect_seen = min(effect_seen, most_spread / low_total)
    if effect_seen > effect_of_whole:
        deviating = clusters  # by Cauchy and Schwarz there are no more
        if least_fourth > 0:
            most = max(most_spread**2 / least_fourth, high_total / effect_of_whole)
            deviating = min(deviating, most)
    else:
        deviating = max(0.0, low_total) / effect_of_whole
        if most_fourth > 0:
            deviating = max(deviating, least_spread**2 / most_fourth)
    whole = intervals.WHOLE
    effect = deviating * effect_seen + whole * effect_of_whole
    effect *= clusters / (clusters - 1) / (deviating + whole)
    shares = [1.0, max(1 / n, 1 / effect)]
    if low_total <= 0:  # perhaps nothing differs: then a cluster counts as one
        shares.append(clusters / n)
    return min(shares)


def p_value_beyond(value: float, low: float, bound: float) -> float:
    """Return how well an interval shows that the truth is above ``bound``: a two-sided p-value.

    ``low`` is the lower end of the 95 % interval of ``value``. The p-value is below 0.05 exactly if
    ``low`` is above the bound. The method is that of Altman and Bland (2011), BMJ 343:d2304; but
    the standard error comes from the width between ``low`` and ``value`` alone.
    """
    if value <= bound:
        return 1.0
    if value <= low:
        return 0.0
    z = Z95 * (value - bound) / (value - low)
    return math.erfc(z / math.sqrt(2))


def smallest_n(margin: float) -> int:
    """Return the fewest pairs that can show that "the drop is below ``margin``": none differs.

    Tango's lower end is then -z² / (n + z²). Raises ValueError unless ``margin`` is between 0 and
    1.
    """
    if not 0 < margin < 1:
        raise ValueError(f"a margin is above 0 and below 1, got {margin!r}")
    return math.floor(Z95**2 * (1 - margin) / margin) + 1


Z80 = 0.8416212335729143
"""The 80 % point of the normal distribution."""


def resample_pairs(
    patterns: Array, clusters: Array, tail: float = intervals.TAIL
) -> Array:
    """Return ``ROUNDS`` pairs of count tables, old and new, drawn cluster by cluster.

    ``patterns[i]`` holds the two tables of a cluster, ``clusters[i]`` how many clusters have them.
    A cluster is drawn with both its tables, so that variation common to the runs cancels out. For
    the unseen share (``unseen_share`` of the clusters with the rarest gold label) the two tables
    are drawn separately, so that a few clusters that agree by luck do not make an interval narrow.
    The seed is fixed: the same data always give the same interval. ``tail`` is the error that an
    end of the interval may have.
    """
    import numpy as np

    total = int(clusters.sum())
    has_label = patterns[:, 1].sum(axis=-1) > 0
    clusters_with_label = clusters @ has_label
    rarest = float(clusters_with_label[clusters_with_label > 0].min())
    unseen = intervals.unseen_share(rarest, tail)
    shares = clusters / total
    old_tables = patterns[:, 0].reshape(len(patterns), -1)
    new_tables = patterns[:, 1].reshape(len(patterns), -1)
    random = np.random.default_rng(SEED)
    drawn = np.empty((ROUNDS, 2, old_tables.shape[1]))
    rounds_at_once = max(1, BLOCK // len(patterns))
    for start in range(0, ROUNDS, rounds_at_once):
        block = drawn[start : start + rounds_at_once]
        separate = random.binomial(total, unseen, size=len(block))
        together = random.multinomial(total - separate, shares)
        block[:, 0] = (together + random.multinomial(separate, shares)) @ old_tables
        block[:, 1] = (together + random.multinomial(separate, shares)) @ new_tables
    return drawn.reshape(ROUNDS, *patterns.shape[1:])


def moved(ratio: Ratio, counts: Array) -> tuple[Array, Array]:
    """Return new - old of a ratio of one run's table, and 1; 0 if undefined on either side."""
    import numpy as np

    old_top, old_bottom = ratio(counts[..., 0, :, :])
    new_top, new_bottom = ratio(counts[..., 1, :, :])
    defined = (old_bottom != 0) & (new_bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = new_top / new_bottom - old_top / old_bottom
    return np.where(defined, difference, np.nan), defined.astype(np.float64)


POWER = 0.8
"""The power that ``confirmed_margin`` and ``pairs_needed`` require."""

_TAIL = 6.0
"""Standard deviations beyond which numbers of discordant pairs are ignored."""

_HALVINGS = 14
"""Of the interval 0 to 1, for a margin to within 0.0001."""

_MOST_PAIRS = 1_000_000


def power(n: int, bound: float, discordance: float, difference: float = 0.0) -> float:
    """Return the probability that the interval of ``n`` pairs excludes a bound on the right side.

    ``bound`` is within -1 to 1, both excluded. An unchanged model passes a drop gate of margin m
    with ``power(n, -m, discordance)``.
    """
    if difference < bound:
        return power(n, -bound, discordance, -difference)
    rate = min(1.0, max(discordance, abs(difference)))
    expected = n * rate
    reach = _TAIL * math.sqrt(n * rate * (1 - rate)) + 1
    fewest = max(0, math.floor(expected - reach))
    most = min(n, math.ceil(expected + reach))
    discordant_counts = range(fewest, most + 1)
    share_broke = 0.0
    if rate:
        share_broke = (rate - difference) / (2 * rate)
    clears = _clearing_probabilities(n, bound, discordant_counts, share_broke)
    weighed = [
        probabilities.binomial(discordant, n, rate) * probability
        for discordant, probability in zip(discordant_counts, clears, strict=True)
    ]
    return min(1.0, math.fsum(weighed))


def _clearing_probabilities(
    n: int, bound: float, discordant_counts: Sequence[int], share_broke: float
) -> Iterator[float]:
    """Yield the probability that the bound is cleared, for each number of discordant pairs.

    A ``share_broke`` of them broke. The numbers rise by 1 and the most broken pairs that clear the
    bound never fall, so that each probability follows from the one before: with one pair more it
    falls by ``share_broke`` times the chance of exactly so many.
    """

    def misses(discordant: int, broke: int) -> bool:
        return tango_score(discordant - broke, broke, n, bound) <= Z95

    first = discordant_counts[0]
    # The fewest broken pairs with which the bound is missed.
    fewest_missing = bisect_left(
        range(first + 1), True, key=lambda broke: misses(first, broke)
    )
    probability = probabilities.binomial_at_most(fewest_missing - 1, first, share_broke)
    for discordant in discordant_counts:
        while fewest_missing <= discordant and not misses(discordant, fewest_missing):
            probability += probabilities.binomial(
                fewest_missing, discordant, share_broke
            )
            fewest_missing += 1
        yield min(1.0, max(0.0, probability))
        if fewest_missing:
            exactly_so_many = probabilities.binomial(
                fewest_missing - 1, discordant, share_broke
            )
            probability -= share_broke * exactly_so_many


def confirmed_margin(n: int, discordance: float) -> float | None:
    """Return the smallest margin that ``n`` pairs confirm with 80 % power if nothing changed.

    It is exact to 0.0001, and 1 if no smaller margin is confirmed; None for ``n`` = 0.
    """
    if n <= 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if power(n, -middle, discordance) >= POWER:
            high = middle
        else:
            low = middle
    return high


TENTH = 0.1
"""The share of answers that often changes where a good model is asked again."""


def shown_by(n: int) -> str:
    """Return in words the smallest drops that ``n`` independent items, at least 1, show.

    They are those of an unchanged model, with 80 % power, by a judge without errors.
    """
    drops = []
    for discordance in (0.0, TENTH):
        drops.append(figure(confirmed_margin(n, discordance) or 1.0))
    return f"a drop of {drops[0]} if no answer changes, {drops[1]} if a tenth do"


def pairs_needed(bound: float, discordance: float, difference: float) -> int | None:
    """Return about how many pairs exclude a bound with 80 % power, to within a hundredth.

    Counts are whole, so that slightly more pairs may have slightly less power. None if the true
    difference is so near the bound that a million pairs are not enough.

    The search begins with what a normal difference would need, goes up by eighths until the power
    is enough, and then halves the range.
    """
    gap = abs(difference - bound)
    variance = max(discordance, abs(difference)) - difference**2
    pairs_times_squared_gap = (Z95 + Z80) ** 2 * variance
    if pairs_times_squared_gap >= _MOST_PAIRS * gap**2:
        return None
    too_few = 0
    enough = max(1, round(pairs_times_squared_gap / gap**2))
    while power(enough, bound, discordance, difference) < POWER:
        if enough > _MOST_PAIRS:
            return None
        too_few = enough
        enough += enough // 8 + 1
    while enough - too_few > 1 + enough // 200:
        middle = (too_few + enough) // 2
        if power(middle, bound, discordance, difference) >= POWER:
            enough = middle
        else:
            too_few = middle
    return enough

"""Two runs over the same items: the difference of their rates, its interval and tests.

``fixed`` counts pairs that turned from wrong to right, ``broke`` from right to wrong. The
difference is new - old: (fixed - broke) / n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluators.statistics.intervals import Z95, Interval, effective_size

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array


_FAR = 1e9  # an infinite score; brentq needs finite ends


def tango(fixed: float, broke: float, n: float, z: float = Z95) -> Interval | None:
    """Return Tango's score interval of the paired difference, or None for ``n`` = 0.

    Tango (1998), Stat. Med. 17:891, equations 24 to 26. The counts need not be whole. ``z`` is
    the quantile of the level: 1.96 for 95 %, more where the counts were shrunk by an estimate
    (``intervals.quantile``).
    """
    if n <= 0:
        return None
    from scipy.optimize import brentq

    difference = (fixed - broke) / n

    def beyond(delta: float, target: float) -> float:
        return tango_score(fixed, broke, n, delta) - target

    low = -1.0 if difference <= -1 else brentq(beyond, -1.0, difference, args=(z,))
    high = 1.0 if difference >= 1 else brentq(beyond, difference, 1.0, args=(-z,))
    return float(low), float(high)


def tango_score(fixed: float, broke: float, n: float, delta: float) -> float:
    """Return the score statistic of the hypothesis that the true difference is ``delta``."""
    linear = (2 * n - fixed + broke) * delta - fixed - broke
    constant = -broke * delta * (1 - delta)
    root = math.sqrt(max(0.0, linear**2 - 8 * n * constant))
    share = (root - linear) / (4 * n)  # P(right before, wrong now), most likely under delta
    variance = n * (2 * share + delta * (1 - delta))
    excess = fixed - broke - n * delta
    if variance <= 0:
        return math.copysign(_FAR, excess) if excess else 0.0
    return excess / math.sqrt(variance)


def mcnemar(fixed: int, broke: int) -> float:
    """Return the exact two-sided p-value of McNemar's test; 1 where no pair differs.

    McNemar (1947), Psychometrika 12:153, in its binomial form.
    """
    if fixed + broke == 0:
        return 1.0
    from scipy.special import bdtr

    tail = float(bdtr(min(fixed, broke), fixed + broke, 0.5))
    return min(1.0, 2 * tail)


def odds_ratio(fixed: int, broke: int) -> tuple[float | None, float | None, float | None]:
    """Return fixed / broke, the paired odds ratio, with its exact 95 % interval (low, high).

    None means infinity, or undefined where no pair differs: then all three are None.
    Clopper and Pearson (1934), Biometrika 26:404, for the share of fixed among the pairs that
    differ, of which the ratio is the odds.
    """
    if fixed + broke == 0:
        return None, None, None
    from scipy.special import betaincinv

    low = float(betaincinv(fixed, broke + 1, 0.025)) if fixed else 0.0
    high = float(betaincinv(fixed + 1, broke, 0.975)) if broke else 1.0
    value = fixed / broke if broke else None
    return value, low / (1 - low), high / (1 - high) if high < 1 else None


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted for their number. Holm (1979), Scand. J. Stat. 6:65."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return tuple(adjusted)


def shrink(sums: Array, squares: Array, sizes: Array) -> float:
    """Return which share of clustered pairs counts as independent (above 0, at most 1).

    Per item: the sum of its differences, the sum of their squares, and its number of pairs.
    """
    import numpy as np

    n = float(sizes.sum())
    mean = float(sums.sum()) / n
    variance = float(squares.sum()) / n - mean**2
    ones = np.ones_like(sizes)
    return effective_size(sums - mean * sizes, sizes, ones, variance) / n


def p_value_beyond(value: float, low: float, bound: float) -> float:
    """Return the two-sided p-value of "the truth is above ``bound``", from an interval.

    ``low`` is the lower end of the 95 % interval of ``value``: the p-value is below 0.05 exactly
    where that lies above the bound, and 1 where the value does not. Altman and Bland (2011),
    BMJ 343:d2304, with this side's width.
    """
    if value <= bound:
        return 1.0
    if value <= low:
        return 0.0
    return math.erfc(Z95 * (value - bound) / (value - low) / math.sqrt(2))


def smallest_n(margin: float) -> int:
    """Return the fewest pairs with which "the drop is below ``margin``" can be shown at all.

    It takes that many when no pair differs: Tango's lower end is then -z²/(n + z²). ``margin``
    is within 0 to 1, both excluded; raises ValueError otherwise.
    """
    if not 0 < margin < 1:
        raise ValueError(f"a margin is above 0 and below 1, got {margin!r}")
    return math.floor(Z95**2 * (1 - margin) / margin) + 1

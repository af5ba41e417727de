"""How many pairs it takes, and how small a margin they can show: exact, by Tango's own interval.

The truth of a pair is fixed, broke or the same; ``discordance`` is the chance that it differs and
``difference`` the true new - old. Every table (fixed, broke) that may well come up is weighed by
its multinomial probability, and counted where its 95 % interval clears the bound. A normal formula
(Liu et al. 2002, Stat. Med. 21:231) promises 80 % where these tables give 54 % at 29 pairs and 76 %
at 240.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

from evaluators.statistics.intervals import Z95
from evaluators.statistics.paired import tango_score

ENOUGH = 0.8
"""The power that is asked for where a single number is given."""

_TAIL = 6.0  # standard deviations beyond which no table is met
_HALVINGS = 14  # a margin to within 0.0001
_MOST = 1_000_000  # more pairs than anybody asks


def power(n: int, bound: float, discordance: float, difference: float = 0.0) -> float:
    """Return how likely the interval of ``n`` pairs lies wholly on the truth's side of a bound.

    ``bound`` is within -1 to 1, both excluded. An unchanged model passes a drop gate of margin m
    with ``power(n, -m, discordance)``.
    """
    if difference < bound:
        return power(n, -bound, discordance, -difference)
    import numpy as np
    from scipy.special import bdtr, gammaln, xlog1py, xlogy

    rate = min(1.0, max(discordance, abs(difference)))
    centre, reach = n * rate, _TAIL * math.sqrt(n * rate * (1 - rate)) + 1
    totals = range(max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach)) + 1)
    differ, most = np.array(totals), np.array(_most_broke(n, bound, totals))
    ways = gammaln(n + 1) - gammaln(differ + 1) - gammaln(n - differ + 1)
    weights = np.exp(ways + xlogy(differ, rate) + xlog1py(n - differ, -rate))
    share = (rate - difference) / (2 * rate) if rate else 0.0  # of the pairs that differ, broke
    clears = np.where(most < 0, 0.0, bdtr(np.maximum(most, 0.0), differ, share))
    return float(min(1.0, (weights * clears).sum()))


def _most_broke(n: int, bound: float, totals: Sequence[int]) -> list[int]:
    """Return how many of so many pairs that differ may be broke with the interval above the bound.

    -1 where none may. Never less for one more pair that differs: it may be one that was fixed.
    """

    def misses(total: int, broke: int) -> bool:
        return tango_score(total - broke, broke, n, bound) <= Z95

    first = totals[0]
    broke = bisect_left(range(first + 1), True, key=lambda count: misses(first, count))
    found = []
    for total in totals:
        while broke <= total and not misses(total, broke):
            broke += 1
        found.append(broke - 1)
    return found


def confirmed_margin(n: int, discordance: float) -> float | None:
    """Return the smallest margin that ``n`` pairs confirm with 80 % power if nothing changed.

    It is right to 0.0001, and 1 where no margin below does; None for ``n`` = 0.
    """
    if n <= 0:
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if power(n, -middle, discordance) >= ENOUGH else (middle, high)
    return high


def pairs_needed(bound: float, discordance: float, difference: float) -> int | None:
    """Return about how many pairs leave a bound outside their interval with 80 % power.

    As the counts are whole, a few pairs more may have a little less. None where the true
    difference is the bound, or so near to it that a million would not do.
    """
    fewest, most = 0, 1
    while power(most, bound, discordance, difference) < ENOUGH:
        if most > _MOST:
            return None
        fewest, most = most, 2 * most
    while most - fewest > 1:
        middle = (fewest + most) // 2
        if power(middle, bound, discordance, difference) >= ENOUGH:
            most = middle
        else:
            fewest = middle
    return most

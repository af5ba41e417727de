"""Evidence about a mean that may be looked at after every observation, as often as one likes.

A bet on "the mean is above m" starts with a capital of 1. Were the mean m or less, the capital
could not be expected to grow whatever is bet, so that it ever reaches 40 has a chance of at most
1/40 (Ville 1939). Source: Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1, section 4 (the
capital process) and its "diversified Kelly" (capital split among fixed bets).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array, Interval

ENOUGH = 40.0
"""The capital that decides: 2.5 % for each side, as with the ends of a 95 % interval."""

BETS = (0.3, 0.6, 0.75, 0.9)
"""Shares of the largest bet that cannot lose everything. The capital is split evenly among them."""

_STEPS = 24  # halvings of -1 to 1: an end to about 1e-7
_RUNS, _SEED = 200, 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Independent units in the order in which they are looked at.

    Each has a sum of ``sizes`` values; a unit of one value is the plain case. ``bound`` is the most
    that a value can be away from 0, ``largest`` the most values that any unit can have. Both must
    be known before the first value is.
    """

    totals: Array
    sizes: Array
    bound: float
    largest: int = 1

    @property
    def mirrored(self) -> Observations:
        """The same with every sign turned: what it shows is that the mean is below."""
        return Observations(
            totals=-self.totals, sizes=self.sizes, bound=self.bound, largest=self.largest
        )


def log_capital(seen: Observations, mean: float) -> Array:
    """Return the logarithm of the capital after each unit, of a bet that the mean is above.

    ``mean`` is above -``bound``. Over units, what is tested is that their expected sum is at most
    ``mean`` times their expected size. No bet depends on a unit that it is made on: the bets are
    fixed shares of 1 / (the most that a unit can lose).
    """
    import numpy as np

    if not seen.totals.size:
        return np.zeros(0)
    most = seen.largest * (seen.bound + mean)
    gains = (seen.totals - mean * seen.sizes) / most
    paths = np.cumsum(np.log1p(np.outer(BETS, gains)), axis=1)
    capital: Array = np.logaddexp.reduce(paths, axis=0) - math.log(len(BETS))
    return capital


def is_above(seen: Observations, mean: float) -> bool:
    """Return whether the bet that the mean is above has ever come to ``ENOUGH``."""
    return bool((log_capital(seen, mean) >= math.log(ENOUGH)).any())


def is_below(seen: Observations, mean: float) -> bool:
    """Return whether the bet that the mean is below has ever come to ``ENOUGH``."""
    return is_above(seen.mirrored, -mean)


def expected_units(margin: float, limit: float, discordance: float, most: int) -> float:
    """Return after how many units bets on the change of a share are decided, on average.

    Nothing changed, though so many differ, evenly up and down. It passes where the mean is shown to
    be above -``margin``, and fails where it is shown to be below -``limit``; after ``most`` units
    there is no other. Over 200 simulated runs with a fixed seed.
    """
    import numpy as np

    random = np.random.default_rng(_SEED)
    chances = [discordance / 2, 1 - discordance, discordance / 2]
    ends = []
    for values in random.choice([-1.0, 0.0, 1.0], p=chances, size=(_RUNS, most)):
        seen = Observations(totals=values, sizes=np.ones(most), bound=1.0)
        capitals = log_capital(seen, -margin), log_capital(seen.mirrored, limit)
        enough = np.logical_or(*(one >= math.log(ENOUGH) for one in capitals))
        ends.append(int(enough.argmax()) + 1 if enough.any() else most)
    return float(np.mean(ends)) if most else 0.0


def confidence_sequence(low: Observations, high: Observations) -> Interval:
    """Return what the mean can be: an interval that holds it at all times with 95 %.

    Values that are not known are as low as they can be in ``low``, as high in ``high``. An end is
    the outermost mean that no bet has ever decided against; it lies within -1 to 1.
    """
    return _lowest(low), -_lowest(high.mirrored)


def _lowest(seen: Observations) -> float:
    """Return the highest mean, of -1 to 1, that the true one is shown to be above; else -1."""
    low, high = 1e-9 - 1, 1.0  # a bet against the lowest mean of all could not lose
    if not is_above(seen, low):
        return -1.0
    for _ in range(_STEPS):  # the capital falls as the mean rises
        middle = (low + high) / 2
        low, high = (middle, high) if is_above(seen, middle) else (low, middle)
    return low

"""Evidence about a mean that stays valid if it is checked after every observation.

A bet on "the mean is above m" starts with a capital of 1. If the mean is m or less, no bet has an
expected gain, and the capital ever reaches 40 with probability 1/40 at most (Ville 1939). Source:
Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1, section 4 (the capital process) and its
"diversified Kelly" (capital split among fixed bets).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array, Interval

ENOUGH = 40.0
"""The deciding capital: 2.5 % on each side, like the ends of a 95 % interval."""

BETS = (0.3, 0.6, 0.75, 0.9)
"""Shares of the bet that could lose everything; the capital is split evenly among them."""

_STEPS = 24  # halvings of -1 to 1, for an end to about 1e-7
_RUNS, _SEED = 200, 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Independent units of one or more values, in the order in which they are observed.

    ``bound`` and ``largest`` must be fixed before the first observation.
    """

    totals: Array
    """The sum of each unit's values."""
    sizes: Array
    """The number of each unit's values."""
    bound: float
    """The greatest absolute value possible."""
    largest: int = 1
    """The most values that a unit can have."""

    @property
    def mirrored(self) -> Observations:
        """The same with every sign reversed, as evidence that the mean is below."""
        return Observations(
            totals=-self.totals, sizes=self.sizes, bound=self.bound, largest=self.largest
        )


def log_capital(seen: Observations, mean: float) -> Array:
    """Return the logarithm of the capital after each unit, of a bet that the mean is above.

    ``mean`` must be above -``bound``. The hypothesis is that a unit's expected sum is at most
    ``mean`` times its expected size. Bets are fixed shares of 1 / (the most that a unit can lose),
    so that none depends on its own unit.
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
    """Return whether the bet that the mean is above has ever reached ``ENOUGH``."""
    return bool((log_capital(seen, mean) >= math.log(ENOUGH)).any())


def is_below(seen: Observations, mean: float) -> bool:
    """Return whether the bet that the mean is below has ever reached ``ENOUGH``."""
    return is_above(seen.mirrored, -mean)


def expected_units(margin: float, limit: float, discordance: float, most: int) -> float:
    """Return the mean number of units that decide about an unchanged share.

    A ``discordance`` of units differ, evenly up and down. A run passes once the mean is shown to be
    above -``margin``, fails once it is shown to be below -``limit``, and ends after ``most`` units.
    200 simulated runs with a fixed seed.
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
    """Return an interval that contains the mean at all times with 95 % probability.

    Unknown values are as low as possible in ``low``, and as high as possible in ``high``. An end is
    the outermost mean, of -1 to 1, that no bet has ever excluded.
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

"""Evidence about a mean that stays valid if it is checked after every observation.

A bet on "the mean is above m" starts with a capital of 1. If the mean is m or less, no bet has an
expected gain, and the capital ever reaches 40 with probability 1/40 at most (Ville 1939). Source:
Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1, section 4 (the capital process) and its
"diversified Kelly" (capital split among fixed bets).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Literal

from qagate.evaluators.statistics.intervals import Array, Interval
from qagate.evaluators.statistics.paired import holm

DECISIVE = 40.0
"""The deciding capital: 2.5 % on each side, like the ends of a 95 % interval."""

BETS = (0.1, 0.2, 0.4, 0.6, 0.9)
"""Shares of the bet that could lose everything; the capital is split evenly among them.

The best bet is about margin / variance: the small ones decide where many pairs differ.
"""

Bounds = tuple[float, float]
"""The lowest and the highest that a value can be."""

_HALVINGS = 24
"""Of -1 to 1, for an end to about 1e-7."""

_RUNS = 200
"""Simulated runs of ``expected_units``."""

_SEED = 20261122


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """Independent units of one or more values, in the order in which they are observed."""

    totals: Array
    """The sum of each unit's values."""
    sizes: Array
    """The number of each unit's values."""
    bound: float
    """The greatest absolute value possible; fixed, as ``largest``, before the first observation."""
    largest: int = 1
    """The most values that a unit can have."""

    @property
    def mirrored(self) -> Observations:
        """The same with every sign reversed, as evidence that the mean is below."""
        return replace(self, totals=-self.totals)


def log_capital(seen: Observations, mean: float) -> Array:
    """Return the logarithm of the capital after each unit, of a bet that the mean is above.

    ``mean`` must be above -``bound``. The hypothesis is that a unit's expected sum is at most
    ``mean`` times its expected size. Bets are fixed shares of 1 / (the most that a unit can lose).
    """
    import numpy as np

    # A unit loses most if it has the most values, and each of them is -bound.
    most_lost = seen.largest * (seen.bound + mean)
    gains = (seen.totals - mean * seen.sizes) / most_lost
    log_growth_of_bets = np.log1p(np.outer(BETS, gains))  # a row a bet, a column a unit
    log_capital_of_bets = np.cumsum(log_growth_of_bets, axis=1)
    # Each bet has an equal part of the capital: the whole is the mean over the bets.
    log_sum: Array = np.logaddexp.reduce(log_capital_of_bets, axis=0)
    return log_sum - math.log(len(BETS))


def first_above(seen: Observations, mean: float, decisive: float = DECISIVE) -> float:
    """Return after how many units it was first shown that the true mean is above ``mean``.

    That is when the capital of a bet on it reached ``decisive``. Infinity if it never did.
    """
    if mean >= seen.bound:
        return math.inf
    is_shown_after_unit = log_capital(seen, mean) >= math.log(decisive)
    if not is_shown_after_unit.any():
        return math.inf
    index_of_first = float(is_shown_after_unit.argmax())
    return index_of_first + 1


def first_below(seen: Observations, mean: float) -> float:
    """Return after how many units it was first shown that the mean is below; infinity if never."""
    return first_above(seen.mirrored, -mean)


def shown_below(parts: Mapping[str, Observations], mean: float) -> list[str]:
    """Return the names of the parts whose own mean is shown to be below ``mean``.

    The chance that any of the names is wrong is at most 2.5 %, over all looks together: 1 / the
    greatest capital of a part's bet is a p-value (Ville) that never rises with more units. So what
    Holm's adjustment rejects at a look it rejects at all later ones. The parts have unknown values
    at their highest.
    """
    p_values = []
    for observations in parts.values():
        log_capitals = log_capital(observations.mirrored, -mean)
        greatest_log = log_capitals.max(initial=0.0)  # a bet starts with a capital of 1
        p_values.append(math.exp(-greatest_log))
    adjusted = zip(parts, holm(p_values), strict=True)
    return [name for name, p_value in adjusted if p_value <= 1 / DECISIVE]


Test = tuple[Observations, Observations, float, float]
"""What a gate must show: values with unknown ones as low, and as high, as possible; the mean above
which it is a PASS; the mean below which it is a FAIL."""


def first_verdict(
    tests: Sequence[Test], passing_capital: float = DECISIVE
) -> Literal["PASS", "FAIL", ""]:
    """Return which comes first for any unknown values: PASS of all tests, FAIL of one, or neither.

    Later units change nothing, so it may be looked for after every one. ``passing_capital`` is
    what a PASS takes: more than DECISIVE where a model was tried before.
    """
    # With unknown values at their lowest, PASS comes latest and FAIL earliest.
    all_pass = max(
        first_above(low, passing, passing_capital) for low, _, passing, _ in tests
    )
    one_fails = min(first_below(low, failing) for low, _, _, failing in tests)
    if all_pass < math.inf and all_pass <= one_fails:
        return "PASS"
    # With unknown values at their highest, it is the other way round.
    one_fails = min(first_below(high, failing) for _, high, _, failing in tests)
    all_pass = max(
        first_above(high, passing, passing_capital) for _, high, passing, _ in tests
    )
    if one_fails < all_pass:
        return "FAIL"
    return ""


def confidence_sequence(low: Observations, high: Observations) -> Interval | None:
    """Return an interval that contains the mean at all times with 95 % probability.

    Unknown values are as low as possible in ``low``, and as high as possible in ``high``. An end is
    the outermost mean, of -1 to 1, that no bet has ever excluded. None: the bets exclude every
    mean, so the units are no random sequence.
    """
    low_end = _lower_end(low)
    high_end = -_lower_end(high.mirrored)
    if low_end > high_end:
        return None
    return low_end, high_end


def _lower_end(seen: Observations) -> float:
    """Return the highest mean, of -1 to 1, that the true one is shown to be above; else -1.

    The capital falls as the mean rises, so that the end is found by halving.
    """
    low = 1e-9 - 1  # a bet against the lowest mean of all could not lose
    high = 1.0
    if math.isinf(first_above(seen, low)):
        return -1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_shown = math.isfinite(first_above(seen, middle))
        if is_shown:
            low = middle
        else:
            high = middle
    return low


@dataclass(slots=True, kw_only=True)
class Evidence:
    """The sums of units in their order, as low and as high as unknown values let them be."""

    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    largest: int = 1
    """The most values that a unit can have, seen or not."""

    @classmethod
    def of(cls, units: Iterable[Sequence[Bounds]]) -> Evidence:
        """Return the evidence of all these units."""
        evidence = cls()
        for unit in units:
            evidence.add(unit)
            evidence.largest = max(evidence.largest, len(unit))
        return evidence

    def add(self, unit: Sequence[Bounds]) -> None:
        """Add a unit: the lowest and the highest that each of its values can be, from -1 to 1."""
        self.lows.append(sum(low for low, _ in unit))
        self.highs.append(sum(high for _, high in unit))
        self.sizes.append(len(unit))

    def seen(self, sign: int = 1) -> tuple[Observations, Observations]:
        """Return the values, negated where ``sign`` is -1, at their lowest and at their highest."""
        if sign > 0:
            return self._observed(self.lows), self._observed(self.highs)
        return self._observed(self.highs).mirrored, self._observed(self.lows).mirrored

    def _observed(self, totals: Sequence[float]) -> Observations:
        import numpy as np

        return Observations(
            totals=np.array(totals, dtype=np.float64),
            sizes=np.array(self.sizes, dtype=np.float64),
            bound=1.0,
            largest=self.largest,
        )

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the mean, which holds at any look; None if no mean is left."""
        return confidence_sequence(*self.seen())


@cache
def expected_units(
    margin: float, limit: float, discordance: float, most: int
) -> tuple[float, float]:
    """Return the mean number of units that decide about an unchanged share.

    The second number is the share of runs that stay undecided. A ``discordance`` of units differ,
    evenly up and down. A run passes once the mean is shown to be above -``margin``, fails once it
    is shown to be below -``limit``, and ends after ``most`` units. 200 simulated runs with a fixed
    seed.
    """
    import numpy as np

    random = np.random.default_rng(_SEED)
    chances = [discordance / 2, 1 - discordance, discordance / 2]
    runs = random.choice([-1.0, 0.0, 1.0], p=chances, size=(_RUNS, most))
    units_used = []
    for values in runs:
        seen = Observations(totals=values, sizes=np.ones(most), bound=1.0)
        passes = first_above(seen, -margin)
        fails = first_below(seen, -limit)
        units_used.append(min(passes, fails))
    undecided = float(np.mean(np.isinf(units_used)))
    return float(np.mean(np.minimum(units_used, most))), undecided

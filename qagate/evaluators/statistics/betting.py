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

Ends = tuple[float, float]
"""The lowest and the highest that a value can be."""

_STEPS = 24  # halvings of -1 to 1, for an end to about 1e-7
_RUNS, _SEED = 200, 20261122


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

    most = seen.largest * (seen.bound + mean)
    gains = (seen.totals - mean * seen.sizes) / most
    paths = np.cumsum(np.log1p(np.outer(BETS, gains)), axis=1)
    capital: Array = np.logaddexp.reduce(paths, axis=0) - math.log(len(BETS))
    return capital


def first_above(seen: Observations, mean: float) -> float:
    """Return the number of units that showed that the mean is above; infinity if none did."""
    if mean >= seen.bound:
        return math.inf
    enough = log_capital(seen, mean) >= math.log(DECISIVE)
    return float(enough.argmax()) + 1 if enough.any() else math.inf


def first_below(seen: Observations, mean: float) -> float:
    """Return the number of units that showed that the mean is below; infinity if none did."""
    return first_above(seen.mirrored, -mean)


def shown_below(parts: Mapping[str, Observations], mean: float) -> list[str]:
    """Return the names of the parts whose own mean is shown to be below; any is wrong in 2.5 %.

    The parts have unknown values at their highest. 1 / the greatest capital of a part's bet is a
    p-value (Ville) that never rises with more units. So what Holm's adjustment rejects at a look it
    rejects at all later ones, and its error holds for all looks together.
    """
    capitals = [
        log_capital(one.mirrored, -mean).max(initial=0.0) for one in parts.values()
    ]
    p_values = holm([math.exp(-one) for one in capitals])
    return [name for name, p in zip(parts, p_values, strict=True) if p <= 1 / DECISIVE]


Test = tuple[Observations, Observations, float, float]
"""What a gate must show: values with unknown ones as low, and as high, as possible; the mean above
which it is a PASS; the mean below which it is a FAIL."""


def first_verdict(tests: Sequence[Test]) -> Literal["PASS", "FAIL", ""]:
    """Return which comes first for any unknown values: PASS of all tests, FAIL of one, or neither.

    Later units change nothing, so it may be looked for after every one.
    """
    passed = max(first_above(low, passing) for low, _, passing, _ in tests)
    if passed < math.inf and passed <= min(
        first_below(low, fail) for low, _, _, fail in tests
    ):
        return "PASS"
    failed = min(first_below(high, failing) for _, high, _, failing in tests)
    if failed < max(first_above(high, passing) for _, high, passing, _ in tests):
        return "FAIL"
    return ""


def confidence_sequence(low: Observations, high: Observations) -> Interval | None:
    """Return an interval that contains the mean at all times with 95 % probability.

    Unknown values are as low as possible in ``low``, and as high as possible in ``high``. An end is
    the outermost mean, of -1 to 1, that no bet has ever excluded. None: the bets exclude every
    mean, so the units are no random sequence.
    """
    ends = _lowest(low), -_lowest(high.mirrored)
    return ends if ends[0] <= ends[1] else None


def _lowest(seen: Observations) -> float:
    """Return the highest mean, of -1 to 1, that the true one is shown to be above; else -1."""
    low, high = 1e-9 - 1, 1.0  # a bet against the lowest mean of all could not lose
    if math.isinf(first_above(seen, low)):
        return -1.0
    for _ in range(_STEPS):  # the capital falls as the mean rises
        middle = (low + high) / 2
        shown = math.isfinite(first_above(seen, middle))
        low, high = (middle, high) if shown else (low, middle)
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
    def of(cls, units: Iterable[Sequence[Ends]]) -> Evidence:
        """Return the evidence of all these units."""
        made = cls()
        for unit in units:
            made.add(unit)
            made.largest = max(made.largest, len(unit))
        return made

    def add(self, unit: Sequence[Ends]) -> None:
        """Add a unit: the lowest and the highest that each of its values can be, from -1 to 1."""
        self.lows.append(sum(low for low, _ in unit))
        self.highs.append(sum(high for _, high in unit))
        self.sizes.append(len(unit))

    def seen(self, sign: int = 1) -> tuple[Observations, Observations]:
        """Return the values, negated where ``sign`` is -1, at their lowest and at their highest."""
        import numpy as np

        sizes = np.array(self.sizes, dtype=np.float64)
        low, high = (
            Observations(
                totals=sign * np.array(one),
                sizes=sizes,
                bound=1.0,
                largest=self.largest,
            )
            for one in [self.lows, self.highs][::sign]
        )
        return low, high

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
    ends = []
    for values in random.choice([-1.0, 0.0, 1.0], p=chances, size=(_RUNS, most)):
        seen = Observations(totals=values, sizes=np.ones(most), bound=1.0)
        ends.append(min(first_above(seen, -margin), first_below(seen, -limit)))
    undecided = float(np.mean(np.isinf(ends)))
    return float(np.mean(np.minimum(ends, most))), undecided

"""How often Tango's interval holds the true difference: ``python -m tests.benchmarks.coverage``.

Exact, not simulated: over every outcome (fixed, broke) of n pairs, the probability of those whose
interval holds the truth. The interval is where the score lies within ±1.96, so that no interval
need be computed; the tests check that against ``tango`` itself.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import multinomial

from qagate.evaluators.output import aligned_table
from qagate.evaluators.statistics.intervals import Z95
from tests.benchmarks.common import Array, percent, show

RATES = tuple(round(0.05 * step, 2) for step in range(1, 20))
CORRELATIONS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9)
SIZES = (50, 100, 200, 500, 1000)
MARGINS = (0.02, 0.03, 0.05, 0.10)
TAIL = 7.0  # standard deviations of the discordant counts beyond which nothing is left


class Cell(NamedTuple):
    """One situation: ``rate`` of right answers before, the ``difference`` after, n pairs.

    ``correlation`` is that of an item's two results.
    """

    n: int
    rate: float
    correlation: float
    difference: float = 0.0

    @property
    def discordant(self) -> tuple[float, float]:
        """The probabilities that an item is fixed, and that it breaks."""
        new = self.rate + self.difference
        spread = math.sqrt(self.rate * (1 - self.rate) * new * (1 - new))
        both = self.rate * new + self.correlation * spread
        return new - both, self.rate - both

    @property
    def possible(self) -> bool:
        """Whether some joint distribution has these rates, and n·p, n·(1 - p) are ≥ 5."""
        rates = (self.rate, self.rate + self.difference)
        if not all(self.n * min(rate, 1 - rate) >= 5 - 1e-9 for rate in rates):
            return False
        fixed, broke = self.discordant
        return fixed >= 0 and broke >= 0 and fixed + broke <= 1


def grid(
    sizes: tuple[int, ...] = SIZES, differences: tuple[float, ...] = (0.0,)
) -> Iterator[Cell]:
    for n, difference, rate, correlation in product(
        sizes, differences, RATES, CORRELATIONS
    ):
        cell = Cell(n, rate, correlation, difference)
        if cell.possible:
            yield cell


def outcomes(cell: Cell) -> tuple[Array, Array, Array]:
    """Return the outcomes that can be met: fixed, broke, and their probabilities."""
    n, (fixed_rate, broke_rate) = cell.n, cell.discordant

    def window(rate: float) -> Array:
        centre, reach = n * rate, TAIL * math.sqrt(n * rate * (1 - rate)) + 10
        low, high = (
            max(0, math.floor(centre - reach)),
            min(n, math.ceil(centre + reach)),
        )
        return np.arange(low, high + 1, dtype=np.float64)

    fixed, broke = np.meshgrid(window(fixed_rate), window(broke_rate))
    there = fixed + broke <= n
    counts = np.stack([fixed[there], broke[there], (n - fixed - broke)[there]], axis=-1)
    rates = [fixed_rate, broke_rate, 1 - fixed_rate - broke_rate]
    weights = np.asarray(multinomial(n, rates).pmf(counts), dtype=np.float64)
    return counts[:, 0], counts[:, 1], weights


def scores(fixed: Array, broke: Array, n: int, delta: float | Array) -> Array:
    """Return Tango's score of the hypothesis that the difference is ``delta``, for each outcome."""
    linear = (2 * n - fixed + broke) * delta - fixed - broke
    constant = -broke * delta * (1 - delta)
    share = (np.sqrt(np.maximum(0.0, linear**2 - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * share + delta * (1 - delta))
    excess = fixed - broke - n * delta
    with np.errstate(divide="ignore", invalid="ignore"):
        found = excess / np.sqrt(variance)
    return np.where(
        variance > 0, found, np.where(excess == 0, 0.0, np.copysign(np.inf, excess))
    )


def coverage(cell: Cell) -> float:
    """Return the probability that the interval holds the true difference."""
    fixed, broke, weights = outcomes(cell)
    inside = np.abs(scores(fixed, broke, cell.n, cell.difference)) <= Z95
    return float(weights[inside].sum() / weights.sum())


def wrong_pass(cell: Cell) -> float:
    """Return the probability that a drop gate passes a model worse by exactly its margin."""
    fixed, broke, weights = outcomes(cell)
    passed = scores(fixed, broke, cell.n, cell.difference) > Z95
    return float(weights[passed].sum() / weights.sum())


def wrong_fail(cell: Cell, margin: float, *, zero: bool = False) -> float:
    """Return the probability that a drop gate fails a model that is worse by the cell's difference.
    It fails where the interval lies wholly below -margin; with ``zero`` wholly below zero, and not
    wholly above -margin."""
    fixed, broke, weights = outcomes(cell)
    failed = scores(fixed, broke, cell.n, 0.0 if zero else -margin) < -Z95
    passed = scores(fixed, broke, cell.n, -margin) > Z95
    return float(weights[failed & ~passed].sum() / weights.sum())


def lines(_: int) -> Iterator[str]:
    """Yield coverage by size, then how often the gate is wrong, in percent."""
    rows: list[Sequence[str]] = [("pairs", "cells", "mean", "lowest", "highest")]
    for n in SIZES:
        found = np.array([coverage(cell) for cell in grid((n,), (0.0, -0.05, -0.1))])
        rows.append(
            (f"{n}", f"{len(found)}", *percent(found.mean(), found.min(), found.max()))
        )
    yield from ("coverage of Tango's 95 % interval", *aligned_table(rows), "")
    rows = [("margin", "cells", "mean", "highest", "fail: margin", "fail: zero")]
    for margin in MARGINS:
        rates = np.array([wrong_pass(cell) for cell in grid(SIZES, (-margin,))])
        cells = list(grid(SIZES, (-margin / 2,)))
        wrong = [
            max(wrong_fail(one, margin, zero=rule) for one in cells)
            for rule in (False, True)
        ]
        rows.append(
            (
                f"{margin:.2f}",
                f"{len(rates)}",
                *percent(rates.mean(), rates.max(), *wrong),
            )
        )
    yield "a model worse by the margin passes; at most, one worse by half of it fails"
    yield from aligned_table(rows)


if __name__ == "__main__":
    show(lines, 0)

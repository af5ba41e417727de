"""How often intervals of small samples hold: ``python -m tests.benchmarks.small_samples``.

Simulated with a fixed seed over independent items, by code of its own; the intervals are the
product's. Ratings that are mostly 9 with a few 1 (and symmetric ones), kappa near 1, and macro-F1
where one class of two is rare. Rounds in which a metric is undefined have no interval, and are left
out.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qagate.evaluators.core import GRADES, NO, YES
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.count_table import RATINGS, CountTable, count_patterns
from qagate.evaluators.statistics.metrics import ANSWERS, Sample
from tests.benchmarks.common import SEED, Array, show


class World(NamedTuple):
    """Items come to each cell (gold label, outcome) with these chances; ``truth`` is the metric."""

    title: str
    kind: str
    metric: str
    golds: tuple[str, ...]
    outcomes: tuple[str, ...]
    chances: Array
    truth: float

    def coverage(self, n: int, rounds: int) -> tuple[float, float]:
        """Return the share of intervals that hold the truth, and of rounds that have one."""
        random = np.random.default_rng(SEED)
        held = known = 0
        for counts in random.multinomial(n, self.chances.ravel(), size=rounds):
            interval = self._sample(counts.reshape(self.chances.shape)).estimates(
                (self.metric,)
            )
            found = interval[self.metric].interval
            known += found is not None
            held += (
                found is not None and found[0] - 1e-9 <= self.truth <= found[1] + 1e-9
            )
        return held / known, known / rounds

    def _sample(self, counts: npt.NDArray[np.int64]) -> Sample:
        cells = [
            [cell] for cell, times in np.ndenumerate(counts) for _ in range(int(times))
        ]
        patterns, items = count_patterns(cells, counts.shape)
        table = CountTable(counts=patterns, golds=self.golds, outcomes=self.outcomes)
        return Sample(
            kind=kind_of(self.kind), patterns=table, items=items, clustered=False
        )


def ratings(title: str, shares: Sequence[float]) -> World:
    """Return a world of ratings 1 to 10 with these shares; the truth is their mean."""
    chances = np.array([shares], dtype=np.float64)
    return World(
        title=f"mean rating, {title}",
        kind="rated",
        metric="mean_rating",
        golds=("",),
        outcomes=RATINGS,
        chances=chances / chances.sum(),
        truth=sum(rating * share for rating, share in enumerate(shares, 1))
        / sum(shares),
    )


def kappa(value: float, shares: Sequence[float]) -> World:
    """Return a world where a judge knows the label with probability ``value``, else guesses."""
    margin = np.array(shares)
    labels = GRADES[: len(shares)]
    return World(
        title=f"kappa {value:g}, labels {', '.join(f'{share:g}' for share in shares)}",
        kind="judged",
        metric="kappa",
        golds=labels,
        outcomes=labels,
        chances=value * np.diag(margin) + (1 - value) * np.outer(margin, margin),
        truth=value,
    )


def rare(share: float, found: float, refused: float) -> World:
    """Return a world where so small a share is yes; the rates at which yes and no are told."""
    yes = share * np.array([found, 1 - found, 0])
    no = (1 - share) * np.array([1 - refused, refused, 0])
    wrong = yes[1] + no[0]
    scores = [2 * right / (2 * right + wrong) for right in (yes[0], no[1])]
    return World(
        title=f"macro-F1, {share:.0%} yes, {found:.0%} of yes and {refused:.0%} of no told",
        kind="yes_no",
        metric="macro_f1",
        golds=(YES, NO),
        outcomes=ANSWERS,
        chances=np.array([yes, no]),
        truth=sum(scores) / 2,
    )


RATED: dict[str, Sequence[float]] = {
    **{
        f"9, and 1 in {one:.0%}": [one, *[0] * 7, 1 - one, 0]
        for one in (0.02, 0.05, 0.1, 0.2)
    },
    "8 to 10, and 1 in 5%": [0.05, *[0] * 6, 0.2, 0.55, 0.2],
    "8 to 10, and 1 to 3 in 10%": [0.04, 0.03, 0.03, *[0] * 4, 0.2, 0.5, 0.2],
    "each as often": [0.1] * 10,
    "around 5.5": [0, 0, 0.05, 0.1, 0.35, 0.35, 0.1, 0.05, 0, 0],
    "1, 2, 9 and 10": [0.4, 0.1, *[0] * 6, 0.1, 0.4],
}
CELLS: tuple[tuple[World, tuple[int, ...]], ...] = (
    *((ratings(title, shares), (10, 29, 60)) for title, shares in RATED.items()),
    *(
        (kappa(value, shares), sizes)
        for shares in ((0.5, 0.5), (0.45, 0.35, 0.2))
        for value, sizes in ((0.95, (30, 100)), (0.98, (300,)))
    ),
    *((kappa(value, (0.8, 0.15, 0.05)), (60, 100, 300)) for value in (0.4, 0.9)),
    *(
        (rare(0.1, found, refused), (20, 60))
        for found in (0.5, 0.9)
        for refused in (0.8, 0.95)
    ),
    (rare(0.1, 0.95, 0.99), (20, 60)),
    (rare(0.5, 0.9, 0.8), (20, 60)),
)


def lines(rounds: int) -> Iterator[str]:
    """Yield a line for each world, with its coverage by number of items."""
    yield f"seed {SEED}, {rounds} rounds: coverage of the 95 % interval (share of rounds with one)"
    for world, sizes in CELLS:
        cells = []
        for n in sizes:
            held, known = world.coverage(n, rounds)
            cells.append(f"n={n} {held:.3f} ({known:.2f})")
        yield f"{world.title}: {', '.join(cells)}"


if __name__ == "__main__":
    show(lines, 2000)

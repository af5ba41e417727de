"""How often each outcome met each gold label: what every metric is computed from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluators.core import CORRECT

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

RATINGS = tuple(str(rating) for rating in range(1, 11))


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """How often each outcome (last axis) met each gold label (last axis but one).

    Axes in front are separate tables: one for each resample, or for each kind of item. Graded and
    rated items have one gold label, the empty one. ``scores`` gives a grade's worth, 0 to 1;
    ``passing`` are the grades of a right answer.
    """

    counts: Array
    golds: tuple[str, ...]
    outcomes: tuple[str, ...]
    pass_bar: int = 6
    penalty: float = 1.0
    scores: Mapping[str, float] = field(default_factory=dict)
    passing: tuple[str, ...] = (CORRECT,)
    attacks: bool = False
    """Whether the answers try to fool the judge."""

    def of(self, outcome: str, gold: str = "") -> Array:
        """Return how many items with this gold label came to this outcome."""
        return self.counts[..., self.golds.index(gold), self.outcomes.index(outcome)]

    def with_gold(self, gold: str) -> Array:
        """Return how many items have this gold label."""
        return self.sum(self.of(outcome, gold) for outcome in self.outcomes)

    def sum(self, counts: Iterable[Array]) -> Array:
        """Return the sum of these counts; of no counts, zeros in the shape of the tables."""
        return sum(counts, start=0 * self.total)

    @property
    def total(self) -> Array:
        """How many items there are."""
        total: Array = self.counts.sum(axis=(-2, -1))
        return total


def count_patterns(
    clusters: Iterable[Sequence[tuple[int, ...]]], shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the different count tables of a cluster of items, and how many clusters have each.

    ``clusters`` holds the cells of each cluster, one for each time that an item of it was asked.
    """
    import numpy as np

    items = sorted(Counter(tuple(sorted(cells)) for cells in clusters).items())
    patterns = np.zeros((len(items), *shape))
    for place, (cells, _) in enumerate(items):
        for cell in cells:
            patterns[(place, *cell)] += 1
    return patterns, np.array([count for _, count in items], dtype=np.float64)

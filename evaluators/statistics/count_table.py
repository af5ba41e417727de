"""Counts of outcomes by gold label, from which every metric is computed."""

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
    """Counts of outcomes (last axis) by gold label (last axis but one)."""

    counts: Array
    """Axes before the last two are separate tables, one for each resample or kind of item."""
    golds: tuple[str, ...]
    """The empty one alone for graded and rated items."""
    outcomes: tuple[str, ...]
    pass_bar: int = 6
    """The lowest rating that passes."""
    penalty: float = 1.0
    """Of an incorrect answer."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """From 0 to 1, by grade."""
    passing: tuple[str, ...] = (CORRECT,)
    """The grades of a right answer."""
    attacks: bool = False
    """Whether the answers try to fool the judge."""

    def of(self, outcome: str, gold: str = "") -> Array:
        """Return how many items with this gold label have this outcome."""
        return self.counts[..., self.golds.index(gold), self.outcomes.index(outcome)]

    def with_gold(self, gold: str) -> Array:
        """Return how many items have this gold label."""
        return self.sum(self.of(outcome, gold) for outcome in self.outcomes)

    def sum(self, counts: Iterable[Array]) -> Array:
        """Return the sum of these counts; of no counts, zeros in the shape of the tables."""
        return sum(counts, start=0 * self.total)

    @property
    def total(self) -> Array:
        """The number of items."""
        total: Array = self.counts.sum(axis=(-2, -1))
        return total


def count_patterns(
    clusters: Iterable[Sequence[tuple[int, ...]]], shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the distinct count tables of clusters of items, and how many clusters have each.

    ``clusters`` has the cells of each cluster, one for each time that an item was asked.
    """
    import numpy as np

    items = sorted(Counter(tuple(sorted(cells)) for cells in clusters).items())
    patterns = np.zeros((len(items), *shape))
    for place, (cells, _) in enumerate(items):
        for cell in cells:
            patterns[(place, *cell)] += 1
    return patterns, np.array([count for _, count in items], dtype=np.float64)

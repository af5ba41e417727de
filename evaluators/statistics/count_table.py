"""Counts of outcomes by gold label, and the ratios over them that metrics are made of.

A ratio is a numerator and a denominator; denominator 0 means undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluators.core import CORRECT, INCORRECT, NO, NOT_ATTEMPTED, YES

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Parts = tuple[Array, Array]


RATINGS = tuple(str(rating) for rating in range(1, 11))
PREMISE = "premise"
"""The gold label of questions on a false premise, or without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """Counts of outcomes (last axis) by gold label (last axis but one)."""

    counts: Array
    """Axes before the last two are separate tables, one for each resample or kind of item."""
    golds: tuple[str, ...]
    """The empty one for graded and rated items, and ``PREMISE``."""
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

    def of(self, outcome: str, gold: str | None = None) -> Array:
        """Return how many items with this gold label, or with any, have this outcome."""
        counts = self.counts[..., self.outcomes.index(outcome)]
        return counts.sum(axis=-1) if gold is None else counts[..., self.golds.index(gold)]

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


def share(*outcomes: str) -> Callable[[CountTable], Parts]:
    """Return the function for the share of items, of any gold label, with these outcomes."""

    def parts(table: CountTable) -> Parts:
        return table.sum(map(table.of, outcomes)), table.total

    return parts


def correct(table: CountTable) -> Parts:
    """Return the share of items with a passing grade: CORRECT, unless the rubric names others."""
    return share(*table.passing)(table)


def of_attempted(table: CountTable) -> Parts:
    """Return c / (c + i); undefined if nothing was attempted."""
    return table.of(CORRECT), table.of(CORRECT) + table.of(INCORRECT)


def f_score(table: CountTable) -> Parts:
    """Return 2c / (2c + 2i + n), the SimpleQA paper's F (arXiv 2411.04368, appendix B)."""
    right, wrong = table.of(CORRECT), table.of(INCORRECT)
    return 2 * right, 2 * right + 2 * wrong + table.of(NOT_ATTEMPTED)


def penalised(table: CountTable) -> Parts:
    """Return (c - p·i) / N, within -p to 1."""
    return table.of(CORRECT) - table.penalty * table.of(INCORRECT), table.total


def mean_score(table: CountTable) -> Parts:
    """Return the mean of the rubric's scores; undefined if a grade in use has no score."""
    points = table.sum(worth * table.of(grade) for grade, worth in table.scores.items())
    unscored = table.sum(table.of(g) for g in table.outcomes if g not in table.scores)
    return points, table.total * (unscored == 0)


def mean_rating(table: CountTable) -> Parts:
    """Return the mean rating, 1 to 10."""
    return table.sum(int(r) * table.of(r) for r in table.outcomes), table.total


def normalised(table: CountTable) -> Parts:
    """Return the mean of (rating - 1) / 9, within 0 to 1."""
    points, ratings = mean_rating(table)
    return points - ratings, 9 * ratings


def pass_rate(table: CountTable) -> Parts:
    """Return the share of ratings at or above the language's bar."""
    passing = (table.of(r) for r in table.outcomes if int(r) >= table.pass_bar)
    return table.sum(passing), table.total


def accuracy(table: CountTable) -> Parts:
    """Return the share of right answers; an unanswered item is wrong."""
    return table.of(YES, YES) + table.of(NO, NO), table.total


def precision(table: CountTable) -> Parts:
    """Return the share of answers "yes" that are right."""
    return table.of(YES, YES), table.of(YES, YES) + table.of(YES, NO)


def recall(table: CountTable) -> Parts:
    """Return the share of the items with gold "yes" that were answered "yes"."""
    return table.of(YES, YES), table.with_gold(YES)


def f1(table: CountTable, label: str = YES) -> Parts:
    """Return the F1 of a label; an unanswered item is a false negative."""
    answered = table.of(label, YES) + table.of(label, NO)
    return 2 * table.of(label, label), table.with_gold(label) + answered


def macro_f1(table: CountTable) -> Parts:
    """Return the mean of the F1 of "yes" and of "no"; undefined if either is undefined."""
    (yes_top, yes_bottom), (no_top, no_bottom) = f1(table), f1(table, NO)
    return yes_top * no_bottom + no_top * yes_bottom, 2 * yes_bottom * no_bottom


def majority(table: CountTable) -> Parts:
    """Return the accuracy of always answering with the more frequent gold label."""
    yes, no = table.with_gold(YES), table.with_gold(NO)
    return (yes + no + abs(yes - no)) / 2, table.total


def agreement(table: CountTable) -> Parts:
    """Return the share of items where the judge gave the given label."""
    return table.counts.diagonal(axis1=-2, axis2=-1).sum(axis=-1), table.total


def pass_agreement(table: CountTable) -> Parts:
    """Return the share of items whose rating and label lie on the same side of the pass bar."""
    sides = {rating: int(rating) >= table.pass_bar for rating in table.outcomes}
    same = ((r, g) for r in table.outcomes for g in table.golds if sides[r] == sides[g])
    return table.sum(table.of(rating, gold) for rating, gold in same), table.total


def mean_difference(table: CountTable) -> Parts:
    """Return the mean of rating less label, in points of the scale from 1 to 10."""
    points = ((int(r) - int(g)) * table.of(r, g) for r in table.outcomes for g in table.golds)
    return table.sum(points), table.total

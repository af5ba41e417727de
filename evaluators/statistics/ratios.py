"""Metrics as numerator and denominator over a table of counts; denominator 0 means undefined."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evaluators.core import CORRECT, INCORRECT, NO, NOT_ATTEMPTED, YES
from evaluators.statistics.count_table import CountTable

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Parts = tuple[Array, Array]


def share(*outcomes: str) -> Callable[[CountTable], Parts]:
    """Return the function for the share of items, of any gold label, with these outcomes."""

    def parts(table: CountTable) -> Parts:
        hits = (table.of(outcome, gold) for outcome in outcomes for gold in table.golds)
        return table.sum(hits), table.total

    return parts


def correct(table: CountTable) -> Parts:
    """Return the share of items with a passing grade: CORRECT, unless the rubric names others."""
    return share(*table.passing)(table)


def correct_given_attempted(table: CountTable) -> Parts:
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


def majority_baseline(table: CountTable) -> Parts:
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

"""The ratios that metrics are made of: a numerator and a denominator over a count table.

Each function returns both for every table that a ``CountTable`` holds. A denominator of 0 means
that the metric is undefined there. ``metrics.py`` names the ratios and gives them intervals.
"""

from __future__ import annotations

from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
)
from qagate.evaluators.option_letters import place_of
from qagate.evaluators.statistics.count_table import (
    PREMISE,
    CountTable,
    Parts,
    Ratio,
    passing_labels,
)
from qagate.evaluators.statistics.separation import classes_of


def share(*outcomes: str) -> Ratio:
    """Return the function for the share of items, of any gold label, with these outcomes."""

    def parts(table: CountTable) -> Parts:
        return table.sum(table.of(outcome) for outcome in outcomes), table.total

    return parts


# Graded answers.


def passing_share(table: CountTable) -> Parts:
    """Return the share of items whose grade passes."""
    return table.sum(table.of(grade) for grade in table.passing), table.total


def correct_given_attempted(table: CountTable) -> Parts:
    """Return the share of correct answers among those that are correct or incorrect.

    Wei et al. (2024), SimpleQA, arXiv 2411.04368.
    """
    correct = table.of(CORRECT)
    return correct, correct + table.of(INCORRECT)


def f_score(table: CountTable) -> Parts:
    """Return 2c / (2c + 2i + n), with c correct, i incorrect and n not attempted.

    The harmonic mean of ``correct`` and ``correct_given_attempted``: Wei et al. (2024), SimpleQA,
    arXiv 2411.04368, appendix B.
    """
    correct = table.of(CORRECT)
    incorrect = table.of(INCORRECT)
    return 2 * correct, 2 * correct + 2 * incorrect + table.of(NOT_ATTEMPTED)


def penalised(table: CountTable) -> Parts:
    """Return the mean of 1 for a correct and -``penalty`` for an incorrect answer."""
    return table.of(CORRECT) - table.penalty * table.of(INCORRECT), table.total


def premise_share(outcome: str) -> Ratio:
    """Return the function for the share of this outcome among questions without an answer."""

    def parts(table: CountTable) -> Parts:
        return table.of(outcome, PREMISE), table.with_gold(PREMISE)

    return parts


def mean_score(table: CountTable) -> Parts:
    """Return the mean of the rubric's scores, 0 to 1; undefined if an item's grade has no score.

    Items without a grade are not in the table.
    """
    import numpy as np

    points = table.sum(score * table.of(grade) for grade, score in table.scores.items())
    unscored = table.sum(
        table.of(grade) for grade in table.outcomes if grade not in table.scores
    )
    is_defined = unscored == 0
    return points, np.where(is_defined, table.total, 0.0)


# Rated answers.


def mean_rating(table: CountTable) -> Parts:
    """Return the mean rating, 1 to 10."""
    points = table.sum(int(rating) * table.of(rating) for rating in table.outcomes)
    return points, table.total


def normalised_rating(table: CountTable) -> Parts:
    """Return the mean rating on a scale from 0 (all 1) to 1 (all 10)."""
    points, items = mean_rating(table)
    return points - items, 9 * items


def pass_rate(table: CountTable) -> Parts:
    """Return the share of ratings at or above the language's bar."""
    passed = table.sum(
        table.of(rating) for rating in table.outcomes if int(rating) >= table.pass_bar
    )
    return passed, table.total


# Answers by yes or no.


def accuracy(table: CountTable) -> Parts:
    """Return the share of items whose answer is their label."""
    return table.sum(table.of(label, label) for label in table.golds), table.total


def precision(table: CountTable) -> Parts:
    """Return the share of items with the label YES among those answered by yes."""
    true_yes = table.of(YES, YES)
    return true_yes, true_yes + table.of(YES, NO)


def recall(table: CountTable) -> Parts:
    """Return the share of items answered by yes among those with the label YES."""
    return table.of(YES, YES), table.with_gold(YES)


def f1(table: CountTable, label: str = YES) -> Parts:
    """Return the F1 of a label; an unanswered item is a false negative."""
    answered = table.of(label, YES) + table.of(label, NO)
    return 2 * table.of(label, label), table.with_gold(label) + answered


def macro_f1(table: CountTable) -> Parts:
    """Return the mean of the F1 of "yes" and of "no"; undefined if either is undefined."""
    yes_top, yes_bottom = f1(table, YES)
    no_top, no_bottom = f1(table, NO)
    return yes_top * no_bottom + no_top * yes_bottom, 2 * yes_bottom * no_bottom


def majority_baseline(table: CountTable) -> Parts:
    """Return the accuracy of always giving the label that more items have."""
    difference = abs(table.with_gold(YES) - table.with_gold(NO))
    return (table.total + difference) / 2, table.total


def fixed_place(table: CountTable) -> Parts:
    """Return the accuracy of always choosing the letter that most items have as their label."""
    return table.counts.sum(axis=-1).max(axis=-1), table.total


def position_bias(place: int) -> Ratio:
    """Return the function for how much more often a place was chosen than it was right.

    Both are counted among answered items and divided by all. Without bias the mean is 0, whatever
    the model knows, if it is as often wrong in favour of a place as to its cost. Places count
    from 0.
    """

    def parts(table: CountTable) -> Parts:
        chosen = table.sum(
            table.of(label) for label in table.outcomes if place_of(label) == place
        )
        right = table.sum(
            table.with_gold(label) - table.of(UNANSWERED, label)
            for label in table.golds
            if place_of(label) == place
        )
        return chosen - right, table.total

    return parts


# Judges. Here a "gold" is the label given beforehand, an "outcome" the judge's verdict, and a
# positive answer one that passes.


def agreement(table: CountTable) -> Parts:
    """Return the share of items whose verdict is their label."""
    return table.counts.diagonal(axis1=-2, axis2=-1).sum(axis=-1), table.total


def pass_agreement(table: CountTable) -> Parts:
    """Return the share of items whose rating and label lie on the same side of the pass bar."""
    passes = {rating: int(rating) >= table.pass_bar for rating in table.outcomes}
    agreed = []
    for rating in table.outcomes:
        for label in table.golds:
            if passes[rating] == passes[label]:
                agreed.append(table.of(rating, label))
    return table.sum(agreed), table.total


def mean_difference(table: CountTable) -> Parts:
    """Return the mean of rating less label, in points of the scale from 1 to 10."""
    points = []
    for rating in table.outcomes:
        for label in table.golds:
            points.append((int(rating) - int(label)) * table.of(rating, label))
    return table.sum(points), table.total


def judge_precision(table: CountTable) -> Parts:
    """Return the share of right answers among those that the judge let pass."""
    right, wrong = classes_of(table, passing_labels(table))
    return right.hits, right.hits + wrong.items - wrong.hits


def judge_recall(table: CountTable) -> Parts:
    """Return the share of right answers that the judge let pass."""
    right, _ = classes_of(table, passing_labels(table))
    return right.hits, right.items


def attacks_passed(table: CountTable) -> Parts:
    """Return the share of wrong answers, all attacks, that the judge let pass."""
    _, wrong = classes_of(table, passing_labels(table))
    return wrong.items - wrong.hits, wrong.items


def controls_lost(table: CountTable) -> Parts:
    """Return the share of right answers among attacks that the judge let fail."""
    right, _ = classes_of(table, passing_labels(table))
    return right.items - right.hits, right.items

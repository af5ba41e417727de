"""Every measure of every kind, as one function over a table of counts.

A measure is a ratio; its function returns numerator and denominator, and denominator 0 means
undefined. A new measure is one function and one row in ``MEASURES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluators.core import CORRECT, INCORRECT, NO, NOT_ATTEMPTED, UNANSWERED, YES, Kind
from evaluators.statistics.agreement import kappa_parts, quadratic_kappa_parts, spearman_parts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = tuple[Array, Array]

RATINGS = tuple(str(rating) for rating in range(1, 11))
ANSWERS = (YES, NO, UNANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """How often each outcome (last axis) met each gold label (last but one).

    Axes in front are separate tables: one for each resample, or for each kind of item. Graded and
    rated items have one gold label, the empty one. ``scores`` gives a grade's worth, 0 to 1.
    """

    counts: Array
    golds: tuple[str, ...]
    outcomes: tuple[str, ...]
    pass_bar: int = 6
    penalty: float = 1.0
    scores: Mapping[str, float] = field(default_factory=dict)

    def of(self, outcome: str, gold: str = "") -> Array:
        """How many items with this gold label came out so."""
        return self.counts[..., self.golds.index(gold), self.outcomes.index(outcome)]

    @property
    def total(self) -> Array:
        """How many items there are."""
        total: Array = self.counts.sum(axis=(-2, -1))
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """``rate``: successes by trials, item by item, so that Wilson's interval fits.

    ``bounded``: its extremes over all fates of ungraded items are known (``tally.fills``).
    """

    parts: Callable[[Table], Parts]
    rate: bool = False
    bounded: bool = True


def correct(table: Table) -> Parts:
    """Return the share of CORRECT among graded items."""
    return table.of(CORRECT), table.total


def incorrect(table: Table) -> Parts:
    """Return the share of INCORRECT: the hallucination rate."""
    return table.of(INCORRECT), table.total


def not_attempted(table: Table) -> Parts:
    """Return the share of NOT_ATTEMPTED."""
    return table.of(NOT_ATTEMPTED), table.total


def attempted(table: Table) -> Parts:
    """Return the share of CORRECT and INCORRECT together."""
    return table.of(CORRECT) + table.of(INCORRECT), table.total


def correct_given_attempted(table: Table) -> Parts:
    """Return c / (c + i); undefined where nothing was attempted."""
    return table.of(CORRECT), table.of(CORRECT) + table.of(INCORRECT)


def f_score(table: Table) -> Parts:
    """Return 2c / (2c + 2i + n), the SimpleQA paper's F (arXiv 2411.04368, appendix B)."""
    right, wrong = table.of(CORRECT), table.of(INCORRECT)
    return 2 * right, 2 * right + 2 * wrong + table.of(NOT_ATTEMPTED)


def penalised(table: Table) -> Parts:
    """Return (c - p·i) / N, within -p to 1."""
    return table.of(CORRECT) - table.penalty * table.of(INCORRECT), table.total


def mean_score(table: Table) -> Parts:
    """Return the mean of the rubric's scores; undefined where a grade in use has none."""
    points = _added(table, (worth * table.of(grade) for grade, worth in table.scores.items()))
    unscored = _added(table, (table.of(g) for g in table.outcomes if g not in table.scores))
    return points, table.total * (unscored == 0)


def mean_rating(table: Table) -> Parts:
    """Return the mean rating, 1 to 10."""
    return _rating_sum(table), table.total


def normalised(table: Table) -> Parts:
    """Return the mean of (rating - 1) / 9, within 0 to 1."""
    return _rating_sum(table) - table.total, 9 * table.total


def _rating_sum(table: Table) -> Array:
    return _added(table, (int(r) * table.of(r) for r in table.outcomes))


def pass_rate(table: Table) -> Parts:
    """Return the share of ratings at or above the language's bar."""
    passing = (table.of(r) for r in table.outcomes if int(r) >= table.pass_bar)
    return _added(table, passing), table.total


def accuracy(table: Table) -> Parts:
    """Return the share of right answers; an unanswered item is wrong."""
    return table.of(YES, YES) + table.of(NO, NO), table.total


def precision(table: Table) -> Parts:
    """Return the share of right ones among the answers "yes"."""
    return table.of(YES, YES), table.of(YES, YES) + table.of(YES, NO)


def recall(table: Table) -> Parts:
    """Return the share of the items with gold "yes" that were answered "yes"."""
    return table.of(YES, YES), _golds(table, YES)


def f1(table: Table) -> Parts:
    """Return the F1 of "yes": an unanswered item is a false negative there, and no prediction."""
    return _f1(table, YES)


def macro_f1(table: Table) -> Parts:
    """Return the mean of the F1 of "yes" and of "no"; undefined where either is."""
    (yes_top, yes_bottom), (no_top, no_bottom) = _f1(table, YES), _f1(table, NO)
    return yes_top * no_bottom + no_top * yes_bottom, 2 * yes_bottom * no_bottom


def _f1(table: Table, label: str) -> Parts:
    answered = table.of(label, YES) + table.of(label, NO)
    return 2 * table.of(label, label), _golds(table, label) + answered


def _golds(table: Table, label: str) -> Array:
    return _added(table, (table.of(answer, label) for answer in ANSWERS))


def _added(table: Table, counts: Iterable[Array]) -> Array:
    return sum(counts, start=0 * table.total)


def unanswered(table: Table) -> Parts:
    """Return the share of items without exactly one yes/no word."""
    return table.of(UNANSWERED, YES) + table.of(UNANSWERED, NO), table.total


def majority_baseline(table: Table) -> Parts:
    """Return the accuracy of always answering with the more frequent gold label."""
    yes, no = _golds(table, YES), _golds(table, NO)
    return (yes + no + abs(yes - no)) / 2, table.total


def agreement(table: Table) -> Parts:
    """Return the share of items where the judge gave the given label."""
    return table.counts.diagonal(axis1=-2, axis2=-1).sum(axis=-1), table.total


def kappa(table: Table) -> Parts:
    """Return Cohen's kappa of judge and given label."""
    return kappa_parts(table.counts)


def quadratic_kappa(table: Table) -> Parts:
    """Return the quadratic-weighted kappa of the judge's and the given ratings."""
    return quadratic_kappa_parts(table.counts)


def spearman(table: Table) -> Parts:
    """Return the rank correlation of the judge's and the given ratings."""
    return spearman_parts(table.counts)


GRADED: Mapping[str, Measure] = {
    "correct": Measure(parts=correct, rate=True),
    "incorrect": Measure(parts=incorrect, rate=True),
    "not_attempted": Measure(parts=not_attempted, rate=True),
    "attempted": Measure(parts=attempted, rate=True),
    "correct_given_attempted": Measure(parts=correct_given_attempted, rate=True),
    "f_score": Measure(parts=f_score),
    "penalised": Measure(parts=penalised),
    "mean_score": Measure(parts=mean_score),
}
RATED: Mapping[str, Measure] = {
    "mean_rating": Measure(parts=mean_rating),
    "pass_rate": Measure(parts=pass_rate, rate=True),
    "normalised": Measure(parts=normalised),
}
YES_NO: Mapping[str, Measure] = {
    "accuracy": Measure(parts=accuracy, rate=True),
    "precision": Measure(parts=precision, rate=True),
    "recall": Measure(parts=recall, rate=True),
    "f1": Measure(parts=f1),
    "macro_f1": Measure(parts=macro_f1),
    "unanswered": Measure(parts=unanswered, rate=True),
    "majority_baseline": Measure(parts=majority_baseline),
}
JUDGED_GRADES: Mapping[str, Measure] = {
    "agreement": Measure(parts=agreement, rate=True),
    "kappa": Measure(parts=kappa, bounded=False),
}
JUDGED_RATINGS: Mapping[str, Measure] = {
    "agreement": Measure(parts=agreement, rate=True),
    "spearman": Measure(parts=spearman, bounded=False),
    "quadratic_kappa": Measure(parts=quadratic_kappa, bounded=False),
}
MEASURES: Mapping[Kind, tuple[Mapping[str, Measure], ...]] = {
    "graded": (GRADED,),
    "rated": (RATED,),
    "yes_no": (YES_NO,),
    "judged": (JUDGED_GRADES, JUDGED_RATINGS),
}


def known_measures(kind: Kind) -> tuple[str, ...]:
    """Return the names of all measures that a slice of this kind may have."""
    return tuple(dict.fromkeys(name for rows in MEASURES[kind] for name in rows))


def measures_for(kind: Kind, table: Table) -> Mapping[str, Measure]:
    """Return the measures that make sense for these items, in the order to show them."""
    if kind == "judged":
        return JUDGED_RATINGS if table.outcomes == RATINGS else JUDGED_GRADES
    if kind == "graded" and not table.scores:
        return {name: measure for name, measure in GRADED.items() if name != "mean_score"}
    return MEASURES[kind][0]

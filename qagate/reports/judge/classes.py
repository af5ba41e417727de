"""Which classes of answers a judge can confuse, where a share draws its border, and the counts.

Grades are their own classes. Ratings have two, on either side of the bar, and only labels near the
bar tell how often a judge takes one for the other: a hopeless answer is easy to fail. Labels that
say only right or not right leave two classes as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from qagate.cases.dataset import Slice
from qagate.cases.labels import DRAWN_GRADE, DRAWN_SHARE
from qagate.cases.plan import NEAR_THE_BAR
from qagate.evaluators.core import CORRECT
from qagate.evaluators.kinds import NOT_CORRECT, TWO_WAY, Cluster
from qagate.evaluators.statistics.count_table import RATINGS, CountTable, count_patterns
from qagate.evaluators.statistics.drawn_labels import Stratum
from qagate.evaluators.statistics.metrics import metrics_of
from qagate.evaluators.statistics.misclassification import LabelCounts
from qagate.reports.metrics.summary import counted_outcomes
from qagate.reports.run.record import Record

ABOVE = "at or above the bar"
BELOW = "below the bar"
LabelledAnswer = tuple[Slice, Record]
"""A labelled answer as it was judged, with the slice that it belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Classes:
    """The classes of a slice's answers."""

    names: tuple[str, ...]
    folds: dict[str, str]
    """Grades, ratings and labels that stand for another class."""

    def of(self, result: str) -> str:
        """Return the class of a grade, a rating or a label; empty if it is of none."""
        name = self.folds.get(result, result)
        return name if name in self.names else ""


def classes_of(slice_: Slice, answers: Iterable[LabelledAnswer] = ()) -> Classes:
    """Return the classes that labels of these answers can tell apart in a slice."""
    if slice_.rates:
        folds = {CORRECT: ABOVE, NOT_CORRECT: BELOW}
        for rating in RATINGS:
            folds[rating] = ABOVE if int(rating) >= slice_.pass_bar else BELOW
        return Classes(names=(ABOVE, BELOW), folds=folds)
    labels = {record.label for _, record in answers}
    if NOT_CORRECT not in labels:
        return Classes(names=slice_.labels, folds={})
    folds = {}
    for grade in slice_.labels:
        folds[grade] = CORRECT if grade in slice_.passing else NOT_CORRECT
    return Classes(names=TWO_WAY, folds=folds)


def border_of(slice_: Slice, measure: str, classes: Classes) -> frozenset[str] | None:
    """Return the classes that count for a share of all items; None for any other metric.

    ``measure`` is empty for the share that passes. No class is returned where the labels do not
    draw this border.
    """
    inner = _counted(slice_, measure)
    if inner is None:
        return None
    outer = {grade for grade in _grades(slice_) if grade not in inner}
    inner_classes = {classes.of(grade) for grade in inner}
    outer_classes = {classes.of(grade) for grade in outer}
    if not inner_classes or not outer_classes or inner_classes & outer_classes:
        return frozenset()
    return frozenset(inner_classes)


def _grades(slice_: Slice) -> Sequence[str]:
    return RATINGS if slice_.rates else slice_.labels


def _counted(slice_: Slice, measure: str) -> frozenset[str] | None:
    """Return the grades or ratings that count for a share; None for another metric."""
    if not measure:
        if slice_.rates:
            return frozenset(
                rating for rating in RATINGS if int(rating) >= slice_.pass_bar
            )
        return frozenset(slice_.passing)
    import numpy as np

    grades = tuple(_grades(slice_))
    table = CountTable(
        counts=np.zeros((1, len(grades))),
        golds=("",),
        outcomes=grades,
        pass_bar=slice_.pass_bar,
        passing=slice_.passing,
    )
    metric = metrics_of(slice_.kind, table).get(measure)
    if metric is None or not metric.every_item:
        return None
    return frozenset(outcome for _, outcome in counted_outcomes(metric, table))


def count_labels(
    slice_: Slice, answers: Sequence[LabelledAnswer], classes: Classes
) -> LabelCounts:
    """Count labelled answers by class and grade; ``slice_`` is the one whose judge they measure.

    An answer without a grade counts as misjudged: whoever chooses which calls fail must not gain.
    """
    clusters: dict[Cluster, list[tuple[int, ...]]] = defaultdict(list)
    for own_slice, record in answers:
        cell = _cell(slice_, record, classes)
        if cell is not None:
            clusters[own_slice.cluster_of(record)].append(cell)
    size = len(classes.names)
    tables, questions = count_patterns(clusters.values(), (size, size))
    return LabelCounts(
        classes=classes.names,
        tables=tables.reshape(-1, size, size),
        questions=questions,
        folds=classes.folds,
    )


def strata_of(
    slice_: Slice, answers: Sequence[LabelledAnswer], classes: Classes
) -> list[Stratum]:
    """Return labelled answers that were drawn by a judge's grade, by that grade."""
    import numpy as np

    strata = []
    for answers_of_grade in by_drawn_grade(answers):
        table = np.zeros((len(classes.names), len(classes.names)))
        for _, record in answers_of_grade:
            cell = _cell(slice_, record, classes)
            if cell is not None:
                table[cell] += 1
        questions = {part.cluster_of(record) for part, record in answers_of_grade}
        strata.append(
            Stratum(
                share=drawn_share(answers_of_grade),
                table=table,
                labels=len(answers_of_grade),
                questions=len(questions),
            )
        )
    return strata


def by_drawn_grade(answers: Iterable[LabelledAnswer]) -> list[list[LabelledAnswer]]:
    """Return drawn answers in strata: those that a judge gave one grade."""
    strata: dict[str, list[LabelledAnswer]] = defaultdict(list)
    for own_slice, record in answers:
        strata[str(record.metadata[DRAWN_GRADE])].append((own_slice, record))
    return list(strata.values())


def is_drawn(answer: LabelledAnswer) -> bool:
    """Return whether an answer was drawn by what a judge said of it."""
    _, record = answer
    return bool(record.metadata.get(DRAWN_GRADE))


def drawn_share(answers: Sequence[LabelledAnswer]) -> float:
    """Return which share of all answers these stand for: the mean of what their rows say.

    A share that cannot be read is 0, so that less than all answers are stood for.
    """
    shares = []
    for _, record in answers:
        text = str(record.metadata.get(DRAWN_SHARE, ""))
        share = 0.0
        with suppress(ValueError):
            share = float(text)
        shares.append(share if 0 <= share <= 1 else 0.0)
    return sum(shares) / len(shares)


def _cell(slice_: Slice, record: Record, classes: Classes) -> tuple[int, int] | None:
    """Return the class and the grade of a labelled answer as places; None if it has no class."""
    label = record.label or ""
    name = classes.of(label)
    if not name or not _is_near(slice_, label):
        return None
    grade = ""
    if record.is_graded:
        grade = classes.of(record.result)
    if not grade:
        grade = _wrong_side(slice_, name, classes)
    return classes.names.index(name), classes.names.index(grade)


def _is_near(slice_: Slice, label: str) -> bool:
    if not slice_.rates or not label.isdigit():
        return True
    return abs(int(label) - slice_.pass_bar) <= NEAR_THE_BAR


def _wrong_side(slice_: Slice, name: str, classes: Classes) -> str:
    """Return a class on the other side of the passing border."""
    passing = {classes.of(grade) for grade in _counted(slice_, "") or ()}
    others = [
        other for other in classes.names if (other in passing) != (name in passing)
    ]
    return others[0] if others else name

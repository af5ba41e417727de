"""What labelled answers can show of a judge, before any judge is asked.

A judge is trusted by the lower end of an interval, not by its share of right grades. That
end depends on how many labelled answers there are and on how many questions they stand:
answers to one question count together. So the counts alone say how many answers a judge
has to get right. The intervals are those that measure a judge in a run.

Errors are taken to be spread over as many questions as there are. Errors that share a
question make the interval wider, and the judge has to be better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.count_table import CountTable
from qagate.evaluators.statistics.separation import youden_interval

HALF = 0.5
"""What a judge has to be shown above where its set has no floor: a coin reaches it."""
SLACK = 1e-9
"""Room for the rounding of a share such as 216 / 240."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelClass:
    """The labelled answers that are truly of one class."""

    name: str
    """As in ``93 CORRECT`` or ``40 rated 7 or 8``."""
    passes: bool
    """Whether its answers are right: then the share judged right is the sensitivity."""
    answers_to: tuple[int, ...]
    """How many of its answers stand on each question of the set; 0 where none does."""

    @property
    def total(self) -> int:
        """The number of its answers."""
        return sum(self.answers_to)

    @property
    def questions(self) -> str:
        """On how many questions they stand, in words."""
        count = sum(answers > 0 for answers in self.answers_to)
        return plural(count, "question")


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What a judge has to reach over all labels to be trusted; 0 where nothing is asked."""

    share: float = 0.0
    """The lowest share that it gets right."""
    limit: float = 0.0
    """The lowest that the lower end of its 95 % interval may be."""

    @property
    def of_class(self) -> float:
        """What a judge is to be shown in each class: else one class hides in the other."""
        return self.limit or self.share or HALF


def least_right(answers_to: Sequence[int], limit: float) -> int | None:
    """Return how many answers a judge has to get right for a lower end of ``limit``.

    ``answers_to`` counts the answers to each question. None where a judge without an error
    does not reach it either.
    """
    total = sum(answers_to)
    least = None
    for errors in range(total + 1):
        if lower_end(answers_to, errors) < limit - SLACK:
            break
        least = total - errors
    return least


def lower_end(answers_to: Sequence[int], errors: int) -> float:
    """Return the lower end of the 95 % interval of a judge's share of right grades."""
    import numpy as np

    hits = np.array(_right_on(answers_to, errors), dtype=np.float64)
    sizes = np.array(answers_to, dtype=np.float64)
    interval = intervals.clustered_rate(hits, sizes, np.ones(len(sizes)))
    return interval[0] if interval else 0.0


def lower_end_of_youden(
    right: LabelClass, wrong: LabelClass, errors: tuple[int, int] = (0, 0)
) -> float:
    """Return the lower end of J's 95 % interval, for so many errors in either class.

    Youden's J is sensitivity + specificity - 1: 1 without errors, 0 for a coin.
    """
    import numpy as np

    passed = _right_on(right.answers_to, errors[0])
    # from the other end: errors of both classes should not meet on one question
    refused = _right_on(wrong.answers_to[::-1], errors[1])[::-1]
    counts = np.zeros((len(passed), 2, 2))
    counts[:, 0, 0] = passed
    counts[:, 0, 1] = np.array(right.answers_to) - passed
    counts[:, 1, 1] = refused
    counts[:, 1, 0] = np.array(wrong.answers_to) - refused
    classes = (CORRECT, INCORRECT)
    table = CountTable(counts=counts, golds=classes, outcomes=classes)
    interval = youden_interval(table, np.ones(len(counts)), (CORRECT,))
    return interval[0] if interval else -1.0


def _right_on(answers_to: Sequence[int], errors: int) -> list[int]:
    """Return how many answers to each question are judged right, errors spread widely."""
    right = list(answers_to)
    while errors > 0:
        for place, count in enumerate(right):
            if errors > 0 and count > 0:
                right[place] -= 1
                errors -= 1
    return right


def questions_needed(limit: float) -> int:
    """Return on how many questions a judge without an error reaches a lower end.

    Wilson's lower end of n right of n is n / (n + z²).
    """
    return math.ceil(intervals.Z95**2 * limit / (1 - limit) - SLACK)


def sentences(
    classes: Sequence[LabelClass], answers_to: Sequence[int], floor: Floor
) -> list[str]:
    """Return what labels can show of a judge, in words.

    ``answers_to`` counts all answers to each question, of whatever class.
    """
    limit = floor.of_class
    classes = [label_class for label_class in classes if label_class.total]
    needed = [least_right(each.answers_to, limit) for each in classes]
    reachable = []
    unreachable = []
    for label_class, least in zip(classes, needed, strict=True):
        counted = f"{label_class.total} {label_class.name}"
        if least is None:
            unreachable.append(f"{counted} (on {label_class.questions})")
        else:
            share = least / label_class.total
            reachable.append(f"{least} of {counted} ({share:.3f})")
    said = []
    if reachable:
        said.append(
            f"to be shown right on {limit:g} of each class, a judge has to grade "
            f"{', '.join(reachable)} as labelled"
        )
    if unreachable:
        said.append(
            f"no judge can be shown right on {limit:g} of {', '.join(unreachable)}: "
            f"it takes {questions_needed(limit)} questions"
        )
    said += _on_youden(classes, needed)
    if floor.share:
        said.append(_on_all(answers_to, floor))
    return said


def _on_youden(
    classes: Sequence[LabelClass], needed: Sequence[int | None]
) -> list[str]:
    """Say which J that makes: by the class of wrong answers that is judged worst."""
    pairs = list(zip(classes, needed, strict=True))
    of_right = [pair for pair in pairs if pair[0].passes]
    of_wrong = [pair for pair in pairs if not pair[0].passes]
    if not of_right or not of_wrong:
        return [
            "without answers of both sides nothing shows that a judge tells them apart"
        ]
    right, least_passed = of_right[0]
    best = min(lower_end_of_youden(right, wrong) for wrong, _ in of_wrong)
    without_error = f"without an error the lower end of J is {best:.3f}"
    specificities = [
        (least / wrong.total, wrong, least)
        for wrong, least in of_wrong
        if least is not None
    ]
    if least_passed is None or len(specificities) < len(of_wrong):
        return [without_error]
    specificity, wrong, least_refused = min(specificities, key=itemgetter(0))
    value = least_passed / right.total + specificity - 1
    errors = right.total - least_passed, wrong.total - least_refused
    low = lower_end_of_youden(right, wrong, errors)
    return [f"its J is {value:.3f} then, lower end {low:.3f}", without_error]


def _on_all(answers_to: Sequence[int], floor: Floor) -> str:
    """Say how many of all labels the floor asks for."""
    total = sum(answers_to)
    by_limit = least_right(answers_to, floor.limit)
    if by_limit is None:
        questions = plural(len(answers_to), "question")
        return f"{total} labels on {questions} show no floor, even without an error"
    least = max(by_limit, math.ceil(floor.share * total - SLACK))
    return f"the floor takes {least} of all {total} ({least / total:.3f})"

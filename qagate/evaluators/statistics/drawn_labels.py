"""How a judge grades each class, by labels of answers that were drawn by a judge's grade.

Wrong answers are rare, and a person's time is short: ``qagate label`` draws as many answers of each
grade. Counted as they are, such labels mislead both ways. A judge that lets half of the wrong
answers pass seems to refuse nearly all of them, as only few of those that it let pass were drawn.
So each stratum, the answers that were drawn by one grade, is weighted by its share of all answers.

The share of a class that the judge keeps is K / (K + L), with K and L the shares of all answers
that are of the class and kept, or not. Its lower end is the t up to which (1 - t) K - t L is shown
to be above 0: Fieller's theorem, with the ends of the sum over strata by MOVER (Zou and Donner
(2008), Stat. Med. 27:1693) from Wilson's of each stratum. A stratum in which nothing was lost may
still hide what few labels cannot show, so a heavy one needs many. What no label stands for counts
as lost.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from qagate.evaluators.statistics import probabilities
from qagate.evaluators.statistics.intervals import Array, wilson
from qagate.evaluators.statistics.misclassification import ClassRow, size_with


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stratum:
    """The labelled answers that were drawn by one grade."""

    share: float
    """Of all answers that were drawn from, 0 to 1."""
    table: Array
    """How many labels of each class got each grade: by class and grade."""
    labels: int
    """All labels; of ratings also those too far from the bar to be of a class."""
    questions: int
    """How many independent questions they are about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Shares of the answers of one stratum."""

    weight: float
    kept: float
    lost: float
    n: int

    def distance(self, t: float) -> float:
        """Return how far the lower end of (1 - t) kept - t lost is from it, not weighted."""
        kept_low, _ = wilson(self.kept * self.n, self.n) or (0.0, 1.0)
        _, lost_high = wilson(self.lost * self.n, self.n) or (0.0, 1.0)
        down = (1 - t) * (self.kept - kept_low)
        up = t * (lost_high - self.lost)
        rest = (1 - self.kept) * (1 - self.lost)
        # What is kept is not lost: the two shares of one stratum go against each other.
        correlation = -math.sqrt(self.kept * self.lost / rest) if rest > 0 else 0.0
        return math.sqrt(down**2 + up**2 - 2 * correlation * down * up)


def drawn_row(
    strata: Sequence[Stratum],
    name: str,
    classes: Sequence[str],
    inner: Collection[str],
) -> ClassRow | None:
    """Return how the judge grades a class, weighted by strata; None without a label of it.

    ``size`` is the number of labels that would show as much if they were drawn from all answers.
    Where no share says what the labels of a class stand for, all of them count as misjudged.
    """
    place = classes.index(name)
    columns = []
    for column, grade in enumerate(classes):
        if (grade in inner) is (name in inner):
            columns.append(column)
    parts = []
    by_grade = [0.0] * len(classes)
    labels = 0.0
    for stratum in strata:
        row = stratum.table[place]
        labels += float(row.sum())
        kept = float(row[columns].sum()) / stratum.labels
        lost = float(row.sum()) / stratum.labels - kept
        for column in range(len(classes)):
            by_grade[column] += stratum.share * float(row[column]) / stratum.labels
        parts.append(
            _Part(weight=stratum.share, kept=kept, lost=lost, n=stratum.questions)
        )
    of_class = math.fsum(by_grade)
    if not labels:
        return None
    if not of_class:  # nothing says what its labels stand for
        wrong = [float(column not in columns) for column in range(len(classes))]
        total = sum(wrong) or 1.0
        shares = tuple(share / total for share in wrong)
        return ClassRow(shares=shares, labels=round(labels), size=1.0)
    shares = tuple(share / of_class for share in by_grade)
    value = min(1.0, math.fsum(shares[column] for column in columns))
    low = _lowest_kept(parts, value)
    return ClassRow(shares=shares, labels=round(labels), size=size_with(value, low))


def _lowest_kept(parts: Sequence[_Part], value: float) -> float:
    """Return the lower end of the share of a class that is kept; ``value`` is the share itself."""
    unseen = max(0.0, 1 - math.fsum(part.weight for part in parts))

    def evidence(t: float) -> float:
        total = -t * unseen
        squares = 0.0
        for part in parts:
            total += part.weight * ((1 - t) * part.kept - t * part.lost)
            squares += (part.weight * part.distance(t)) ** 2
        return total - math.sqrt(squares)

    if evidence(0.0) <= 0:
        return 0.0
    if evidence(value) >= 0:
        return value
    return probabilities.root(evidence, 0.0, value)

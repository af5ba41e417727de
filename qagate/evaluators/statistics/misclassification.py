"""How a judge errs on answers of each class, and what a change or a rate is without its errors.

A *class* is what an answer truly is: CORRECT, INCORRECT, NOT_ATTEMPTED. Labelled answers show
how the judge grades each class, its *confusion*: a row of shares for every class. A share of
answers, such as those that pass, draws a *border* through the classes. On the inner side of it
stand the classes that count. For a class on either side, the share of its answers that the judge
keeps on their side is its *kept share*: the sensitivity of an inner class, the specificity of an
outer one. Youden's J of two classes across the border is the sum of their kept shares less 1.

Outer classes are never pooled. Refusals are easy to refuse, so many labelled refusals would hide
that the judge lets confident wrong answers pass; and a release that loses right answers turns
them into whichever class it likes.

Grades mix the true shares of the classes by the confusion. Its inverse gives the true shares
back: Rogan and Gladen (1978), Am. J. Epidemiol. 107:71, for two classes; Barron (1977), Biometrics
33:414, for any number. Errors of pairs and of labels are combined by the delta method:
Buonaccorsi (2010), Measurement Error, chapter 2.

Youden (1950), Cancer 3:32. All figures are shares, not percentages.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import (
    Callable,
    Collection,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from qagate.evaluators.statistics import intervals, probabilities
from qagate.evaluators.statistics.intervals import (
    TAIL,
    Z95,
    Array,
    Estimate,
    Interval,
    Places,
    wilson,
)

HIT = "(counts)"
MISS = "(does not count)"
"""What an item truly is, where no judge said it: graded by code, or taken at its worst or best."""


# What labels show


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """How the judge grades labelled answers of one class."""

    shares: tuple[float, ...]
    """Of each grade, in the order of the confusion; their sum is 1."""
    labels: int
    """Labelled answers with a grade."""
    size: float
    """The number of independent labels that say as much of the kept share."""
    freedom: float = math.inf
    """Degrees of freedom of ``size``; infinite where it is no estimate."""

    def z(self, tail: float) -> float:
        """Return the point of the distribution for an end with this error."""
        if math.isinf(self.freedom):
            return intervals.normal_quantile(tail)
        return probabilities.student_quantile(max(1.0, self.freedom), tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShare:
    """The share of a class that the judge keeps on its side of the border."""

    of: str
    """The class."""
    labels: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Youden:
    """How well the judge tells the classes across a border apart."""

    value: float
    low: float
    high: float
    labels: int
    """Labels of the two classes, or of all in a pool."""
    inner: str = ""
    """The class on the inner side that it keeps least; empty in a pool."""
    outer: str = ""
    """The same on the outer side."""

    @property
    def estimate(self) -> Estimate:
        """The value with its interval."""
        return Estimate.of(self.value, (self.low, self.high), self.labels)


PERFECT = Youden(value=1.0, low=1.0, high=1.0, labels=0)
"""Of answers that nobody can misjudge, or whose judge is believed as it is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Confusion:
    """How a judge grades each class of answers, and the border of the share in question."""

    classes: tuple[str, ...]
    """Truths and grades alike, in one order."""
    inner: frozenset[str]
    """The classes that count for the share."""
    rows: tuple[ClassRow, ...]
    """One for each class."""
    correlations: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Of the errors on two classes of answers to the same question; those above 0."""
    folds: Mapping[str, str] = field(default_factory=dict)
    """Grades that stand for another class: ratings for a side of the bar, for instance."""

    def row(self, name: str) -> ClassRow:
        """Return the row of a class."""
        return self.rows[self.classes.index(name)]

    def kept(self, name: str, tail: float = TAIL) -> KeptShare:
        """Return the share of a class that stays on its side of the border."""
        return kept_share(self.row(name), name, self.classes, self.inner, tail)

    def youden(self, tail: float = TAIL) -> Youden:
        """Return J of the classes that the judge keeps least, one on each side of the border.

        Both ends by MOVER from Wilson's: Zou and Donner (2008), Stat. Med. 27:1693; without
        clusters it is method 10 of Newcombe (1998), Stat. Med. 17:873.
        """
        inner = self._least_kept(tail, is_inner=True)
        outer = self._least_kept(tail, is_inner=False)
        correlation = self.correlations.get((inner.of, outer.of), 0.0)
        value = inner.value + outer.value - 1
        below = combined(
            (inner.value - inner.low, outer.value - outer.low), correlation
        )
        above = combined(
            (inner.high - inner.value, outer.high - outer.value), correlation
        )
        return Youden(
            value=value,
            low=max(-1.0, value - below),
            high=min(1.0, value + above),
            labels=inner.labels + outer.labels,
            inner=inner.of,
            outer=outer.of,
        )

    def _least_kept(self, tail: float, *, is_inner: bool) -> KeptShare:
        shares = [
            self.kept(name, tail)
            for name in self.classes
            if (name in self.inner) is is_inner
        ]
        return min(shares, key=lambda share: (share.value, share.low))

    def weight(self, grade: str) -> float:
        """Return what a grade adds to the share; the matrix must have an inverse."""
        if grade in (HIT, MISS):
            return float(grade == HIT)
        return float(self.weights[self.place_of(grade)])

    @cached_property
    def inverse(self) -> Array | None:
        """The inverse of the matrix of shares; None where it has none.

        Its element at a grade and a class is what one answer with the grade adds to the true number
        of answers of the class: grades p and truths q are related by p = q M.
        """
        import numpy as np

        matrix = np.array([row.shares for row in self.rows])
        if np.linalg.cond(matrix) > MOST_AMPLIFIED:
            return None
        inverse: Array = np.linalg.inv(matrix)
        return inverse

    @cached_property
    def weights(self) -> Array:
        """What one answer with each grade adds to the share; the matrix must have an inverse."""
        assert self.inverse is not None
        columns = [
            place for place, name in enumerate(self.classes) if name in self.inner
        ]
        weights: Array = self.inverse[:, columns].sum(axis=1)
        return weights

    def with_labels(self, times: float) -> Confusion:
        """Return the confusion as so many times as many labels would show it."""
        rows = [
            replace(row, labels=round(row.labels * times), size=row.size * times)
            for row in self.rows
        ]
        return replace(self, rows=tuple(rows))

    def place_of(self, grade: str) -> int:
        """Return the place of the class that a grade stands for."""
        return self.classes.index(self.folds.get(grade, grade))

    def variance(self, effects: Array) -> float:
        """Return the variance, from its labels, of a figure that depends on the rows of shares.

        ``effects`` holds, by class and grade, what one label of the class with the grade adds.
        One label that was graded right and one that was graded as wrong as can be are added to each
        class (Lang and Reiczigel (2014), Prev. Vet. Med. 113:13, add two, half of them hits): no
        error in 50 labels does not mean that there is none.
        """
        import numpy as np

        variance = 0.0
        for place, row in enumerate(self.rows):
            of_grades = effects[place]
            own = of_grades[place]
            worst = of_grades[np.argmax(abs(of_grades - own))]
            size = row.size + ADDED_LABELS
            shares = np.array([*row.shares, 0.0, 0.0]) * row.size / size
            shares[-2:] = ADDED_LABELS / 2 / size
            values = np.array([*of_grades, own, worst])
            mean = shares @ values
            variance += float(shares @ (values - mean) ** 2) / size
        return variance


MOST_AMPLIFIED = 1e6
"""The condition number from which a confusion counts as without an inverse."""
ADDED_LABELS = 2.0
"""Half of them right, for the variance of a class with few errors or none."""


def combined(distances: Sequence[float], correlation: float = 0.0) -> float:
    """Return how far an end of a sum is from the sum, from the distances of its summands' ends.

    MOVER, the method of variance estimates recovery: Zou and Donner (2008), Stat. Med. 27:1693. A
    ``correlation`` is that of two summands.
    """
    squares = math.fsum(distance**2 for distance in distances)
    return math.sqrt(squares + 2 * correlation * math.prod(distances))


# From labelled answers to a confusion


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelCounts:
    """Labelled answers with a grade, counted by question."""

    classes: tuple[str, ...]
    """Labels and grades alike."""
    tables: Array
    """The distinct tables of a question: by table, label and grade."""
    questions: Array
    """How many questions have each table."""
    folds: Mapping[str, str] = field(default_factory=dict)
    """Grades that the classes stand for (``Confusion``)."""

    def labels(self, name: str) -> int:
        """Return how many labels of a class there are."""
        of_class = self.tables[:, self.classes.index(name), :].sum(axis=-1)
        return round(float(self.questions @ of_class))


def class_row(
    counts: LabelCounts, name: str, inner: Collection[str]
) -> ClassRow | None:
    """Return how the judge grades a class; None without a label of it."""
    place = counts.classes.index(name)
    by_grade = counts.tables[:, place, :]
    totals = counts.questions @ by_grade
    labels = float(totals.sum())
    if not labels:
        return None
    is_inner = name in inner
    columns = [
        column
        for column, grade in enumerate(counts.classes)
        if (grade in inner) is is_inner
    ]
    sizes = by_grade.sum(axis=-1)
    kept = float(totals[columns].sum()) / labels
    residuals = by_grade[:, columns].sum(axis=-1) - kept * sizes
    size = intervals.effective_size(
        residuals, sizes, counts.questions, kept * (1 - kept)
    )
    questions = float(counts.questions[sizes > 0].sum())
    is_estimated = 0 < kept < 1 and questions < labels
    return ClassRow(
        shares=tuple((totals / labels).tolist()),
        labels=round(labels),
        size=size,
        freedom=questions - 1 if is_estimated else math.inf,
    )


def kept_share(
    row: ClassRow,
    name: str,
    classes: Sequence[str],
    inner: Collection[str],
    tail: float = TAIL,
) -> KeptShare:
    """Return the share of a class that stays on its side of the border, with its interval."""
    is_inner = name in inner
    value = 0.0
    for grade, share in zip(classes, row.shares, strict=True):
        if (grade in inner) is is_inner:
            value += share
    value = min(1.0, value)
    low, high = wilson(value * row.size, row.size, row.z(tail)) or (0.0, 1.0)
    return KeptShare(of=name, labels=row.labels, value=value, low=low, high=high)


def correlations_of(
    counts: LabelCounts, inner: Collection[str]
) -> dict[tuple[str, str], float]:
    """Return how errors on two classes go together over questions, where they do."""
    correlations = {}
    residuals = {}
    for name in counts.classes:
        residuals[name] = _residuals(counts, name, inner)
    for one_side in inner:
        for other_side in counts.classes:
            if other_side in inner:
                continue
            correlation = _correlation(
                residuals[one_side], residuals[other_side], counts.questions
            )
            if correlation > 0:
                correlations[one_side, other_side] = correlation
    return correlations


def _residuals(counts: LabelCounts, name: str, inner: Collection[str]) -> Array:
    """Return by how much more answers of a class each question keeps than expected."""
    place = counts.classes.index(name)
    is_inner = name in inner
    columns = [
        column
        for column, grade in enumerate(counts.classes)
        if (grade in inner) is is_inner
    ]
    sizes = counts.tables[:, place, :].sum(axis=-1)
    kept = counts.tables[:, place, columns].sum(axis=-1)
    labels = float(counts.questions @ sizes)
    if not labels:
        nothing: Array = 0 * sizes
        return nothing
    share = float(counts.questions @ kept) / labels
    residuals: Array = kept - share * sizes
    return residuals


def _correlation(first: Array, second: Array, questions: Array) -> float:
    variances = float(questions @ first**2) * float(questions @ second**2)
    if not variances:
        return 0.0
    return float(questions @ (first * second)) / math.sqrt(variances)


def borrowed(own: ClassRow, lent: ClassRow, columns: Sequence[int]) -> ClassRow:
    """Return the row of a class with few labels that borrows other labels of the class.

    ``columns`` are the grades on the class's side of the border. It keeps the lower of the two
    shares. The lower end is that of the labels that are lent, but at most half way from the own
    share down to the own lower end: labels of one's own weigh more than any others, and a few of
    them cannot show as much as many.
    """
    own_share, own_low = _share_and_low(own, columns)
    lent_share, lent_low = _share_and_low(lent, columns)
    low = min(lent_low, (own_share + own_low) / 2)
    lower = own if own_share <= lent_share else lent
    value = min(own_share, lent_share)
    return ClassRow(shares=lower.shares, labels=own.labels, size=size_with(value, low))


def _share_and_low(row: ClassRow, columns: Sequence[int]) -> tuple[float, float]:
    share = min(1.0, math.fsum(row.shares[column] for column in columns))
    low, _ = wilson(share * row.size, row.size, row.z(TAIL)) or (0.0, 1.0)
    return share, low


def size_with(share: float, low: float) -> float:
    """Return how many independent labels have this share and Wilson's lower end at ``low``."""
    if low <= 0:
        return 1.0

    def excess(size: float) -> float:
        end, _ = wilson(share * size, size) or (0.0, 1.0)
        return end - low

    return probabilities.root(excess, 1e-3, 1e9)


# Pairs of answers


class GradeChange(NamedTuple):
    """How the two answers of a pair were graded."""

    group: str
    """Whose judge graded them: a slice's name."""
    before: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradeChanges:
    """Pairs of answers, counted by cluster and by how both were graded."""

    cells: tuple[GradeChange, ...]
    """The different changes."""
    counts: Array
    """The distinct clusters: how many pairs of each cell they have."""
    clusters: Array
    """How many clusters are so."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[Hashable, GradeChange]]) -> GradeChanges:
        """Count pairs, each given with its cluster."""
        import numpy as np

        by_cluster: dict[Hashable, Counter[GradeChange]] = defaultdict(Counter)
        for cluster, change in pairs:
            by_cluster[cluster][change] += 1
        patterns = Counter(
            tuple(sorted(changes.items())) for changes in by_cluster.values()
        )
        cells = sorted({change for pattern in patterns for change, _ in pattern})
        places = {change: place for place, change in enumerate(cells)}
        counts = np.zeros((len(patterns), len(cells)))
        for row, pattern in enumerate(patterns):
            for change, number in pattern:
                counts[row, places[change]] = number
        clusters = np.array(list(patterns.values()), dtype=np.float64)
        return cls(cells=tuple(cells), counts=counts, clusters=clusters)

    @classmethod
    def counted(
        cls, cells: Sequence[GradeChange], places: Places, clusters: Places
    ) -> GradeChanges:
        """Count pairs in columns: the place of each in ``cells``, and the number of its cluster."""
        import numpy as np

        totals = np.bincount(places, minlength=len(cells))
        used = np.flatnonzero(totals)
        sizes = np.bincount(clusters)
        if sizes.max(initial=0) <= 1:  # pairs of the same cell are equal clusters
            counts = np.eye(len(used))
            number = totals[used].astype(np.float64)
        else:
            table = np.bincount(
                clusters * len(cells) + places, minlength=len(sizes) * len(cells)
            )
            of_clusters = table.reshape(len(sizes), len(cells))[sizes > 0]
            counts = of_clusters[:, used].astype(np.float64)
            number = np.ones(len(counts))
        return cls(
            cells=tuple(cells[place] for place in used.tolist()),
            counts=counts,
            clusters=number,
        )

    @property
    def totals(self) -> Array:
        """How many pairs are in each cell."""
        totals: Array = self.clusters @ self.counts
        return totals


Reader = Confusion | frozenset[str]
"""A judge whose errors are known; or the grades that count, of one that is believed as it is."""


def counts_for(reader: Reader, grade: str) -> float:
    """Return what a grade counts for the true share."""
    if isinstance(reader, Confusion):
        return reader.weight(grade)
    return float(grade == HIT or grade in reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedChange:
    """New - old of a share without the errors of its judges.

    The lower end holds every margin m for which the change is not shown to be above -m. For two
    classes this is Fieller's test of the ratio "change as judged / J", which is linear in the
    labels: (change as judged) + m J > 0. For more classes the determinant of the confusion stands
    in J's place, and (change + m) times the determinant is linear in each of its rows. So the delta
    method is not led astray by the inverse, which a few labels more or less move far.

    Fieller (1954), J. R. Stat. Soc. B 16:175.
    """

    value: float
    pairs: int
    spread: float
    """The variance of one pair."""
    size: float
    """The number of independent pairs with the same information."""
    z_of_pairs: float
    parts: tuple[PartOfChange, ...]
    """One for each group whose judge errs."""

    def is_above(self, bound: float, tail: float = TAIL) -> bool:
        """Return whether it is shown that the true change is above a bound."""
        return self.value - self._reach(bound, tail) > bound

    def is_below(self, bound: float, tail: float = TAIL) -> bool:
        """Return whether it is shown that the true change is below a bound."""
        return self.value + self._reach(bound, tail) < bound

    def _reach(self, bound: float, tail: float) -> float:
        by_labels = math.fsum(part.variance(bound) for part in self.parts)
        of_labels = intervals.normal_quantile(tail) * math.sqrt(by_labels)
        of_pairs = self.z_of_pairs * math.sqrt(
            (self.spread + (self.value - bound) ** 2) / self.size
        )
        return combined((of_pairs, of_labels))

    @property
    def estimate(self) -> Estimate:
        """The change with its 95 % interval: the bounds that it is not shown to be beyond."""

        def reach(bound: float) -> float:
            return self._reach(bound, TAIL)

        low = max(-1.0, _lower_end(self.value, reach))
        high = min(1.0, _upper_end(self.value, reach))
        return Estimate.of(self.value, (min(low, high), high), self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfChange:
    """What the labels of one judge have to do with a corrected change."""

    confusion: Confusion
    share: float
    """Of all pairs."""
    value: float
    """Its part of the change; all parts add up to the change."""
    truths: Array
    """By how much the true share of each class moved."""

    def variance(self, bound: float) -> float:
        """Return the variance that comes from labels, if the true change is ``bound``."""
        import numpy as np

        assert self.confusion.inverse is not None
        away = self.value - bound * self.share
        of_determinant = away * self.confusion.inverse.T
        of_change = np.outer(self.truths, self.confusion.weights)
        return self.confusion.variance(of_determinant - of_change)


def corrected_change(
    changes: GradeChanges, readers: Mapping[str, Reader], tail: float = TAIL
) -> CorrectedChange | None:
    """Return new - old of a share without its readers' errors, over all pairs.

    ``readers`` are by group. None without a pair, or where a confusion has no inverse.
    """
    import numpy as np

    for reader in readers.values():
        if isinstance(reader, Confusion) and reader.inverse is None:
            return None
    effects = []
    for cell in changes.cells:
        reader = readers[cell.group]
        effects.append(counts_for(reader, cell.now) - counts_for(reader, cell.before))
    effect = np.array(effects)
    totals = changes.totals
    pairs = float(totals.sum())
    if not pairs:
        return None
    value = float(totals @ effect) / pairs
    spread = float(totals @ (effect - value) ** 2) / pairs
    sizes = changes.counts.sum(axis=1)
    residuals = changes.counts @ effect - value * sizes
    size = intervals.effective_size(residuals, sizes, changes.clusters, spread)
    clusters = float(changes.clusters.sum())
    return CorrectedChange(
        value=value,
        pairs=round(pairs),
        spread=spread,
        size=size,
        z_of_pairs=intervals.quantile(clusters, pairs, tail),
        parts=tuple(_parts(changes, readers, pairs)),
    )


def _parts(
    changes: GradeChanges, readers: Mapping[str, Reader], pairs: float
) -> Iterator[PartOfChange]:
    import numpy as np

    cells: dict[str, list[tuple[GradeChange, float]]] = defaultdict(list)
    for cell, total in zip(changes.cells, changes.totals, strict=True):
        cells[cell.group].append((cell, total / pairs))
    for group, shares in cells.items():
        reader = readers[group]
        if not isinstance(reader, Confusion):
            continue
        assert reader.inverse is not None
        moves = np.zeros(len(reader.classes))
        value = 0.0
        for cell, share in shares:
            value += share * (reader.weight(cell.now) - reader.weight(cell.before))
            if cell.now not in (HIT, MISS):
                moves[reader.place_of(cell.now)] += share
            if cell.before not in (HIT, MISS):
                moves[reader.place_of(cell.before)] -= share
        yield PartOfChange(
            confusion=reader,
            share=math.fsum(share for _, share in shares),
            value=value,
            truths=moves @ reader.inverse,
        )


def pooled(parts: Sequence[tuple[Youden, float]]) -> Youden:
    """Return the mean of J over groups with labels of their own, by weight; its ends by MOVER."""
    if len(parts) == 1:
        return parts[0][0]
    total = math.fsum(weight for _, weight in parts)
    value = 0.0
    below = []
    above = []
    for youden, weight in parts:
        share = weight / total
        value += share * youden.value
        below.append(share * (youden.value - youden.low))
        above.append(share * (youden.high - youden.value))
    return Youden(
        value=value,
        low=value - combined(below),
        high=value + combined(above),
        labels=sum(youden.labels for youden, _ in parts),
    )


def allowed_by_youden(value: float, low: float, margin: float, youden: Youden) -> bool:
    """Return whether a change as judged shows that the true share fell by less than a margin.

    ``value`` and ``low`` are new - old and the lower end of its interval. A judge shows J times the
    true change, so that value + margin * J has to be above 0, and its own lower end, by MOVER
    (Zou and Donner 2008), too. J has to be above 0 in any case.
    """
    if youden.low <= 0:
        return False
    reach = combined((value - low, margin * (youden.value - youden.low)))
    return value + margin * youden.value - reach > 0


def margin_shown(margin: float, youden: Youden) -> float | None:
    """Return the smallest margin that pairs and labels show together of an unchanged model.

    ``margin`` is what the pairs show by themselves. It is the margin at which
    ``allowed_by_youden`` turns. None where the labels let no margin below 1 be shown.
    """
    if youden.low <= 0:
        return None
    error = youden.value - youden.low
    widened = margin / math.sqrt(youden.value**2 - error**2)
    return widened if widened < 1 else None


# One run's answers


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrectedShare:
    """A share of answers without its judge's errors; its interval is made only if asked for."""

    change: CorrectedChange
    """From no answer that counts to these."""
    readers: Mapping[str, Reader]
    judged: Interval
    """The interval of the share as judged."""

    @property
    def value(self) -> float:
        """The share, 0 to 1."""
        return min(1.0, max(0.0, self.change.value))

    @property
    def estimate(self) -> Estimate:
        """Within 0 to 1, and never narrower than the share as judged."""
        low, high = self._ends
        low = min(self.value, max(0.0, low))
        high = max(self.value, min(1.0, high))
        missing_width = max(0.0, self.judged[1] - self.judged[0] - (high - low))
        ends = max(0.0, low - missing_width), min(1.0, high + missing_width)
        return Estimate.of(self.value, ends, self.change.pairs)

    @property
    def fits(self) -> bool:
        """Whether the labels can explain these grades: the interval reaches into 0 to 1."""
        low, high = self._ends
        return low < 1 and high > 0

    @cached_property
    def _ends(self) -> Interval:
        """The interval as the answers and the labels have it, within 0 to 1 or not."""
        change = self.change
        best, worst = 1.0, 0.0
        for reader in self.readers.values():
            if isinstance(reader, Confusion):
                best = max(best, float(reader.weights.max()))
                worst = min(worst, float(reader.weights.min()))
        added = Z95**2
        total = change.size + added
        centre = (change.size * change.value + added * (best + worst) / 2) / total
        squares = change.size * (change.spread + change.value**2)
        squares += added * (best**2 + worst**2) / 2
        variance = (squares / total - centre**2) / total

        def reach(bound: float) -> float:
            by_labels = math.fsum(part.variance(bound) for part in change.parts)
            return combined(
                (change.z_of_pairs * math.sqrt(variance), Z95 * math.sqrt(by_labels))
            )

        return _lower_end(centre, reach), _upper_end(centre, reach)


def corrected_share(
    answers: GradeChanges, readers: Mapping[str, Reader], judged: Interval
) -> CorrectedShare | None:
    """Return the true share of answers on the inner side of the border.

    ``answers`` are given as changes from ``MISS`` to their grade, and ``judged`` is the interval of
    the share as judged. z² answers, half of them on either side, are added for the interval, as
    Agresti and Coull (1998), Am. Stat. 52:119, and Lang and Reiczigel (2014) do: a share of 1 in 20
    answers has a width. None without answers, or where a confusion has no inverse.
    """
    change = corrected_change(answers, readers)
    if change is None:
        return None
    return CorrectedShare(change=change, readers=readers, judged=judged)


WIDEST = 3.0
"""No end of a corrected share is looked for beyond this."""


def _lower_end(value: float, reach: Callable[[float], float]) -> float:
    """Return the lowest bound that a figure is not shown to be above."""

    def above(bound: float) -> float:
        return value - reach(bound) - bound

    if above(-WIDEST) <= 0:
        return -WIDEST
    return probabilities.root(above, -WIDEST, value)


def _upper_end(value: float, reach: Callable[[float], float]) -> float:
    """Return the highest bound that a figure is not shown to be below."""

    def below(bound: float) -> float:
        return bound - value - reach(bound)

    if below(WIDEST) <= 0:
        return WIDEST
    return probabilities.root(below, value, WIDEST)

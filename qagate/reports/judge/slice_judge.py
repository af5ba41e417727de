"""Whoever grades the answers of one slice: what is known of their errors, or what is waived.

Where no label of a class can be borrowed, ``ENOUGH_OF_A_CLASS`` of one's own are needed, or as
many as both runs together have answers of it. A class that is short of them is in the way of every
gate, and is named with the number that is missing. Only NOT_ATTEMPTED may be so rare that it cannot
move a gate: it then counts as INCORRECT. INCORRECT itself may not, as a judge that lets wrong
answers pass makes them rare by just that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qagate.cases.dataset import Slice
from qagate.cases.plan import ENOUGH_OF_A_CLASS
from qagate.evaluators.core import INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.misclassification import Confusion, Reader
from qagate.reports.judge.classes import border_of
from qagate.reports.judge.errors import NOTHING_MISREAD, JudgeErrors
from qagate.reports.judge.labels import Labels
from qagate.reports.run.report import LABEL, Obstacle

RARE = 0.05
"""The share of both runs' grades under which NOT_ATTEMPTED may go without labels."""


class UnknownErrors(str):
    """Why nothing is known of a judge's errors on a figure: it is no share of all items."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceJudge:
    """Who reads the answers of a slice, and the labelled answers that they graded."""

    slice_: Slice
    labels: Labels
    waiver: str = ""
    """Why the grades count as read although nothing measures them; empty where labels decide."""
    obstacle: str = ""
    """Why nothing that this judge says is believed; empty where it is."""
    misread: Estimate = NOTHING_MISREAD
    """The share of its answers that rules before a model may have misread."""
    grades: Mapping[str, int] = field(default_factory=dict)
    """How often each grade was given, in both runs where two are compared."""

    @property
    def name(self) -> str:
        """Dataset and language of the slice."""
        return self.slice_.name

    @property
    def is_code(self) -> bool:
        """Whether code grades the answers."""
        return self.slice_.kind.answered and not self.slice_.kind.by_rubric

    @property
    def is_read(self) -> bool:
        """Whether its answers count as read: code grades them, or the judge's errors are waived."""
        return bool(self.waiver) or self.is_code

    @property
    def lack(self) -> str:
        """Which labels are missing before any grade of this judge is believed; empty if none."""
        if self.is_read:
            return ""
        if not self.labels:
            return _without_labels(self.slice_)
        reader = self.reader()
        return reader if isinstance(reader, str) else ""

    def reader(self, measure: str = "") -> Reader | str:
        """Return how the judge reads a share of all items, or why that is not known.

        ``measure`` is empty for the share that passes. Where code grades, no grade counts by
        itself: its results are given as ``HIT`` and ``MISS``.
        """
        if self.is_code:
            return frozenset()
        classes = self.labels.classes
        inner = border_of(self.slice_, measure, classes)
        if inner is None:
            return UnknownErrors(f"its errors are not known on the scale of {measure}")
        if not inner:
            return (
                f"judge {Obstacle.FEW_LABELS} in {self.slice_.language}: the labels say only "
                f"right or not right, and do not tell {measure} apart; label by grade"
            )
        if self.is_read:
            folded = {grade for grade, name in classes.folds.items() if name in inner}
            return inner | folded
        lacking = self.lacking()
        merged = {}
        are_alike = (INCORRECT in inner) is (NOT_ATTEMPTED in inner)
        if NOT_ATTEMPTED in lacking and are_alike and self._hardly_refuses():
            del lacking[NOT_ATTEMPTED]
            merged[NOT_ATTEMPTED] = INCORRECT
        if not lacking:
            return self.labels.confusion(inner, merged)
        missing = ", ".join(
            f"{plural(number, 'more label')} {name}" for name, number in lacking.items()
        )
        return (
            f"judge {Obstacle.FEW_LABELS} in {self.slice_.language}: it takes {missing}"
        )

    def lacking(self) -> dict[str, int]:
        """Return how many labels are missing of each class that is short of them."""
        lacking = {}
        for name in self.labels.classes.names:
            if self.labels.can_borrow(name):
                continue
            labels = self.labels.own_counts.labels(name)
            needed = self._needed(name)
            if labels < needed:
                lacking[name] = needed - labels
        return lacking

    def _needed(self, name: str) -> int:
        """Return how many labels of a class are needed where none can be borrowed: at least 1."""
        if not self.grades:
            return ENOUGH_OF_A_CLASS
        given = self._given(name)
        return min(ENOUGH_OF_A_CLASS, max(1, given))

    def _given(self, name: str) -> int:
        return sum(
            count
            for grade, count in self.grades.items()
            if self.labels.classes.of(grade) == name
        )

    def _hardly_refuses(self) -> bool:
        """Return whether so few grades are NOT_ATTEMPTED that they cannot move a gate."""
        if INCORRECT not in self.labels.classes.names:
            return False
        total = sum(self.grades.values())
        return not total or self._given(NOT_ATTEMPTED) < RARE * total

    @property
    def basis(self) -> str:
        """What shows the errors, in words; empty where code grades."""
        if self.is_code:
            return ""
        return self.waiver or self.labels.basis


def _without_labels(slice_: Slice) -> str:
    return (
        f"judge {Obstacle.UNMEASURED} in {slice_.language}: no labelled answers by its rubric; "
        f"label answers of this run ({LABEL}), or say judge: unmeasured in the dataset.yaml of "
        f"{slice_.dataset}"
    )


def errors_of(
    judges: Sequence[tuple[SliceJudge, float]], measure: str = ""
) -> JudgeErrors:
    """Return how the judges of these slices err on a share, weighted by pairs or by items.

    ``measure`` is empty for the share that passes.
    """
    readers: dict[str, Reader] = {}
    weights: dict[str, float] = {}
    misread: list[tuple[Estimate, float]] = []
    obstacles: list[str] = []
    for judge, weight in judges:
        reader = judge.reader(measure)
        if judge.obstacle:
            obstacles.append(judge.obstacle)
        elif isinstance(reader, UnknownErrors):
            return JudgeErrors(readers={}, weights={}, basis=reader, unknown=True)
        elif isinstance(reader, str):
            obstacles.append(reader)
        elif isinstance(reader, Confusion) and reader.inverse is None:
            obstacles.append(
                f"judge {Obstacle.DISTRUSTED} in {judge.slice_.language}: its grades do not "
                "tell the classes of answers apart; use another judge"
            )
        else:
            readers[judge.name] = reader
            weights[judge.name] = weight
            misread.append((judge.misread, weight))
    bases = dict.fromkeys(judge.basis for judge, _ in judges)
    return JudgeErrors(
        readers=readers,
        weights=weights,
        obstacle="; ".join(dict.fromkeys(obstacles)),
        basis="; ".join(basis for basis in bases if basis),
        misread=_weighted(misread),
    )


def _weighted(parts: Sequence[tuple[Estimate, float]]) -> Estimate:
    """Return the mean of shares by their weights, and that of their ends: all at their worst."""
    total = sum(weight for _, weight in parts)
    if not total:
        return NOTHING_MISREAD
    value = sum(weight * (share.value or 0.0) for share, weight in parts) / total
    low = sum(weight * (share.low or 0.0) for share, weight in parts) / total
    high = sum(weight * (share.high or 0.0) for share, weight in parts) / total
    return Estimate.of(value, (low, high), 0)

"""Whether labels show that a judge may decide: it reaches its floor, and tells answers apart.

The floor is about agreement with labels of all classes together. From ``ENOUGH_FOR_THE_FLOOR``
labels of one's own these alone count. With fewer, bundled labels stand beside them: the lower of
the two estimates counts, and as the end of the interval that of the bundled labels, but no
farther than the middle between the own estimate and its own end.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from qagate.cases.dataset import Threshold
from qagate.cases.plan import ENOUGH_FOR_THE_FLOOR
from qagate.evaluators.number_text import figure, span_of
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import Interval
from qagate.evaluators.statistics.metrics import floor_ends
from qagate.evaluators.statistics.misclassification import Confusion, Reader
from qagate.reports.judge.classes import (
    LabelledAnswer,
    by_drawn_grade,
    drawn_share,
)
from qagate.reports.judge.labels import Labels
from qagate.reports.metrics.gate import GateInputs, gate_inputs, side_of
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.report import GateState, Obstacle

MEANS = ("agreement", "pass_agreement")
"""Metrics of a judge that are a share of the answers."""
CANNOT_TELL = "cannot tell right from wrong answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Whether labels show that a judge may decide."""

    trusted: bool | None
    """None where too few labels show it."""
    reason: str = ""
    """Why it may not decide; empty where it may."""

    def obstacle(self, language: str) -> str:
        """Return what keeps gates in this language open; empty where nothing does."""
        if self.trusted:
            return ""
        word = Obstacle.DISTRUSTED if self.trusted is False else Obstacle.FEW_LABELS
        return f"judge {word} in {language}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class LabelFigures:
    """The metrics of a judge over some labelled answers."""

    answers: Sequence[LabelledAnswer]

    @cached_property
    def _inputs(self) -> GateInputs:
        slice_, _ = self.answers[0]
        records = [record for _, record in self.answers]
        return gate_inputs(slice_, records, summarise(records, slice_))

    def values(self, name: str) -> Interval | None:
        """Return the lowest and highest value of a metric: ungraded answers may be anything."""
        if name not in self._inputs.summary.measures:
            return None
        return self._inputs.values(name)

    def ends(self, name: str) -> Interval | None:
        """Return the ends of its 95 % interval, likewise."""
        if name not in self._inputs.summary.measures:
            return None
        return self._inputs.ends(name)


@dataclass(frozen=True, kw_only=True)
class DrawnFigures:
    """The same over answers that were drawn by a judge's grade: a mean over its strata.

    Only of MEANS, the metrics that are a share of the answers. Others count each label once.
    """

    answers: Sequence[LabelledAnswer]

    @cached_property
    def _strata(self) -> list[tuple[float, LabelFigures]]:
        strata = []
        for answers in by_drawn_grade(self.answers):
            strata.append((drawn_share(answers), LabelFigures(answers=answers)))
        return strata

    @property
    def _unseen(self) -> float:
        """The share of all answers that no label stands for."""
        return max(0.0, 1 - sum(share for share, _ in self._strata))

    def values(self, name: str) -> Interval | None:
        """Return the lowest and highest value of a metric: what is not known may be anything."""
        if name not in MEANS:
            return LabelFigures(answers=self.answers).values(name)
        low = 0.0
        high = self._unseen
        for share, figures in self._strata:
            values = figures.values(name)
            if values is None:
                return None
            low += share * values[0]
            high += share * values[1]
        return low, min(1.0, high)

    def ends(self, name: str) -> Interval | None:
        """Return the ends of its 95 % interval, by MOVER over the strata."""
        values = self.values(name)
        if name not in MEANS or values is None:
            return LabelFigures(answers=self.answers).ends(name)
        down = 0.0
        up = 0.0
        for share, figures in self._strata:
            values_of_stratum = figures.values(name)
            ends = figures.ends(name)
            if values_of_stratum is None or ends is None:
                return None
            down += (share * (values_of_stratum[0] - ends[0])) ** 2
            up += (share * (ends[1] - values_of_stratum[1])) ** 2
        return max(0.0, values[0] - math.sqrt(down)), min(
            1.0, values[1] + math.sqrt(up)
        )


def own_figures(labels: Labels) -> LabelFigures | DrawnFigures:
    """Return the metrics of the judge over the user's labels: of the kind that there are more of.

    Answers that were drawn by a grade and others are no one sample.
    """
    if len(labels.drawn) >= len(labels.not_drawn):
        return DrawnFigures(answers=labels.drawn)
    return LabelFigures(answers=labels.not_drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorBar:
    """One bar of a judge's floor."""

    gate: Threshold
    of_interval: bool
    """Whether the whole 95 % interval must keep to it, or the estimate."""


def trust_of(labels: Labels, reader: Reader | str) -> Trust:
    """Return whether the judge of a slice may decide by the labels that measure it.

    ``reader`` is its confusion over the border of the answers that pass, or why it has none.
    """
    floors = list(_floors(labels))
    if not floors:
        slice_, _ = (labels.own or labels.bundled)[0]
        why = f"{slice_.dataset} has no floor for it; give one (floor: {{agreement: 0.9}})"
        return Trust(trusted=False, reason=why)
    missed = []
    for floor in floors:
        bounds = _bounds(labels, floor)
        state: GateState = "INCONCLUSIVE"
        if bounds is not None:
            state = side_of(floor.gate, bounds)
        if state == "FAIL":
            return Trust(trusted=False, reason=_why(floor, bounds, labels))
        if state != "PASS":
            missed.append(_why(floor, bounds, labels))
    if missed:
        return Trust(trusted=None, reason=missed[0])
    return _tells_apart(reader)


def _tells_apart(reader: Reader | str) -> Trust:
    """Return whether a judge that reaches its floor tells right answers from wrong ones.

    One verdict for all reaches any floor where nearly all labels are of one class.
    """
    if isinstance(reader, str):
        _, _, reason = reader.partition(": ")
        return Trust(trusted=None, reason=reason or reader)
    if not isinstance(reader, Confusion):
        return Trust(trusted=True)
    youden = reader.youden()
    if youden.low > 0:
        return Trust(trusted=True)
    figures = youden.estimate.text("{value}, 95 % interval {low} to {high}")
    return Trust(
        trusted=False,
        reason=f"{CANNOT_TELL}: Youden's J of {youden.inner} and {youden.outer} {figures}",
    )


def _floors(labels: Labels) -> Iterator[FloorBar]:
    """Yield the bars of the own sets, or of the bundled ones where the own sets have none."""
    for answers in (labels.own, labels.bundled):
        slices = {slice_.name: slice_ for slice_, _ in answers}
        floors = []
        for slice_ in slices.values():
            floors += _bars(slice_.floor, of_interval=False)
            floors += _bars(slice_.floor_limit, of_interval=True)
        if floors:
            yield from floors
            return


def _bars(bars: Mapping[str, float], *, of_interval: bool) -> list[FloorBar]:
    floors = []
    for name, bar in bars.items():
        low, high = floor_ends(name, bar)
        gate = Threshold(measure=name, min=low, max=high)
        floors.append(FloorBar(gate=gate, of_interval=of_interval))
    return floors


def _bounds(labels: Labels, floor: FloorBar) -> Interval | None:
    """Return what a bar of the floor is held against: values, or the ends of intervals."""
    name = floor.gate.measure
    if not labels.own:
        return _bounds_of(LabelFigures(answers=labels.bundled), floor)
    own = own_figures(labels)
    if len(labels.own) >= ENOUGH_FOR_THE_FLOOR or not labels.bundled:
        return _bounds_of(own, floor)
    lent = LabelFigures(answers=labels.bundled)
    own_values = own.values(name)
    lent_values = lent.values(name)
    if own_values is None or lent_values is None:
        return None
    if not floor.of_interval:
        return _lower_of(own_values, lent_values, floor.gate)
    own_ends = own.ends(name)
    lent_ends = lent.ends(name)
    if own_ends is None or lent_ends is None:
        return None
    half_down = (own_values[0] + own_ends[0]) / 2
    half_up = (own_values[1] + own_ends[1]) / 2
    return min(lent_ends[0], half_down), max(lent_ends[1], half_up)


def _bounds_of(
    figures: LabelFigures | DrawnFigures, floor: FloorBar
) -> Interval | None:
    if floor.of_interval:
        return figures.ends(floor.gate.measure)
    return figures.values(floor.gate.measure)


def _lower_of(own: Interval, lent: Interval, gate: Threshold) -> Interval:
    """Return the worse of two estimates; both where a bar has two ends."""
    if gate.max is None:
        return min(own, lent)
    if gate.min is None:
        return max(own, lent)
    return min(own[0], lent[0]), max(own[1], lent[1])


def _why(floor: FloorBar, bounds: Interval | None, labels: Labels) -> str:
    """Return in words why a bar of the floor is not reached."""
    gate = floor.gate
    basis = agreement_text(labels)
    if bounds is None:
        return f"{gate.measure} is not known ({basis})"
    if floor.of_interval:
        value = f"the 95 % interval of {gate.measure}, {span_of(bounds)},"
    elif bounds[0] == bounds[1]:
        value = f"{gate.measure} {figure(bounds[0], gate.min, gate.max)}"
    else:
        value = (
            f"{gate.measure}, {span_of(bounds)} with ungraded labels at either extreme,"
        )
    return f"{value} does not keep to {gate.bar}; {basis}"


def agreement_text(labels: Labels) -> str:
    """Return with how many labels the judge agrees: of one's own, else of the bundled ones."""
    if labels.own:
        own = plural(len(labels.own), "label")
        return f"the judge agrees with {_agreed(labels.own)} of your {own}"
    bundled = plural(len(labels.bundled), "bundled label")
    return f"the judge agrees with {_agreed(labels.bundled)} of {bundled}"


def _agreed(answers: Sequence[LabelledAnswer]) -> int:
    return sum(record.outcome == "passed" for _, record in answers)

"""The bars, histograms and confusion matrices of ``report.html``: numbers, and no markup."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from evaluators.statistics.betting import ENOUGH
from evaluators.statistics.intervals import Estimate
from evaluators.statistics.metrics import DROP
from reports.run.evidence import AuditTrail, ConfusionCell
from reports.run.report import Counts, GateResult, SliceSummary

_TONES = {"error": "ungraded", "missing": "ungraded", "stopped": "stopped"}
_numbers = attrgetter("value", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a bar that is 100 wide."""

    tone: str
    """Names its colour and pattern."""
    word: str
    count: int
    start: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a histogram, whose height is at most 60."""

    tone: str
    label: str
    count: int
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendMark:
    """A run of a trend in a box of 100 by 30: where its value and its interval's ends are drawn."""

    x: float
    y: float
    low: float
    high: float


def trend(estimates: Sequence[Estimate]) -> list[TrendMark]:
    """Return a mark for each estimate that has a value, from left to right, on one scale."""
    known = [(place, one) for place, one in enumerate(estimates) if one.value is not None]
    spans = [(one.value or 0.0, *(one.interval or (one.value, one.value))) for _, one in known]
    ends = [end for span in spans for end in span if end is not None]
    bottom, height = (min(ends), max(ends) - min(ends)) if ends else (0.0, 0.0)
    step = 90 / max(1, len(estimates) - 1)

    def y(end: float | None) -> float:
        return round(27 - 24 * ((end or 0.0) - bottom) / (height or 1.0), 1)

    return [
        TrendMark(x=round(5 + step * place, 1), y=y(value), low=y(low), high=y(high))
        for (place, _), (value, low, high) in zip(known, spans, strict=True)
    ]


def states(counts: Counts) -> list[Segment]:
    """Return a bar of end states."""
    graded = ("right", "passed", counts.passed), ("wrong", "missed", counts.failed)
    return _bar([*graded, *((tone, one, getattr(counts, one)) for one, tone in _TONES.items())])


def segments(part: SliceSummary) -> list[Segment]:
    """Return a slice's bar: right, silent, wrong, ungraded items, and those not asked."""
    counts, labels = part.counts, part.labels
    silent_word = part.kind.silent
    silent = min(counts.failed, labels.get(silent_word, 0)) if silent_word else 0
    right, wrong = part.kind.outcome_words
    graded = [("right", right, counts.passed)]
    graded += [("silent", silent_word.lower().replace("_", " "), silent)]
    graded += [("wrong", wrong, counts.failed - silent)]
    ungraded = ("ungraded", "ungraded", counts.error + counts.missing)
    return _bar([*graded, ungraded, ("stopped", "stopped", counts.stopped)])


def _bar(parts: Sequence[tuple[str, str, int]]) -> list[Segment]:
    whole = sum(count for _, _, count in parts) or 1
    found, start = [], 0
    for tone, word, count in parts:
        place, width = round(100 * start / whole, 2), round(100 * count / whole, 2)
        found.append(Segment(tone=tone, word=word, count=count, start=place, width=width))
        start += count
    return found


def histogram(part: SliceSummary, bar: int | None) -> list[Column]:
    """Return how often each rating was given, from 1 to 10; ``bar`` is the lowest that passes."""
    counts = [part.labels.get(str(rating), 0) for rating in range(1, 11)]
    highest = max(counts) or 1
    return [
        Column(
            tone="wrong" if bar is not None and rating < bar else "right",
            label=str(rating),
            count=count,
            height=round(60 * count / highest, 2),
        )
        for rating, count in enumerate(counts, 1)
    ]


def matrix(
    confusion: Iterable[ConfusionCell],
) -> tuple[list[str], dict[str, list[tuple[str, int]]]]:
    """Return the columns (grades) and, for each label, its counts with their columns."""
    counts = {(cell.label, cell.grade): cell.count for cell in confusion}

    def by_number(label: str) -> tuple[int, str]:
        return int(label) if label.isdecimal() else 0, label

    columns = sorted({grade for _, grade in counts}, key=by_number)
    labels = sorted({label for label, _ in counts}, key=by_number)
    return columns, {
        label: [(column, counts.get((label, column), 0)) for column in columns] for label in labels
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Positions from 0 to 100 along the axis from ``start`` to ``end``; None where undefined."""

    start: float
    end: float
    value: float | None
    low: float | None
    """The ends of the 95 % interval are ``low`` and ``high``."""
    high: float | None
    worst: float | None = None
    """The effect of ungraded items lies between ``worst`` and ``best``."""
    best: float | None = None
    bars: tuple[float, ...] = ()
    """The thresholds."""
    zero: float | None = None
    """Set where zero lies inside the axis."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Two lines of evidence over the pairs looked at, 0 to 100 wide and 4 (most) to 84 high."""

    passing: tuple[tuple[float, float], ...]
    failing: tuple[tuple[float, float], ...]
    start: float
    """The height at which the evidence is 1."""
    enough: float
    """The height at which it decides."""


def growth(trail: AuditTrail) -> Growth:
    """Return the picture of how people's verdicts added up; what is below 1/100 is drawn there."""
    most = max([math.log10(ENOUGH), *(max(one.passing, one.failing) for one in trail.steps)])
    wide = max([1, *(one.looked for one in trail.steps)])

    def height(power: float) -> float:
        return round(84 - 80 * (max(power, -2.0) + 2) / (most + 2), 2)

    def line(powers: Iterable[tuple[int, float]]) -> tuple[tuple[float, float], ...]:
        return tuple((round(100 * looked / wide, 2), height(power)) for looked, power in powers)

    return Growth(
        passing=line((one.looked, one.passing) for one in trail.steps),
        failing=line((one.looked, one.failing) for one in trail.steps),
        start=height(0.0),
        enough=height(math.log10(ENOUGH)),
    )


def plot(gate: GateResult) -> Plot:
    """Return the picture of a gate: 0 to 1 for a rate, 1 to 10 for a rating, else around 0."""
    rule = gate.threshold
    falls = rule.measure == DROP and rule.max is not None
    limits = (-(rule.max or 0.0),) if falls else (rule.min, rule.max)
    bars = tuple(bar for bar in limits if bar is not None)
    known = _known([*_numbers(gate.estimate), gate.worst, gate.best, *bars])
    axis = -_reach(known), _reach(known)
    if rule.measure == "mean_rating":
        axis = (1.0, 10.0)
    elif not rule.paired and all(0 <= x <= 1 for x in known):
        axis = (0.0, 1.0)
    return _draw(gate.estimate, axis, bars, (gate.worst, gate.best))


def around(estimate: Estimate, reach: float) -> Plot:
    """Return the picture of a difference on an axis from ``-reach`` to ``reach``."""
    return _draw(estimate, (-reach, reach))


def against(estimate: Estimate, floor: float | None) -> Plot:
    """Return the picture of a rate from 0 to 1 with the floor that it should reach."""
    return _draw(estimate, (0.0, 1.0), () if floor is None else (floor,))


def reach_of(estimates: Iterable[Estimate]) -> float:
    """Return how far from zero an axis must go that these differences share."""
    return _reach(_known(number for one in estimates for number in _numbers(one)))


def _draw(
    estimate: Estimate,
    axis: tuple[float, float],
    bars: Sequence[float] = (),
    bounds: tuple[float | None, float | None] = (None, None),
) -> Plot:
    marks = (_place(bar, axis) for bar in bars)
    places: Any = [_place(x, axis) for x in (*_numbers(estimate), *bounds)]
    names = ("value", "low", "high", "worst", "best")
    return Plot(
        start=axis[0],
        end=axis[1],
        bars=tuple(mark for mark in marks if mark is not None),
        zero=_place(0.0, axis) if axis[0] < 0 else None,
        **dict(zip(names, places, strict=True)),
    )


def _reach(numbers: Iterable[float]) -> float:
    return 1.1 * max(map(abs, numbers), default=0.0) or 1.0


def _known(numbers: Iterable[float | None]) -> list[float]:
    return [x for x in numbers if x is not None and math.isfinite(x)]


def _place(value: float | None, axis: tuple[float, float]) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    start, end = axis
    return round(100 * min(1.0, max(0.0, (value - start) / (end - start))), 2)

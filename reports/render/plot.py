"""Where numbers stand on one line from 0 to 100: drawn by the page, computed here."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluators.statistics.estimate import Estimate
from reports.report import GateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Positions from 0 to 100 along the axis ``start`` to ``end``; None where undefined.

    ``low`` and ``high`` end the 95 % interval, ``worst`` and ``best`` the effect of ungraded
    items, ``bars`` are the thresholds; ``zero`` is set where the axis has a zero inside it.
    """

    start: float
    end: float
    value: float | None
    low: float | None
    high: float | None
    worst: float | None = None
    best: float | None = None
    bars: tuple[float, ...] = ()
    zero: float | None = None


def plot(gate: GateResult) -> Plot:
    """Return the picture of a gate: 0 to 1 for a rate, 1 to 10 for a rating, else around 0."""
    bars = _bars(gate)
    numbers = (*_numbers(gate.estimate), gate.worst, gate.best)
    start, end = _axis(gate.rule.measure, [*numbers, *bars])
    return _draw(gate.estimate, (start, end), bars, (gate.worst, gate.best))


def around(estimate: Estimate, reach: float) -> Plot:
    """Return the picture of a difference on an axis from ``-reach`` to ``reach``."""
    return _draw(estimate, (-reach, reach))


def against(estimate: Estimate, floor: float | None) -> Plot:
    """Return the picture of a rate from 0 to 1 beside the floor that it should reach."""
    return _draw(estimate, (0.0, 1.0), () if floor is None else (floor,))


def reach_of(estimates: Iterable[Estimate]) -> float:
    """Return how far from zero an axis must go that these differences share."""
    return _reach([number for one in estimates for number in _numbers(one)])


def _draw(
    estimate: Estimate,
    axis: tuple[float, float],
    bars: Sequence[float] = (),
    fates: tuple[float | None, float | None] = (None, None),
) -> Plot:
    value, low, high, worst, best = (_place(x, axis) for x in (*_numbers(estimate), *fates))
    marks = (_place(bar, axis) for bar in bars)
    return Plot(
        start=axis[0],
        end=axis[1],
        value=value,
        low=low,
        high=high,
        worst=worst,
        best=best,
        bars=tuple(mark for mark in marks if mark is not None),
        zero=_place(0.0, axis) if axis[0] < 0 else None,
    )


def _numbers(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def _bars(gate: GateResult) -> tuple[float, ...]:
    rule = gate.rule
    if rule.measure == "drop":
        return () if rule.max is None else (-rule.max,)
    return tuple(bar for bar in (rule.min, rule.max) if bar is not None)


def _axis(measure: str, numbers: Sequence[float | None]) -> tuple[float, float]:
    if measure == "mean_rating":
        return 1.0, 10.0
    if measure != "drop" and all(0 <= x <= 1 for x in _known(numbers)):
        return 0.0, 1.0
    reach = _reach(numbers)
    return -reach, reach


def _reach(numbers: Sequence[float | None]) -> float:
    return 1.1 * max((abs(x) for x in _known(numbers)), default=0.0) or 1.0


def _known(numbers: Iterable[float | None]) -> list[float]:
    return [x for x in numbers if x is not None and math.isfinite(x)]


def _place(value: float | None, axis: tuple[float, float]) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    start, end = axis
    return round(100 * min(1.0, max(0.0, (value - start) / (end - start))), 2)

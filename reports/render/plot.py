"""Where a gate's numbers stand on one line from 0 to 100: drawn by the page, computed here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.report import GateResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Positions from 0 to 100 along the axis ``start`` to ``end``; None where undefined.

    ``low`` and ``high`` end the 95 % interval, ``worst`` and ``best`` the effect of ungraded
    items, ``bars`` are the thresholds.
    """

    start: float
    end: float
    value: float | None
    low: float | None
    high: float | None
    worst: float | None
    best: float | None
    bars: tuple[float, ...]


def plot(gate: GateResult) -> Plot:
    """Return the picture of a gate: 0 to 1 for a rate, 1 to 10 for a rating, else around 0."""
    estimate = gate.estimate
    bars = _bars(gate)
    numbers = (estimate.value, estimate.low, estimate.high, gate.worst, gate.best)
    start, end = _axis(gate.rule.measure, [*numbers, *bars])
    value, low, high, worst, best = (_position(x, start, end) for x in numbers)
    marks = (_position(bar, start, end) for bar in bars)
    return Plot(
        start=start,
        end=end,
        value=value,
        low=low,
        high=high,
        worst=worst,
        best=best,
        bars=tuple(mark for mark in marks if mark is not None),
    )


def _bars(gate: GateResult) -> tuple[float, ...]:
    rule = gate.rule
    if rule.measure == "drop":
        return () if rule.max is None else (-rule.max,)
    return tuple(bar for bar in (rule.min, rule.max) if bar is not None)


def _axis(measure: str, numbers: Sequence[float | None]) -> tuple[float, float]:
    known = [x for x in numbers if x is not None and math.isfinite(x)]
    if measure == "mean_rating":
        return 1.0, 10.0
    if measure != "drop" and all(0 <= x <= 1 for x in known):
        return 0.0, 1.0
    reach = 1.1 * max((abs(x) for x in known), default=0.0) or 1.0
    return -reach, reach


def _position(value: float | None, start: float, end: float) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(100 * min(1.0, max(0.0, (value - start) / (end - start))), 2)

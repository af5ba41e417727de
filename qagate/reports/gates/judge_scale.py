"""How a judge's errors shrink a margin, for gates that add the two errors."""

import math
from dataclasses import dataclass

from qagate.evaluators.number_text import figure, span_of
from qagate.evaluators.statistics.intervals import TAIL, UNDEFINED, Estimate
from qagate.evaluators.statistics.metrics import USAGE
from qagate.reports.compare.sides import Sides
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.slice_judge import errors_of

ERRS_TOO_OFTEN = "the judge errs too often for a conclusion"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeScale:
    """How a judge's errors shrink a change."""

    errors: JudgeErrors

    @property
    def youden(self) -> Estimate:
        """Youden's J; undefined if nothing measures it, and the gate is about an opinion."""
        if self.errors.unknown or self.errors.obstacle:
            return UNDEFINED
        return self.errors.youden().estimate

    def shrunk(self, margin: float, tail: float = TAIL) -> float:
        """Return the largest change that the judge may show if the true one keeps to the margin.

        It goes by J's lower end, which errs with a chance of ``tail``; -infinity where J may be 0.
        """
        if self.errors.unknown:
            return margin
        if self.errors.obstacle:
            return -math.inf
        gain = self.errors.youden(tail).low
        hidden = self.errors.misread.high or 0.0
        return (margin - hidden) * gain if gain > 0 else -math.inf

    def text(self, difference: Estimate) -> str:
        """Return in words what the judge's errors mean for a difference."""
        if self.errors.unknown:
            return f"the verdict is about the judge's opinion: {self.errors.basis}"
        if self.errors.obstacle:
            return self.errors.obstacle
        if self.errors.is_read:
            return self.errors.basis
        youden = self.youden
        gain = (
            f"Youden's J {youden.text('{value}, {low} to {high}')} {self.errors.basis}"
        )
        corrected = self.corrected(difference)
        if corrected.value is None or corrected.interval is None:
            return f"{ERRS_TOO_OFTEN} ({gain})"
        return (
            f"corrected for the judge's errors, it is {figure(corrected.value)}, 95 % interval "
            f"{span_of(corrected.interval)} ({gain})"
        )

    def corrected(self, difference: Estimate) -> Estimate:
        """Return a difference divided by J, each end by the end of J that takes it farther out."""
        youden = self.youden
        if difference.value is None or difference.interval is None:
            return UNDEFINED
        if not youden.value or youden.low is None or youden.high is None:
            return UNDEFINED
        if youden.low <= 0:
            return UNDEFINED
        low, high = difference.interval
        low /= youden.high if low > 0 else youden.low
        high /= youden.high if high < 0 else youden.low
        value = difference.value / youden.value
        return Estimate.of(value, (max(-1.0, low), min(1.0, high)), difference.n)


def judge_scale(sides: Sides, measure: str = "") -> JudgeScale | None:
    """Return the scale of a gate over these slices; None if no judge's verdict is in it."""
    if measure in USAGE:
        return None
    judges = []
    for side in sides:
        if side.judge is not None and not side.judge.is_code:
            judges.append((side.judge, float(len(side.pairs))))
    if not judges:
        return None
    return JudgeScale(errors=errors_of(judges, measure))

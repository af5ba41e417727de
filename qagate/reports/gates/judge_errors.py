"""What a judge's errors leave of a margin: the questions that a paired gate asks of them.

A judge that errs shows a smaller change than there was. Whether the pairs of a gate still show
that the true change keeps to the margin is answered by its errors on labelled answers
(``reports/judge``). A gate asks once for each treatment of what is missing.
"""

from dataclasses import dataclass, replace
from typing import Protocol

from qagate.evaluators.statistics.intervals import TAIL, Estimate
from qagate.evaluators.statistics.misclassification import Youden, allowed_by_youden
from qagate.reports.compare.shares import JudgedShare
from qagate.reports.compare.sides import Sides
from qagate.reports.judge.judging import JudgeScale, judge_scale
from qagate.reports.metrics.gate import ROUNDING


class ErrorsOfJudge(Protocol):
    """The errors of whoever graded both runs, in the languages and rubrics of a gate's slices."""

    @property
    def obstacle(self) -> str:
        """Why no gate on this share can be decided, with what would help; empty where one can."""

    def youden(self, tail: float = TAIL) -> Youden:
        """Return J, whose ends err with this probability."""

    def allows(
        self,
        pairs: JudgedShare,
        margin: float,
        tail: float = TAIL,
        *,
        rises: bool = False,
    ) -> bool:
        """Return whether pairs show that the true share fell, or rose, by less than a margin."""

    def allows_estimate(
        self, pairs: JudgedShare, margin: float, *, rises: bool = False
    ) -> bool:
        """Return whether the change itself, not its whole interval, keeps to a margin."""

    def sentence(self, pairs: JudgedShare) -> str:
        """Return in words what the judge's errors mean for a change."""

    def with_labels(self, times: float) -> "ErrorsOfJudge":
        """Return the errors as so many times as many labels would show them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrunkMargin:
    """Errors by J alone: combined with those of the pairs, as both are independent."""

    scale: JudgeScale
    obstacle: str = ""

    def youden(self, tail: float = TAIL) -> Youden:
        """Return J; 1 where nothing is known of the errors."""
        known = self.scale.youden
        if known.value is None:
            return Youden(value=1.0, low=1.0, high=1.0, labels=0)
        return Youden(
            value=known.value,
            low=known.low or 0.0,
            high=1.0 if known.high is None else known.high,
            labels=known.n,
        )

    def allows(
        self,
        pairs: JudgedShare,
        margin: float,
        tail: float = TAIL,
        *,
        rises: bool = False,
    ) -> bool:
        """Return whether the whole interval keeps to the margin that is left."""
        low, high = pairs.interval_at(tail)
        gain, lowest_gain = pairs.value, low
        if rises:
            gain, lowest_gain = -pairs.value, -high
        return allowed_by_youden(gain, lowest_gain, margin, self.youden(tail))

    def allows_estimate(
        self, pairs: JudgedShare, margin: float, *, rises: bool = False
    ) -> bool:
        """Return whether the change keeps to the margin that is left."""
        harm = pairs.value if rises else -pairs.value
        return harm <= self.scale.shrunk(margin, confident=False) + ROUNDING

    def sentence(self, pairs: JudgedShare) -> str:
        """Return in words what the judge's errors mean for a change."""
        change = Estimate.of(pairs.value, pairs.interval_at(TAIL), round(pairs.count))
        return self.scale.text(change)

    def with_labels(self, times: float) -> "ShrunkMargin":
        """Return the same J with an interval that is narrower by the square root."""
        known = self.scale.youden
        if known.value is None or known.low is None:
            return self
        low = known.value - (known.value - known.low) / times**0.5
        youden = replace(known, low=low, n=round(known.n * times))
        return ShrunkMargin(scale=replace(self.scale, youden=youden))


def errors_of(sides: Sides, measure: str) -> ErrorsOfJudge | None:
    """Return the errors that a gate on a share has to count with; None where no judge graded.

    ``measure`` is the share, empty for the one that passes.
    """
    scale = judge_scale(sides, measure)
    if scale is None:
        return None
    return ShrunkMargin(scale=scale)


def opinion_note(sides: Sides, measure: str, change: Estimate) -> str:
    """Return what is to know of a judge's part in a figure that is no share; else nothing."""
    scale = judge_scale(sides, measure)
    return scale.text(change) if scale else ""

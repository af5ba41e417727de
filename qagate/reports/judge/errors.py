"""What a judge's errors leave of a change between two runs: the judge's part of a paired gate.

A gate on a share passes only if two things hold. The change as judged is within the margin
although a judge shows no more than J times a true change; J is that of the classes which the
judge keeps least, one on each side of the share's border. And the change that is corrected class
by class is within the margin too: a refusal that turns into a wrong answer is no change as long
as the judge refuses both, and a gain that does not exist where it lets the wrong one pass.

Rules before a model are measured by that model alone (``rule_errors.py``). What they may have
misread may all be a loss that nobody sees, so the margin is smaller by that.

That a judge errs alike on the answers of both runs is assumed. A judge whose errors are waived,
and code, count as read: J is 1, and there is nothing to correct.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from qagate.evaluators.statistics.intervals import (
    TAIL,
    Estimate,
    Interval,
    figure,
    span_of,
)
from qagate.evaluators.statistics.misclassification import (
    PERFECT,
    Confusion,
    CorrectedChange,
    GradeChanges,
    Reader,
    Youden,
    allowed_by_youden,
    corrected_change,
    pooled,
)
from qagate.reports.metrics.gate import ROUNDING

NOTHING_MISREAD = Estimate.of(0.0, (0.0, 0.0), 0)
"""The share of answers that rules may have misread where none stand before a model."""


class JudgedPairs(Protocol):
    """Pairs of answers as a gate on a share sees them, by one way to count what is missing.

    An answer that no judge graded, because it is missing or taken at its worst, stands in
    ``changes`` as ``HIT`` or ``MISS``; every other one by its grade, or by its rating in digits.
    """

    @property
    def value(self) -> float:
        """New - old of the share, as judged."""

    def interval_at(self, tail: float) -> Interval:
        """Return its interval; each end has an error of ``tail``."""

    @property
    def changes(self) -> GradeChanges:
        """How both answers of each pair were graded; a slice's name is the group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeErrors:
    """How the judges of one slice, or of a pool, err on one share of all items."""

    readers: Mapping[str, Reader]
    """By the name of the slice: a judge's confusion, or the grades that count if it is believed."""
    weights: Mapping[str, float]
    """The slices' weights in J: their numbers of pairs, or of items."""
    obstacle: str = ""
    """Why no gate on this share can be decided, with what would help; empty where one can."""
    basis: str = ""
    """Which labels show the errors, or why nothing does."""
    misread: Estimate = NOTHING_MISREAD
    """The share of all answers that rules before a model may have misread."""
    unknown: bool = False
    """Whether nothing is known of the errors, so that a gate is about the judge's opinion."""

    @property
    def is_read(self) -> bool:
        """Whether every answer counts as read: by code, or by a judge whose errors are waived."""
        return not any(
            isinstance(reader, Confusion) for reader in self.readers.values()
        )

    def youden(self, tail: float = TAIL) -> Youden:
        """Return J of the classes that are kept least, weighted by the slices; 1 if all is read."""
        return _youden(tuple(self.readers.items()), tuple(self.weights.items()), tail)

    def corrected(
        self, pairs: JudgedPairs, tail: float = TAIL
    ) -> CorrectedChange | None:
        """Return the change corrected class by class; None where that is not possible."""
        return corrected_change(pairs.changes, self.readers, tail)

    def allows(
        self,
        pairs: JudgedPairs,
        margin: float,
        tail: float = TAIL,
        *,
        rises: bool = False,
    ) -> bool:
        """Return whether pairs show that the true share fell, or rose, by less than a margin.

        Every end of an interval, that of pairs and that of labels, has an error of ``tail``.
        """
        if self.obstacle:
            return False
        margin -= self.misread.high or 0.0
        value = pairs.value
        low, high = pairs.interval_at(tail)
        youden = self.youden(tail)
        if rises:
            value, low = -value, -high
        if not allowed_by_youden(value, low, margin, youden):
            return False
        if self.is_read:
            return True
        corrected = self.corrected(pairs, tail)
        if corrected is None:
            return False
        if rises:
            return corrected.is_below(margin, tail)
        return corrected.is_above(-margin, tail)

    def allows_estimate(
        self, pairs: JudgedPairs, margin: float, *, rises: bool = False
    ) -> bool:
        """Return whether the change itself, not its whole interval, keeps to a margin."""
        if self.obstacle:
            return False
        margin -= self.misread.value or 0.0
        harm = pairs.value if rises else -pairs.value
        if harm > margin * self.youden().value + ROUNDING:
            return False
        if self.is_read:
            return True
        corrected = self.corrected(pairs)
        if corrected is None:
            return False
        corrected_harm = corrected.value if rises else -corrected.value
        return corrected_harm <= margin + ROUNDING

    def with_labels(self, times: float) -> "JudgeErrors":
        """Return the errors as so many times as many labels would show them."""
        readers: dict[str, Reader] = {}
        for name, reader in self.readers.items():
            if isinstance(reader, Confusion):
                readers[name] = reader.with_labels(times)
            else:
                readers[name] = reader
        return replace(self, readers=readers)

    def shrunk(self, margin: float, tail: float = TAIL) -> float:
        """Return the largest change that the judge may show if the true one keeps to the margin.

        For gates that are decided pair by pair: the two errors are added, not combined.
        """
        low = self.youden(tail).low
        hidden = self.misread.high or 0.0
        return (margin - hidden) * low if low > 0 else -1.0

    def sentence(self, pairs: JudgedPairs) -> str:
        """Return in words what the judge's errors mean for a change."""
        if self.obstacle:
            return self.obstacle
        if self.unknown:
            return f"the verdict is about the judge's opinion: {self.basis}"
        if self.is_read:
            return self.basis
        gain = f"Youden's J {_span(self.youden().estimate)} {self.basis}"
        hidden = self.misread.high or 0.0
        if hidden:
            gain += (
                f"; rules before the model may have misread {figure(hidden)} of all answers, "
                "which is taken from the margin"
            )
        corrected = self.corrected(pairs)
        if corrected is None:
            return f"its grades cannot be traced back to classes ({gain})"
        return f"corrected for the judge's errors, it is {_span(corrected.estimate)} ({gain})"


def _span(estimate: Estimate) -> str:
    value = figure(estimate.value or 0.0)
    if estimate.interval is None:
        return value
    return f"{value}, 95 % interval {span_of(estimate.interval)}"


@lru_cache(1024)  # simulated runs ask for the same judge again and again
def _youden(
    readers: tuple[tuple[str, Reader], ...],
    weights: tuple[tuple[str, float], ...],
    tail: float,
) -> Youden:
    weight_of = dict(weights)
    parts = []
    for name, reader in readers:
        youden = PERFECT
        if isinstance(reader, Confusion):
            youden = reader.youden(tail)
        weight = weight_of.get(name, 0.0)
        if weight > 0:
            parts.append((youden, weight))
    return pooled(parts) if parts else PERFECT

"""What a judge's errors leave of a margin: the question that a paired gate asks of them.

A judge that errs shows a smaller change than there was. Whether the pairs of a gate still show
that the true change keeps to the margin is answered by its errors on labelled answers, which
``reports/judge`` measures. A gate asks here, once for each treatment of what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from qagate.reports.gates.strictness import Strictness

ASSUMED_HIT = "+"
"""Stands for the grade of an item that is missing, and counts as one of the share."""
ASSUMED_MISS = "-"
"""Stands for the grade of an item that is missing, and does not count as one of the share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePairs:
    """The pairs of a gate on a share of all items, under one treatment of what is missing."""

    difference: float
    """New - old of the share."""
    low: float
    """The lower end of its interval, at the strictness of the gate."""
    high: float
    """The upper end."""
    pairs: float
    weight: float
    """The share of pairs that count as independent."""
    harm: int
    """-1 where a drop harms, 1 where a rise does."""
    moves: Mapping[tuple[str, str], float]
    """The number of pairs by their result in the old run and in the new one.

    Where a result is missing it is ``ASSUMED_HIT`` or ``ASSUMED_MISS``. Empty where no judge
    with a rubric graded.
    """

    @property
    def gain(self) -> float:
        """The change for the better: what a drop or a rise took away is below 0."""
        return -self.harm * self.difference

    @property
    def lowest_gain(self) -> float:
        """The end of ``gain`` that speaks against a PASS."""
        if self.harm < 0:
            return self.low
        return -self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """What the judge's errors say of some pairs and a margin."""

    within: bool
    """Whether the true change is shown to keep to the margin, by each condition."""
    bound: float
    """The harm that the judge's grades may show at most, above 0; -infinity if none will do."""
    text: str
    """The errors and their effect in words."""


class JudgeErrors(Protocol):
    """The errors of whoever graded both runs, in the language and rubric of a gate's slices."""

    def allows(
        self, pairs: SharePairs, margin: float, strictness: Strictness
    ) -> Allowance:
        """Return whether these pairs show that the true change keeps to the margin."""

    def with_labels(self, times: float) -> "JudgeErrors":
        """Return the same errors as measured on so many times as many labels."""

    @property
    def labels(self) -> int:
        """The number of labelled answers behind them, of the class that is short."""

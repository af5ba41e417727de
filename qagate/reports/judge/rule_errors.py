"""How far rules before a model are believed: what the model says of answers that they settled.

The rules give verdicts too, and labelled answers need not show their errors: all of them may be of
the kind that the rules leave to the model. So the model judges some answers of each slice that the
rules settled. Two things follow.

The rules are distrusted where both are shown to differ on more than ``MOST_DIFFERING`` of them.
Below that, a loss may hide behind the rules as large as the share of all answers that they may
have misread: settled answers times the upper end of the difference. Margins are smaller by that.

A check without a grade counts as a difference, and so does each that is missing of those that had
to be made. Where all settled answers were checked, nothing is left to chance.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Slice
from qagate.evaluators.judges.rule_checks import (
    CHECKED_ANSWERS,
    RuleChecks,
    is_settled_by,
    rules_of,
)
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate, Interval
from qagate.reports.run.evidence import RulesCheck
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle

MOST_DIFFERING = 0.1
"""The share of answers on which rules and a model may differ: what a judge's floor leaves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleErrors:
    """What the model says of the answers of one slice that rules settled."""

    judged: int = 0
    """Answers with a verdict, of the rules or the model."""
    settled: int = 0
    """Those that the rules settled."""
    differs: tuple[Sequence[bool], ...] = ()
    """Whether the model differs on each answer that it graded too, by cluster."""
    differing: tuple[str, ...] = ()
    """The keys of the answers on which it does."""
    silent: int = 0
    """Answers on which it was asked, and gave no grade."""

    @property
    def checked(self) -> int:
        """How many answers the model graded too."""
        return sum(len(cluster) for cluster in self.differs)

    @property
    def missing(self) -> int:
        """How many grades of the model are missing of those that it had to give."""
        return max(0, min(CHECKED_ANSWERS, self.settled) - self.checked)

    @property
    def difference(self) -> Estimate:
        """The share of the settled answers on which both differ; what is missing differs."""
        worst = [[True]] * self.missing
        return _difference([*self.differs, *worst], self.settled)

    @property
    def misread(self) -> Estimate:
        """The share of all answers that the rules may have misread."""
        if self.difference.value is None or not self.judged:
            return Estimate.of(0.0, (0.0, 0.0), self.judged)
        part = self.settled / self.judged
        low, high = self.difference.interval or (0.0, 1.0)
        return Estimate.of(
            part * self.difference.value, (part * low, part * high), self.judged
        )

    def obstacle(self, language: str) -> str:
        """Return why the rules are not believed; empty where they are."""
        if (self.difference.low or 0.0) <= MOST_DIFFERING:
            return ""
        share = self.difference.text("{value}, 95 % interval {low} to {high}")
        answers = f"{self.checked + self.missing} answers that rules settled"
        lacking = ""
        if self.missing:
            lacking = f" ({self.missing} have no grade of the model, and count so)"
        return (
            f"judge {Obstacle.DISTRUSTED} in {language}: of {answers} and the model had to check, "
            f"both differ on a share of {share}{lacking}; name the model alone (--judge)"
        )


NO_RULES = RuleErrors()
"""Of a judge without rules before it."""


def rule_errors(
    slice_: Slice, records: Sequence[Record], judge: str, checks: RuleChecks
) -> RuleErrors:
    """Return how the rules of a cascade err in a slice, by what the model said of its answers."""
    rules = rules_of(judge)
    if not rules:
        return NO_RULES
    judged = 0
    settled = 0
    silent = 0
    differing: list[str] = []
    differs: dict[Cluster, list[bool]] = defaultdict(list)
    for record in records:
        if not record.is_graded or not record.votes:
            continue
        judged += 1
        if not is_settled_by(rules, record.votes):
            continue
        settled += 1
        label = checks.get(record.key)
        if label is None:
            continue
        if not label:
            silent += 1
            continue
        is_other = label != record.votes[0].label
        differs[slice_.cluster_of(record)].append(is_other)
        if is_other:
            differing.append(record.key)
    return RuleErrors(
        judged=judged,
        settled=settled,
        differs=tuple(differs.values()),
        differing=tuple(differing),
        silent=silent,
    )


def _difference(clusters: Sequence[Sequence[bool]], settled: int) -> Estimate:
    """Return the share of answers on which both differ, given by cluster, of so many settled.

    Wilson's interval, over clusters where answers share one.
    """
    if not clusters:
        return UNDEFINED
    import numpy as np

    rows = [(sum(cluster), len(cluster), 1) for cluster in clusters]
    table = np.array(rows, dtype=np.float64).T
    n = sum(len(cluster) for cluster in clusters)
    differing = float(table[0].sum())
    if len(clusters) == n:
        interval = intervals.wilson(differing, n)
    else:
        interval = intervals.clustered_rate(*table)
    value = differing / n
    return Estimate.of(value, _of_finite(value, interval or (0.0, 1.0), n, settled), n)


def _of_finite(value: float, interval: Interval, n: int, total: int) -> Interval:
    """Return an interval for a sample of ``n`` out of ``total``: the larger part, the narrower.

    The finite population correction: Cochran (1977), Sampling Techniques, section 2.6.
    """
    if total <= 1:
        return value, value
    narrower = math.sqrt(max(0, total - n) / (total - 1))
    low, high = interval
    return value - (value - low) * narrower, value + (high - value) * narrower


def rules_check(
    slices: Sequence[tuple[Slice, Sequence[Record]]], judge: str, checks: RuleChecks
) -> RulesCheck | None:
    """Return what the checks of rules showed in all slices together; None without such rules."""
    judged = 0
    settled = 0
    silent = 0
    differing: list[str] = []
    differs: list[Sequence[bool]] = []
    for slice_, records in slices:
        errors = rule_errors(slice_, records, judge, checks)
        judged += errors.judged
        settled += errors.settled
        silent += errors.silent
        differing += errors.differing
        differs += errors.differs
    if not rules_of(judge) or not judged:
        return None
    return RulesCheck(
        judged=judged,
        settled=settled,
        difference=_difference(differs, settled),
        differing=tuple(differing),
        silent=silent,
        grades=checks,
    )

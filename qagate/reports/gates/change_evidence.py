"""What the pairs of some slices show of one margin: PASS, FAIL, or neither.

A change is decided on *harm*: how far a metric fell, or rose. PASS where the harm is shown to be
below the margin, FAIL where it is shown to be there at all, or beyond the margin. Whatever is
missing has three treatments (``compare/shares.py``), and each has to show it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.intervals import TAIL, Estimate, Interval
from qagate.evaluators.statistics.paired import p_value_beyond
from qagate.reports.compare.change import ChangeCase, MetricChange
from qagate.reports.compare.differences import change_for, harm_sign
from qagate.reports.compare.sides import Sides
from qagate.reports.compare.states import KNOWN
from qagate.reports.gates.judge_errors import errors_in
from qagate.reports.gates.strictness import FIRST_SET, Strictness
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.metrics.gate import ROUNDING
from qagate.reports.run.report import GateState

FINEST_BAND = 0.0005
"""How exactly the end of a band is searched for: a tenth of what a table shows."""


@dataclass(frozen=True, kw_only=True)
class ChangeEvidence:
    """A change, the margin that it has to keep to, and the errors of the judge behind it."""

    threshold: Threshold
    sides: Sides
    change: MetricChange
    errors: JudgeErrors | None = None
    """None where no judge graded, or the change is of no share of all items."""
    strictness: Strictness = FIRST_SET

    @property
    def cases(self) -> Sequence[ChangeCase]:
        """The change in each treatment of what is missing."""
        return self.change.cases

    @property
    def is_confident(self) -> bool:
        """Whether the whole interval must clear the margin."""
        return self.threshold.evidence == "confident"

    @property
    def margin(self) -> float:
        """The most harm that passes, in the metric's unit."""
        return self.threshold.max or 0.0

    @property
    def limit(self) -> float:
        """The harm that must be shown to be exceeded for a FAIL."""
        if self.is_confident and self.threshold.fail != "margin":
            return 0.0
        return self.margin

    @property
    def sign(self) -> int:
        """The factor from new - old to harm: -1 where a drop harms, 1 where a rise does."""
        return harm_sign(self.threshold)

    @cached_property
    def harms(self) -> Sequence[Estimate]:
        """The harm in each treatment, with its 95 % interval."""
        return [harm_of(case.change, self.sign) for case in self.cases]

    @property
    def values(self) -> list[float]:
        """The differences new - old in all treatments, the most harmful first."""
        harms = sorted((harm.value or 0.0 for harm in self.harms), reverse=True)
        return [self.sign * harm for harm in harms]

    def p_value(self) -> float:
        """Return the p-value of "there is more harm than the limit" in the best case."""
        p_values = []
        for harm in self.harms:
            if harm.low is None:
                p_values.append(1.0)
            else:
                value = harm.value or 0.0
                p_values.append(p_value_beyond(value, harm.low, self.limit))
        return max(p_values)

    def state(self, p_value: float) -> GateState:
        """Return PASS or FAIL only where all treatments agree.

        ``p_value`` may be adjusted for other gates of the run; those of other candidates are
        adjusted for here.
        """
        if all(self.allows(case) for case in self.cases):
            return "PASS"
        p_value = self.strictness.candidates.adjusted(p_value)
        if self.is_confident and p_value >= 0.05:
            return "INCONCLUSIVE"
        # The full margin counts here: a judge's errors make a harm look smaller than it is.
        if any(self._keeps_to_margin(harm) for harm in self.harms):
            return "INCONCLUSIVE"
        if all(self._is_beyond_limit(harm) for harm in self.harms):
            return "FAIL"
        return "INCONCLUSIVE"

    def allows(self, case: ChangeCase) -> bool:
        """Return whether a case shows that the true harm keeps to the margin."""
        is_known = self.errors is not None and not self.errors.unknown
        if self.errors is not None and is_known and case.share is not None:
            rises = self.sign > 0
            if self.is_confident:
                return self.errors.allows(
                    case.share, self.margin, self.strictness.tail, rises=rises
                )
            return self.errors.allows_estimate(case.share, self.margin, rises=rises)
        if self.is_confident:
            return self._keeps_to_margin(harm_of(case.strict, self.sign))
        return self._keeps_to_margin(harm_of(case.change, self.sign))

    @property
    def band(self) -> Interval | None:
        """The changes that are not ruled out, by the errors of pairs and labels together.

        New - old, in the metric's unit; None where nothing bounds them.
        """
        least = [self._least_harm(harm) for harm in self.harms]
        most = [self._most_harm(case) for case in self.cases]
        if any(end is None for end in (*least, *most)):
            return None
        low = min(end for end in least if end is not None)
        high = max(end for end in most if end is not None)
        first, last = sorted((self.sign * low, self.sign * max(low, high)))
        return first, last

    def _least_harm(self, harm: Estimate) -> float | None:
        return harm.low if self.is_confident else harm.value

    def _most_harm(self, case: ChangeCase) -> float | None:
        """Return the smallest margin that a case would allow, by halving; 1 where none does."""
        if self.errors is None or self.errors.unknown or case.share is None:
            harm = harm_of(case.strict, self.sign)
            return harm.high if self.is_confident else harm.value
        refused, allowed = -1.0, 1.0
        while allowed - refused > FINEST_BAND:
            margin = (refused + allowed) / 2
            threshold = replace(self.threshold, max=margin)
            if replace(self, threshold=threshold).allows(case):
                allowed = margin
            else:
                refused = margin
        return allowed

    def _keeps_to_margin(self, harm: Estimate) -> bool:
        if self.is_confident:
            return harm.high is not None and harm.high < self.margin
        return harm.value is not None and harm.value <= self.margin + ROUNDING

    def _is_beyond_limit(self, harm: Estimate) -> bool:
        if self.is_confident:
            return harm.low is not None and harm.low > self.limit
        return harm.value is not None and harm.value > self.limit + ROUNDING


def harm_of(change: Estimate, sign: int) -> Estimate:
    """Return a change as harm; ``sign`` is -1 where a drop harms."""
    if change.value is None:
        return change
    interval = None
    if change.interval is not None:
        low, high = sorted(sign * end for end in change.interval)
        interval = (low, high)
    return Estimate.of(sign * change.value, interval, change.n)


def evidence_of(rule: Threshold, sides: Sides) -> ChangeEvidence | str:
    """Return what the pairs show of a margin, or why they can show nothing."""
    obstacle = obstacle_to(rule, sides)
    if obstacle:
        return obstacle
    strictness = strictness_of(sides)
    change = change_for(rule, sides, strictness.tail)
    if isinstance(change, str):
        return change
    figure_name = rule.of or "the share that passes"
    for case in change.cases:
        if case.change.n and case.change.value is None:
            return f"{figure_name} is undefined in one of the runs"
        if case.strict.interval is None:
            return f"the change of {figure_name} has no 95 % interval over these items"
    errors = None
    if not rule.of_usage:
        errors = errors_in(sides, rule.of)
    if errors is not None and errors.obstacle:
        return errors.obstacle
    return ChangeEvidence(
        threshold=rule,
        sides=sides,
        change=change,
        errors=errors,
        strictness=strictness,
    )


def obstacle_to(rule: Threshold, sides: Sides) -> str:
    """Return why no pair can decide a margin, whatever the pairs show; empty if they can."""
    for side in sides:
        obstacle = side.narrow if rule.of_usage else side.blocked
        if obstacle:
            return obstacle
    margin = rule.max
    if margin is None or margin < 0 or (not rule.of and margin >= 1):
        as_share = "" if rule.of else " as a share of items, from 0 to below 1"
        return f"{rule.name} needs a margin{as_share}, not {margin}"
    stopped = sum(side.count("stopped") for side in sides)
    if stopped:
        return (
            f"{stopped:,} items were not asked, as other gates were decided before, and this one "
            "is about all of them; run without --until-decided"
        )
    if not any(side.count(*KNOWN) for side in sides):
        return _no_pair(sides)
    return ""


def _no_pair(sides: Sides) -> str:
    role = sides[0].role
    missing = sum(len(side.pairs) for side in sides)
    added = sum(len(side.added) for side in sides)
    return (
        f"no item has a grade in this run and in the {role} "
        f"({missing:,} of the {role} missing, edited or ungraded, {added:,} added)"
    )


def strictness_of(sides: Sides) -> Strictness:
    """Return how strict a gate over these slices is: by the one that was asked most often."""
    tries = max((side.tries for side in sides), key=len)
    return Strictness(tries=tries, candidates=sides[0].candidates)


def is_strict(strictness: Strictness) -> bool:
    """Whether a gate is held to more than the usual 2.5 % a side."""
    return strictness.tail != TAIL

"""Gates on a change since the baseline: PASS where a metric is worse by no more than a margin.

Both are decided on harm: how far a metric fell, or rose, over pairs (``compare/differences.py``).
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Z95,
    Estimate,
    figure,
    span_of,
)
from qagate.evaluators.statistics.metrics import DROP
from qagate.evaluators.statistics.paired import Z80, holm, p_value_beyond
from qagate.reports.compare.differences import change_for, elsewhere, not_asked, scopes
from qagate.reports.compare.pairs import Lone, PairedDifference, Sides
from qagate.reports.gates.judge_scale import JudgeScale, judge_scale
from qagate.reports.metrics.gate import BY_RUN, MORE_LABELS, ROUNDING, way_out
from qagate.reports.run.report import GateResult, GateState, Obstacle


@dataclass(frozen=True, kw_only=True)
class ChangeEvidence:
    """What the pairs of some slices show of a threshold on a change."""

    threshold: Threshold
    sides: Sides
    seen: Estimate
    """New - old over graded pairs."""
    extremes: Sequence[Estimate]
    """New - old for each extreme result of the items without a grade in one of the runs.

    Where every grade is known this is the difference seen, alone.
    """
    counts: PairedDifference | None = None
    """The graded pairs counted, for a share of all items."""

    @cached_property
    def cases(self) -> Sequence[Estimate]:
        """The harm in each extreme: a drop's sign is turned."""
        found = []
        for one in self.extremes:
            low, high = sorted(self.sign * end for end in one.interval or (0.0, 0.0))
            ends = (low, high) if one.interval else None
            found.append(Estimate.of(self.sign * (one.value or 0.0), ends, one.n))
        return found

    @cached_property
    def scale(self) -> JudgeScale | None:
        """How the judge's errors scale the margin; None without a judge or known errors."""
        return judge_scale(self.sides, self.threshold.of)

    @property
    def confident(self) -> bool:
        """Whether the whole interval must clear the margin."""
        return self.threshold.evidence == "confident"

    @property
    def margin(self) -> float:
        """The most harm that passes, in the metric's unit."""
        return self.threshold.max or 0.0

    @property
    def allowed(self) -> float:
        """The harm that must be excluded for a PASS, on the scale of the judge."""
        how = self.confident
        return (
            self.scale.shrunk(self.margin, confident=how) if self.scale else self.margin
        )

    @property
    def limit(self) -> float:
        """The harm that must be shown to be exceeded for a FAIL."""
        return (
            0.0 if self.confident and self.threshold.fail != "margin" else self.margin
        )

    @property
    def sign(self) -> int:
        """The factor from new - old to harm: -1 where a drop harms, 1 where a rise does."""
        return -1 if self.threshold.measure == DROP else 1

    @property
    def unknown(self) -> int:
        """The number of items without a grade in one run; those not asked again do not count."""
        dropped = sum(len(one.pairing.dropped) for one in self.sides)
        return self.cases[0].n - self.seen.n - dropped

    @property
    def ungraded(self) -> int:
        """The number of items that lack a grade in the new run alone."""
        lone = lone_items(self.sides)
        return self.unknown - lone["added"] - lone["ungraded"]

    @property
    def values(self) -> list[float]:
        """The differences new - old in all cases, the most harmful first."""
        harms = sorted((one.value or 0.0 for one in self.cases), reverse=True)
        return [self.sign * one for one in harms]

    def p_value(self) -> float:
        """Return the p-value of "there is more harm than the limit" in the best case."""
        return max(
            1.0
            if one.low is None
            else p_value_beyond(one.value or 0.0, one.low, self.limit)
            for one in self.cases
        )

    def state(self, p_value: float) -> GateState:
        """Return PASS or FAIL only where all cases agree; ``p_value`` may be adjusted."""
        if all(self._is_within(one, self.allowed) for one in self.cases):
            return "PASS"
        if self.confident and p_value >= 0.05:
            return "INCONCLUSIVE"
        ends = [one.low if self.confident else one.value for one in self.cases]
        limit = self.limit + (0 if self.confident else ROUNDING)
        # The full margin counts here: a judge's errors make a harm look smaller than it is.
        within = any(self._is_within(one, self.margin) for one in self.cases)
        beyond = all(end is not None and end > limit for end in ends)
        return "FAIL" if beyond and not within else "INCONCLUSIVE"

    def _is_within(self, harm: Estimate, bound: float) -> bool:
        if self.confident:
            return harm.high is not None and harm.high < bound
        return harm.value is not None and harm.value <= bound + ROUNDING

    def reason(self, state: GateState) -> str:
        """Return the verdict in words, and the counts it rests on."""
        estimate = self.seen
        name = f"{self.threshold.of}: " if self.threshold.of else ""
        what = "new / old - 1" if self.threshold.relative else "new - old"
        text = (
            f"{name}{what} is {figure(estimate.value or 0.0, self.sign * self.margin)}"
        )
        if self.confident and estimate.interval:
            text += f", 95 % interval {span_of(estimate.interval)}"
        text += f": {self._zone(state)}"
        if state == "INCONCLUSIVE" and self.ungraded and not self.threshold.of_usage:
            text += "; grade the ungraded items first"
        elif state == "INCONCLUSIVE" and self.needed:
            text += f"; about {plural(self.needed, 'pair')} would decide it"
        freed = f"; {self.scale.text(estimate)}" if self.scale else ""
        return f"{text} ({'; '.join(self._basis())}){freed}"

    def _basis(self) -> Iterator[str]:
        yield (
            self.counts.basis(self.threshold.of)
            if self.counts
            else plural(self.seen.n, "pair")
        )
        lone, ungraded, earlier = (
            lone_items(self.sides),
            self.ungraded,
            self.sides[0].role,
        )
        unpaired = self.unknown - ungraded
        lacks = "without a figure" if self.threshold.of_usage else "ungraded"
        unknown = [f"{ungraded:,} {lacks}"] if ungraded else []
        unknown += [f"{plural(unpaired, 'item')} without a partner"] if unpaired else []
        unknown += not_asked(self.sides)
        if unknown:
            worst, *_, best = map(figure, self.values)
            yield f"{', '.join(unknown)}: at worst {worst}, at best {best}"
        if lone["changed"]:
            yield f"{plural(lone['changed'], 'item')} whose data changed left out"
        gone = (one.pairing.removed - len(one.pairing.dropped) for one in self.sides)
        if removed := sum(gone):
            yield f"{plural(removed, 'answer')} of the {earlier} without a partner here"
        if lone["repeat"]:
            left_out = plural(lone["repeat"], "repeat")
            yield f"{left_out} left out, as the {earlier} has fewer repeats"
        yield from elsewhere(self.threshold, self.sides)

    def _zone(self, state: GateState) -> str:
        change, allowed = self.threshold.measure, self.allowed
        seen = margin = f"the margin of {self.threshold.amount(self.margin)}"
        nor = " nor"
        if 0 < allowed < self.margin:
            seen += f", {figure(allowed, self.margin)} on the judge's scale"
            nor = ", nor"
        if not self.confident:
            where = {"PASS": f"within {seen}", "FAIL": f"beyond {margin}"}
            return f"the {change} is {where.get(state, f'neither within {seen}{nor} beyond it')}"
        if state == "PASS":
            return f"the {change} is shown to be within {seen}"
        if self.threshold.fail == "margin":
            beyond = f"the {change} is shown to be beyond {margin}"
            neither = f"shown neither to be within {seen}{nor} beyond it"
            return beyond if state == "FAIL" else neither
        if state == "FAIL":
            return f"shown to be worse, and not shown to be within {seen}"
        return f"shown neither to be within {seen}{nor} to be worse"

    @property
    def needs(self) -> str:
        """The end that the interval has to keep to, where it is not the margin itself."""
        youden = self.scale.youden if self.scale else UNDEFINED
        if not 0 < self.allowed < self.margin:
            return ""
        word, sign = ("above", "-") if self.sign < 0 else ("below", "+")
        gain = youden.low if self.confident else youden.value
        return f"needs {word} {sign}{figure(self.allowed, self.margin)}: judge J {gain or 0:.2f}"

    @property
    def remedy(self) -> str:
        """What to buy, in a few words: labels where only the judge's errors are in the way."""
        harm = self.cases[0]
        if self.ungraded and not self.threshold.of_usage:
            return f"grade {self.ungraded:,} more"
        youden, most = self.scale.youden if self.scale else UNDEFINED, harm.high
        labels_decide = most is not None and self.allowed <= most < self.margin > 0
        if most is not None and labels_decide and youden.value is not None:
            low, wanted = youden.low or 0.0, most / self.margin
            if wanted >= youden.value:
                return "a better judge"
            times = ((youden.value - low) / (youden.value - wanted)) ** 2
            return f"about {max(1, round(youden.n * times) - youden.n):,} {MORE_LABELS}"
        return f"about {self.needed - self.seen.n:,} more pairs" if self.needed else ""

    @cached_property
    def needed(self) -> int | None:
        """The number of pairs that would decide the gate with 80 % power, if it is as seen."""
        bound = (
            self.allowed if (self.cases[0].value or 0.0) < self.allowed else self.limit
        )
        bound *= self.sign
        if self.counts:
            return self.counts.pairs_to_decide(bound)
        value, interval, n = self.seen.value, self.seen.interval, self.seen.n
        if value is None or interval is None or abs(value - bound) < 1e-9:
            return None
        width = interval[1] - interval[0]
        needed = n * ((1 + Z80 / Z95) * width / 2 / (value - bound)) ** 2
        return max(
            n + 1, math.ceil(float(f"{needed:.1e}"))
        )  # two digits: it should not look exact


def _blocked(threshold: Threshold, sides: Sides) -> str:
    for one in sides:
        if threshold.of in one.retaken:
            return f"{threshold.of} {Obstacle.CHANGED} since the {one.role}"
    return next(
        filter(None, (x.narrow if threshold.of_usage else x.blocked for x in sides)), ""
    )


def lone_items(sides: Sides) -> Mapping[Lone, int]:
    """Return the number of items of the new run that are in no pair, by reason."""
    return Counter(why for one in sides for why in one.pairing.lone.values())


def evidence_of(rule: Threshold, sides: Sides) -> ChangeEvidence | str:
    """Return what the pairs show, or why they cannot decide the gate."""
    margin = rule.max
    if blocked := _blocked(rule, sides):
        return blocked
    if margin is None or margin < 0 or (not rule.of and margin >= 1):
        share = "" if rule.of else " as a share of items, from 0 to below 1"
        return f"{rule.name} needs a margin{share}, not {margin}"
    if not any(True for one in sides for _ in one.graded):
        items = plural(sum(lone_items(sides).values()), "item")
        return (
            f"no graded item pairs with the {sides[0].role} ({items} without a partner)"
        )
    change = change_for(rule, sides)
    if isinstance(change, str):
        return change
    seen, ends, counts = change
    found = [seen, *(one for one in ends if one.n > seen.n)]
    what = rule.of or "the share that passes"
    if not all(one.interval for one in found):
        undefined = any(one.value is None for one in found)
        no_interval = f"the change of {what} has no 95 % interval over these items"
        return f"{what} is undefined in one of the runs" if undefined else no_interval
    own = found[1:] or found
    return ChangeEvidence(
        threshold=rule, sides=sides, seen=seen, extremes=own, counts=counts
    )


def change_gates(
    dataset: Dataset, sides: Sides, *, states_only: bool = False
) -> tuple[GateResult, ...]:
    """Return a dataset's change gates, pooled ones last; ``states_only`` without their reasons."""
    gates = [
        (one, scope) for one, scope in scopes(dataset, sides) if one.evidence in BY_RUN
    ]
    found = [evidence_of(*gate) for gate in gates]
    tested = [one.p_value() for one in found if isinstance(one, ChangeEvidence)]
    p_values = iter(holm(tested) if dataset.holm else tested)
    results = []
    for (rule, scope), result in zip(gates, found, strict=True):
        evidence = None if isinstance(result, str) else result
        state: GateState = (
            evidence.state(next(p_values)) if evidence else "INCONCLUSIVE"
        )
        reason, needs, remedy = (
            "" if evidence else str(result),
            "",
            way_out(_blocked(rule, scope)),
        )
        if evidence and not states_only:
            reason, needs, remedy = (
                evidence.reason(state),
                evidence.needs,
                evidence.remedy,
            )
        if lost := "; ".join(_lost(rule, scope)):
            state, reason = "FAIL", f"{lost}; all languages: {reason}"
        both, lone = sum(len(one.pairing.pairs) for one in scope), lone_items(scope)
        every = plural(both + sum(lone.values()) - lone["repeat"], "pair")
        results.append(
            GateResult(
                dataset=dataset.name,
                language="" if rule.pool else scope[0].slice_.language,
                threshold=rule,
                state=state,
                estimate=evidence.seen if evidence else UNDEFINED,
                worst=evidence.values[0] if evidence else None,
                best=evidence.values[-1] if evidence else None,
                reason=reason,
                anchored=scope[0].role == "anchor",
                needs=needs,
                remedy=remedy if state == "INCONCLUSIVE" else "",
                pairs=f"{both:,} of {every}" if lone["changed"] else "",
            )
        )
    return tuple(results)


def _lost(rule: Threshold, sides: Sides) -> Iterator[str]:
    """Yield each language of a pool shown to be beyond the margin, adjusted for their number."""
    if not rule.pool or len(sides) < 2:
        return
    rule = replace(rule, evidence="confident", fail="margin")
    parts = (evidence_of(rule, [one]) for one in sides)
    known = [one for one in parts if isinstance(one, ChangeEvidence)]
    for one, p_value in zip(known, holm([one.p_value() for one in known]), strict=True):
        if one.state(p_value) == "FAIL":
            name = one.sides[0].slice_.language
            text = one.seen.text("{value}, 95 % interval {low} to {high}")
            yield f"{name} is shown to be beyond the margin: {text}"

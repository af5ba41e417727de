"""Gates on a change since the baseline: PASS where a metric is worse by no more than a margin.

Both are decided on harm: how far a metric fell, or rose, over pairs (``compare/differences.py``).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from cases.dataset import Dataset, Threshold
from evaluators.output import plural
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from evaluators.statistics.metrics import DROP
from evaluators.statistics.paired import holm, p_value_beyond
from reports.compare.differences import Difference, change_for, elsewhere, not_asked, scopes
from reports.compare.pairs import Lone, PairedSlice
from reports.judge.errors import JudgeScale, judge_scale
from reports.metrics.gate import BY_RUN, ROUNDING, way_out
from reports.run.report import GateResult, GateState


@dataclass(frozen=True, kw_only=True)
class ChangeGate:
    """A threshold on a change, and its slices."""

    language: str
    """Empty for a gate that pools languages."""
    threshold: Threshold
    sides: Sequence[PairedSlice]

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
        return self.scale.shrunk(self.margin, confident=how) if self.scale else self.margin

    @property
    def limit(self) -> float:
        """The harm that must be shown to be exceeded for a FAIL."""
        return 0.0 if self.confident and self.threshold.fail != "margin" else self.margin

    @property
    def sign(self) -> int:
        """The factor from new - old to harm: -1 where a drop harms, 1 where a rise does."""
        return -1 if self.threshold.measure == DROP else 1

    @property
    def lone(self) -> Mapping[Lone, int]:
        """The number of items of the new run that are in no pair, by reason."""
        return Counter(why for one in self.sides for why in one.pairing.lone.values())

    @property
    def dropped(self) -> int:
        """The number of items of the old run that should have been asked again."""
        return sum(len(one.pairing.dropped) for one in self.sides)

    def harm(self, found: Estimate) -> Estimate:
        """Return the harm of a difference new - old, with its interval."""
        low, high = sorted(self.sign * end for end in found.interval or (0.0, 0.0))
        interval = (low, high) if found.interval else None
        return Estimate.of(self.sign * (found.value or 0.0), interval, found.n)

    def evidence(self) -> "ChangeEvidence | str":
        """Return what the pairs show, or why they cannot decide the gate."""
        rule, margin = self.threshold, self.threshold.max
        if self.blocked:
            return self.blocked
        if margin is None or margin < 0 or (not rule.of and margin >= 1):
            share = "" if rule.of else " as a share of items, from 0 to below 1"
            return f"{rule.name} needs a margin{share}, not {margin}"
        if not any(True for one in self.sides for _ in one.graded):
            items = plural(sum(self.lone.values()), "item")
            return f"no graded item pairs with the {self.sides[0].role} ({items} without a partner)"
        change = change_for(rule, self.sides)
        if isinstance(change, str):
            return change
        seen, ends = change
        found = [seen, *(one for one in ends if one.n > seen.n)]
        what = rule.of or "the share that passes"
        if not all(one.estimate.interval for one in found):
            undefined = any(one.estimate.value is None for one in found)
            no_interval = f"the change of {what} has no 95 % interval over these items"
            return f"{what} is undefined in one of the runs" if undefined else no_interval
        harms = tuple(self.harm(one.estimate) for one in found[1:] or found)
        return ChangeEvidence(gate=self, seen=seen, cases=harms)

    @property
    def blocked(self) -> str:
        """What keeps one of the slices from deciding; empty where nothing does."""
        lets = (one.narrow if self.threshold.of_usage else one.blocked for one in self.sides)
        return next(filter(None, lets), "")


@dataclass(frozen=True, kw_only=True)
class ChangeEvidence:
    """What the pairs show: the difference over graded pairs, and the harm in all worst cases."""

    gate: ChangeGate
    seen: Difference
    cases: Sequence[Estimate]
    """The harm for each extreme result of the items without a grade in one of the runs.

    Where every grade is known this is the harm seen, alone.
    """

    @property
    def unknown(self) -> int:
        """The number of items that lack a grade in one of the runs."""
        return self.cases[0].n - self.seen.n

    @property
    def ungraded(self) -> int:
        """The number of these that lack a grade in the new run alone."""
        lone = self.gate.lone
        return self.unknown - lone["added"] - lone["ungraded"] - self.gate.dropped

    @property
    def values(self) -> list[float]:
        """The differences new - old in all cases, the most harmful first."""
        harms = sorted((one.value or 0.0 for one in self.cases), reverse=True)
        return [self.gate.sign * one for one in harms]

    def p_value(self) -> float:
        """Return the p-value of "there is more harm than the limit" in the best case."""
        found = ((one.value or 0.0, one.low) for one in self.cases)
        return max(
            1.0 if low is None else p_value_beyond(value, low, self.gate.limit)
            for value, low in found
        )

    def state(self, p_value: float) -> GateState:
        """Return PASS or FAIL only where all cases agree; ``p_value`` may be adjusted."""
        if all(self._is_within(one, self.gate.allowed) for one in self.cases):
            return "PASS"
        if self.gate.confident and p_value >= 0.05:
            return "INCONCLUSIVE"
        ends = [one.low if self.gate.confident else one.value for one in self.cases]
        limit = self.gate.limit + (0 if self.gate.confident else ROUNDING)
        # The full margin counts here: a judge's errors make a harm look smaller than it is.
        within = any(self._is_within(one, self.gate.margin) for one in self.cases)
        beyond = all(end is not None and end > limit for end in ends)
        return "FAIL" if beyond and not within else "INCONCLUSIVE"

    def _is_within(self, harm: Estimate, bound: float) -> bool:
        if self.gate.confident:
            return harm.high is not None and harm.high < bound
        return harm.value is not None and harm.value <= bound + ROUNDING

    def reason(self, state: GateState) -> str:
        """Return the verdict in words, and the counts it rests on."""
        gate, seen = self.gate, self.seen
        estimate = seen.estimate
        name = f"{gate.threshold.of}: " if gate.threshold.of else ""
        what = "new / old - 1" if gate.threshold.relative else "new - old"
        text = f"{name}{what} is {figure(estimate.value or 0.0, gate.sign * gate.margin)}"
        if self.gate.confident and estimate.interval:
            text += f", 95 % interval {span_of(estimate.interval)}"
        text += f": {self._zone(state)}"
        if state == "INCONCLUSIVE" and self.ungraded and not gate.threshold.of_usage:
            text += "; grade the ungraded items first"
        elif state == "INCONCLUSIVE" and self.needed:
            text += f"; about {plural(self.needed, 'pair')} would decide it"
        freed = f"; {gate.scale.text(estimate)}" if gate.scale else ""
        return f"{text} ({'; '.join(self._basis())}){freed}"

    def _basis(self) -> Iterator[str]:
        yield self.seen.basis(self.gate.threshold.of)
        lone, ungraded, dropped = self.gate.lone, self.ungraded, self.gate.dropped
        earlier = self.gate.sides[0].role
        unpaired = self.unknown - ungraded - dropped
        lacks = "without a figure" if self.gate.threshold.of_usage else "ungraded"
        unknown = [f"{ungraded:,} {lacks}"] if ungraded else []
        unknown += [f"{plural(unpaired, 'item')} without a partner"] if unpaired else []
        unknown += not_asked(self.gate.sides)
        if unknown:
            worst, *_, best = map(figure, self.values)
            yield f"{', '.join(unknown)}: at worst {worst}, at best {best}"
        if lone["changed"]:
            yield f"{plural(lone['changed'], 'item')} whose data changed left out"
        if removed := sum(one.pairing.removed for one in self.gate.sides) - dropped:
            yield f"{plural(removed, 'answer')} of the {earlier} without a partner here"
        if lone["repeat"]:
            left_out = plural(lone["repeat"], "repeat")
            yield f"{left_out} left out, as the {earlier} has fewer repeats"
        yield from elsewhere(self.gate.sides, self.gate.language)

    def _zone(self, state: GateState) -> str:
        change, allowed = self.gate.threshold.measure, self.gate.allowed
        seen = margin = f"the margin of {self.gate.threshold.amount(self.gate.margin)}"
        nor = " nor"
        if 0 < allowed < self.gate.margin:
            seen += f", {figure(allowed, self.gate.margin)} on the judge's scale"
            nor = ", nor"
        if not self.gate.confident:
            where = {"PASS": f"within {seen}", "FAIL": f"beyond {margin}"}
            return f"the {change} is {where.get(state, f'neither within {seen}{nor} beyond it')}"
        if state == "PASS":
            return f"the {change} is shown to be within {seen}"
        if self.gate.threshold.fail == "margin":
            beyond = f"the {change} is shown to be beyond {margin}"
            neither = f"shown neither to be within {seen}{nor} beyond it"
            return beyond if state == "FAIL" else neither
        if state == "FAIL":
            return f"shown to be worse, and not shown to be within {seen}"
        return f"shown neither to be within {seen}{nor} to be worse"

    @property
    def needs(self) -> str:
        """The end that the interval has to keep to, where it is not the margin itself."""
        gate, youden = self.gate, self.gate.scale.youden if self.gate.scale else UNDEFINED
        if not 0 < gate.allowed < gate.margin:
            return ""
        word, sign = ("above", "-") if gate.sign < 0 else ("below", "+")
        gain = youden.low if self.gate.confident else youden.value
        return f"needs {word} {sign}{figure(gate.allowed, gate.margin)}: judge J {gain or 0:.2f}"

    @property
    def remedy(self) -> str:
        """What to buy, in a few words: labels where only the judge's errors are in the way."""
        gate, (harm, *_) = self.gate, self.cases
        if self.ungraded and not gate.threshold.of_usage:
            return f"grade {self.ungraded:,} more"
        youden, most = gate.scale.youden if gate.scale else UNDEFINED, harm.high
        labels_decide = most is not None and gate.allowed <= most < gate.margin > 0
        if most is not None and labels_decide and youden.value is not None:
            low, wanted = youden.low or 0.0, most / gate.margin
            if wanted >= youden.value:
                return "a better judge"
            times = ((youden.value - low) / (youden.value - wanted)) ** 2
            return f"about {max(1, round(youden.n * times) - youden.n):,} more labels"
        return f"about {self.needed - self.seen.n:,} more pairs" if self.needed else ""

    @cached_property
    def needed(self) -> int | None:
        """The number of pairs that would decide the gate, if the difference is as seen."""
        gate, (harm, *_) = self.gate, self.cases
        bound = gate.allowed if (harm.value or 0.0) < gate.allowed else gate.limit
        return self.seen.pairs_to_decide(gate.sign * bound)


def change_gates(
    dataset: Dataset, sides: Sequence[PairedSlice], *, states_only: bool = False
) -> tuple[GateResult, ...]:
    """Return a dataset's change gates, pooled ones last; ``states_only`` without their reasons."""
    gates = [
        ChangeGate(language=name, threshold=one, sides=scope)
        for name, scope, one in scopes(dataset, sides)
        if one.evidence in BY_RUN
    ]
    found = [gate.evidence() for gate in gates]
    tested = [one.p_value() for one in found if isinstance(one, ChangeEvidence)]
    p_values = iter(holm(tested) if dataset.holm else tested)
    return tuple(
        _result(gate, one, next(p_values) if isinstance(one, ChangeEvidence) else 1.0, states_only)
        for gate, one in zip(gates, found, strict=True)
    )


def _lost(gate: ChangeGate) -> Iterator[str]:
    """Yield each language of a pool shown to be beyond the margin, adjusted for their number."""
    if gate.language or len(gate.sides) < 2:
        return
    rule = replace(gate.threshold, evidence="confident", fail="margin")
    parts = (
        replace(gate, language=side.slice_.language, threshold=rule, sides=[side])
        for side in gate.sides
    )
    known = [one for part in parts if isinstance(one := part.evidence(), ChangeEvidence)]
    for one, p_value in zip(known, holm([one.p_value() for one in known]), strict=True):
        if one.state(p_value) == "FAIL":
            text = one.seen.estimate.text("{value}, 95 % interval {low} to {high}")
            yield f"{one.gate.language} is shown to be beyond the margin: {text}"


def _result(
    gate: ChangeGate, found: ChangeEvidence | str, p_value: float, states_only: bool
) -> GateResult:
    known, lost = None if isinstance(found, str) else found, "; ".join(_lost(gate))
    state: GateState = "FAIL" if lost else known.state(p_value) if known else "INCONCLUSIVE"
    told = None if states_only else known
    remedy = told.remedy if told else way_out(gate.blocked)
    both, lone = sum(len(one.pairing.pairs) for one in gate.sides), gate.lone
    every = plural(both + sum(lone.values()) - lone["repeat"], "pair")
    reason = told.reason(told.state(p_value)) if told else "" if known else str(found)
    return GateResult(
        dataset=gate.sides[0].slice_.dataset,
        language=gate.language,
        threshold=gate.threshold,
        state=state,
        estimate=known.seen.estimate if known else UNDEFINED,
        worst=known.values[0] if known else None,
        best=known.values[-1] if known else None,
        reason=f"{lost}; all languages: {reason}" if lost else reason,
        anchored=gate.sides[0].role == "anchor",
        needs=told.needs if told else "",
        remedy=remedy if state == "INCONCLUSIVE" else "",
        pairs=f"{both:,} of {every}" if lone["changed"] else "",
    )

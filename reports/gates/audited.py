"""Drop gates that people decide: PASS where they find the new run worse by at most the margin.

People look at a few pairs, drawn with known probabilities (``compare/audit.py``). The evidence may
be checked after every verdict (``evaluators/statistics/betting.py``).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cases.dataset import Dataset, Threshold
from evaluators.output import plural
from evaluators.statistics.betting import confidence_sequence, is_above, is_below
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from reports.compare.audit import Audit, AuditedPair, audit_of
from reports.compare.differences import elsewhere, not_asked, scopes
from reports.compare.pairs import PairedSlice, paired_difference
from reports.judge.scale import judge_scale
from reports.run.evidence import AuditStep, AuditTrail
from reports.run.report import GateResult, GateState

_STEPS = 200  # the most points in a plot
_LOG10 = math.log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedGate:
    """A margin, its slices, and people's verdicts on their pairs so far.

    The judge only says where people look: it may be untrusted, or differ from the baseline's.
    """

    dataset: str
    language: str
    """Empty for a gate that pools languages."""
    threshold: Threshold
    sides: Sequence[PairedSlice]
    audit: Audit

    @property
    def margin(self) -> float:
        """The largest drop that passes, as a share of items."""
        return self.threshold.max or 0.0

    @property
    def limit(self) -> float:
        """The difference new - old below which the gate fails."""
        return -self.margin if self.threshold.fail == "margin" else 0.0

    @property
    def obstacle(self) -> str:
        """Why people's verdicts cannot decide the gate; empty where they can."""
        if self.threshold.max is None or not 0 <= self.threshold.max < 1:
            share = "a share of items, from 0 to below 1"
            return f"drop needs a margin as {share}, not {self.threshold.max}"
        return next((one.narrow for one in self.sides if one.narrow), "")

    @property
    def state(self) -> GateState:
        """PASS or FAIL once the evidence has sufficed; it then stays."""
        if self.obstacle:
            return "INCONCLUSIVE"
        if is_above(self.audit.observations(AuditedPair.lowest), -self.margin):
            return "PASS"
        failed = is_below(self.audit.observations(AuditedPair.highest), self.limit)
        return "FAIL" if failed else "INCONCLUSIVE"

    @property
    def next_pairs(self) -> list[AuditedPair]:
        """The pairs for people to look at now; none once the gate is decided."""
        done = self.obstacle or self.state != "INCONCLUSIVE"
        return [] if done else self.audit.next_pairs(self.margin, self.limit)

    @property
    def estimate(self) -> Estimate:
        """New - old by people's verdicts; its interval holds at any look."""
        units = self.audit.units[: self.audit.known]
        values = [one.lowest() for unit in units for one in unit]
        if not values:
            return UNDEFINED
        ends = AuditedPair.lowest, AuditedPair.highest
        low, high = confidence_sequence(*map(self.audit.observations, ends))
        mean = sum(values) / len(values)
        return Estimate.of(min(max(mean, low), high), (low, high), len(values))

    @property
    def trail(self) -> AuditTrail:
        """How the evidence grew, with the judge's own difference for comparison."""
        pairs = list(self.audit.pairs)
        growth = self.audit.growth(self.margin, self.limit)
        judged, scale = paired_difference(self.sides).estimate, judge_scale(self.sides)
        apart = max(1, math.ceil(len(growth) / _STEPS))
        return AuditTrail(
            pairs=len(pairs),
            alike=sum(not one.why for one in pairs),
            looked=sum(one.is_known for one in pairs),
            open=sum(one.is_open for one in pairs),
            next=len(self.next_pairs),
            judged=judged,
            corrected=scale.corrected(judged) if scale else UNDEFINED,
            steps=tuple(
                AuditStep(looked=looked, passing=above / _LOG10, failing=below / _LOG10)
                for looked, above, below in growth[::-apart][::-1]
            ),
        )

    def result(self) -> GateResult:
        """Return the verdict with the sentence that says why."""
        trail, estimate, state = self.trail, self.estimate, self.state
        return GateResult(
            dataset=self.dataset,
            language=self.language,
            threshold=self.threshold,
            state=state,
            estimate=estimate,
            worst=None,
            best=None,
            reason=self.obstacle or self._reason(state, estimate, trail),
            anchored=self.sides[0].role == "anchor",
            audit=trail,
        )

    def _reason(self, state: GateState, estimate: Estimate, trail: AuditTrail) -> str:
        margin = f"the margin of {self.margin:g}"
        text = "people have looked at no pair yet"
        if (trail.looked or state == "PASS") and estimate.interval and estimate.value is not None:
            value, span = figure(estimate.value, -self.margin), span_of(estimate.interval)
            text = f"people: new - old is {value}, 95 % interval {span}"
        if state == "PASS":
            text += f": the drop is shown to be within {margin}"
        elif state == "FAIL":
            beyond = self.threshold.fail == "margin"
            text += f": the drop is shown to be {f'beyond {margin}' if beyond else 'real'}"
        elif trail.next:
            command = f"qagate review RUN --{self.sides[0].role} OLD --until-decided"
            text += f"; {plural(trail.next, 'more pair')} to look at: {command}"
        else:
            text += f"; not settled for {margin} by all pairs that were drawn: ask more items"
        seen = f"{trail.looked:,} looked at of {plural(trail.pairs, 'pair')}"
        alike = f", {trail.alike:,} of the same text" if trail.alike else ""
        judged = "undefined" if trail.judged.value is None else figure(trail.judged.value)
        basis = [f"{seen}{alike}", f"judged: {judged}", *not_asked(self.sides)]
        return f"{text} ({'; '.join([*basis, *elsewhere(self.sides, self.language)])})"


def audited_gates(dataset: Dataset, sides: Sequence[PairedSlice]) -> Iterator[AuditedGate]:
    """Yield the audited gates of a dataset over the slices that were run; pooled ones last."""
    for language, scope, threshold in scopes(dataset, sides):
        if threshold.evidence == "audited":
            yield AuditedGate(
                dataset=dataset.name,
                language=language,
                threshold=threshold,
                sides=scope,
                audit=audit_of(scope, threshold.share),
            )

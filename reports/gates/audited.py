"""Drop gates that people decide: PASS where they find the new run worse by at most the margin.

People look at a few pairs, drawn with known probabilities (``compare/audit.py``). The evidence may
be checked after every verdict (``evaluators/statistics/betting.py``).
"""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cases.dataset import Dataset, Threshold
from evaluators.output import plural
from evaluators.statistics.betting import (
    Sides,
    confidence_sequence,
    first_verdict,
)
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from reports.compare.audit import Audit, AuditedPair, audit_of
from reports.compare.differences import elsewhere, not_asked, scopes
from reports.compare.pairs import PairedSlice, paired_difference
from reports.gates.sequential import BROKEN, lost_languages
from reports.judge.scale import judge_scale
from reports.run.evidence import AuditStep, AuditTrail
from reports.run.report import GateResult, GateState

REVIEW = "qagate review RUN"
"""How the command for people begins; RUN is the run's own folder."""
_STEPS = 200  # the most points in a plot
_LOG10 = math.log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedGate:
    """A margin, its slices, and people's verdicts; the judge only says where people look."""

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
        return next((one.narrow for one in self.sides if one.narrow), self.audit.changed)

    @property
    def state(self) -> GateState:
        """PASS or FAIL once the evidence has sufficed; it then stays."""
        if self.obstacle:
            return "INCONCLUSIVE"
        return "FAIL" if self.lost else self._of_all

    @property
    def _of_all(self) -> GateState:
        low, high = self.audit.ends
        limits = Sides(low=low, high=high, passing=-self.margin, failing=self.limit)
        return first_verdict([limits]) or "INCONCLUSIVE"

    @property
    def lost(self) -> str:
        """Which languages of a pool are each shown to be beyond the margin; empty where none is."""
        parts = {} if self.language else self.audit.by_language
        return lost_languages({name: one.ends for name, one in parts.items()}, self.margin)

    @property
    def next_pairs(self) -> list[AuditedPair]:
        """The pairs for people to look at now; none once the gate is decided."""
        done = self.obstacle or self.state != "INCONCLUSIVE"
        return [] if done else self.audit.next_pairs(self.margin, self.limit)

    @property
    def estimate(self) -> Estimate:
        """New - old by people's verdicts; its interval holds at any look."""
        values = [(one.lowest() + one.highest()) / 2 for unit in self.audit.reached for one in unit]
        if not values:
            return UNDEFINED
        mean = sum(values) / len(values)
        return Estimate.of(mean, confidence_sequence(*self.audit.ends), len(values))

    @property
    def trail(self) -> AuditTrail:
        """How the evidence grew, with the judge's own difference for comparison."""
        pairs = list(self.audit.pairs)
        growth = self.audit.growth(self.margin, self.limit)
        judged, scale = paired_difference(self.sides).estimate, judge_scale(self.sides)
        apart = max(1, math.ceil(len(growth) / _STEPS))
        return AuditTrail(
            pairs=len(pairs),
            alike=sum(not one.plan.why for one in pairs),
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
        obstacle = self.obstacle or (BROKEN if estimate.n and not estimate.interval else "")
        return GateResult(
            dataset=self.dataset,
            language=self.language,
            threshold=self.threshold,
            state="INCONCLUSIVE" if obstacle else state,
            estimate=estimate,
            worst=None,
            best=None,
            reason=obstacle or self.lost + self._reason(self._of_all, estimate, trail),
            anchored=self.sides[0].role == "anchor",
            audit=trail,
        )

    def _reason(self, state: GateState, estimate: Estimate, trail: AuditTrail) -> str:
        margin = f"the margin of {self.margin:g}"
        text = "people have looked at no pair yet"
        if (trail.looked or state == "PASS") and estimate.interval and estimate.value is not None:
            value, span = figure(estimate.value, -self.margin), span_of(estimate.interval)
            text = f"people: new - old is {value}, 95 % interval {span} at any look"
        if state == "PASS":
            text += f": the drop is shown to be within {margin}"
        elif state == "FAIL":
            beyond = self.threshold.fail == "margin"
            text += f": the drop is shown to be {f'beyond {margin}' if beyond else 'real'}"
        elif trail.next:
            blank = sum((one.old, one.new).count(None) for one in self.next_pairs)
            answers = f"{plural(blank, 'answer')} of {plural(trail.next, 'more pair')}"
            text += f"; {answers} to read: {self._command}"
        elif not self.lost:
            text += f"; not settled for {margin} by all pairs that were drawn: ask more items"
        return f"{text} ({'; '.join(self._basis(estimate, trail))})"

    @property
    def _command(self) -> str:
        side = self.sides[0]
        return f"{REVIEW} --{side.role}={shlex.quote(side.path)} --until-decided"

    def _basis(self, estimate: Estimate, trail: AuditTrail) -> Iterator[str]:
        seen = f"{trail.looked:,} looked at of {plural(trail.pairs, 'pair')}"
        yield f"{seen}, {trail.alike:,} of the same text" if trail.alike else seen
        if trail.looked and estimate.n < trail.pairs:
            yield f"the figure is of the first {estimate.n:,}"
        if stuck := self.audit.stuck if trail.looked else []:
            which = f"{plural(len(stuck), 'pair')} before the last without a verdict"
            yield f"{which}, which may be any: {stuck[0].pair.new.key}"
        judged = trail.judged.value
        yield f"judged: {'undefined' if judged is None else figure(judged)}"
        yield from not_asked(self.sides)
        yield from elsewhere(self.sides, self.language)


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

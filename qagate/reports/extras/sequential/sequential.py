"""Gates that may be checked after every item, and are final once the evidence suffices.

Items are asked in a fixed order that nobody chooses. The test is by betting (``evaluators/
statistics/betting.py``): Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1. A model that is
worse by exactly the margin passes with a probability of at most 2.5 %, however often one looks. Of
audited gates people decide by a few pairs, drawn with known probabilities (``compare/audit.py``).
"""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import SEQUENTIAL, Dataset, Slice, Threshold
from qagate.evaluators.core import Case
from qagate.evaluators.number_text import figure, span_of
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import betting
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.compare.differences import scopes
from qagate.reports.compare.shares import change_ends, share_difference
from qagate.reports.compare.sides import Compared, Hit, PairedSlice, Sides, passes
from qagate.reports.compare.states import Pair, Pairing
from qagate.reports.compare.tables import share_hit
from qagate.reports.compare.ways import ways_of
from qagate.reports.extras.sequential.audit import Audit, AuditedPair, audit_of
from qagate.reports.gates.bars import bar_readings, the_worst
from qagate.reports.gates.change_evidence import strictness_of
from qagate.reports.gates.change_text import (
    added_basis,
    missing_text,
    strictness_basis,
)
from qagate.reports.gates.judge_scale import JudgeScale, judge_scale
from qagate.reports.gates.strictness import FIRST_SET, Strictness
from qagate.reports.judge.corrected import doubt_of
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.run.evidence import AuditStep, AuditTrail
from qagate.reports.run.record import Record
from qagate.reports.run.report import REVIEW, GateResult, GateState
from qagate.reports.verdict.assemble import CountedRun
from qagate.reports.verdict.pairing import beside_baseline

GateMatch = tuple[PairedSlice, Record | None, Record]
"""An item of a gate in the earlier run and in this one; a bar looks at the second alone."""

BROKEN = (
    "an assumption broke: no value fits all the evidence, "
    "so these items are not in random order"
)


def place_of(slice_: Slice, item: Case | Record) -> tuple[str, ...]:
    """Return an item's place in the order: that of its unit, then a hash of its own data."""
    return slice_.place_of(item), item.digest, item.language, item.id


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAtAnyLook:
    """A threshold and its slices, decided by bets."""

    threshold: Threshold
    sides: Sides

    @property
    def margin(self) -> float:
        """The largest change that passes, in the metric's unit."""
        return self.threshold.max or 0.0

    @property
    def limit(self) -> float:
        """The change, negative where it harms, below which the gate fails."""
        return -self.margin if self.threshold.fail == "margin" else 0.0

    @property
    def strictness(self) -> Strictness:
        """What a PASS takes: more for each earlier set of answers."""
        if not self.threshold.paired:
            return FIRST_SET
        return strictness_of(self.sides)

    @property
    def sign(self) -> int:
        """The factor from new - old to a change that is negative where it harms."""
        return 1 if self.threshold.measure == DROP else -1

    def lost_of(
        self, parts: Mapping[str, tuple[betting.Observations, betting.Observations]]
    ) -> str:
        """Return which languages are beyond the margin at any look; empty where none is."""
        highs = {name: high for name, (_, high) in parts.items()}
        said = []
        for name in betting.shown_below(highs, -self.margin) if len(parts) > 1 else ():
            ends = [
                self.sign * end
                for end in betting.confidence_sequence(*parts[name]) or ()
            ]
            span = (
                f": 95 % interval at any look {span_of((min(ends), max(ends)))}"
                if ends
                else ""
            )
            said.append(f"{name} is shown to be beyond the margin{span}")
        return f"{'; '.join(said)}; all languages: " if said else ""

    def result_of(
        self, state: GateState, estimate: Estimate, obstacle: str, reason: str
    ) -> GateResult:
        """Return the verdict, or the obstacle to it, and why."""
        obstacle = obstacle or (BROKEN if estimate.n and not estimate.interval else "")
        first = self.sides[0].slice_
        return GateResult(
            dataset=first.dataset,
            language="" if self.threshold.pool else first.language,
            threshold=self.threshold,
            state="INCONCLUSIVE" if obstacle else state,
            estimate=estimate,
            reason=obstacle or reason,
            anchored=self.sides[0].role == "anchor",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialGate(GateAtAnyLook):
    """A threshold and its items, in independent units in a fixed order."""

    units: tuple[tuple[GateMatch, ...], ...]
    hit: Hit
    blocked: str = ""
    """Why the gate cannot be decided; empty where it can."""
    scale: JudgeScale | None = None
    """How the judge's errors scale a margin; None for a bar, or where they are unknown."""
    way: str = ""
    """In which way both runs are read, in words; empty where all is as now."""
    judge: SliceJudge | None = None
    """Who graded the answers of a bar; None for a margin, or where no judge did."""

    @property
    def bets(self) -> list[tuple[int, float, float]]:
        """The bets: sign of the values, what the mean is above for a PASS, and below for a FAIL.

        A share x counts as 2 x - 1, to use the whole range from -1 to 1.
        """
        bar, scale = self.threshold, self.scale
        if bar.paired:
            allowed = self.margin
            if scale is not None:
                allowed = scale.shrunk(self.margin, self.strictness.tail)
            return [(self.sign, -allowed, self.limit)]
        ends = [(1, bar.min), (-1, bar.max)]
        known = [(sign, sign * (2 * end - 1)) for sign, end in ends if end is not None]
        return [(sign, mean, mean) for sign, mean in known]

    @property
    def hopeless(self) -> bool:
        """Whether no item can make it pass: its judge is not trusted, or may be no judge at all."""
        return bool(self.blocked) or any(passing >= 1 for _, passing, _ in self.bets)

    def ends(
        self, unit: Sequence[GateMatch], new: Mapping[str, Record]
    ) -> list[betting.Bounds]:
        """Return what each value of a unit can be; ``new`` has records that ended since, by key."""
        found: list[betting.Bounds] = []
        for side, old, one in unit:
            now = self.hit(side, new.get(one.key, one))
            if self.threshold.paired:
                found.append(change_ends(self.hit(side, old) if old else None, now))
            else:
                found.append((-1, 1) if now is None else (2 * now - 1, 2 * now - 1))
        return found

    def verdict(self, evidence: betting.Evidence) -> GateState:
        """Return the first of PASS and FAIL that the evidence shows for any unknown values."""
        tests = [
            (*evidence.seen(sign), above, below) for sign, above, below in self.bets
        ]
        return betting.first_verdict(tests, self.strictness.capital) or "INCONCLUSIVE"

    def decided(
        self, evidence: betting.Evidence, new: Mapping[str, Record]
    ) -> tuple[GateState, str]:
        """Return the verdict, and why the judge's errors do not let a PASS stand.

        Both early stopping and the report go by it: where nothing more is asked, the report says
        the same. ``new`` has records that ended since, by key.
        """
        state = self.verdict(evidence)
        doubt = self._doubt(new) if state == "PASS" else ""
        return ("INCONCLUSIVE", doubt) if doubt else (state, "")

    def with_misread(self, misread: Mapping[str, Estimate]) -> "SequentialGate":
        """Return the gate where rules before a model may have misread these shares, by slice."""
        sides = []
        for side in self.sides:
            judge = side.judge
            if judge is not None and side.slice_.name in misread:
                judge = replace(judge, misread=misread[side.slice_.name])
            sides.append(replace(side, judge=judge))
        if self.threshold.paired:
            return replace(self, scale=judge_scale(sides, self.threshold.of))
        judge = self.judge
        name = self.sides[0].slice_.name
        if judge is not None and name in misread:
            judge = replace(judge, misread=misread[name])
        return replace(self, judge=judge)

    def result(self) -> GateResult:
        """Return the verdict with the sentence that says why; items not asked are unknown."""
        ends = [self.ends(unit, {}) for unit in self.units]
        found, parts = betting.Evidence.of(ends), {}
        for side in self.sides if self.threshold.pool else ():
            own = ([match for match in unit if match[0] is side] for unit in self.units)
            seen = betting.Evidence.of(self.ends(unit, {}) for unit in own if unit)
            if seen.sizes:
                parts[side.slice_.language] = seen.seen(self.sign)
        state, doubt = self.decided(found, {})
        estimate, lost = UNDEFINED, self.lost_of(parts)
        values = [low for unit in ends for low, high in unit if low == high]
        if values:
            points = [sum(values) / len(values), *(found.interval or ())]
            mean, *span = (
                points if self.threshold.paired else [(one + 1) / 2 for one in points]
            )
            estimate = Estimate.of(
                mean, (span[0], span[1]) if span else None, len(values)
            )
        shown: GateState = "PASS" if doubt else state
        reason = lost + self._reason(shown, estimate)
        if doubt:
            reason = f"{reason}; {doubt}"
        if self.way:
            reason = f"{self.way}: {reason}"
        return self.result_of("FAIL" if lost else state, estimate, self.blocked, reason)

    def _doubt(self, new: Mapping[str, Record]) -> str:
        """Return why the judge's errors do not let a bar pass; empty where they do."""
        if self.judge is None:
            return ""
        asked = []
        for unit in self.units:
            for _, _, record in unit:
                ended = new.get(record.key, record)
                if ended.outcome != "stopped":
                    asked.append(ended)
        return doubt_of(self.judge, asked, self.threshold)

    def _reason(self, state: GateState, estimate: Estimate) -> str:
        bar, value, interval = self.threshold, estimate.value, estimate.interval
        text, margin = "no item has a grade yet", f"the margin of {self.margin:g}"
        what, where = (
            f"the {bar.measure} is ",
            ("to clear the bar", "not to clear the bar"),
        )
        neither = "neither to clear the bar nor not to"
        if bar.paired:
            beyond = f"to be beyond {margin}" if bar.fail == "margin" else "to be real"
            where = f"to be within {margin}", beyond
            neither = f"neither to be within {margin} nor beyond it"
        if value is not None and interval is not None:
            shown = {"PASS": where[0], "FAIL": where[1]}.get(state, neither)
            text = (
                f"{bar.of or 'new - old' if bar.paired else bar.measure} is "
                f"{figure(value, bar.min, bar.max)}, 95 % interval at any look "
                f"{span_of(interval)}: {what if bar.paired else ''}shown {shown}"
            )
        every = plural(sum(map(len, self.units)), "item")
        freed = f"; {self.scale.text(estimate)}" if self.scale else ""
        basis = [
            f"{estimate.n:,} of {every}, in a fixed order",
            *missing_and_added(self.sides),
            *strictness_basis(self.strictness),
        ]
        return f"{text} ({'; '.join(basis)}){freed}"


def sequential_gates(
    dataset: Dataset,
    slices: Sequence[Slice],
    run: CountedRun,
    blocked: Mapping[str, str],
    compared: Sequence[Compared],
) -> Iterator[SequentialGate]:
    """Yield a dataset's sequential gates, bars first, each in every way to read it.

    ``blocked`` is by slice. A slice is settled once each way is.
    """
    for slice_ in slices:
        yield from _sequential_bars(
            slice_, run, blocked[slice_.name], beside_baseline(compared, slice_.name)
        )
    for sides in compared:
        scope_of_all = [sides[slice_.name] for slice_ in slices if slice_.name in sides]
        for threshold, scope in scopes(dataset, scope_of_all):
            if threshold.evidence != SEQUENTIAL:
                continue
            for way in ways_of(scope):
                hit = share_hit(threshold.of, way.sides)
                units = _units_of_change(way.sides)
                by_then = f"by the earlier {way.name}" if way.name else ""
                yield _gate(threshold, way.sides, hit, units, by_then)


def _sequential_bars(
    slice_: Slice, run: CountedRun, blocked: str, side: PairedSlice | None
) -> Iterator[SequentialGate]:
    thresholds = [
        threshold
        for threshold in slice_.thresholds
        if threshold.evidence == SEQUENTIAL and not threshold.paired
    ]
    if not thresholds:
        return
    judge = run.judges.get(slice_.name)
    for reading in bar_readings(slice_, run.records[slice_.name], side):
        alone = PairedSlice(slice_=reading.slice_, pairing=Pairing(), blocked=blocked)
        units = _units_of_bar(alone, reading.records)
        for threshold in thresholds:
            hit = share_hit(threshold.measure, [with_records(alone, reading.records)])
            gate = _gate(threshold, [alone], hit, units, reading.name)
            yield replace(gate, judge=judge)


Units = Sequence[tuple[GateMatch, ...]]
"""The items of a gate in independent units, in their order."""


def _units_of_bar(side: PairedSlice, records: Sequence[Record]) -> Units:
    units: dict[str, list[GateMatch]] = defaultdict(list)
    for record in records:
        units[side.slice_.place_of(record)].append((side, None, record))
    return [tuple(units[place]) for place in sorted(units)]


def _units_of_change(sides: Sides) -> Units:
    units: dict[str, list[GateMatch]] = defaultdict(list)
    for side in sides:
        for pair in side.pairs:
            place = side.place_of(pair)
            units[place].append((side, pair.old, pair.new))
    return [tuple(units[place]) for place in sorted(units)]


def with_records(side: PairedSlice, records: Sequence[Record]) -> PairedSlice:
    """Return a side whose records alone say which outcomes there are."""
    pairs = [Pair(old=record, new=record, state="right") for record in records]
    return replace(side, pairing=Pairing(pairs=tuple(pairs)))


def _gate(
    threshold: Threshold, sides: Sides, hit: Hit | None, units: Units, way: str
) -> SequentialGate:
    blocked = ""
    if hit is None:
        name = threshold.of if threshold.paired else threshold.measure
        blocked = f"{name} is no share of all items; choose another evidence"
    for side in sides:
        if side.blocked:
            blocked = side.blocked
            break
    scale = None
    if threshold.paired:
        scale = judge_scale(sides, threshold.of)
    return SequentialGate(
        threshold=threshold,
        sides=sides,
        units=tuple(units),
        hit=hit or passes,
        blocked=blocked,
        scale=scale,
        way=way,
    )


def missing_and_added(sides: Sides) -> Iterator[str]:
    """Yield how many items are missing, edited or added."""
    missing = missing_text(sides)
    if missing:
        yield f"{missing}, which may have any result"
    yield from added_basis(sides)


def sequential_gates_of(
    run: CountedRun, compared: Sequence[Compared]
) -> Iterator[SequentialGate]:
    """Yield the sequential gates of a run, compared with these earlier ones."""
    blocked = {}
    for name, summary in run.summaries.items():
        blocked[name] = summary.obstacle or run.distrust(name)
    for dataset in run.datasets:
        slices = run.of(dataset)
        yield from sequential_gates(dataset, slices, run, blocked, compared)


def sequential_results(
    run: CountedRun, compared: Sequence[Compared]
) -> Iterator[GateResult]:
    """Yield how the gates with ``evidence: sequential`` end, each by its worst way."""
    yield from _worst_of_ways(
        gate.result() for gate in sequential_gates_of(run, compared)
    )


def _worst_of_ways(results: Iterable[GateResult]) -> Iterator[GateResult]:
    """Yield the worst result of each gate."""
    results_of: dict[object, list[GateResult]] = {}
    for result in results:
        name = result.slice, result.threshold, result.anchored
        results_of.setdefault(name, []).append(result)
    for results_of_gate in results_of.values():
        yield the_worst(results_of_gate)


_STEPS = 200  # the most points in a plot
_LOG10 = math.log(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedGate(GateAtAnyLook):
    """A margin, its slices, and people's verdicts; the judge only says where people look."""

    audit: Audit
    way: str = ""
    """In which way both runs are read, in words; empty where all is as now."""

    @property
    def obstacle(self) -> str:
        """Why people's verdicts cannot decide the gate; empty where they can."""
        margin = self.threshold.max
        if margin is None or not 0 <= margin < 1:
            return f"drop needs a margin as a share of items, from 0 to below 1, not {margin}"
        return next(
            (one.narrow for one in self.sides if one.narrow), self.audit.changed
        )

    @property
    def state(self) -> GateState:
        """PASS or FAIL once the evidence has sufficed; it then stays."""
        if self.obstacle:
            return "INCONCLUSIVE"
        return "FAIL" if self._lost else self._of_all

    @property
    def _of_all(self) -> GateState:
        test = (*self.audit.ends, -self.margin, self.limit)
        return betting.first_verdict([test], self.strictness.capital) or "INCONCLUSIVE"

    @property
    def _lost(self) -> str:
        parts = self.audit.by_language if self.threshold.pool else {}
        return self.lost_of({name: one.ends for name, one in parts.items()})

    @property
    def next_pairs(self) -> list[AuditedPair]:
        """The pairs for people to look at now; none once the gate is decided."""
        done = self.obstacle or self.state != "INCONCLUSIVE"
        if done:
            return []
        return self.audit.next_pairs(self.margin, self.limit, self.strictness.capital)

    @property
    def estimate(self) -> Estimate:
        """New - old by people's verdicts; its interval holds at any look."""
        values = [sum(one.ends) / 2 for unit in self.audit.reached for one in unit]
        if not values:
            return UNDEFINED
        mean = sum(values) / len(values)
        return Estimate.of(
            mean, betting.confidence_sequence(*self.audit.ends), len(values)
        )

    @property
    def trail(self) -> AuditTrail:
        """How the evidence grew, with the judge's own difference for comparison."""
        every = list(self.audit.pairs)
        growth = self.audit.growth(self.margin, self.limit)
        judged, scale = (
            share_difference(self.sides).estimate,
            judge_scale(self.sides),
        )
        apart = max(1, math.ceil(len(growth) / _STEPS))
        return AuditTrail(
            pairs=len(every),
            alike=sum(not one.plan.why for one in every),
            looked=sum(one.is_known for one in every),
            open=sum(one.is_open for one in every),
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
        trail, estimate = self.trail, self.estimate
        reason = self._lost + self._reason(self._of_all, estimate, trail)
        if self.way:
            reason = f"{self.way}: {reason}"
        return replace(
            self.result_of(self.state, estimate, self.obstacle, reason), audit=trail
        )

    def _reason(self, state: GateState, estimate: Estimate, trail: AuditTrail) -> str:
        margin = f"the margin of {self.margin:g}"
        text = "people have looked at no pair yet"
        if (
            (trail.looked or state == "PASS")
            and estimate.interval
            and estimate.value is not None
        ):
            value, span = (
                figure(estimate.value, -self.margin),
                span_of(estimate.interval),
            )
            text = f"people: new - old is {value}, 95 % interval {span} at any look"
        if state == "PASS":
            text += f": the drop is shown to be within {margin}"
        elif state == "FAIL":
            beyond = self.threshold.fail == "margin"
            text += (
                f": the drop is shown to be {f'beyond {margin}' if beyond else 'real'}"
            )
        elif trail.next:
            blank = sum(one.passes.count(None) for one in self.next_pairs)
            answers = f"{plural(blank, 'answer')} of {plural(trail.next, 'more pair')}"
            earlier = f"--{self.sides[0].role}={shlex.quote(self.sides[0].path)}"
            text += f"; {answers} to read: {REVIEW} {earlier} --until-decided"
        elif not self._lost:
            text += f"; not settled for {margin} by all pairs that were drawn: ask more items"
        seen = f"{trail.looked:,} looked at of {plural(trail.pairs, 'pair')}"
        basis = [seen + (f", {trail.alike:,} of the same text" if trail.alike else "")]
        if trail.looked and estimate.n < trail.pairs:
            basis.append(f"the figure is of the first {estimate.n:,}")
        stuck = [one for unit in self.audit.reached for one in unit if one.is_open]
        if trail.looked and stuck:
            which = f"{plural(len(stuck), 'pair')} before the last without a verdict"
            basis.append(f"{which}, which may be any: {stuck[0].pair.new.key}")
        judged = trail.judged.value
        basis.append(f"judged: {'undefined' if judged is None else figure(judged)}")
        basis += missing_and_added(self.sides)
        basis += strictness_basis(self.strictness)
        return f"{text} ({'; '.join(basis)})"


def audited_gates(dataset: Dataset, sides: Sides) -> Iterator[AuditedGate]:
    """Yield the audited gates of a dataset over the slices that were run; pooled ones last.

    Each comes in every way to read it, first as things are now: that audit says who looks at what.
    """
    for threshold, scope in scopes(dataset, sides):
        if threshold.evidence != "audited":
            continue
        as_now = audit_of(scope, threshold.share)
        for way in ways_of(scope):
            audit = as_now
            by_then = ""
            if way.name:
                audit = audit_of(way.sides, threshold.share, as_now)
                by_then = f"by the earlier {way.name}"
            yield AuditedGate(
                threshold=threshold, sides=way.sides, audit=audit, way=by_then
            )


def audited_gates_of(
    run: CountedRun, compared: Sequence[Compared]
) -> Iterator[AuditedGate]:
    """Yield the audited gates of a run, compared with these earlier ones."""
    for dataset in run.datasets:
        slices = run.of(dataset)
        for sides in compared:
            if sides:
                scope = [
                    sides[slice_.name] for slice_ in slices if slice_.name in sides
                ]
                yield from audited_gates(dataset, scope)


def audited_results(
    run: CountedRun, compared: Sequence[Compared]
) -> Iterator[GateResult]:
    """Yield how the gates with ``evidence: audited`` end, each by its worst way."""
    yield from _worst_of_ways(gate.result() for gate in audited_gates_of(run, compared))

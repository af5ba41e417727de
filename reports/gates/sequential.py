"""Gates that may be checked after every item, and are final once the evidence suffices.

Items are asked in a fixed order that nobody chooses. The test is by betting (``evaluators/
statistics/betting.py``): Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1. A model that is
worse by exactly the margin passes with a probability of at most 2.5 %, however often one looks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cases.dataset import Dataset, Slice, Threshold
from evaluators.core import Case
from evaluators.output import plural
from evaluators.statistics.betting import (
    Ends,
    Evidence,
    Observations,
    Sides,
    confidence_sequence,
    first_verdict,
    shown_below,
)
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from evaluators.statistics.metrics import DROP
from reports.compare.differences import ShareChange, change_of, elsewhere, not_asked, scopes
from reports.compare.pairs import Hit, PairedRecords, PairedSlice, change_ends, passes
from reports.judge.scale import JudgeScale, judge_scale
from reports.run.record import Record
from reports.run.report import GateResult, GateState, SliceSummary

SEQUENTIAL = "sequential"

Match = tuple[PairedSlice, Record | None, Record]

BROKEN = (
    "an assumption broke: no value fits all the evidence, so these items are not in random order"
)


def lost_languages(
    parts: Mapping[str, tuple[Observations, Observations]], margin: float, sign: int = 1
) -> str:
    """Return which languages are beyond the margin at any look; sign -1 negates their changes."""
    found = shown_below({name: high for name, (_, high) in parts.items()}, -margin)
    said = []
    for name in found if len(parts) > 1 else ():
        ends = [sign * end for end in confidence_sequence(*parts[name]) or ()]
        span = f": 95 % interval at any look {span_of((min(ends), max(ends)))}" if ends else ""
        said.append(f"{name} is shown to be beyond the margin{span}")
    return f"{'; '.join(said)}; all languages: " if said else ""


def place_of(slice_: Slice, item: Case | Record) -> tuple[str, ...]:
    """Return an item's place in the order: that of its unit, then a hash of its own data."""
    return slice_.place_of(item), item.digest, item.language, item.id


@dataclass(frozen=True, slots=True, kw_only=True)
class SequentialGate:
    """A threshold and its items, in independent units in a fixed order."""

    dataset: str
    language: str
    """Empty for a gate that pools languages."""
    threshold: Threshold
    units: tuple[tuple[Match, ...], ...]
    hit: Hit
    blocked: str = ""
    """Why the gate cannot be decided; empty where it can."""
    scale: JudgeScale | None = None
    """How the judge's errors scale a margin; None for a bar, or where they are unknown."""
    anchored: bool = False
    notes: tuple[str, ...] = ()
    """What only the earlier run has."""

    def concerns(self, slice_: Slice) -> bool:
        """Return whether the gate is about this slice."""
        return self.dataset == slice_.dataset and self.language in ("", slice_.language)

    @property
    def sides(self) -> list[tuple[int, float, float]]:
        """The bets: sign of the values, what the mean is above for a PASS, and below for a FAIL.

        A share x counts as 2 x - 1, to use the whole range from -1 to 1.
        """
        bar, margin = self.threshold, self.threshold.max or 0.0
        if bar.paired:
            allowed = self.scale.shrunk(margin, confident=True) if self.scale else margin
            limit = margin if bar.fail == "margin" else 0.0
            sign = 1 if bar.measure == DROP else -1
            return [(sign, -allowed, -limit)]
        ends = [(1, bar.min), (-1, bar.max)]
        known = [(sign, sign * (2 * end - 1)) for sign, end in ends if end is not None]
        return [(sign, mean, mean) for sign, mean in known]

    @property
    def hopeless(self) -> bool:
        """Whether no item can make it pass: its judge is not trusted, or may be no judge at all."""
        return bool(self.blocked) or any(passing >= 1 for _, passing, _ in self.sides)

    def ends(self, unit: Sequence[Match], new: Mapping[str, Record]) -> list[Ends]:
        """Return what each value of a unit can be; ``new`` has records that ended since, by key."""
        return [self._ends(side, old, new.get(one.key, one)) for side, old, one in unit]

    def verdict(self, evidence: Evidence) -> GateState:
        """Return the first of PASS and FAIL that the evidence shows for any unknown values."""
        tests = []
        for sign, passing, failing in self.sides:
            low, high = evidence.seen(sign)
            tests.append(Sides(low=low, high=high, passing=passing, failing=failing))
        return first_verdict(tests) or "INCONCLUSIVE"

    def _ends(self, side: PairedSlice, old: Record | None, new: Record) -> Ends:
        now = self.hit(side, new)
        if not self.threshold.paired:
            return (-1, 1) if now is None else (2 * now - 1, 2 * now - 1)
        return change_ends(self.hit(side, old) if old else None, now)

    @property
    def lost(self) -> str:
        """Which languages of a pool are each shown to be beyond the margin; empty where none is."""
        if self.language or not self.threshold.paired:
            return ""
        parts: dict[str, dict[int, list[Match]]] = defaultdict(lambda: defaultdict(list))
        for place, unit in enumerate(self.units):
            for match in unit:
                parts[match[0].slice_.language][place].append(match)
        seen = {
            language: Evidence.of(self.ends(unit, {}) for unit in units.values())
            for language, units in parts.items()
        }
        (sign, *_), margin = self.sides[0], self.threshold.max or 0.0
        return lost_languages({name: one.seen(sign) for name, one in seen.items()}, margin, sign)

    def result(self) -> GateResult:
        """Return the verdict with the sentence that says why; items not asked are unknown."""
        ends = [self.ends(unit, {}) for unit in self.units]
        found = Evidence.of(ends)
        interval, lost = found.interval, self.lost
        state = "FAIL" if lost else self.verdict(found)
        broken = "" if interval else BROKEN
        estimate, values = UNDEFINED, [low for unit in ends for low, high in unit if low == high]
        if values:
            points = [sum(values) / len(values), *(interval or ())]
            mean, *span = points if self.threshold.paired else [(one + 1) / 2 for one in points]
            estimate = Estimate.of(mean, (span[0], span[1]) if span else None, len(values))
        return GateResult(
            dataset=self.dataset,
            language=self.language,
            threshold=self.threshold,
            state="INCONCLUSIVE" if self.blocked or broken else state,
            estimate=estimate,
            worst=None,
            best=None,
            reason=self.blocked or broken or lost + self._reason(self.verdict(found), estimate),
            anchored=self.anchored,
        )

    def _reason(self, state: GateState, estimate: Estimate) -> str:
        bar, value, interval = self.threshold, estimate.value, estimate.interval
        text = "no item has a grade yet"
        if value is not None and interval is not None:
            text = (
                f"{bar.of or 'new - old' if bar.paired else bar.measure} is "
                f"{figure(value, bar.min, bar.max)}, 95 % interval at any look "
                f"{span_of(interval)}: {self._zone(state)}"
            )
        every = plural(sum(map(len, self.units)), "item")
        freed = f"; {self.scale.text(estimate)}" if self.scale else ""
        basis = [f"{estimate.n:,} of {every}, in a fixed order", *self.notes]
        return f"{text} ({'; '.join(basis)}){freed}"

    def _zone(self, state: GateState) -> str:
        bar = self.threshold
        if not bar.paired:
            aims = {"PASS": "to clear the bar", "FAIL": "not to clear the bar"}
            return f"shown {aims.get(state, 'neither to clear the bar nor not to')}"
        margin = f"the margin of {bar.max or 0.0:g}"
        aims = {
            "PASS": f"to be within {margin}",
            "FAIL": f"to be beyond {margin}" if bar.fail == "margin" else "to be real",
        }
        shown = aims.get(state, f"neither to be within {margin} nor beyond it")
        return f"the {bar.measure} is shown {shown}"


def settled_notes(slices: Iterable[SliceSummary], gates: Sequence[GateResult]) -> Iterator[str]:
    """Yield how much was asked of each slice that was stopped early, and why."""
    for one in (one for one in slices if one.counts.stopped):
        asked = f"{one.counts.planned - one.counts.stopped:,} of {one.counts.planned:,} items"
        own = (gate for gate in gates if gate.dataset == one.dataset)
        near = [gate for gate in own if gate.language in ("", one.language)]
        if open_ := next((gate for gate in near if gate.state == "INCONCLUSIVE"), None):
            why = f"no further item could decide {open_.name} {open_.bar}: {open_.reason}"
            yield f"{one.name}: stopped after {asked}, as {why}"
        else:
            yield (
                f"{one.name}: settled after {asked}, and the others were not asked; all its "
                "figures, parity too, are over these and lean to the side of the verdict"
            )


def sequential_gates(
    dataset: Dataset,
    slices: Sequence[Slice],
    records: Mapping[str, Sequence[Record]],
    blocked: Mapping[str, str],
    compared: Iterable[Sequence[PairedSlice]],
) -> Iterator[SequentialGate]:
    """Yield the sequential gates of a dataset: bars, then margins.

    ``records`` and ``blocked`` (why a slice decides nothing) are keyed by the slice's name.
    ``compared`` has the slices paired with each earlier run.
    """
    every = (*dataset.pooled, *(gate for one in slices for gate in one.thresholds))
    if all(gate.evidence != SEQUENTIAL for gate in every):
        return
    for one in slices:
        pairing = PairedRecords(pairs=(), unknown=tuple(records[one.name]))
        alone = PairedSlice(slice_=one, pairing=pairing, blocked=blocked[one.name])
        for threshold in one.thresholds:
            if threshold.evidence == SEQUENTIAL and not threshold.paired:
                yield _gate(one.language, threshold, [alone])
    for sides in compared:
        for language, scope, threshold in scopes(dataset, sides):
            if threshold.evidence == SEQUENTIAL:
                yield _gate(language, threshold, scope)


def _gate(
    language: str,
    threshold: Threshold,
    sides: Sequence[PairedSlice],
) -> SequentialGate:
    name = threshold.of if threshold.paired else threshold.measure
    change = change_of(name, sides)
    share = change if isinstance(change, ShareChange) else None
    not_share = "" if share else f"{name} is no share of all items; choose another evidence"
    units: dict[str, list[Match]] = defaultdict(list)
    for side in sides:
        for old, new in side.matches:
            units[side.slice_.place_of(new)].append((side, old, new))
    return SequentialGate(
        dataset=sides[0].slice_.dataset,
        language=language,
        threshold=threshold,
        units=tuple(tuple(units[place]) for place in sorted(units)),
        hit=share.hit if share else passes,
        blocked=next((one.blocked for one in sides if one.blocked), not_share),
        scale=judge_scale(sides, threshold.of) if threshold.paired else None,
        anchored=sides[0].role == "anchor",
        notes=(*not_asked(sides), *elsewhere(sides, language)),
    )

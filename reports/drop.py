"""Drop gates: PASS where the new run is worse than the baseline by no more than a margin.

Decided on the difference new - old over pairs of the same items (``contrast``).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cases.slices import Dataset, Slice, Threshold
from evaluators.output import plural
from evaluators.statistics.paired import holm, pairs_needed, smallest_n
from reports.compare import right
from reports.contrast import PairedDifference, PairedDifferences, PairedSlice, contrasts_of
from reports.gate import DROP, ROUNDING
from reports.report import Estimate, GateResult, GateState
from reports.wording import figure, span_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DropGate:
    """A drop rule and the slices it looks at. ``language`` is empty where it pools them."""

    dataset: str
    language: str
    rule: Threshold
    sides: tuple[PairedSlice, ...]


def drop_gates(dataset: Dataset, against: Sequence[PairedSlice]) -> tuple[GateResult, ...]:
    """Return every drop gate of a dataset: its slices' own, then those pooled over languages.

    ``against`` holds the slices of this dataset that were run; call it only with a baseline. With
    ``holm: true`` a FAIL must stand after Holm's adjustment for the number of these gates.
    """
    gates = _declared(dataset, against)
    contrasts = [None if _obstacle(gate) else contrasts_of(gate.sides) for gate in gates]
    tested = [contrast.best.p_value for contrast in contrasts if contrast]
    p_values = iter(holm(tested) if dataset.holm else tested)
    return tuple(
        _decided(gate, contrast, next(p_values)) if contrast else _undecided(gate)
        for gate, contrast in zip(gates, contrasts, strict=True)
    )


def _declared(dataset: Dataset, against: Sequence[PairedSlice]) -> list[DropGate]:
    sides = tuple(against)
    single = [(rule, (one,)) for one in sides for rule in one.slice_.rules if rule.measure == DROP]
    pooled = [(rule, sides) for rule in dataset.pooled if rule.measure == DROP and sides]
    own = [_gate(dataset, rule, scope, scope[0].slice_.language) for rule, scope in single]
    return own + [_gate(dataset, rule, scope, "") for rule, scope in pooled]


def _gate(
    dataset: Dataset, rule: Threshold, sides: tuple[PairedSlice, ...], language: str
) -> DropGate:
    return DropGate(dataset=dataset.name, language=language, rule=rule, sides=sides)


def _obstacle(gate: DropGate) -> str:
    """Return why no pair can decide this gate, or nothing."""
    blocked = next((one.blocked for one in gate.sides if one.blocked), "")
    if blocked:
        return blocked
    if gate.rule.max is None or not 0 <= gate.rule.max < 1:
        return f"drop needs a margin as a share of items, from 0 to below 1, not {gate.rule.max}"
    graded = any(right(pair.new) is not None for one in gate.sides for pair in one.pairing.pairs)
    return "" if graded else f"no graded item pairs with the baseline ({_unpaired(gate)})"


def _undecided(gate: DropGate) -> GateResult:
    nothing = Estimate(value=None, low=None, high=None, n=0)
    return GateResult(
        dataset=gate.dataset,
        language=gate.language,
        rule=gate.rule,
        state="INCONCLUSIVE",
        estimate=nothing,
        worst=None,
        best=None,
        reason=_obstacle(gate),
    )


def _decided(gate: DropGate, contrasts: PairedDifferences, p_value: float) -> GateResult:
    seen = contrasts.seen
    low, high = seen.interval
    state = _state(gate.rule, contrasts, p_value)
    return GateResult(
        dataset=gate.dataset,
        language=gate.language,
        rule=gate.rule,
        state=state,
        estimate=Estimate(value=seen.value, low=low, high=high, n=seen.n),
        worst=contrasts.worst.value,
        best=contrasts.best.value,
        reason=f"{_finding(gate.rule, contrasts, state)} ({_basis(gate, contrasts)})",
    )


def _state(rule: Threshold, contrasts: PairedDifferences, p_value: float) -> GateState:
    """Return PASS or FAIL only where every fate of the ungraded items agrees on it."""
    margin = rule.max or 0.0
    if rule.evidence == "estimate":
        if contrasts.worst.value >= -margin - ROUNDING:
            return "PASS"
        return "FAIL" if contrasts.best.value < -margin - ROUNDING else "INCONCLUSIVE"
    if contrasts.worst.interval[0] > -margin:
        return "PASS"
    shown = p_value < 0.05 and contrasts.best.interval[0] <= -margin
    return "FAIL" if shown else "INCONCLUSIVE"


def _finding(rule: Threshold, contrasts: PairedDifferences, state: GateState) -> str:
    """Return the verdict in words, without the counts it rests on."""
    margin, seen = rule.max or 0.0, contrasts.seen
    stem = f"new - old is {figure(seen.value, -margin)}"
    if rule.evidence == "confident":
        stem += f", 95 % interval {span_of(seen.interval)}"
    if state == "PASS":
        return f"{stem}: the drop is within {margin:g}"
    if state == "FAIL":
        shown = (
            "below zero and not shown to be within" if rule.evidence == "confident" else "beyond"
        )
        return f"{stem}: the drop is {shown} {margin:g}"
    if contrasts.worst.n > seen.n:
        return f"{stem}: not settled for a drop of {margin:g}; grade the ungraded items first"
    return f"{stem}: not settled for a drop of {margin:g}{_remedy(contrasts.seen, margin)}"


def _remedy(seen: PairedDifference, margin: float) -> str:
    """Return how many pairs would decide, with 80 % power if the difference is as seen."""
    gap = seen.value + margin if seen.value > -margin else seen.value
    needed = pairs_needed(gap, (seen.fixed + seen.broke) / seen.n, seen.value)
    if needed is None:
        return ""
    fewest = smallest_n(margin) if 0 < margin < 1 else 0
    total = max(seen.n + 1, math.ceil(max(needed, fewest) / seen.weight))
    return f"; about {plural(total, 'pair')} would decide it"


def _basis(gate: DropGate, contrasts: PairedDifferences) -> str:
    seen, ungraded = contrasts.seen, contrasts.worst.n - contrasts.seen.n
    parts = [f"{seen.fixed:,} fixed, {seen.broke:,} broke of {plural(seen.n, 'pair')}"]
    if ungraded:
        worst, best = figure(contrasts.worst.value), figure(contrasts.best.value)
        parts.append(f"{ungraded:,} ungraded: at worst {worst}, at best {best}")
    if any(one.pairing.unpaired for one in gate.sides):
        parts.append(_unpaired(gate))
    return "; ".join(parts)


def _unpaired(gate: DropGate) -> str:
    count = sum(one.pairing.unpaired for one in gate.sides)
    return f"{plural(count, 'item')} without a partner"


def no_baseline_note(dataset: Dataset, slices: Sequence[Slice]) -> str:
    """Return what to say where a run has no baseline: its drop gates do not exist, or nothing."""
    where = [one.name for one in slices if any(rule.measure == DROP for rule in one.rules)]
    where += [f"{dataset.name}:*" for rule in dataset.pooled if rule.measure == DROP]
    return f"no baseline: no drop gate for {', '.join(where)}" if where else ""


def margin_warnings(dataset: Dataset, items: Mapping[str, int]) -> tuple[str, ...]:
    """Return a warning for each drop gate that too few items keep from ever passing.

    ``items`` counts the items by language.
    """
    own = [
        (f"{dataset.name}:{language}", rule, count)
        for language, count in items.items()
        for rule in dataset.slices[language].rules
    ]
    pooled = [(f"{dataset.name}:*", rule, sum(items.values())) for rule in dataset.pooled]
    return tuple(filter(None, (_warning(*entry) for entry in own + pooled)))


def _warning(where: str, rule: Threshold, count: int) -> str:
    if rule.measure != DROP or rule.evidence != "confident" or not 0 < (rule.max or 0) < 1:
        return ""
    fewest = smallest_n(rule.max or 0)
    if count >= fewest:
        return ""
    return (
        f"{where}: a drop of {rule.max:g} can never be excluded with {plural(count, 'item')}; "
        f"it takes {fewest:,} even if none changes"
    )

"""Drop gates: PASS where the new run is worse than the baseline by no more than a margin.

Decided on the difference new - old over pairs of the same items (``compare/pairs.py``).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cases.dataset import Dataset, Threshold
from evaluators.output import plural
from evaluators.statistics.estimate import UNDEFINED, figure, span_of
from evaluators.statistics.metrics import DROP
from evaluators.statistics.paired import holm
from reports.compare.pairs import Lone, PairedDifference, PairedSlice, paired_difference
from reports.gates.gate import ROUNDING
from reports.report import GateResult, GateState


@dataclass(frozen=True, slots=True, kw_only=True)
class DropGate:
    """A drop threshold and the slices it looks at. ``language`` is empty where it pools them."""

    dataset: str
    language: str
    threshold: Threshold
    sides: Sequence[PairedSlice]

    @property
    def margin(self) -> float:
        """The largest drop that passes, as a share of items."""
        return self.threshold.max or 0.0

    @property
    def lone(self) -> Mapping[Lone, int]:
        """How many items of the new run are in no pair, by the reason."""
        return Counter(why for one in self.sides for why in one.pairing.lone.values())

    @property
    def unpaired(self) -> int:
        """How many items the old run did not ask or grade."""
        return self.lone["added"] + self.lone["ungraded"]

    def obstacle(self) -> str:
        """Return why no pair can decide this gate, or nothing."""
        if blocked := next((one.blocked for one in self.sides if one.blocked), ""):
            return blocked
        margin = self.threshold.max
        if margin is None or not 0 <= margin < 1:
            return f"drop needs a margin as a share of items, from 0 to below 1, not {margin}"
        if any(True for one in self.sides for _ in one.graded):
            return ""
        items = plural(sum(self.lone.values()), "item")
        return f"no graded item pairs with the baseline ({items} without a partner)"

    def differences(self) -> "Differences":
        """Return the differences over all pairs of these slices, of which one must be graded."""
        return Differences(
            seen=paired_difference(self.sides),
            worst=paired_difference(self.sides, ungraded=False),
            best=paired_difference(self.sides, ungraded=True),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Differences:
    """Over the graded pairs alone, and over all items with the unknown at its worst, and best.

    Unknown are the grades of ungraded items, and what the old run would have come to on items
    that it did not ask or grade.
    """

    seen: PairedDifference
    worst: PairedDifference
    best: PairedDifference

    def state(self, gate: DropGate, p_value: float) -> GateState:
        """Return PASS or FAIL only where the worst and the best case of ungraded items agree."""
        if gate.threshold.evidence == "estimate":
            if self.worst.value >= -gate.margin - ROUNDING:
                return "PASS"
            return "FAIL" if self.best.value < -gate.margin - ROUNDING else "INCONCLUSIVE"
        if self.worst.interval[0] > -gate.margin:
            return "PASS"
        failed = p_value < 0.05 and self.best.interval[0] <= -gate.margin
        return "FAIL" if failed else "INCONCLUSIVE"

    def reason(self, gate: DropGate, state: GateState) -> str:
        """Return the verdict in words, and the counts it rests on."""
        margin, seen = gate.margin, self.seen
        confident = gate.threshold.evidence == "confident"
        text = f"new - old is {figure(seen.value, -margin)}"
        text += f", 95 % interval {span_of(seen.interval)}" if confident else ""
        if state == "PASS":
            text += f": the drop is within {margin:g}"
        elif state == "FAIL":
            how = "below zero and not shown to be within" if confident else "beyond"
            text += f": the drop is {how} {margin:g}"
        else:
            text += f": not settled for a drop of {margin:g}"
            if self._ungraded(gate):
                text += "; grade the ungraded items first"
            elif needed := seen.pairs_to_decide(margin):
                text += f"; about {plural(needed, 'pair')} would decide it"
        return f"{text} ({'; '.join(self._basis(gate))})"

    def _ungraded(self, gate: DropGate) -> int:
        """Return how many items of the new run that the old one graded have no grade."""
        return self.worst.n - self.seen.n - gate.unpaired

    def _basis(self, gate: DropGate) -> Iterator[str]:
        """Yield the counts of pairs, and of items that are in none."""
        seen, ungraded = self.seen, self._ungraded(gate)
        yield f"{seen.fixed:,} fixed, {seen.broke:,} broke of {plural(seen.n, 'pair')}"
        unknown = [f"{ungraded:,} ungraded"] if ungraded else []
        unknown += [f"{plural(gate.unpaired, 'item')} without a partner"] if gate.unpaired else []
        if unknown:
            worst, best = figure(self.worst.value), figure(self.best.value)
            yield f"{', '.join(unknown)}: at worst {worst}, at best {best}"
        if changed := gate.lone["changed"]:
            yield f"{plural(changed, 'item')} whose data changed left out"
        if repeats := gate.lone["repeat"]:
            yield f"{plural(repeats, 'repeat')} left out, as the baseline has fewer repeats"


def drop_gates(dataset: Dataset, sides: Sequence[PairedSlice]) -> tuple[GateResult, ...]:
    """Return every drop gate of a dataset: its slices' own, then those pooled over languages.

    ``sides`` holds the slices of this dataset that were run; call it only with a baseline. With
    ``holm: true`` a FAIL must hold after Holm's adjustment for the number of these gates.
    """
    scopes = [(one.slice_.language, bar, [one]) for one in sides for bar in one.slice_.thresholds]
    scopes += [("", bar, list(sides)) for bar in dataset.pooled if sides]
    gates = [
        DropGate(dataset=dataset.name, language=language, threshold=threshold, sides=scope)
        for language, threshold, scope in scopes
        if threshold.name == DROP
    ]
    found = [None if gate.obstacle() else gate.differences() for gate in gates]
    tested = [one.best.drop_p_value for one in found if one]
    p_values = iter(holm(tested) if dataset.holm else tested)
    return tuple(
        _result(gate, one, next(p_values) if one else 1.0)
        for gate, one in zip(gates, found, strict=True)
    )


def _result(gate: DropGate, found: Differences | None, p_value: float) -> GateResult:
    state: GateState = found.state(gate, p_value) if found else "INCONCLUSIVE"
    return GateResult(
        dataset=gate.dataset,
        language=gate.language,
        threshold=gate.threshold,
        state=state,
        estimate=found.seen.estimate if found else UNDEFINED,
        worst=found.worst.value if found else None,
        best=found.best.value if found else None,
        reason=found.reason(gate, state) if found else gate.obstacle(),
    )

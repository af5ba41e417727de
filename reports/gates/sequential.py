"""Gates that may be checked after every item, and are final once the evidence suffices.

Items are asked in a fixed order that nobody chooses. The test is by betting (``evaluators/
statistics/betting.py``): Waudby-Smith and Ramdas (2024), J. R. Stat. Soc. B 86:1. A model that is
worse by exactly the margin passes with a probability of at most 2.5 %, however often one looks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cases.dataset import Dataset, Slice, Threshold
from evaluators.core import Case
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.betting import Observations, confidence_sequence, is_above, is_below
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from evaluators.statistics.metrics import DROP
from reports.compare.differences import ShareChange, change_of, elsewhere, not_asked, scopes
from reports.compare.pairs import Hit, PairedRecords, PairedSlice, passes
from reports.judge.scale import JudgeScale, judge_scale
from reports.run.record import Record
from reports.run.report import GateResult, GateState, SliceSummary

SEQUENTIAL = "sequential"

Place = tuple[str, ...]
Match = tuple[PairedSlice, Record | None, Record]


def places_of(items: Iterable[tuple[Slice, Case | Record]]) -> dict[Cluster, Place]:
    """Return the place of each cluster in the order: the first among its items' places."""
    found: dict[Cluster, Place] = {}
    for slice_, item in items:
        cluster, place = slice_.cluster_of(item), place_of(item)
        found[cluster] = min(place, found.get(cluster, place))
    return found


def place_of(item: Case | Record) -> Place:
    """Return an item's place: a hash of its data, which other items do not change."""
    return item.digest, item.language, item.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A bet on the mean of values within -1 to 1."""

    sign: int
    """-1 where the bet is on the negated values."""
    passing: float
    """A PASS needs a mean above this."""
    failing: float
    """A mean below this is a FAIL."""


@dataclass(slots=True, kw_only=True)
class BettingEvidence:
    """The sums of the units in their order, with unknown values at either end."""

    lows: list[int] = field(default_factory=list)
    highs: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    largest: int = 1
    """The number of items in the largest unit, asked or not."""

    def add(self, unit: Sequence[tuple[int, int]]) -> None:
        """Add a unit: the lowest and the highest that each of its values can be."""
        self.lows.append(sum(low for low, _ in unit))
        self.highs.append(sum(high for _, high in unit))
        self.sizes.append(len(unit))

    def state(self, sides: Sequence[Side]) -> GateState:
        """Return PASS or FAIL once the evidence has sufficed; it then stays."""
        if all(one.passing < 1 and is_above(self._seen(one, 0), one.passing) for one in sides):
            return "PASS"
        failed = any(is_below(self._seen(one, 1), one.failing) for one in sides)
        return "FAIL" if failed else "INCONCLUSIVE"

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean; it holds at any look."""
        plain = Side(sign=1, passing=0, failing=0)
        return confidence_sequence(self._seen(plain, 0), self._seen(plain, 1))

    def _seen(self, side: Side, end: int) -> Observations:
        """Return the values with all unknown ones at their lowest (0) or highest (1)."""
        import numpy as np

        ends = [self.lows, self.highs] if side.sign > 0 else [self.highs, self.lows]
        return Observations(
            totals=side.sign * np.array(ends[end], dtype=np.float64),
            sizes=np.array(self.sizes, dtype=np.float64),
            bound=1.0,
            largest=self.largest,
        )


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
    def sides(self) -> list[Side]:
        """The bets. A share x counts as 2 x - 1, to use the whole range from -1 to 1."""
        bar, margin = self.threshold, self.threshold.max or 0.0
        if bar.paired:
            allowed = self.scale.shrunk(margin, confident=True) if self.scale else margin
            limit = margin if bar.fail == "margin" else 0.0
            sign = 1 if bar.measure == DROP else -1
            return [Side(sign=sign, passing=-allowed, failing=-limit)]
        ends = [(1, bar.min), (-1, bar.max)]
        known = [(sign, sign * (2 * end - 1)) for sign, end in ends if end is not None]
        return [Side(sign=sign, passing=mean, failing=mean) for sign, mean in known]

    def blank(self) -> BettingEvidence:
        """Return the evidence before any item is asked."""
        return BettingEvidence(largest=max(map(len, self.units), default=1))

    def add(
        self, unit: Sequence[Match], evidence: BettingEvidence, new: Mapping[str, Record]
    ) -> None:
        """Add a unit to the evidence; ``new`` has the records that ended since, by key."""
        evidence.add([self._ends(side, old, new.get(one.key, one)) for side, old, one in unit])

    def _ends(self, side: PairedSlice, old: Record | None, new: Record) -> tuple[int, int]:
        """Return the lowest and the highest value that an item can have."""
        now = self.hit(side, new)
        most, least = (unknown if now is None else now for unknown in (True, False))
        if not self.threshold.paired:
            return 2 * least - 1, 2 * most - 1
        before = self.hit(side, old) if old else None
        low, high = (unknown if before is None else before for unknown in (False, True))
        return least - high, most - low

    def result(self) -> GateResult:
        """Return the verdict with the sentence that says why; items not asked are unknown."""
        found, ends = self.blank(), [[self._ends(*one) for one in unit] for unit in self.units]
        for unit in ends:
            found.add(unit)
        state: GateState = "INCONCLUSIVE" if self.blocked else found.state(self.sides)
        known = [low for unit in ends for low, high in unit if low == high]
        estimate = self._estimate(known, found)
        return GateResult(
            dataset=self.dataset,
            language=self.language,
            threshold=self.threshold,
            state=state,
            estimate=estimate,
            worst=None,
            best=None,
            reason=self.blocked or self._reason(state, estimate),
            anchored=self.anchored,
        )

    def _estimate(self, values: Sequence[int], found: BettingEvidence) -> Estimate:
        """Return the mean of the known values, with an interval that holds at any look."""
        if not values:
            return UNDEFINED
        mean, (low, high) = sum(values) / len(values), found.interval
        mean = min(max(mean, low), high)
        if not self.threshold.paired:
            mean, low, high = ((one + 1) / 2 for one in (mean, low, high))
        return Estimate.of(mean, (low, high), len(values))

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
        """Return on which side of the bar the truth is shown to lie."""
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


def settled_notes(slices: Iterable[SliceSummary]) -> Iterator[str]:
    """Yield how much was asked of each slice that was stopped early."""
    for one in slices:
        if stopped := one.counts.stopped:
            asked = f"{one.counts.planned - stopped:,} of {plural(one.counts.planned, 'item')}"
            yield (
                f"{one.name}: settled after {asked}, and the others were not asked; all its "
                "figures, parity too, are over these"
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
    places = places_of((one, record) for one in slices for record in records[one.name])
    for one in slices:
        pairing = PairedRecords(pairs=(), unknown=tuple(records[one.name]))
        alone = PairedSlice(slice_=one, pairing=pairing, blocked=blocked[one.name])
        for threshold in one.thresholds:
            if threshold.evidence == SEQUENTIAL and not threshold.paired:
                yield _gate(one.language, threshold, [alone], places)
    for sides in compared:
        for language, scope, threshold in scopes(dataset, sides):
            if threshold.evidence == SEQUENTIAL:
                yield _gate(language, threshold, scope, places)


def _gate(
    language: str,
    threshold: Threshold,
    sides: Sequence[PairedSlice],
    places: Mapping[Cluster, Place],
) -> SequentialGate:
    name = threshold.of if threshold.paired else threshold.measure
    change = change_of(name, sides)
    share = change if isinstance(change, ShareChange) else None
    not_share = "" if share else f"{name} is no share of all items; choose another evidence"
    dropped = ((side.slice_, one) for side in sides for one in side.pairing.dropped)
    known = {**places_of(dropped), **places}
    units: dict[Cluster, list[Match]] = defaultdict(list)
    for side in sides:
        for old, new in side.matches:
            units[side.slice_.cluster_of(new)].append((side, old, new))
    return SequentialGate(
        dataset=sides[0].slice_.dataset,
        language=language,
        threshold=threshold,
        units=tuple(tuple(units[one]) for one in sorted(units, key=known.__getitem__)),
        hit=share.hit if share else passes,
        blocked=next((one.blocked for one in sides if one.blocked), not_share),
        scale=judge_scale(sides, threshold.of) if threshold.paired else None,
        anchored=sides[0].role == "anchor",
        notes=(*not_asked(sides), *elsewhere(sides, language)),
    )

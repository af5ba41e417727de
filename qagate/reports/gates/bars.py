"""A bar on one run, read in each way that the settings of now and then allow.

A bar looks at one run alone, but what a baseline was held to must not get easier by a setting, by
items that were added or edited to lift the average, or by items that were left out. So beside a
baseline a bar has to hold by today's settings and by those of then, with what was added or edited
and without it; items that this run lacks count as ungraded. Retired items count both ways even
without a baseline. The worst verdict stands.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Retired, Slice
from qagate.evaluators.output import plural
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import Pair, Pairing, unanswered
from qagate.reports.compare.ways import pairing_by_then, ways_of
from qagate.reports.metrics.gate import GRADE
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, GateState

WORST_FIRST: Sequence[GateState] = ("FAIL", "INCONCLUSIVE", "PASS")


@dataclass(frozen=True, slots=True, kw_only=True)
class BarReading:
    """The records of a slice in one way to read them."""

    name: str
    """What is otherwise than now; empty for the first."""
    slice_: Slice
    records: Sequence[Record]
    edited: int = 0
    """How many of them count as ungraded only because their item was edited."""


def bar_readings(
    slice_: Slice, records: Sequence[Record], side: PairedSlice | None
) -> list[BarReading]:
    """Return the readings of a slice, first as things are now.

    ``side`` is the slice beside the baseline's; None where there is none.
    """
    pairs = list(_with_metadata_of_then(records, side))
    pairing_then = None
    slice_then = replace(slice_, retired=Retired())
    added: set[str] = set()
    edited: set[str] = set()
    lacking = ""
    if side is not None:
        added = {record.key for record in side.pairing.added}
        edited = {pair.new.key for pair in side.pairing.pairs if pair.state == "edited"}
        absent = [pair for pair in side.pairing.pairs if pair.state == "absent"]
        pairs += absent
        if absent:
            lacking = f"with the {plural(len(absent), 'item')} that this run lacks"
        if side.slice_then is not None:
            slice_then = side.slice_then
    pairing = Pairing(pairs=tuple(pairs))
    if side is not None and side.pairing_then is not None:
        new_then = [pair.new for pair in side.pairing_then.pairs]
        pairing_then = pairing_by_then(pairing, (), new_then)
    own_side = PairedSlice(
        slice_=slice_,
        pairing=pairing,
        pairing_then=pairing_then,
        slice_then=slice_then,
    )
    readings = []
    for way in ways_of([own_side]):
        (read,) = way.sides
        by_then = f"by the earlier {way.name}" if way.name else ""
        names = [name for name in (by_then, lacking) if name]
        reading = BarReading(
            name=", ".join(names), slice_=read.slice_, records=_records_of(read)
        )
        readings.append(reading)
        if added or edited:
            readings.append(_without(added, edited, reading))
    return readings


def _with_metadata_of_then(
    records: Sequence[Record], side: PairedSlice | None
) -> Iterable[Pair]:
    """Yield each record beside itself, with the metadata that the earlier run has for it."""
    metadata_then = {}
    if side is not None:
        metadata_then = {pair.new.key: pair.old.metadata for pair in side.pairing.pairs}
    for record in records:
        metadata = metadata_then.get(record.key, record.metadata)
        then = record
        if metadata != record.metadata:
            then = replace(record, metadata=metadata)
        yield Pair(old=then, new=record, state="right")


def _records_of(side: PairedSlice) -> Sequence[Record]:
    records = []
    for pair in side.pairs:
        record = pair.new
        if side.clusters_of == "old":
            record = replace(record, metadata=pair.old.metadata)
        records.append(record)
    return records


def _without(added: set[str], edited: set[str], reading: BarReading) -> BarReading:
    """Return a reading without added items, and with edited ones as ungraded."""
    records = []
    for record in reading.records:
        if record.key in edited:
            records.append(unanswered(record))
        elif record.key not in added:
            records.append(record)
    items = plural(len(added) + len(edited), "added or edited item")
    name = f"without the {items}"
    if reading.name:
        name = f"{reading.name}, {name}"
    return replace(reading, name=name, records=records, edited=len(edited))


def worst_of(
    readings: Sequence[BarReading],
    decide: Callable[[BarReading], Iterable[GateResult]],
) -> Iterable[GateResult]:
    """Yield the worst result of each gate, by any reading; its reason says by which."""
    results: dict[object, list[GateResult]] = {}
    for reading in readings:
        for result in decide(reading):
            reason = result.reason
            if reading.name:
                reason = f"{reading.name}: {reason}"
            named = replace(result, reason=reason)
            if reading.edited and result.remedy.startswith(f"{GRADE} "):
                # They have a grade: no more of them would decide anything.
                items = plural(reading.edited, "edited item")
                named = replace(named, remedy=f"see to the {items}")
            results.setdefault(result.threshold, []).append(named)
    for results_of_gate in results.values():
        yield the_worst(results_of_gate)


def the_worst(results: Iterable[GateResult]) -> GateResult:
    """Return the first of the worst of several verdicts on one gate."""
    return min(results, key=lambda result: WORST_FIRST.index(result.state))

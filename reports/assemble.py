"""From the end state of every item to the one Report: summaries, gates, comparison, decision."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cases.plan import Plan
from cases.slices import Dataset, Slice
from evaluators.core import Outcome
from evaluators.output import plural
from reports.compare import pair_records
from reports.contrast import PairedSlice
from reports.decide import SessionFacts, decide
from reports.drop import drop_gates, margin_warnings, no_baseline_note
from reports.evidence import Calibration, LanguageGap
from reports.flips import compare
from reports.gate import PARTIAL, slice_gates
from reports.judging import judging, judging_notes
from reports.parity import parity
from reports.record import Record, in_order, make_record
from reports.report import Decision, GateResult, Report, SessionEnd, SliceSummary
from reports.review import adjudication_notes
from reports.summary import count, summarise
from reports.trust import Baseline, changed_judge, distrust

__all__ = ["Baseline", "Facts", "Material", "account", "assemble"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What only the session knows. ``session`` still lacks the counts of items."""

    model: str
    judge: str
    session: SessionFacts
    provenance: Mapping[str, object]
    run: Mapping[str, object]
    notes: tuple[str, ...] = ()
    complete: bool = True
    calibrations: tuple[Calibration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What was declared and what came of it, from this session or read back from files.

    ``whole`` counts, by the name of a slice, the items that it has when none is left out by hand.
    ``outside`` is what labelled items that are not among the records say of the judge.
    """

    datasets: tuple[Dataset, ...]
    records: tuple[Record, ...]
    whole: Mapping[str, int]
    outside: tuple[Calibration, ...] = ()


def assemble(
    plan: Plan, outcomes: Mapping[str, Outcome], facts: Facts, baseline: Baseline | None
) -> Report:
    """Return the report of a run. ``outcomes`` has the end state of every planned item."""
    items = [item for key, item in plan.items.items() if key in outcomes]
    material = Material(
        datasets=plan.datasets,
        records=tuple(make_record(item, outcomes[item.key]) for item in items),
        whole=Counter(item.slice.name for item in plan.items.values()),
        outside=facts.calibrations,
    )
    return account(material, facts, baseline)


def account(material: Material, facts: Facts, baseline: Baseline | None) -> Report:
    """Return the report over these records: the same for the same records, whoever brought them."""
    records = tuple(in_order(material.records))
    parts = _parts(material.datasets, records)
    summaries = {name: _summary(part, material.whole[name]) for name, part in parts.items()}
    scene = _Scene(material.datasets, parts, summaries, material.outside)
    sides = _sides(scene, facts.judge, baseline) if baseline else {}
    gates = _gates(scene, sides)
    session = _session(facts.session, parts, gates)
    used: tuple[Record | Calibration, ...] = (*records, *material.outside)
    of_slice = {name: part.records for name, part in parts.items()}
    found = judging(material.datasets, of_slice, summaries, facts.judge, material.outside)
    return Report(
        model=facts.model,
        judge=facts.judge,
        counts=count(records),
        slices=tuple(summaries.values()),
        decision=_decided(gates, session),
        records=records,
        provenance=facts.provenance,
        run=facts.run,
        cost=_total(one.cost for one in used),
        tokens=sum(one.tokens for one in used),
        baseline=baseline.path if baseline else "",
        complete=facts.complete,
        notes=(
            *facts.notes,
            *_causes(records),
            *adjudication_notes(records),
            *_notes(scene, baseline),
            *judging_notes(found, facts.judge, {one.kind for one in summaries.values()}),
        ),
        datasets=material.datasets,
        session=_end(session, facts.notes),
        comparison=compare(tuple(sides.values()), baseline) if baseline else None,
        parity=tuple(gap for one in material.datasets for gap in _parity(one, of_slice)),
        judging=found,
    )


def _end(session: SessionFacts, notes: tuple[str, ...]) -> SessionEnd:
    return SessionEnd(
        pytest_code=session.pytest_code,
        failures=session.other_failures + session.unexplained,
        interrupted=session.interrupted,
        notes=notes,
    )


def _total(costs: Iterable[float | None]) -> float | None:
    """Return the sum, None where one of them is not known."""
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)


@dataclass(frozen=True, slots=True)
class _Part:
    """The planned items of one slice."""

    slice: Slice
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class _Scene:
    """What gates look at."""

    datasets: tuple[Dataset, ...]
    parts: Mapping[str, _Part]
    summaries: Mapping[str, SliceSummary]
    outside: tuple[Calibration, ...]

    def of(self, dataset: Dataset) -> list[_Part]:
        """Return the parts of a dataset that were run, in the order of its file."""
        names = (one.name for one in dataset.slices.values())
        return [self.parts[name] for name in names if name in self.parts]


def _parts(datasets: Sequence[Dataset], records: Sequence[Record]) -> dict[str, _Part]:
    found = _grouped(records)
    every = [one for dataset in datasets for one in dataset.slices.values()]
    return {one.name: _Part(one, found[one.name]) for one in every if one.name in found}


def _grouped(records: Sequence[Record]) -> dict[str, tuple[Record, ...]]:
    found: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        found[f"{record.dataset}:{record.language}"].append(record)
    return {name: tuple(some) for name, some in found.items()}


def _summary(part: _Part, whole: int) -> SliceSummary:
    made = summarise(
        part.records,
        part.slice,
        partial=len(part.records) < whole,
        note="" if part.slice.declared else "not declared: languages.default serves it",
    )
    return replace(made, whole=whole)


def _sides(scene: _Scene, judge: str, baseline: Baseline) -> dict[str, PairedSlice]:
    """Return every slice of the run beside the baseline's, by name, in the declared order."""
    before = _grouped(baseline.records)
    found = {}
    for part in (part for dataset in scene.datasets for part in scene.of(dataset)):
        old = before.get(part.slice.name, ())
        changed = changed_judge(part.slice, part.records, old, baseline, judge)
        partial = PARTIAL if scene.summaries[part.slice.name].partial else ""
        found[part.slice.name] = PairedSlice(
            slice_=part.slice,
            pairing=pair_records(part.records, old),
            blocked=_distrust(scene, part) or partial or changed,
            changed=changed,
        )
    return found


def _gates(scene: _Scene, sides: Mapping[str, PairedSlice]) -> tuple[GateResult, ...]:
    gates: list[GateResult] = []
    for dataset in scene.datasets:
        own = scene.of(dataset)
        for part in own:
            summary = scene.summaries[part.slice.name]
            gates += slice_gates(part.slice, part.records, summary, _distrust(scene, part))
        if sides:
            gates += drop_gates(dataset, [sides[part.slice.name] for part in own])
    return tuple(gates)


def _distrust(scene: _Scene, part: _Part) -> str:
    name = part.slice.name
    outside = next((one for one in scene.outside if name in one.graders), None)
    return outside.blocks if outside else distrust(scene.datasets, part.slice, scene.summaries)


def _parity(dataset: Dataset, records: Mapping[str, Sequence[Record]]) -> tuple[LanguageGap, ...]:
    own = {
        language: records[one.name]
        for language, one in dataset.slices.items()
        if one.name in records
    }
    return parity(dataset, own)


def _decided(gates: Sequence[GateResult], session: SessionFacts) -> Decision:
    return decide(() if session.gates_off else gates, session)


def _session(
    session: SessionFacts, parts: Mapping[str, _Part], gates: Sequence[GateResult]
) -> SessionFacts:
    gated = {gate.slice for gate in gates}
    pooled = {gate.dataset for gate in gates if not gate.language}
    inside = [
        count(part.records)
        for name, part in parts.items()
        if name in gated or part.slice.dataset in pooled
    ]
    every = [count(part.records) for part in parts.values()]
    bad = sum(one.planned - one.passed for one in every)
    return replace(
        session,
        selected=sum(one.planned for one in every),
        misses=sum(one.failed for one in inside),
        errors=sum(one.error for one in inside),
        missing=sum(one.missing for one in inside),
        uncounted=bad - sum(one.planned - one.passed for one in inside),
    )


def _causes(records: Sequence[Record]) -> list[str]:
    """Return, for each way in which items went ungraded, how many and what the first one said."""
    errors = [record.error for record in records if record.error]
    kinds = Counter(error.partition(": ")[0] for error in errors)
    first = {error.partition(": ")[0]: error for error in reversed(errors)}
    return [f"{plural(count, 'item')} ungraded: {first[kind]}" for kind, count in kinds.items()]


def _notes(scene: _Scene, baseline: Baseline | None) -> list[str]:
    notes: list[str] = []
    for dataset in scene.datasets:
        own = scene.of(dataset)
        if not own:
            continue
        sizes = {part.slice.language: len(part.records) for part in own}
        notes += margin_warnings(dataset, sizes)
        slices = [part.slice for part in own]
        without = no_baseline_note(dataset, slices) if baseline is None else ""
        notes += [without] if without else []
        notes += [f"{one.name}: no gate declared" for one in slices if not one.rules]
    return notes

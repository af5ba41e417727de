"""From the end state of every item to the one Report: summaries, gates, comparison, decision."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cases.dataset import Dataset, Plan, Sampling, Slice, SliceSample, clusters_in
from evaluators.core import Outcome
from reports.baseline import Baseline, changed_judge
from reports.compare.comparison import anchor_notes, compare, parity
from reports.compare.pairs import PairedSlice, pair_records
from reports.evidence import Calibration, Comparison
from reports.gates.audited import AuditedGate, audited_gates
from reports.gates.change import change_gates
from reports.gates.decide import SessionFacts, decide
from reports.gates.gate import slice_gates
from reports.gates.power import margin_warnings, no_baseline_note
from reports.human_review import adjudication_notes
from reports.judge_errors import drift_notes, measuring
from reports.judging import judging, judging_notes
from reports.record import Record, by_slice, causes, in_order, make_record, total_cost
from reports.report import Decision, GateResult, Report, SliceSummary
from reports.summary import count, summarise
from reports.trust import distrust, measured_among


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
    """What was declared and how its items ended, from this session or read back from files.

    ``whole`` counts, by the name of a slice, the items that it has when none is left out by hand;
    ``samples`` says of which slices ``--limit`` drew a part. ``outside`` is what labelled items
    that are not among the records say of the judge.
    """

    datasets: tuple[Dataset, ...]
    records: tuple[Record, ...]
    whole: Mapping[str, int]
    samples: Mapping[str, SliceSample] = field(default_factory=dict)
    outside: tuple[Calibration, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The slices that were run, in the declared order; the mappings are by a slice's name.

    ``calibrations`` are all that measure the judge, in and outside of the records; ``distrusted``
    says why a slice's judge is not trusted, empty where it is.
    """

    datasets: tuple[Dataset, ...]
    slices: Mapping[str, Slice]
    records: Mapping[str, tuple[Record, ...]]
    summaries: Mapping[str, SliceSummary]
    calibrations: tuple[Calibration, ...]
    distrusted: Mapping[str, str]

    def of(self, dataset: Dataset) -> list[Slice]:
        """Return the slices of a dataset that were run."""
        return [one for one in dataset.slices.values() if one.name in self.slices]


def assemble(
    plan: Plan,
    outcomes: Mapping[str, Outcome],
    facts: Facts,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
) -> Report:
    """Return the report of a run. ``outcomes`` has the end state of every planned item.

    Paired gates are decided beside the baseline, and once more beside the anchor.
    """
    items = [item for key, item in plan.items.items() if key in outcomes]
    material = Material(
        datasets=plan.datasets,
        records=tuple(make_record(item, outcomes[item.key]) for item in items),
        whole=Counter(item.slice.name for item in plan.items.values()),
        samples=plan.samples,
        outside=facts.calibrations,
    )
    return account(material, facts, baseline, anchor)


def account(
    material: Material, facts: Facts, baseline: Baseline | None, anchor: Baseline | None = None
) -> Report:
    """Return the report over these records: the same for the same records, wherever from."""
    records = tuple(in_order(material.records))
    run = _counted(material, records, facts.judge)
    sides, anchored = (_sides(run, facts.judge, one) for one in (baseline, anchor))
    since = compare(tuple(anchored.values()), anchor) if anchor else None
    decision, session = _decided(run, (sides, anchored), facts.session)
    used: tuple[Record | Calibration, ...] = (*records, *material.outside)
    found = judging(run.datasets, run.records, facts.judge, run.calibrations)
    return Report(
        model=facts.model,
        judge=facts.judge,
        counts=count(records),
        slices=tuple(run.summaries.values()),
        decision=decision,
        records=records,
        provenance=facts.provenance,
        run=facts.run,
        cost=total_cost(one.cost for one in used),
        tokens=sum(one.tokens for one in used),
        baseline=baseline.path if baseline else "",
        anchor=anchor.path if anchor else "",
        complete=facts.complete,
        notes=(
            *facts.notes,
            *causes(records),
            *adjudication_notes(records),
            *_gate_notes(run, baseline, since, session.ungated),
            *judging_notes(found, facts.judge, run.slices.values(), run.datasets),
            *drift_notes(run.calibrations, sides, baseline),
        ),
        datasets=material.datasets,
        session=session.end(facts.notes),
        comparison=compare(tuple(sides.values()), baseline) if baseline else None,
        since_anchor=since,
        parity=tuple(gap for one in run.datasets for gap in parity(one, run.records)),
        judging=found,
    )


def decision_of(
    material: Material,
    facts: Facts,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
    known: Report | None = None,
) -> Decision:
    """Return how the gates decide over these records, as ``account`` does, without its report.

    What labelled items say of the judge is taken from a ``known`` report of the same ones.
    """
    run = _counted(material, in_order(material.records), facts.judge, for_gates=True, known=known)
    sides = [_sides(run, facts.judge, one) for one in (baseline, anchor)]
    return _decided(run, sides, facts.session)[0]


def _decided(
    run: _Counted, beside: Iterable[Mapping[str, PairedSlice]], session: SessionFacts
) -> tuple[Decision, SessionFacts]:
    """Return the decision, and the session with its counts of items."""
    gates = tuple(_gates(run, beside))
    session = _session(session, run, gates)
    return decide(() if session.gates_off else gates, session), session


def audits(
    material: Material, judge: str, baselines: Iterable[Baseline | None]
) -> tuple[AuditedGate, ...]:
    """Return the gates that people decide, with the pairs that they are to look at."""
    run = _counted(material, in_order(material.records), judge)
    beside = [_sides(run, judge, one) for one in baselines]
    return tuple(
        gate
        for dataset in run.datasets
        for sides in filter(None, beside)
        for gate in audited_gates(dataset, [sides[one.name] for one in run.of(dataset)])
    )


def _counted(
    material: Material,
    records: Sequence[Record],
    judge: str,
    *,
    for_gates: bool = False,
    known: Report | None = None,
) -> _Counted:
    """Count the records, or only what gates need of them."""
    grouped = by_slice(records)
    pinned = {one.name: one.sampling for one in material.datasets}
    every = (one for dataset in material.datasets for one in dataset.slices.values())
    slices = {one.name: one for one in every if one.name in grouped}
    judged = {one.name: one for one in known.slices if not one.kind.answered} if known else {}
    summaries = {}
    for name, slice_ in slices.items():
        whole = material.whole[name]
        note = "" if slice_.declared else "not declared: languages.default serves it"
        partial = len(grouped[name]) < whole
        summary = judged.get(name) or summarise(
            grouped[name], slice_, partial=partial, note=note, for_gates=for_gates
        )
        drawn = material.samples.get(name)
        if drawn:
            its = Sampling(limit=drawn.items, seed=drawn.seed)
            drawn = replace(drawn, pinned=its == pinned[slice_.dataset])
        summaries[name] = replace(summary, whole=whole, sample=drawn)
    datasets, own = material.datasets, {name: grouped[name] for name in slices}
    inside = () if known else measured_among(datasets, own, summaries, judge, material.outside)
    calibrations = known.judging.calibrations if known else (*inside, *material.outside)
    return _Counted(
        datasets=datasets,
        slices=slices,
        records=own,
        summaries=summaries,
        calibrations=calibrations,
        distrusted={
            name: distrust(datasets, slice_, calibrations, judge) for name, slice_ in slices.items()
        },
    )


def _sides(run: _Counted, judge: str, baseline: Baseline | None) -> dict[str, PairedSlice]:
    """Return every slice of the run beside the baseline's, by name, in the declared order."""
    if baseline is None:
        return {}
    before = by_slice(baseline.records)
    found = {}
    for name, slice_ in run.slices.items():
        new, old = run.records[name], before.get(name, ())
        changed = changed_judge(slice_, new, old, baseline, judge)
        pairing, summary = pair_records(new, old), run.summaries[name]
        narrow = summary.obstacle or baseline.obstacle(summary) or pairing.obstacle(baseline.role)
        found[name] = PairedSlice(
            slice_=slice_,
            pairing=pairing,
            role=baseline.role,
            blocked=summary.obstacle or run.distrusted[name] or changed or narrow,
            changed=changed,
            narrow=narrow,
            calibrations=measuring(slice_, run.calibrations),
            people=baseline.people,
        )
    return found


def _gates(run: _Counted, beside: Iterable[Mapping[str, PairedSlice]]) -> Iterator[GateResult]:
    for dataset in run.datasets:
        own = run.of(dataset)
        for one in own:
            name = one.name
            yield from slice_gates(
                one, run.records[name], run.summaries[name], run.distrusted[name]
            )
        for sides in filter(None, beside):
            scope = [sides[one.name] for one in own]
            yield from change_gates(dataset, scope)
            yield from (one.result() for one in audited_gates(dataset, scope))


def _session(session: SessionFacts, run: _Counted, gates: Sequence[GateResult]) -> SessionFacts:
    """Return the session with its counts of items, and the slices that nothing decides on.

    A labelled slice whose judge reaches its floor needs no gate.
    """
    every = run.summaries.values()
    decided = {gate.slice for gate in gates if gate.language}
    decided |= {f"{one.dataset}:{one.language}" for one in run.calibrations if one.trusted}
    return replace(
        session,
        selected=sum(one.counts.planned for one in every),
        misses=sum(one.counts.failed for one in every),
        errors=sum(one.counts.error for one in every),
        missing=sum(one.counts.missing for one in every),
        ungated=tuple(name for name in run.summaries if name not in decided),
    )


def _gate_notes(
    run: _Counted, baseline: Baseline | None, since: Comparison | None, ungated: Sequence[str]
) -> Iterator[str]:
    yield from anchor_notes(since)
    drawn = [f"{name} {one.sample.text}" for name, one in run.summaries.items() if one.sample]
    if drawn:
        yield f"only a sample was asked: {'; '.join(drawn)}"
    every = in_order(record for some in run.records.values() for record in some)
    if baseline and in_order(baseline.records) == every:
        yield "the baseline has the records of this very run: nothing can differ from itself"
    for name in ungated:
        yield f"{name}: no gate of its own; a run passes only over slices that have one"
    for dataset in run.datasets:
        own = run.of(dataset)
        if own:
            asked = ((one, record) for one in own for record in run.records[one.name])
            yield from margin_warnings(dataset, clusters_in(asked))
            if not (baseline or since) and (without := no_baseline_note(dataset, own)):
                yield without
        if dataset.left_out:
            gone = ", ".join(dataset.left_out)
            yield f"gates left out, as the gates file replaces all: {gone}"

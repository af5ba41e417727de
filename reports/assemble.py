"""From the end state of every item to the one Report: summaries, gates, decision."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cases.plan import Item, Plan
from cases.slices import Dataset, Slice
from evaluators.core import Outcome
from reports.compare import pair
from reports.contrast import Against
from reports.decide import SessionFacts, decide
from reports.drop import drop_gates, margin_warnings, no_baseline_note
from reports.gate import PARTIAL, distrust_in, slice_gates
from reports.record import Record, make_record
from reports.report import GateResult, Report, SliceSummary
from reports.summary import count, summarise
from reports.wording import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An earlier run: where it is, its ``run.json`` and its records."""

    path: str
    run: Mapping[str, object]
    records: tuple[Record, ...]


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


def assemble(
    plan: Plan, outcomes: Mapping[str, Outcome], facts: Facts, baseline: Baseline | None
) -> Report:
    """Return the report of a run. ``outcomes`` has the end state of every planned item."""
    items = [item for key, item in plan.items.items() if key in outcomes]
    records = tuple(make_record(item, outcomes[item.key]) for item in items)
    by_slice = _by_slice(items, records)
    summaries = _summaries(plan, by_slice)
    gates = _gates(plan, by_slice, summaries, baseline, facts.judge)
    session = _session(facts.session, by_slice, gates)
    costs = [record.cost for record in records]
    return Report(
        model=facts.model,
        judge=facts.judge,
        counts=count(records),
        slices=tuple(summaries.values()),
        decision=decide(() if session.gates_off else gates, session),
        records=records,
        provenance=facts.provenance,
        run=facts.run,
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
        tokens=sum(record.tokens for record in records),
        baseline=baseline.path if baseline else "",
        complete=facts.complete,
        notes=(*facts.notes, *_causes(records), *_notes(plan, by_slice, baseline)),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The planned items of one slice."""

    slice: Slice
    records: tuple[Record, ...]


def _by_slice(items: Sequence[Item], records: Sequence[Record]) -> dict[str, _Part]:
    found: dict[str, list[Record]] = defaultdict(list)
    slices: dict[str, Slice] = {}
    for item, record in zip(items, records, strict=True):
        slices[item.slice.name] = item.slice
        found[item.slice.name].append(record)
    return {name: _Part(slices[name], tuple(found[name])) for name in slices}


def _summaries(plan: Plan, parts: Mapping[str, _Part]) -> dict[str, SliceSummary]:
    whole: dict[str, int] = defaultdict(int)
    for item in plan.items.values():
        whole[item.slice.name] += 1
    return {
        name: summarise(
            part.records,
            part.slice,
            partial=len(part.records) < whole[name],
            note="" if part.slice.declared else "not declared: languages.default serves it",
        )
        for name, part in parts.items()
    }


def _gates(
    plan: Plan,
    parts: Mapping[str, _Part],
    summaries: Mapping[str, SliceSummary],
    baseline: Baseline | None,
    judge: str,
) -> tuple[GateResult, ...]:
    gates: list[GateResult] = []
    for dataset in plan.datasets:
        own = [parts[one.name] for one in dataset.slices.values() if one.name in parts]
        distrust = {part.slice.name: _distrust(plan, part.slice, summaries) for part in own}
        for part in own:
            name = part.slice.name
            gates += slice_gates(part.slice, part.records, summaries[name], distrust[name])
        if baseline is not None:
            sides = [_against(part, summaries, distrust, baseline, judge) for part in own]
            gates += drop_gates(dataset, sides)
    return tuple(gates)


def _distrust(plan: Plan, slice_: Slice, summaries: Mapping[str, SliceSummary]) -> str:
    """Return why the judge of a slice is not trusted; rules need no trust, judges are the test."""
    if slice_.kind not in ("graded", "rated"):
        return ""
    for dataset in plan.datasets:
        if dataset.kind != "judged" or not _calibrates(dataset, slice_):
            continue
        judged = summaries.get(f"{dataset.name}:{slice_.language}")
        measured = judged if judged and _is_whole(judged) else None
        floor = dataset.slices[slice_.language].floor if slice_.language in dataset.slices else {}
        return distrust_in(slice_.language, measured, floor, required=dataset.require_calibration)
    return ""


def _calibrates(dataset: Dataset, slice_: Slice) -> bool:
    """Say whether a judged dataset's labels are of the kind that judges this slice."""
    protocols = {one.rubric.protocol == "rate" for one in dataset.slices.values() if one.rubric}
    return protocols in (set(), {slice_.kind == "rated"})


def _is_whole(judged: SliceSummary) -> bool:
    return not judged.partial and not judged.counts.error + judged.counts.missing


def _against(
    part: _Part,
    summaries: Mapping[str, SliceSummary],
    distrust: Mapping[str, str],
    baseline: Baseline,
    judge: str,
) -> Against:
    name = part.slice.name
    old = [record for record in baseline.records if _slice_name(record) == name]
    partial = PARTIAL if summaries[name].partial else ""
    changed = _changed_judge(part, old, baseline, judge)
    return Against(
        slice_=part.slice,
        pairing=pair(part.records, old),
        blocked=distrust[name] or partial or changed,
    )


def _changed_judge(part: _Part, old: Sequence[Record], baseline: Baseline, judge: str) -> str:
    """Return why a difference to the baseline may be the judge's own, or nothing."""
    before, now = _judges(old, str(baseline.run.get("judge", ""))), _judges(part.records, judge)
    if before and now and before != now:
        return f"the judge changed from {_list(before)} to {_list(now)}"
    rubric = _known_rubric(baseline.run, part.slice.name)
    version = part.slice.rubric.version if part.slice.rubric else ""
    if before and rubric is not None and rubric != version:
        return f"the rubric changed from {rubric} to {version}"
    return ""


def _judges(records: Sequence[Record], spec: str) -> set[str]:
    """Return who graded. Where a model was spared a call its SPEC stands in for its name."""
    names = {record.judge for record in records if record.grade or record.rating}
    return names - {spec} or names


def _known_rubric(run: Mapping[str, object], name: str) -> str | None:
    provenance = run.get("provenance")
    slices = provenance.get("slices") if isinstance(provenance, dict) else None
    known = slices.get(name) if isinstance(slices, dict) else None
    return str(known.get("rubric", "")) if isinstance(known, dict) else None


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))


def _slice_name(record: Record) -> str:
    return f"{record.dataset}:{record.language}"


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


def _notes(plan: Plan, parts: Mapping[str, _Part], baseline: Baseline | None) -> list[str]:
    notes: list[str] = []
    for dataset in plan.datasets:
        own = [one for one in dataset.slices.values() if one.name in parts]
        if not own:
            continue
        notes += margin_warnings(
            dataset, {one.language: len(parts[one.name].records) for one in own}
        )
        without = no_baseline_note(dataset, own) if baseline is None else ""
        notes += [without] if without else []
        notes += [f"{one.name}: no gate declared" for one in own if not one.rules]
    return notes

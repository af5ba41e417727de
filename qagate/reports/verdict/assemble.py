"""From the record of every item to the one Report: counted, compared, decided."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain

from qagate.cases.dataset import (
    Dataset,
    Plan,
    Sampling,
    Shards,
    Slice,
    SliceSample,
    clusters_in,
)
from qagate.evaluators.core import Usage
from qagate.evaluators.judges.drift import CanaryResult
from qagate.evaluators.judges.rule_checks import NO_CHECKS, RuleChecks
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import DROP, Sample
from qagate.evaluators.text import first_of
from qagate.reports.compare.comparison import (
    compare,
    loss_text,
    lost_answers,
    shown_losses,
)
from qagate.reports.compare.judge_drift import drift_notes, favour_notes
from qagate.reports.compare.languages import parity
from qagate.reports.compare.sides import Compared, PairedSlice
from qagate.reports.doors import GATE_RULES, GateRule, load_gate_rule
from qagate.reports.gates import decide, notes
from qagate.reports.gates.bands import with_pictures
from qagate.reports.gates.bars import BarReading, bar_readings, worst_of
from qagate.reports.gates.change import change_gates
from qagate.reports.gates.gone import (
    gate_doubts,
    gone_gates,
    measurement_doubts,
    slice_doubts,
    with_evidence_of_then,
)
from qagate.reports.gates.losses import Changes, unnoticed_loss
from qagate.reports.judge.calibration import calibrations_of
from qagate.reports.judge.canary_notes import canary_notes
from qagate.reports.judge.corrected import corrected_gates, doubt_of
from qagate.reports.judge.judging import judging, judging_notes, waived_lines
from qagate.reports.judge.labels import label_sets
from qagate.reports.judge.measuring import grades_of, slice_judges
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.judge.waivers import PLACEHOLDER, UNMEASURED
from qagate.reports.metrics.gate import slice_gates
from qagate.reports.metrics.health import health_of, severe_sentences
from qagate.reports.metrics.summary import count, summarise, tabulate
from qagate.reports.run.accepted import Accepted
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
from qagate.reports.run.changes import (
    changed_origin,
)
from qagate.reports.run.clean import masked
from qagate.reports.run.decisions import answers_of
from qagate.reports.run.evidence import Calibration, Comparison, SliceHealth
from qagate.reports.run.lineage import (
    RetiredIds,
    chain_of,
    promoted_anyway,
    retired_text,
)
from qagate.reports.run.provenance import sent_spec
from qagate.reports.run.record import Record, by_slice, in_order, total_cost
from qagate.reports.run.report import (
    ASK_ANEW,
    WARNING,
    Decided,
    Decision,
    GateResult,
    Report,
    Role,
    SliceSummary,
)
from qagate.reports.verdict.pairing import beside_baseline, paired_slices
from qagate.reports.verdict.self_judging import self_judged


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What was declared and how its items ended, from this session or read from files."""

    datasets: tuple[Dataset, ...]
    records: tuple[Record, ...]
    whole: Mapping[str, int]
    """The number of items of each slice, by its name, with none left out by hand."""
    samples: Mapping[str, SliceSample] = field(default_factory=dict)
    """What ``--limit`` drew of slices, by their name."""
    labels: tuple[Record, ...] = ()
    """The labelled answers that were judged beside the records."""
    label_datasets: tuple[Dataset, ...] = ()
    """The data sets that these are of."""
    rule_checks: RuleChecks = field(default_factory=dict)
    """What the model says of answers that rules before it settled."""
    shards: Shards | None = None
    """The shards that the records come from; None where none is missing."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        records: Iterable[Record],
        labels: tuple[Record, ...] = (),
        label_datasets: tuple[Dataset, ...] = (),
        rule_checks: RuleChecks = NO_CHECKS,
    ) -> "ReportInputs":
        """Return the inputs of a run by this plan."""
        return cls(
            datasets=plan.datasets,
            records=tuple(records),
            whole=Counter(item.slice.name for item in plan.items.values()),
            samples=plan.samples,
            labels=labels,
            label_datasets=label_datasets,
            rule_checks=rule_checks,
            shards=plan.shard,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """The slices that were run, in the declared order; mappings are keyed by the slice's name."""

    datasets: tuple[Dataset, ...]
    slices: Mapping[str, Slice]
    records: Mapping[str, Sequence[Record]]
    summaries: Mapping[str, SliceSummary]
    samples: Mapping[str, Sample]
    """The graded items counted."""
    calibrations: tuple[Calibration, ...]
    """What each labelled set shows of the judge, for people to read."""
    judges: Mapping[str, SliceJudge]
    """Who reads the answers of each answered slice."""
    shards: Shards | None = None
    for_gates: bool = False
    """Whether only states of gates are asked for, not how they come about."""
    plain: frozenset[str] = frozenset()
    """The slices that bars are known to read in one way alone; of others it is found out."""

    def distrust(self, name: str) -> str:
        """Return why nothing that a slice's judge says is believed; empty where it is."""
        judge = self.judges.get(name)
        return judge.obstacle if judge else ""

    def of(self, dataset: Dataset) -> list[Slice]:
        """Return the slices of a dataset that were run."""
        return [one for one in dataset.slices.values() if one.name in self.slices]


def count_run(
    inputs: ReportInputs,
    records: Sequence[Record],
    judge: str,
    *,
    for_gates: bool = False,
    known: CountedRun | None = None,
) -> CountedRun:
    """Count the records (``for_gates``: what gates need); ``known`` has labelled ones counted."""
    grouped = by_slice(records)
    every = (one for dataset in inputs.datasets for one in dataset.slices.values())
    slices = {one.name: one for one in every if one.name in grouped}
    summaries, samples = {}, dict(known.samples) if known else {}
    for name, slice_ in slices.items():
        whole = inputs.whole[name]
        if known and not slice_.kind.answered:
            summary = known.summaries[name]
        else:
            partial = len(grouped[name]) < whole or inputs.shards is not None
            sample = samples[name] = tabulate(grouped[name], slice_)
            summary = summarise(grouped[name], slice_, partial, for_gates, sample)
        note = _note_on(slice_, grouped[name])
        if drawn := inputs.samples.get(name):
            fixed = next(
                one.sampling for one in inputs.datasets if one.name == slice_.dataset
            )
            drawn = replace(
                drawn, pinned=Sampling(limit=drawn.items, seed=drawn.seed) == fixed
            )
        summaries[name] = replace(summary, whole=whole, sample=drawn, note=note)
    datasets, own = inputs.datasets, {name: grouped[name] for name in slices}
    if known:
        judges = {
            name: replace(one, grades=grades_of(own[name]))
            for name, one in known.judges.items()
            if name in own
        }
        calibrations = known.calibrations
    else:
        sets = label_sets(slices.values(), own, inputs.labels, inputs.label_datasets)
        judges = slice_judges(datasets, own, sets, judge, inputs.rule_checks)
        calibrations = tuple(calibrations_of(sets, judges, summaries, judge))
    return CountedRun(
        datasets=datasets,
        slices=slices,
        records=own,
        summaries=summaries,
        samples=samples,
        calibrations=calibrations,
        judges=judges,
        shards=inputs.shards,
        for_gates=for_gates,
    )


def _note_on(slice_: Slice, records: Sequence[Record]) -> str:
    """Return what a reader has to know of a slice beside its figures."""
    parts = []
    if not slice_.declared:
        parts.append("not declared: languages.default serves it")
    retired = {record.id for record in records if record.id in slice_.retired.ids}
    if retired:
        parts.append(f"{plural(len(retired), 'item')} retired: {slice_.retired.reason}")
    return "; ".join(parts)


_NUMBER = re.compile(r"\d+(?:\.\d+)?")
FEWEST_TO_PAIR = 30
"""With fewer items not even a drop of 0.12 can be excluded: bars decide alone."""
FEW_SAMPLED = 50  # a pinned sample of fewer items stands in the last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What only the session knows."""

    model: str
    judge: str
    session: decide.SessionFacts
    """Without the counts of items, which come from the records."""
    provenance: Mapping[str, object]
    run: Mapping[str, object]
    complete: bool = True
    labels: tuple[Record, ...] = ()
    """The labelled answers that were judged beside the plan's items."""
    label_datasets: tuple[Dataset, ...] = ()
    """The data sets that these are of."""
    canaries: tuple[CanaryResult, ...] = ()
    """Kept grades that the run asked anew."""
    rule_checks: RuleChecks = field(default_factory=dict)
    """What the model says of answers that rules before it settled."""
    judges_usage: Usage = field(default_factory=Usage)
    """What canaries and checks of rules took, which no record counts."""
    run_id: str = ""
    """What names the run in the ledger."""
    started: float = 0.0
    """When it began, in seconds since 1970."""
    named: str = ""
    """A hash of the name that the user or a CI system gave the run."""
    fresh: str = ""
    """The NAME of ``--fresh``."""
    monitor: bool = False
    accepted: Accepted = field(default_factory=Accepted)
    tries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """How the earlier sets of answers of each slice ended, by its name."""
    unsettled: RetiredIds = field(default_factory=dict)
    """The items that were retired after this model's first try: they count both ways."""
    candidates: Candidates = ONE_CANDIDATE
    """The models that are decided together beside one baseline."""
    needs_baseline: str = ""
    """Why a run over these data needs a baseline, and which; empty where it does not."""


def assemble(
    plan: Plan,
    records: Iterable[Record],
    facts: Facts,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
) -> Report:
    """Return the report of a run, decided against baseline and anchor, from all records."""
    inputs = ReportInputs.of(
        plan, records, facts.labels, facts.label_datasets, facts.rule_checks
    )
    return account(inputs, facts, baseline, anchor)


def account(
    inputs: ReportInputs,
    facts: Facts,
    baseline: Baseline | None,
    anchor: Baseline | None = None,
) -> Report:
    """Return the report over these records, without keys: the same ones give the same report."""
    run = count_run(inputs, records := tuple(in_order(inputs.records)), facts.judge)
    earlier = (baseline, anchor)
    sides, anchored = (sides_of(run, one, facts) for one in earlier)
    compared, since = (
        _comparison(sides, baseline, facts),
        _comparison(anchored, anchor, facts),
    )
    health = tuple(_health(run, baseline))
    decision, session = _decided(run, (sides, anchored), facts, earlier, health)
    decision = with_pictures(decision, (sides, anchored))
    owed_to_people = list(_owed_to_people(inputs, facts, earlier, decision))
    decision = replace(
        decision,
        line="; ".join([decision.line, *owed_to_people]),
        cautions=(*decision.cautions, *owed_to_people),
    )
    found = judging(
        run.datasets,
        run.records,
        facts.judge,
        run.judges,
        run.calibrations,
        rule_checks=inputs.rule_checks,
    )
    made = Report(
        model=facts.model,
        judge=facts.judge,
        counts=count(records),
        slices=tuple(run.summaries.values()),
        decision=decision,
        records=(),
        provenance=facts.provenance,
        run=facts.run,
        cost=_cost(records, inputs, facts),
        tokens=_tokens(records, inputs, facts),
        baseline=baseline.path if baseline else "",
        anchor=anchor.path if anchor else "",
        complete=facts.complete,
        notes=(
            *(f"{WARNING}{one}" for one in _causes(records)),
            *_people_notes(inputs.records),
            *(f"{WARNING}{debt}" for debt in owed_to_people),
            *_gate_notes(run, since, session, decision),
            *canary_notes(facts.canaries),
            *judging_notes(found, facts.judge, run.judges),
            *drift_notes(run.calibrations, sides, baseline),
            *favour_notes(sides),
        ),
        datasets=inputs.datasets,
        session=replace(
            session.end(),
            accepted=facts.accepted,
            needs_baseline=facts.needs_baseline,
        ),
        decided=_decided_as(facts, records, decision, baseline),
        tries=facts.tries,
        unsettled=facts.unsettled,
        candidates=facts.candidates,
        comparison=compared,
        since_anchor=since,
        health=health,
        parity=tuple(gap for one in run.datasets for gap in parity(one, run.records)),
        judging=replace(found, canaries=facts.canaries),
        shards=inputs.shards,
    )
    return replace(  # these are safe already
        masked(made),
        records=records,
        labels=tuple(in_order(inputs.labels)),
        label_datasets=inputs.label_datasets,
        reading=baseline.reading if baseline else None,
        anchor_reading=anchor.reading if anchor else None,
    )


def _cost(
    records: Sequence[Record], inputs: ReportInputs, facts: Facts
) -> float | None:
    """Return what answers, labels, canaries and checks cost in USD; None if that is not known."""
    costs = [record.cost for record in records]
    costs += [label.cost for label in inputs.labels]
    return total_cost([*costs, facts.judges_usage.cost])


def _tokens(records: Sequence[Record], inputs: ReportInputs, facts: Facts) -> int:
    usage = facts.judges_usage
    tokens = usage.input_tokens + usage.output_tokens
    tokens += sum(record.tokens for record in records)
    return tokens + sum(label.tokens for label in inputs.labels)


def _decided_as(
    facts: Facts,
    records: Iterable[Record],
    decision: Decision,
    baseline: Baseline | None,
) -> Decided:
    """Return the decision as later runs have to know it."""
    return Decided(
        run=facts.run_id,
        at=facts.started,
        code=decision.code,
        model=sent_spec(facts.model, facts.provenance),
        baseline=baseline.sha256 if baseline else "",
        answers=answers_of(records, facts.provenance, baseline),
        monitor=facts.monitor,
        gates_off=facts.session.gates_off,
        chain=chain_of(baseline),
        named=facts.named,
        fresh=facts.fresh,
    )


def _causes(records: Iterable[Record]) -> Iterator[str]:
    """Yield why items went ungraded, for each way how many and what was said of it.

    The commonest comes first.
    """
    errors: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.error and record.outcome != "stopped":
            errors[record.error.partition(": ")[0]].append(record.error)
    for messages in sorted(errors.values(), key=len, reverse=True):
        telling = max(messages, key=_numbers_in)
        yield f"{plural(len(messages), 'item')} ungraded: {telling}"


def _numbers_in(message: str) -> list[float]:
    """Return the numbers of a message: the highest says how much money or time it takes."""
    return [float(number) for number in _NUMBER.findall(message)]


def _comparison(
    sides: Compared, earlier: Baseline | None, facts: Facts
) -> Comparison | None:
    if earlier is None:
        return None
    changed = changed_origin(earlier, facts.model, facts.judge, facts.provenance)
    return compare(tuple(sides.values()), earlier, changed)


def decision_of(
    inputs: ReportInputs,
    facts: Facts,
    *earlier: Baseline | None,
    known: CountedRun | None = None,
) -> Decision:
    """Return the decision of ``account``, without reasons; labels judged as in a ``known`` run."""
    run = count_run(inputs, inputs.records, facts.judge, for_gates=True, known=known)
    sides = [sides_of(run, one, facts) for one in earlier]
    return _decided(run, sides, facts, earlier)[0]


def sides_of(run: CountedRun, earlier: Baseline | None, facts: Facts) -> Compared:
    """Return the slices of a run beside those of an earlier one; none where there is none."""
    return paired_slices(
        run,
        facts.judge,
        earlier,
        facts.provenance,
        model=facts.model,
        accepted=facts.accepted,
        tries=facts.tries,
        unsettled=facts.unsettled,
        candidates=facts.candidates,
    )


def _decided(
    run: CountedRun,
    compared: Sequence[Compared],
    facts: Facts,
    earlier: Sequence[Baseline | None],
    health: Sequence[SliceHealth] = (),
) -> tuple[Decision, decide.SessionFacts]:
    gates = tuple(_gates(run, compared, earlier))
    session = _session(facts, run, gates, compared)
    session = replace(session, unhealthy=tuple(severe_sentences(health)))
    baseline = earlier[0] if earlier else None
    baselines = chain_of(baseline)
    retired = retired_text(
        run.datasets, chain.from_iterable(run.records.values()), baselines
    )
    of_baselines = [*([retired] if retired else []), *promoted_anyway(baselines)]
    cautions = (*of_baselines, *_history(facts, run), *_waived(run))
    session = replace(
        session,
        causes=tuple(_causes(chain.from_iterable(run.records.values()))),
        cautions=(*cautions, *_cautions(run, compared)),
        doubts=doubts_of(run, facts, earlier, session),
    )
    return decide.decide(() if session.gates_off else gates, session), session


def decision_on(
    run: CountedRun,
    compared: Sequence[Compared],
    facts: Facts,
    earlier: Sequence[Baseline | None],
    doubts: tuple[str, ...],
) -> Decision:
    """Return the decision on a run that is counted and paired: its gates and its code alone.

    ``doubts`` are those of ``doubts_of``. What else the last line says is left out.
    """
    gates = tuple(_gates(run, compared, earlier))
    session = replace(_session(facts, run, gates, compared), doubts=doubts)
    return decide.decide(() if session.gates_off else gates, session)


def doubts_of(
    run: CountedRun,
    facts: Facts,
    earlier: Sequence[Baseline | None],
    session: decide.SessionFacts,
) -> tuple[str, ...]:
    """Return what keeps the whole run from passing, whatever its gates say."""
    doubts = [
        *_gone(run, facts, earlier),
        *_versions(run, facts),
        *_self_judged(run, facts),
    ]
    not_run = [name for name in session.expected if name not in run.slices]
    if not_run:
        doubts.append(f"no item of {first_of(not_run)} was run: {decide.LEFT_OUT}")
    if session.superseded:
        doubts.append(superseded_text(session.superseded))
    return tuple(doubts)


def _health(run: CountedRun, baseline: Baseline | None) -> Iterator[SliceHealth]:
    """Yield how healthy the answers of each slice are, beside the baseline's."""
    old: Mapping[str, Sequence[Record]] = {}
    if baseline is not None:
        reading = baseline.reading
        old = baseline.slices if reading is None else by_slice(reading.old)
    for dataset in run.datasets:
        for slice_ in run.of(dataset):
            if slice_.kind.answered:
                name = slice_.name
                yield health_of(
                    slice_,
                    run.records[name],
                    old.get(name),
                    is_waived=dataset.health_off,
                )


def _versions(run: CountedRun, facts: Facts) -> Iterator[str]:
    """Yield which models answered or judged, labels too, as several versions: none is decided."""
    answers: Counter[str] = Counter()
    verdicts: Counter[str] = Counter()
    for name, records in run.records.items():
        kind = run.slices[name].kind
        if kind.answered:
            answers.update(one.model for one in records if one.answer is not None)
        if kind.by_rubric or not kind.answered:
            verdicts.update(one.judge for one in records if one.is_graded)
    for one in run.calibrations:
        verdicts.update(one.judges)
    yield from _versions_of("answers", facts.model, answers)
    yield from _versions_of("verdicts", facts.judge, verdicts)


def _self_judged(run: CountedRun, facts: Facts) -> Iterator[str]:
    """Yield which judges the model under test turned out to be."""
    judged = []
    for name, records in run.records.items():
        kind = run.slices[name].kind
        if kind.answered and kind.by_rubric:
            judged += [record for record in records if record.is_graded]
    yield from self_judged(judged, facts.model, facts.judge, facts.provenance)


def _versions_of(what: str, spec: str, names: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each model of a SPEC whose counted ``names`` are of several versions."""
    members = spec.split(" ")
    found: dict[str, Counter[str]] = {one: Counter() for one in members}
    for name, times in names.items():
        parts = name.split(" ") if len(members) > 1 else [name]
        for member, part in zip(members, parts, strict=False):
            if part not in ("", member):
                found[member][part] += times
    for member, counts in found.items():
        if len(counts) > 1:
            listed = ", ".join(
                f"{name} ({times:,})" for name, times in sorted(counts.items())
            )
            yield (
                f"{what} of {len(counts)} versions of {member}, as its provider names them: "
                f"{listed}; {ASK_ANEW} asks all anew"
            )


def _gone(
    run: CountedRun, facts: Facts, earlier: Sequence[Baseline | None]
) -> Iterator[str]:
    """Yield what the earlier runs had to keep to, and this one has not, in words."""
    for baseline in earlier:
        if baseline is None:
            continue
        selected = facts.session.expected
        yield from slice_doubts(run.slices, baseline, facts.accepted, selected=selected)
        # Results of another tool were held to no gates of ours.
        was_held = baseline.reading is not None
        if baseline.role == "baseline" and was_held:
            gone = gone_gates(run.datasets, baseline.report.datasets)
            yield from gate_doubts(gone, facts.accepted)
            yield from measurement_doubts(_unmeasured(run), baseline)


def _unmeasured(run: CountedRun) -> list[str]:
    """Return the slices whose data set says that their judge may go unmeasured, and whose does."""
    return [name for name, judge in run.judges.items() if judge.waiver == UNMEASURED]


def _gates(
    run: CountedRun,
    compared: Sequence[Compared],
    earlier: Sequence[Baseline | None],
) -> Iterator[GateResult]:
    baseline = earlier[0] if earlier else None
    if baseline is not None:
        run, compared = _held_as_then(run, compared, baseline)
    for dataset in run.datasets:
        slices = run.of(dataset)
        for slice_ in slices:
            yield from _bars(run, slice_, beside_baseline(compared, slice_.name))
        for sides in compared:
            scope = [sides[slice_.name] for slice_ in slices if slice_.name in sides]
            if not scope:
                continue
            yield from change_gates(dataset, scope, states_only=run.for_gates)
    for rule in _rules_of_rooms(run):
        yield from rule(run, compared)


def _held_as_then(
    run: CountedRun, compared: Sequence[Compared], baseline: Baseline
) -> tuple[CountedRun, Sequence[Compared]]:
    """Return a run whose gates are also decided by the evidence that the baseline had for them."""
    then = baseline.report.datasets
    datasets = tuple(with_evidence_of_then(dataset, then) for dataset in run.datasets)
    if datasets == run.datasets:
        return run, compared
    slices = {
        slice_.name: slice_
        for dataset in datasets
        for slice_ in dataset.slices.values()
        if slice_.name in run.slices
    }
    compared_as_then = []
    for sides in compared:
        held = {
            name: replace(side, slice_=slices[name]) for name, side in sides.items()
        }
        compared_as_then.append(held)
    return replace(run, datasets=datasets, slices=slices), compared_as_then


def _bars(
    run: CountedRun, slice_: Slice, side: PairedSlice | None
) -> Iterator[GateResult]:
    """Yield the gates of a slice on this run alone, each by its worst reading."""
    name = slice_.name
    records = run.records[name]
    readings = [BarReading(name="", slice_=slice_, records=records)]
    if name not in run.plain:
        readings = bar_readings(slice_, records, side)
    distrust = run.distrust(name)
    judge = run.judges.get(name)
    obstacle = run.summaries[name].obstacle or distrust

    def decide_by(reading: BarReading) -> Iterator[GateResult]:
        summary = run.summaries[name]
        sample: Sample | None = run.samples[name]
        if reading.name or len(reading.records) != len(run.records[name]):
            counted = summarise(reading.records, reading.slice_, for_gates=True)
            summary = replace(
                counted,
                partial=summary.partial,
                whole=summary.whole,
                sample=summary.sample,
            )
            sample = None
        doubt = partial(doubt_of, judge, reading.records) if judge else None
        yield from slice_gates(
            reading.slice_, reading.records, summary, distrust, sample, doubt=doubt
        )
        yield from corrected_gates(reading.slice_, reading.records, judge, obstacle)

    yield from worst_of(readings, decide_by)


def _rules_of_rooms(run: CountedRun) -> list[GateRule]:
    """Return the rules from rooms that a gate of this run names by its evidence."""
    evidences: set[str] = set()
    for dataset in run.datasets:
        evidences.update(threshold.evidence for threshold in dataset.pooled)
    for slice_ in run.slices.values():
        evidences.update(threshold.evidence for threshold in slice_.thresholds)
    return [
        load_gate_rule(evidence) for evidence in GATE_RULES if evidence in evidences
    ]


def _people_notes(records: Iterable[Record]) -> Iterator[str]:
    """Yield how many verdicts people gave, and who they are."""
    judged = [record for record in records if record.adjudicated_by]
    if judged:
        people = ", ".join(sorted({record.adjudicated_by for record in judged}))
        yield f"{plural(len(judged), 'verdict')} by people ({people})"


def _owed_to_people(
    inputs: ReportInputs,
    facts: Facts,
    compared: Sequence[Baseline | None],
    decision: Decision,
) -> Iterator[str]:
    """Yield the gates, but audited ones, that do not pass without people's verdicts."""
    given = Counter[str]()
    for record in inputs.records:
        if record.adjudicated_by:
            given[f"{record.dataset}:{record.language}"] += 1
    passed = [
        gate for gate in decision.gates if gate.state == "PASS" and gate.audit is None
    ]
    if not given or not passed:
        return
    records = list(in_order(inputs.records))
    for place, one in enumerate(records):
        if one.adjudicated_by:
            ungraded = replace(one, outcome="error", error="by people", votes=())
            records[place] = replace(ungraded, grade=None, rating=None, score=None)
    run = count_run(inputs, records, facts.judge, for_gates=True)
    sides = [sides_of(run, one, facts) for one in compared]
    still = {
        (one.slice, one.name, one.bar)
        for one in _gates(run, sides, compared)
        if one.state == "PASS"
    }
    for gate in passed:
        names = (
            name
            for name in given
            if gate.slice in (name, f"{name.partition(':')[0]}:*")
        )
        own = sum(given[name] for name in names)
        if own and (gate.slice, gate.name, gate.bar) not in still:
            owed = f"passes only with {plural(own, 'verdict')} by people"
            yield f"{gate.slice} {gate.name} {gate.bar}: {owed}"


def _session(
    facts: Facts,
    run: CountedRun,
    gates: Sequence[GateResult],
    compared: Sequence[Compared],
) -> decide.SessionFacts:
    """Return the session with its counts of items, and what the gates do not hold.

    What is only said of them, and decides nothing, is added by ``_decided``.

    A change is held by a slice's own gate or a pooled one; a labelled slice needs only its floor.
    """
    every = [one.counts for one in run.summaries.values()]
    decided = {
        one.slice for one in gates if one.language and not one.threshold.of_usage
    }
    decided |= {
        f"{one.dataset}:{one.language}" for one in run.calibrations if one.trusted
    }
    paired = {
        one.slice
        for one in gates
        if one.threshold.paired and not one.threshold.of_usage
    }
    for dataset in run.datasets:
        if dataset.decided_together and f"{dataset.name}:*" in paired:
            decided |= {slice_.name for slice_ in run.of(dataset)}
    needs_pairs = _needing_pairs(run, compared)
    failed = {gate.slice for gate in gates if gate.state == "FAIL"}
    return replace(
        facts.session,
        selected=sum(one.planned for one in every),
        misses=sum(one.failed for one in every),
        ungraded=sum(one.error + one.missing for one in every),
        stopped=sum(one.stopped for one in every),
        placeholder_judge=any(one.stand_in for one in run.calibrations),
        undecided=tuple(name for name in run.summaries if name not in decided),
        unpaired=tuple(
            one.name
            for one in needs_pairs
            if paired.isdisjoint((one.name, f"{one.dataset}:*"))
        ),
        blind=tuple(_blind(run, gates, compared)) if _all_pass(gates) else (),
        outvoted=tuple(_outvoted(gates, compared)) if _all_pass(gates) else (),
        unmet=_unmet(run, facts, has_baseline=bool(compared[0])),
        lost=() if run.for_gates else tuple(lost_answers(compared, failed)),
        shards=run.shards,
    )


def superseded_text(command: str) -> str:
    """Return why a run is no answer to what its folder was last asked."""
    return f"a later command wrote no report here: {command}; run that again"


def _history(facts: Facts, run: CountedRun) -> Iterator[str]:
    """Yield what was accepted, when answers were asked, and how often a release was tried."""
    if facts.accepted.text:
        yield facts.accepted.text
    yield from _of_an_earlier_run(facts, run)
    if facts.candidates.are_several:
        yield f"one of {facts.candidates.number} candidates, adjusted for their number"
    if facts.monitor:
        yield "--monitor: no try of a release, and no baseline"
    earlier_ends = max(facts.tries.values(), key=len, default=())
    if earlier_ends:
        number = _ordinal(len(earlier_ends) + 1)
        ends = ", ".join(earlier_ends)
        yield f"{number} set of answers of this model to these items: {ends}"


def _of_an_earlier_run(facts: Facts, run: CountedRun) -> Iterator[str]:
    """Yield how many answers an earlier run asked, and when it asked the oldest.

    Answers count for up to ``max_age``, and the model behind a name may be another by now. What
    another part of this run asked, with a ledger of its own, is no older than the run.
    """
    records = []
    for part in run.records.values():
        records += [record for record in part if record.asked_by]
    times = []
    for record in records:
        asked_at = record.asked_at or 0.0
        if record.asked_by != facts.run_id and asked_at < facts.started:
            times.append(asked_at)
    if times:
        moment = datetime.fromtimestamp(min(times), UTC)
        share = f"{len(times):,} of {plural(len(records), 'answer')}"
        yield f"{share} of {moment:%Y-%m-%d %H:%M} UTC, asked by an earlier run"


def _ordinal(number: int) -> str:
    """Return a number as a place in a row, for instance ``3rd``."""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{endings.get(number % 10, 'th')}"


def _waived(run: CountedRun) -> list[str]:
    """Return what was waived by the user; the line names a placeholder judge in any case."""
    lines = waived_lines(run.judges)
    kept = [line for line in lines if not line.endswith(PLACEHOLDER)]
    off = [one.name for one in run.datasets if one.health_off and run.of(one)]
    if off:
        kept.append(f"health: off in {first_of(off)}")
    return kept


def _all_pass(gates: Sequence[GateResult]) -> bool:
    return all(gate.state == "PASS" for gate in gates)


def _needing_pairs(run: CountedRun, compared: Sequence[Compared]) -> list[Slice]:
    """Return the slices that need a gate on the change since an earlier run that has them."""
    slices = []
    for name, slice_ in run.slices.items():
        sizes = [_items_of(sides[name]) for sides in compared if name in sides]
        if slice_.kind.answered and max(sizes, default=0) >= FEWEST_TO_PAIR:
            slices.append(slice_)
    return slices


def _items_of(side: PairedSlice) -> int:
    """Return the number of items of the earlier run.

    No setting changes it: retired items count, and those that share a cluster one by one.
    """
    return len(side.pairing.earlier_ids)


def _few_items(run: CountedRun, compared: Sequence[Compared]) -> Iterator[str]:
    """Yield the slices of which bars decide alone, as they have too few items for more."""
    large = {slice_.name for slice_ in _needing_pairs(run, compared)}
    for name in run.slices:
        sizes = [_items_of(sides[name]) for sides in compared if name in sides]
        if any(sizes) and name not in large and run.slices[name].kind.answered:
            yield f"{name} ({plural(max(sizes), 'item')})"


def _blind(
    run: CountedRun, gates: Sequence[GateResult], compared: Sequence[Compared]
) -> Iterator[str]:
    """Yield the slices whose gates a loss of right answers may pass, each with the loss.

    A slice needs a gate of its own that notices it, and beside an earlier run one on the change.
    """
    needing_pairs = {slice_.name for slice_ in _needing_pairs(run, compared)}
    for name, slice_ in run.slices.items():
        if not slice_.kind.answered:
            continue
        bars = [
            gate.threshold
            for gate in gates
            if gate.slice == name and not gate.threshold.paired
        ]
        own = _changes_of(gates, compared, name, [name])
        records: Sequence[Record] = run.records[name]
        if slice_.retired.ids:
            records = [
                record for record in records if record.id not in slice_.retired.ids
            ]
        loss = ""
        if bars or own:
            loss = unnoticed_loss(slice_, records, bars, own)
        if not loss and name in needing_pairs:
            pool = [
                other.name
                for other in run.slices.values()
                if other.dataset == slice_.dataset
            ]
            changes = [*own, *_changes_of(gates, compared, f"{slice_.dataset}:*", pool)]
            if changes:
                loss = unnoticed_loss(slice_, (), (), changes)
        if loss:
            yield f"{name} ({loss})"


def _outvoted(
    gates: Sequence[GateResult], compared: Sequence[Compared]
) -> Iterator[str]:
    """Yield the slices that lost what only a pool let pass, each with its loss.

    A pool stands in for the gate that a slice lacks. It cannot where the slice alone is shown to
    be worse, and by more than the pool may lose: the other languages outvoted it.
    """
    for sides in compared:
        margins = {}
        for name, side in sides.items():
            own = _drop_margins(gates, name, side.role)
            pooled = _drop_margins(gates, f"{side.slice_.dataset}:*", side.role)
            if pooled and not own:
                margins[name] = min(pooled)
        if not margins:
            continue
        for side, difference in shown_losses(sides):
            margin = margins.get(side.slice_.name)
            if margin is not None and -difference.value > margin:
                yield loss_text(side, difference)


def _drop_margins(gates: Sequence[GateResult], scope: str, role: Role) -> list[float]:
    """Return the margins of a slice or a pool for the share that passes."""
    margins = []
    for gate in gates:
        is_drop = gate.threshold.measure == DROP and not gate.threshold.of
        is_beside = gate.anchored == (role == "anchor")
        if gate.slice == scope and is_drop and is_beside:
            margins.append(gate.threshold.max or 0.0)
    return margins


def _changes_of(
    gates: Sequence[GateResult],
    compared: Sequence[Compared],
    scope: str,
    names: Sequence[str],
) -> Changes:
    """Return the gates of a slice or a pool on a change, each with the slices that it is about."""
    changes = []
    for gate in gates:
        if gate.slice != scope or not gate.threshold.paired:
            continue
        role = "anchor" if gate.anchored else "baseline"
        for sides in compared:
            scoped = [sides[name] for name in names if name in sides]
            if scoped and scoped[0].role == role:
                changes.append((gate.threshold, scoped))
    return changes


def _unmet(run: CountedRun, facts: Facts, *, has_baseline: bool) -> str:
    """Return why a baseline is needed where there is none, and which to give."""
    if has_baseline or facts.accepted.no_baseline:
        return ""
    if facts.needs_baseline:
        return facts.needs_baseline
    required = [
        dataset.name
        for dataset in run.datasets
        if dataset.baseline_required and run.of(dataset)
    ]
    if not required:
        return ""
    return f"baseline: required in {first_of(required)}; give --baseline=PATH"


def _cautions(run: CountedRun, compared: Sequence[Compared]) -> Iterator[str]:
    if laxer := [line for one in run.datasets for line in one.laxer]:
        yield f"the gates file is laxer: {first_of(laxer)}"
    for one in run.summaries.values():
        if one.sample and one.sample.pinned and one.sample.items < FEW_SAMPLED:
            yield f"only {one.sample.share} items of {one.name}"
    gates = [gate for one in run.slices.values() for gate in one.thresholds]
    gates += [gate for one in run.datasets if run.of(one) for gate in one.pooled]
    if (lacking := sum(gate.paired for gate in gates)) and not any(compared):
        yield f"{plural(lacking, 'paired gate')} had no baseline"
    few = list(_few_items(run, compared))
    if few:
        yield f"too few items to compare: {first_of(few)}"
    yield from _named_alike(compared)


def _named_alike(compared: Sequence[Compared]) -> Iterator[str]:
    """Yield which name is in the replies of models that were asked by different names."""
    by_name: dict[str, str] = {}
    for sides in compared:
        for side in sides.values():
            if side.named_alike and not side.narrow:
                by_name[side.named_alike] = side.role
    for name, role in by_name.items():
        yield f"replies of this run and of the {role} name one model, {name}"


def _gate_notes(
    run: CountedRun,
    since: Comparison | None,
    session: decide.SessionFacts,
    decision: Decision,
) -> Iterator[str]:
    """Yield what touches the verdict: gates that lack, are laxer, or cannot pass; parts alone."""
    warnings = [f"anchor: {warning}" for warning in (since.warnings if since else ())]
    if shards := run.shards:
        lacking = first_of(list(map(str, shards.missing)))
        warnings.insert(0, f"{decide.MERGE}; missing here of {shards.of}: {lacking}")
    drawn = [
        f"{name} {one.sample.text}" for name, one in run.summaries.items() if one.sample
    ]
    if drawn:
        warnings.append(f"only a sample was asked: {'; '.join(drawn)}")
    for name in session.undecided:
        what = " on verdicts" if run.slices[name].thresholds else ""
        none = f"{name}: no gate of its own{what}"
        warnings.append(f"{none}; a run passes only over slices that have one")
    sizes = dict[str, int]()
    for dataset in run.datasets:
        if own := run.of(dataset):
            asked = ((one, record) for one in own for record in run.records[one.name])
            clusters = clusters_in(asked)
            warnings += notes.margin_warnings(dataset, clusters)
            sizes |= {name: n for name, n, _ in notes.scoped_gates(dataset, clusters)}
        warnings += [f"the gates file is laxer: {line}" for line in dataset.laxer]
        if left_out := ", ".join(dataset.left_out):
            warnings.append(f"gates left out by the gates file: {left_out}")
    yield from (f"{WARNING}{one}" for one in warnings)
    yield from notes.small_notes(decision.gates, sizes)
    yield from notes.ceiling_notes(decision.gates, run.slices)
    if since:
        found = [(one.name, one.difference) for one in since.slices if one.difference.n]
        moved = [
            f"{name} {one.text()} of {plural(one.n, 'pair')}" for name, one in found
        ]
        yield f"new - old since the anchor: {'; '.join(moved) or 'no pair'}"
    yield from notes.settled_notes(run.summaries.values(), decision.gates)
    yield from session.notes

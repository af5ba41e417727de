"""Nothing that is left out, edited, renamed or set otherwise moves a gate to PASS.

Runs are generated with all kinds of gates, then something is done to them with the same replies.
A gate that passes afterwards must have passed before. A ladder of margins stands for one margin
drawn near the edge: a ladder finds the smallest margin that passes, which must never fall.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import Dataset, EvidenceRule, Retired, Slice, Threshold
from qagate.evaluators.adjudications import Adjudication, Adjudications, answer_digest
from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
)
from qagate.evaluators.kinds import kind_of
from qagate.reports.compare.ways import read_by
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.gates.gone import gone_gates, slice_doubts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record
from qagate.reports.verdict.assemble import (
    Facts,
    ReportInputs,
    account,
    decision_of,
)
from tests.support.made_records import make_record
from tests.support.made_runs import RUBRIC

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A run of forty items does not shrink to anything a reader would rather see."""
MARGINS = (0.02, 0.05, 0.08, 0.12, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.7)
BARS = (0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FACTS = Facts(
    model="openai:new",
    judge="lexical",
    session=SessionFacts(),
    provenance={},
    run={},
)


def drops(
    of: str = "", evidence: EvidenceRule = "confident", **fields: object
) -> tuple[Threshold, ...]:
    first = Threshold(measure="drop", of=of, evidence=evidence, fail="margin")
    alike = replace(first, **fields)  # type: ignore[arg-type]
    return tuple(replace(alike, max=margin) for margin in MARGINS)


def bars(measure: str, evidence: EvidenceRule = "estimate") -> tuple[Threshold, ...]:
    return tuple(Threshold(measure=measure, min=bar, evidence=evidence) for bar in BARS)


def wider(gates: Sequence[Threshold], times: float) -> tuple[Threshold, ...]:
    """Return gates on a metric with a range so many times as wide as that of a share."""
    made = []
    for gate in gates:
        limit = None if gate.min is None else 1 + times * gate.min
        margin = None if gate.max is None else times * gate.max
        made.append(replace(gate, min=limit, max=margin))
    return tuple(made)


LADDERS: Mapping[str, tuple[Threshold, ...]] = {
    "drop": drops(),
    "drop, zero": drops(fail="zero"),
    "drop by the estimate": drops(evidence="estimate"),
    "drop, sequential": drops(evidence="sequential"),
    "drop, audited": drops(evidence="audited", share=0.5)[::2],
    "drop of a check": drops(of="check_form")[::3],
    "rise of tokens": drops(of="tokens_out", measure="rise", relative=True)[::3],
}
"""Gates by name; each stands for one gate with a bar near the edge."""
LADDERS_OF_KIND: Mapping[str, Mapping[str, tuple[Threshold, ...]]] = {
    "graded": {
        "rise of wrong answers": drops(of="incorrect", measure="rise"),
        "bar": bars("correct"),
        "confident bar": bars("correct", "confident"),
        "sequential bar": bars("correct", "sequential"),
    },
    "rated": {
        "drop of ratings": wider(drops(of="mean_rating"), 9.0)[::3],
        "bar": bars("pass_rate"),
        "confident bar on ratings": wider(bars("mean_rating", "confident"), 9.0),
        "sequential bar": bars("pass_rate", "sequential"),
    },
    "yes_no": {
        "rise of silence": drops(of="unanswered", measure="rise"),
        "bar": bars("accuracy"),
        "confident bar": bars("accuracy", "confident"),
        "sequential bar": bars("accuracy", "sequential"),
    },
}
"""Those that a kind has beside the ones above."""
RESULTS: Mapping[str, Sequence[str]] = {
    "graded": (CORRECT, CORRECT, CORRECT, INCORRECT, NOT_ATTEMPTED),
    "rated": ("9", "8", "7", "6", "2"),
    "yes_no": (YES, YES, NO, NO, UNANSWERED),
}
"""What answers get, as often as not the best."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A run and its baseline, as this run reads both."""

    now: Dataset
    then: Dataset
    new: tuple[Record, ...]
    old: tuple[Record, ...]
    reading: Reading
    people: Adjudications = field(default_factory=dict)
    """What people say of every answer as it was given."""

    def __repr__(self) -> str:
        gate = gates_of(self)[0]
        return f"World({len(self.new)} items, {gate.name} {gate.evidence})"

    def passing(self) -> set[tuple[str, Threshold]]:
        """Return the gates that pass; none where the run is INCONCLUSIVE in any case."""
        baseline = self.baseline()
        names = {f"{record.dataset}:{record.language}" for record in self.new}
        if list(slice_doubts(names, baseline)) or gone_gates([self.now], [self.then]):
            return set()
        decision = decision_of(inputs_of(self.now, self.new), FACTS, baseline)
        return {
            (gate.slice, gate.threshold)
            for gate in decision.gates
            if gate.state == "PASS"
        }

    def baseline(self) -> Baseline:
        report = account(inputs_of(self.then, self.old), FACTS, None)
        return Baseline(
            path="before",
            report=report,
            sha256="",
            reading=self.reading,
            people=self.people,
        )


def inputs_of(dataset: Dataset, records: Sequence[Record]) -> ReportInputs:
    sizes: dict[str, int] = {}
    for record in records:
        name = f"{record.dataset}:{record.language}"
        sizes[name] = sizes.get(name, 0) + 1
    return ReportInputs(datasets=(dataset,), records=tuple(records), whole=sizes)


def with_result(record: Record, slice_: Slice, result: str) -> Record:
    """Return a record with a grade, or with a rating in digits."""
    if slice_.kind.rated:
        given = replace(record, rating=int(result))
    else:
        given = replace(record, grade=result, score=RUBRIC.scores.get(result))
    return read_by(replace(given, outcome="passed"), slice_)


def at_best(record: Record, slice_: Slice) -> Record:
    """Return a record with the best verdict that its kind has."""
    best = {"graded": CORRECT, "rated": "10", "yes_no": record.label or YES}
    return with_result(record, slice_, best[slice_.kind])


def slice_of(world: "World") -> Slice:
    """Return one of its slices: they differ by their language alone."""
    return next(iter(world.now.slices.values()))


def people_on(records: Sequence[Record]) -> Adjudications:
    """Return verdicts of a person who agrees with the judge on each answer."""
    people = {}
    for record in records:
        name = answer_digest(record, record.answer or "")
        people[name] = Adjudication(
            item=record.key, digest=name, label=record.result, name="Ann"
        )
    return people


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Return a run of one or two languages with facts of several items."""
    kind = draw(st.sampled_from([*RESULTS]))
    ladders = {**LADDERS, **LADDERS_OF_KIND[kind]}
    ladder = ladders[draw(st.sampled_from([*ladders]))]
    languages = draw(st.sampled_from([("en",), ("en", "bg")]))
    pooled = len(languages) > 1 and ladder[0].paired and draw(st.booleans())
    dataset = dataset_of(kind, languages, ladder, pooled=pooled)
    # Bets on one item after another need more of them to decide anything.
    is_bet = ladder[0].evidence in ("sequential", "audited")
    size = draw(st.integers(60, 120) if is_bet else st.integers(8, 40))
    in_fact = draw(st.integers(1, 3))
    result = st.sampled_from(RESULTS[kind])
    new: list[Record] = []
    old: list[Record] = []
    for language, slice_ in dataset.slices.items():
        for number in range(size):
            item = make_record(
                number,
                dataset="facts",
                language=language,
                key=f"facts-{language}-i{number}",
                id=f"{language}{number}",
                answer=f"answer {language} {number}",
                label=draw(st.sampled_from((YES, NO))) if kind == "yes_no" else None,
                metadata={"fact_id": f"F{number // in_fact}", "group": f"{number % 4}"},
                measures={"check_form": float(draw(st.booleans()))},
                answer_tokens_out=draw(st.integers(5, 9)),
            )
            before = draw(result)
            now = before
            if draw(st.integers(0, 4)) == 0:
                now = draw(result)
            new.append(with_result(item, slice_, now))
            old.append(with_result(replace(item, answer="old"), slice_, before))
    return World(
        now=dataset,
        then=dataset,
        new=tuple(new),
        old=tuple(old),
        reading=Reading(old=tuple(old)),
        people=people_on([*old, *new]),
    )


def dataset_of(
    kind: str, languages: Sequence[str], ladder: Sequence[Threshold], *, pooled: bool
) -> Dataset:
    slices = {}
    for language in languages:
        slices[language] = Slice(
            dataset="facts",
            language=language,
            kind=kind_of(kind),
            path=Path(f"{language}.csv"),
            rubric=RUBRIC if kind == "graded" else None,
            thresholds=() if pooled else tuple(ladder),
        )
    pool: tuple[Threshold, ...] = ()
    if pooled:
        pool = tuple(replace(gate, pool=True) for gate in ladder)
    return Dataset(
        name="facts",
        folder=Path("facts"),
        kind=kind_of(kind),
        slices=slices,
        pooled=pool,
        judge_unmeasured=True,
    )


Step = Callable[[World, st.DataObject], World]
"""Something that is done to a world, with the same replies."""


def some_places(world: World, data: st.DataObject) -> set[int]:
    place = st.integers(0, len(world.new) - 1)
    return data.draw(st.sets(place, min_size=1, max_size=6), label="places")


def drop_items(world: World, data: st.DataObject) -> World:
    places = some_places(world, data)
    kept = [record for at, record in enumerate(world.new) if at not in places]
    return replace(world, new=tuple(kept))


def changed(
    world: World, places: set[int], change: Callable[[Record], Record]
) -> World:
    records = list(world.new)
    for place in places & set(range(len(records))):
        records[place] = change(records[place])
    return replace(world, new=tuple(records))


def fail_items(world: World, data: st.DataObject) -> World:
    def fail(record: Record) -> Record:
        return replace(
            record,
            outcome="error",
            grade=None,
            rating=None,
            score=None,
            measures={},
            error="x: y",
        )

    return changed(world, some_places(world, data), fail)


def stale_answers(world: World, data: st.DataObject) -> World:
    """An answer of an earlier run that may not be asked anew is no answer."""

    def unasked(record: Record) -> Record:
        return replace(
            record,
            outcome="missing",
            grade=None,
            rating=None,
            score=None,
            answer=None,
            measures={},
            answer_tokens_out=None,
        )

    return changed(world, some_places(world, data), unasked)


def edit_items(world: World, data: st.DataObject) -> World:
    """Another question, which the model answers rightly."""

    def edit(record: Record) -> Record:
        edited = replace(record, question=f"{record.question} Easy one.")
        return at_best(edited, slice_of(world))

    return changed(world, some_places(world, data), edit)


def gates_of(world: World) -> list[Threshold]:
    gates = [*world.now.pooled]
    for slice_ in world.now.slices.values():
        gates += slice_.thresholds
    return gates


def lose_readings(world: World, data: st.DataObject) -> World:
    places = some_places(world, data)
    kept = [record for at, record in enumerate(world.reading.old) if at not in places]
    return replace(world, reading=replace(world.reading, old=tuple(kept)))


def rename_ids(world: World, data: st.DataObject) -> World:
    """The reading goes with the item, by today's id."""
    places = some_places(world, data)
    names = {
        world.new[place].id: f"renamed{place}"
        for place in places
        if place < len(world.new)
    }

    def renamed(record: Record) -> Record:
        return replace(record, id=names.get(record.id, record.id))

    reading = replace(
        world.reading, old=tuple(renamed(record) for record in world.reading.old)
    )
    return replace(
        world, new=tuple(renamed(record) for record in world.new), reading=reading
    )


def copy_items(world: World, data: st.DataObject) -> World:
    """More of what is right, under ids of its own."""
    places = some_places(world, data)
    copies = []
    for place in places:
        record = world.new[place % len(world.new)]
        for copy in range(5):
            name = f"copy{copy}-{record.id}"
            added = replace(record, id=name, key=f"facts-{name}")
            copies.append(at_best(added, slice_of(world)))
    return replace(world, new=(*world.new, *copies))


def rename_facts(world: World, data: st.DataObject) -> World:
    """Every item a fact of its own, or all items some fact of another."""
    facts = data.draw(st.integers(1, 60), label="facts")

    def moved(record: Record) -> Record:
        return replace(
            record, metadata={**record.metadata, "fact_id": f"G{record.row % facts}"}
        )

    return replace(world, new=tuple(moved(record) for record in world.new))


def rename_slice(world: World, data: st.DataObject) -> World:
    if "de" in world.now.slices:
        return world
    slices = dict(world.now.slices)
    slices["de"] = replace(slices.pop("en"), language="de")
    new = [
        replace(record, language="de") if record.language == "en" else record
        for record in world.new
    ]
    return replace(world, now=replace(world.now, slices=slices), new=tuple(new))


def with_slices(world: World, change: Callable[[Slice], Slice]) -> World:
    slices = {language: change(slice_) for language, slice_ in world.now.slices.items()}
    return replace(world, now=replace(world.now, slices=slices))


def other_cluster(world: World, data: st.DataObject) -> World:
    column = data.draw(st.sampled_from(["group", "id", "nowhere"]), label="column")
    return with_slices(world, lambda slice_: replace(slice_, cluster=column))


def pass_more_grades(world: World, data: st.DataObject) -> World:
    """The rubric lets refusals pass; today's records are read so."""
    if slice_of(world).rubric is None:
        return world
    rubric = replace(RUBRIC, passing=(CORRECT, NOT_ATTEMPTED))

    def read(record: Record) -> Record:
        if record.grade != NOT_ATTEMPTED:
            return record
        return replace(record, outcome="passed")

    lenient = with_slices(world, lambda slice_: replace(slice_, rubric=rubric))
    reading = replace(
        world.reading, old=tuple(read(record) for record in world.reading.old)
    )
    return replace(
        lenient, new=tuple(read(record) for record in world.new), reading=reading
    )


def lower_pass_bar(world: World, data: st.DataObject) -> World:
    """Lower ratings pass; today's records are read so."""
    bar = data.draw(st.integers(1, 10), label="pass_bar")
    lower = with_slices(world, lambda slice_: replace(slice_, pass_bar=bar))

    def read(records: Sequence[Record]) -> tuple[Record, ...]:
        return tuple(read_by(record, slice_of(lower)) for record in records)

    reading = replace(world.reading, old=read(world.reading.old))
    return replace(lower, new=read(world.new), reading=reading)


def another_order(world: World, data: st.DataObject) -> World:
    order = data.draw(st.sampled_from(["2026", "2027"]), label="order")
    return with_slices(world, lambda slice_: replace(slice_, order=order))


def retire_items(world: World, data: st.DataObject) -> World:
    places = some_places(world, data)
    ids = tuple(world.new[place % len(world.new)].id for place in places)
    retired = Retired(ids=ids, reason="wrong")
    return with_slices(world, lambda slice_: replace(slice_, retired=retired))


def widen_golds(world: World, data: st.DataObject) -> World:
    """New golds let some of this run's answers pass; by those of then all is as before."""
    if world.reading.new_then:
        return world
    places = some_places(world, data) & set(range(len(world.new)))
    items = {world.new[place].id for place in places}
    old_then = [record for record in world.reading.old if record.id in items]
    new_then = [world.new[place] for place in sorted(places)]
    widened = changed(
        world,
        places,
        lambda record: at_best(record, slice_of(world)) if record.is_graded else record,
    )
    reading = replace(world.reading, old_then=tuple(old_then), new_then=tuple(new_then))
    return replace(widened, reading=reading)


def correct_by_people(world: World, data: st.DataObject) -> World:
    """People lift this run's misses, and look at none of the baseline's answers."""
    if any(gate.min is not None for gate in gates_of(world)):
        return world  # who reads for a bar alone moves no difference

    def lift(record: Record) -> Record:
        if record.outcome != "failed" or record.adjudicated_by:
            return record
        lifted = at_best(record, slice_of(world))
        return replace(
            lifted,
            adjudicated_by="Ann",
            judge_grade=record.grade,
            judge_rating=record.rating,
        )

    return changed(world, some_places(world, data), lift)


def ease_gates(world: World, data: st.DataObject) -> World:
    """Some gates go, or their margins grow."""

    def easier(slice_: Slice) -> Slice:
        return replace(slice_, thresholds=slice_.thresholds[1:])

    return with_slices(world, easier)


def other_evidence(world: World, data: st.DataObject) -> World:
    def estimated(gate: Threshold) -> Threshold:
        return replace(gate, evidence="estimate")

    def easier(slice_: Slice) -> Slice:
        gates = tuple(estimated(gate) for gate in slice_.thresholds)
        return replace(slice_, thresholds=gates)

    return with_slices(world, easier)


STEPS: Mapping[str, Step] = {
    "items left out": drop_items,
    "items without a grade": fail_items,
    "stale answers": stale_answers,
    "edited questions": edit_items,
    "old grades lacking": lose_readings,
    "ids renamed": rename_ids,
    "items copied": copy_items,
    "facts renamed": rename_facts,
    "a slice renamed": rename_slice,
    "another cluster column": other_cluster,
    "more grades pass": pass_more_grades,
    "another pass_bar": lower_pass_bar,
    "another order": another_order,
    "items retired": retire_items,
    "golds widened": widen_golds,
    "people on one side": correct_by_people,
    "gates taken out": ease_gates,
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
@given(worlds(), st.data())
def test_no_gate_moves_to_pass(step: str, world: World, data: st.DataObject) -> None:
    after = STEPS[step](world, data)
    assert not after.passing() - world.passing()


@pytest.mark.untraced
@settings(max_examples=25, deadline=None, phases=UNSHRUNK)
@given(worlds(), st.lists(st.sampled_from([*STEPS]), min_size=2, max_size=4), st.data())
def test_no_gate_moves_to_pass_by_several_steps(
    world: World, steps: list[str], data: st.DataObject
) -> None:
    after = world
    for step in steps:
        after = STEPS[step](after, data)
    assert not after.passing() - world.passing()


@pytest.mark.slow
@settings(max_examples=20, deadline=None, phases=UNSHRUNK)
@given(worlds(), st.data())
def test_evidence_that_asks_less_does_not_pass_alone(
    world: World, data: st.DataObject
) -> None:
    """The gate of then is held beside that of now."""
    after = other_evidence(world, data)
    before = world.passing()
    passing = after.passing()
    for name, gate in passing:
        held_then = [
            then
            for then in gates_of(world)
            if then.max == gate.max and then.min == gate.min
        ]
        for then in held_then:
            if (name, then) not in before:
                assert (name, then) not in passing

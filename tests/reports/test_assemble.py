"""Assembling a report: which slices count, whose judge is trusted, what a baseline allows."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from qagate.cases.dataset import (
    Dataset,
    EvidenceRule,
    Plan,
    PlannedItem,
    Slice,
    Threshold,
)
from qagate.evaluators.core import Outcome, Usage, Verdict
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.rubric import Rubric
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.gates.notes import ceiling_notes
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import make_record
from qagate.reports.run.report import Report
from qagate.reports.verdict.assemble import Facts, assemble
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    with_records,
)
from tests.support.scripted import make_case
from tests.support.tables import tabled

RUBRIC = Rubric(
    name="", language="bg", protocol="tool", system="", user="", version="plain.bg@1#a"
)
GRADED = graded_slice("bg", dataset="simpleqa", rubric=RUBRIC)
KIND = kind_of("judged")
JUDGED = replace(
    GRADED, dataset="judges", kind=KIND, thresholds=(), floor={"agreement": 0.6}
)


def dataset(slice_: Slice, **changes: object) -> Dataset:
    made = facts_dataset(
        slice_,
        name=slice_.dataset,
        kind=slice_.kind,
        judge_unmeasured=slice_.kind.answered,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def items_of(slice_: Slice, count: int) -> dict[str, PlannedItem]:
    made = {}
    for number in range(1, count + 1):
        label = (
            ("CORRECT", "INCORRECT")[number % 2] if slice_.kind == "judged" else None
        )
        key = f"{slice_.dataset}-{slice_.language}-q{number}"
        case = make_case(
            number, dataset=slice_.dataset, language=slice_.language, label=label
        )
        made[key] = PlannedItem(key=key, slice=slice_, case=case, repeat=1)
    return made


def outcome(
    key: str, passed: bool, judge: str = "lexical", cost: float | None = 0.0
) -> Outcome:
    grade = "CORRECT" if passed else "INCORRECT"
    return Outcome(
        key=key, state="passed" if passed else "failed", answer="София",
        verdict=Verdict(grade=grade), judge=judge,
        usage=Usage(cost=cost, input_tokens=2, output_tokens=1),
    )  # fmt: skip


def judged(items: dict[str, PlannedItem], agreed: int) -> dict[str, Outcome]:
    """Return verdicts over labelled items, of which the first ones are as the label says."""
    return {
        key: replace(
            outcome(key, (item.case.label == "CORRECT") == (number < agreed)),
            state="passed" if number < agreed else "failed",
        )
        for number, (key, item) in enumerate(items.items())
    }


def report(
    datasets: Sequence[Dataset],
    items: dict[str, PlannedItem],
    outcomes: dict[str, Outcome],
    baseline: Baseline | None = None,
    **session: object,
) -> Report:
    facts = Facts(
        model="recorded",
        judge="lexical",
        session=SessionFacts(**session),  # type: ignore[arg-type]
        provenance={"slices": {"simpleqa:bg": {"rubric": RUBRIC.version}}},
        run={},
    )
    records = [make_record(items[key], one) for key, one in outcomes.items()]
    return assemble(
        Plan(datasets=tuple(datasets), items=items), records, facts, baseline
    )


def simple(states: Sequence[bool], **changes: object) -> Report:
    """Return a report of one graded slice with these results."""
    slice_ = replace(GRADED, **changes)  # type: ignore[arg-type]
    items = items_of(slice_, len(states))
    outcomes = {
        key: outcome(key, state) for key, state in zip(items, states, strict=True)
    }
    return report([dataset(slice_)], items, outcomes)


def test_counts_tokens_and_gates_come_together() -> None:
    """One slice, one gate, exit 0; the miss is counted. A sum that lacks a price is unknown."""
    made = simple([True, True, False])
    assert made.decision.code == 0
    assert (made.counts.planned, made.counts.passed, made.counts.failed) == (3, 2, 1)
    assert made.tokens == 9
    assert "1 item missed" in made.decision.line
    items = items_of(GRADED, 2)
    first, second = items
    outcomes = {
        first: outcome(first, True, cost=0.5),
        second: outcome(second, True, cost=None),
    }
    assert report([dataset(GRADED)], items, outcomes).cost is None


@pytest.mark.parametrize(
    ("count", "evidence", "said"),
    [(19, "estimate", True), (20, "estimate", False), (19, "confident", False)],
)
def test_a_gate_that_chance_decides_is_named(
    count: int, evidence: EvidenceRule, said: bool
) -> None:
    """With a handful of items a gate that goes by the estimate alone says so."""
    bar = Threshold(measure="correct", min=0.5, evidence=evidence)
    notes = simple([True] * count, thresholds=(bar,)).notes
    assert any(f"few items: simpleqa:bg ({count})" in note for note in notes) is said
    items = items_of(GRADED, 10)
    items |= {
        f"{key}~r2": replace(one, key=f"{key}~r2", repeat=2)
        for key, one in items.items()
    }
    made = report([dataset(GRADED)], items, {key: outcome(key, True) for key in items})
    assert any("few items: simpleqa:bg (10)" in note for note in made.notes)


@tabled("right", "count", "bar", "said")
def test_a_bar_far_off_is_named(
    right: int, count: int, bar: dict[str, float], said: str
) -> None:
    """A slice at its ceiling says what it cannot see, and what would."""
    measure, change = ("incorrect", "rise") if "max" in bar else ("correct", "drop")
    rule = Threshold(measure=measure, **bar)  # type: ignore[arg-type]
    states = [number < right for number in range(count)]
    found = [
        note
        for note in simple(states, thresholds=(rule,)).notes
        if "still pass" in note
    ]
    advice = f"still pass this bar; set `{change}` with a baseline"
    assert [f"simpleqa:bg {measure} {said} {advice}"] * bool(said) == found


@pytest.mark.parametrize("language", ["bg", ""])
def test_a_paired_gate_watches_in_place_of_the_bar(language: str) -> None:
    """Where a drop is decided, of the slice or of all languages, nothing needs to be said."""
    slice_ = replace(GRADED, thresholds=(Threshold(measure="correct", min=0.5),))
    (gate,) = simple([True] * 100, thresholds=slice_.thresholds).decision.gates
    drop = replace(
        gate, language=language, threshold=Threshold(measure="drop", max=0.1)
    )
    assert [*ceiling_notes([gate], {slice_.name: slice_})]
    assert not [*ceiling_notes([gate, drop], {slice_.name: slice_})]
    own = replace(slice_, thresholds=(*slice_.thresholds, drop.threshold))
    (note,) = ceiling_notes([gate], {own.name: own})
    assert note.endswith("would still pass this bar; give --baseline")


def test_a_part_of_a_slice_and_an_unmeasured_judge_decide_nothing() -> None:
    """Items that only the plan has make it PARTIAL; a judge without labels decides nothing."""
    items = items_of(GRADED, 3)
    first = next(iter(items))
    made = report([dataset(GRADED)], items, {first: outcome(first, True)})
    assert made.slices[0].partial
    assert (made.decision.gates[0].state, made.decision.code) == ("INCONCLUSIVE", 6)
    outcomes = {key: outcome(key, True) for key in items}
    strict = replace(dataset(GRADED), judge_unmeasured=False)
    (gate,) = report([strict], items, outcomes).decision.gates
    assert "judge not measured in bg" in gate.reason
    assert gate.remedy == "measure the judge"


DROP = Threshold(measure="drop", max=0.1, evidence="confident")


def with_baseline(judge: str = "lexical", rubric: str = RUBRIC.version) -> Report:
    """Return a run of 200 right items, compared with the same run by another judge."""
    slice_ = replace(GRADED, thresholds=(DROP,))
    items = items_of(slice_, 200)
    old = report(
        [dataset(slice_)], items, {key: outcome(key, True, judge) for key in items}
    )
    origin = {"slices": {"simpleqa:bg": {"rubric": rubric}}}
    baseline = with_other_answers(before(replace(old, judge=judge, provenance=origin)))
    return report(
        [dataset(slice_)], items, {key: outcome(key, True) for key in items}, baseline
    )


@tabled("changed", "state", "reason")
def test_a_changed_judge_blocks(
    changed: dict[str, str], state: str, reason: str
) -> None:
    """200 equal items exclude a drop of 0.1, unless the difference may be the judge's own."""
    (gate,) = with_baseline(**changed).decision.gates
    assert gate.state == state
    assert reason in gate.reason
    assert gate.remedy == ("rejudge the earlier run" if changed else "")


def with_other_answers(baseline: Baseline) -> Baseline:
    """Return a baseline whose recorded answers are not those of this run's file."""
    records = [replace(one, answer="Sofia") for one in baseline.records]
    return with_records(baseline, records)


def test_a_pooled_gate_is_no_slices_own() -> None:
    """All languages lost nothing, one had no gate: no pass, unless gates are off."""
    slices = {"bg": GRADED, "en": replace(GRADED, language="en", thresholds=())}
    pooled = Threshold(measure="drop", max=0.1, evidence="confident", pool=True)
    both = replace(dataset(GRADED), slices=slices, pooled=(pooled,))
    items = {**items_of(slices["bg"], 200), **items_of(slices["en"], 2)}
    outcomes = {key: outcome(key, True) for key in items}
    earlier = with_other_answers(before(report([both], items, outcomes)))
    made = report([both], items, outcomes, earlier)
    assert {gate.state for gate in made.decision.gates} == {"PASS"}
    assert made.decision.code == 6
    line = "NO GATE for simpleqa:en: exit 6; GATES PASS (2 of 2) elsewhere"
    assert made.decision.line.startswith(line)
    items = items_of(GRADED, 1)
    outcomes = {key: outcome(key, False) for key in items}
    made = report([dataset(GRADED)], items, outcomes, gates_off=True, pytest_code=1)
    assert (made.decision.gates, made.decision.code) == ((), 1)
    made = simple([True], thresholds=(), declared=False)
    assert made.slices[0].note
    none = "WARNING: simpleqa:bg: no gate of its own; a run passes only over slices that have one"
    assert none in made.notes
    assert made.decision.code == 6


@pytest.mark.parametrize(
    ("agreed", "floor", "code"), [(20, 0.6, 0), (8, 0.6, 6), (20, 0.0, 6)]
)
def test_labels_need_no_gate_at_their_floor(
    agreed: int, floor: float, code: int
) -> None:
    """Although nothing hangs on it: the only other slice is of another language."""
    labelled = replace(
        JUDGED, language="en", floor={"agreement": floor} if floor else {}
    )
    labels, graded = items_of(labelled, 20), items_of(GRADED, 2)
    outcomes = {key: outcome(key, True) for key in graded} | judged(labels, agreed)
    made = report([dataset(GRADED), dataset(labelled)], {**labels, **graded}, outcomes)
    assert made.decision.code == code
    assert ("NO GATE for judges:en" in made.decision.line) is bool(code)


DAY = 86_400.0


@pytest.mark.parametrize(
    ("days", "by", "said"),
    [
        (2.0, "r1", "3 of 3 answers of 1970-01-02 00:00 UTC, asked by an earlier run"),
        (0.25, "r1", "of 1970-01-03 18:00 UTC, asked by an earlier run"),
        (2.0, "r2", ""),
        (-0.01, "r1", ""),
    ],
    ids=["another day", "the same day", "the run's own", "another part of the run"],
)
def test_the_line_says_when_answers_of_an_earlier_run_were_asked(
    days: float, by: str, said: str
) -> None:
    """The model behind a name may be another by now."""
    started = 3 * DAY
    made = answered("ccc", asked_by=by, asked_at=started - days * DAY)
    line = run_of(made, run_id="r2", started=started).decision.line
    assert ("asked by an earlier run" in line) == bool(said)
    assert said in line

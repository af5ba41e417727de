"""What a run reads of a baseline: the old answers, by today's cases and by those of then."""

from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.dataset import Dataset, Plan, PlannedItem
from qagate.evaluators.core import Case, Outcome, Verdict
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.earlier_answers import answers_to, reading_of
from qagate.reports.run.record import Record
from tests.support.made_runs import answered, facts_dataset, graded_slice
from tests.support.samples import report


def planned(record: Record, **changes: object) -> PlannedItem:
    """Return the item of a record, with these changes of its case since."""
    case = Case(
        id=record.id,
        dataset=record.dataset,
        language=record.language,
        row=record.row,
        question=record.question,
        context=record.context,
        golds=record.golds,
        metadata=record.metadata,
        digest=record.digest,
    )
    return PlannedItem(
        key=record.key,
        slice=graded_slice("en"),
        case=replace(case, **changes),  # type: ignore[arg-type]
        repeat=1,
    )


@pytest.fixture
def old() -> Record:
    """One record of the baseline."""
    return replace(answered("c")[0], golds=("Sofia",), answer="It is Sofia.")


def baseline(*records: Record, datasets: tuple[Dataset, ...] = ()) -> Baseline:
    """Return a baseline with these records."""
    declared = datasets or (facts_dataset(),)
    made = replace(report(), records=records, datasets=declared)
    return Baseline(path="old", report=made, sha256="ab" * 32)


def plan(*items: PlannedItem) -> Plan:
    """Return a plan of these items."""
    return Plan(datasets=(facts_dataset(),), items={item.key: item for item in items})


def test_an_answer_to_other_options_is_read_by_those(old: Record) -> None:
    """Letter B was another option then."""
    then = replace(
        old, question="Which?\n\nA) Sofia\nB) Ruse", options=("Sofia", "Ruse")
    )
    item = planned(
        old,
        question="Which?\n\nA) Ruse\nB) Sofia",
        options=("Ruse", "Sofia"),
        digest="x",
    )
    answer = answers_to(plan(item), baseline(then)).by_key[item.key]
    assert answer.case.options == ("Sofia", "Ruse")


def test_an_unchanged_item_is_read_by_its_case(old: Record) -> None:
    """There is nothing to read by the golds of then."""
    item = planned(old)
    answer = answers_to(plan(item), baseline(old)).by_key[item.key]
    assert (answer.reply, answer.case, answer.then) == (
        "It is Sofia.",
        item.case,
        None,
    )


def test_other_golds_are_read_both_ways(old: Record) -> None:
    """Today's golds are the case's, those of then a case of their own."""
    item = planned(old, golds=("Sofia", "Sofija"))
    answer = answers_to(plan(item), baseline(old)).by_key[item.key]
    assert answer.case.golds == ("Sofia", "Sofija")
    assert answer.then is not None
    assert answer.then.golds == ("Sofia",)


def test_an_edited_item_is_read_by_the_question_of_then(old: Record) -> None:
    """The old answer belongs to the old question."""
    item = planned(old, question="Which city is the capital?")
    answer = answers_to(plan(item), baseline(old)).by_key[item.key]
    assert (answer.case.question, answer.then) == (old.question, None)


def test_an_item_without_an_own_id_is_found_by_its_question(old: Record) -> None:
    """Its id is made of question and gold, and is another once the gold is."""
    item = planned(old, id="other", golds=("Sofija",))
    answer = answers_to(plan(item), baseline(old)).by_key[item.key]
    assert answer.reply == "It is Sofia."


def test_an_added_item_has_no_earlier_answer(old: Record) -> None:
    """Nothing of it is read."""
    item = planned(old, id="new", question="Another question?")
    assert answers_to(plan(item), baseline(old)).by_key == {}


def test_words_of_then_make_a_slice_of_then() -> None:
    """Its words are the old ones, all else is as declared today."""
    record = answered("c")[0]
    then = facts_dataset(graded_slice("en", yes="aye", no="nay"))
    item = planned(record)
    answers = answers_to(plan(item), baseline(record, datasets=(then,)))
    assert answers.slices_then["facts:en"] == replace(item.slice, yes="aye", no="nay")


def test_the_reading_has_todays_grade_and_the_old_answer(old: Record) -> None:
    """What the earlier run said of its answer plays no part."""
    item = planned(old)
    made = baseline(old)
    read = Outcome(
        key=item.key,
        state="failed",
        answer="It is Sofia.",
        verdict=Verdict(grade="INCORRECT", reason="it is not"),
    )
    outcome = Outcome(key=item.key, state="passed", readings={"baseline": read})
    answers = answers_to(plan(item), made)
    reading = reading_of(plan(item), made, answers, {item.key: outcome}, {})
    (record,) = reading.old
    assert (record.answer, record.grade, record.outcome) == (
        "It is Sofia.",
        "INCORRECT",
        "failed",
    )


def test_the_reading_keeps_what_the_old_answer_took(old: Record) -> None:
    """Seconds, tokens and cost are those of the call then."""
    item = planned(old)
    made = baseline(replace(old, answer_seconds=1.5, asked_by="r1"))
    read = Outcome(key=item.key, state="passed", answer=old.answer)
    outcome = Outcome(key=item.key, state="passed", readings={"baseline": read})
    answers = answers_to(plan(item), made)
    (record,) = reading_of(plan(item), made, answers, {item.key: outcome}, {}).old
    assert (record.answer_seconds, record.asked_by) == (1.5, "r1")


def test_readings_by_the_golds_of_then_stand_apart(old: Record, tmp_path: Path) -> None:
    """Both sides are read so: the old answer, and this run's own."""
    item = planned(old, golds=("Sofija",))
    made = baseline(old)
    read = Outcome(key=item.key, state="passed", answer="read")
    readings = dict.fromkeys(("baseline", "baseline:then", "baseline:now-then"), read)
    outcome = Outcome(key=item.key, state="passed", readings=readings)
    answers = answers_to(plan(item), made)
    reading = reading_of(plan(item), made, answers, {item.key: outcome}, {})
    assert [record.golds for record in reading.old_then] == [("Sofia",)]
    assert [record.golds for record in reading.new_then] == [("Sofia",)]

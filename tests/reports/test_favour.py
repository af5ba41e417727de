"""Labels on answers of both runs: a note says how far the judge may favour one; gates may stop."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.kinds import kind_of
from qagate.reports.judge.favour import FEWEST_LABELS, favour_of, shown_favours
from qagate.reports.judge.labels import Labels
from qagate.reports.render.sentence import FAVOUR
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from tests.support.figures import some
from tests.support.made_records import make_dataset, make_slice
from tests.support.made_runs import (
    RUBRIC,
    answered,
    facts_dataset,
    graded_slice,
    run_of,
)

DROP = Threshold(measure="drop", max=0.2, evidence="confident")
SLICE = graded_slice("en", DROP)
LABEL_SLICE = make_slice(
    "judged",
    dataset="facts_labels",
    language="en",
    rubric=RUBRIC,
    floor={"agreement": 0.5},
)
LETTERS = "c" * 60 + "i" * 40
SHARES = {CORRECT: "0.6", INCORRECT: "0.4"}
Says = Callable[[int, Record], str]


def labelled(records: list[Record], says: Says, prefix: str) -> list[Record]:
    """Return labels that were drawn, one for each record."""
    return [
        replace(
            record,
            key=f"calibration:facts_labels-en-{prefix}{number}",
            id=f"{prefix}{number}",
            dataset="facts_labels",
            label=says(number, record),
            outcome="passed" if says(number, record) == record.grade else "failed",
            metadata={
                "drawn_grade": record.grade,
                "drawn_share": SHARES.get(record.grade or "", "1"),
                **record.metadata,
            },
        )
        for number, record in enumerate(records)
    ]


def as_graded(number: int, record: Record) -> str:
    return record.grade or ""


def wrong_in_part(number: int, record: Record) -> str:
    """Say that every third answer that passes is wrong."""
    if number % 3 == 0:
        return INCORRECT
    return record.grade or ""


def old_records() -> list[Record]:
    return [
        replace(record, answer=f"old {record.answer}") for record in answered(LETTERS)
    ]


def report_of(new_says: Says, old_says: Says = as_graded) -> Report:
    dataset = facts_dataset(SLICE, judge_unmeasured=False)
    new = answered(LETTERS)
    old = old_records()
    labels = [*labelled(new, new_says, "n"), *labelled(old, old_says, "o")]
    return run_of(
        new,
        dataset,
        baseline=run_of(old, dataset),
        labels=tuple(labels),
        label_datasets=(make_dataset(LABEL_SLICE),),
    )


def test_a_fair_judge_is_noted_beside_the_margin() -> None:
    report = report_of(as_graded)
    (note,) = [note for note in report.notes if "may favour" in note]
    assert note.startswith("facts:en: the judge may favour the new run")
    assert "by 0.000, 95 % interval" in note
    assert "over 200 labels on answers of both runs; the margin is <= 0.2" in note
    (gate,) = report.decision.gates
    assert gate.state == "PASS"


def test_a_judge_that_favours_a_run_decides_no_paired_gate() -> None:
    (gate,) = report_of(wrong_in_part).decision.gates
    assert gate.state == "INCONCLUSIVE"
    assert "judge not trusted in en: it favours the new run by" in gate.reason
    assert FAVOUR.search(gate.reason), "the sentence cannot read it"
    assert gate.remedy == "use another judge"


def test_it_may_favour_the_old_run() -> None:
    (gate,) = report_of(as_graded, wrong_in_part).decision.gates
    assert "it favours the old run by -" in gate.reason
    assert FAVOUR.search(gate.reason), "the sentence cannot read it"


def labels_of(*records: Record) -> Labels:
    return Labels(slice_=SLICE, own=tuple((LABEL_SLICE, record) for record in records))


def test_labels_of_one_run_say_nothing() -> None:
    new = answered(LETTERS)
    labels = labels_of(*labelled(new, as_graded, "n"))
    assert favour_of(SLICE, labels, new, old_records()) is None


def test_labels_that_nobody_drew_say_nothing() -> None:
    """Answers that were picked by hand are none of all the run's."""
    new = answered(LETTERS)
    by_hand = [replace(record, metadata={}) for record in labelled(new, as_graded, "n")]
    assert favour_of(SLICE, labels_of(*by_hand), new, new) is None


def test_few_labels_say_nothing() -> None:
    new = answered(LETTERS)
    labels = labelled(new, as_graded, "n")
    few = labels_of(*labels[: FEWEST_LABELS - 1])
    enough = labels_of(*labels[:FEWEST_LABELS])
    assert favour_of(SLICE, few, new, new) is None
    assert favour_of(SLICE, enough, new, new) is not None


def test_an_answer_that_both_runs_gave_counts_in_both() -> None:
    new = answered(LETTERS)
    favour = some(favour_of(SLICE, labels_of(*labelled(new, as_graded, "n")), new, new))
    assert favour.labels == 200
    assert favour.estimate.value == 0


def test_an_ungraded_answer_counts_in_no_run() -> None:
    new = answered(f"{LETTERS}e")
    labels = labels_of(*labelled(answered(LETTERS), as_graded, "n"))
    favour = some(favour_of(SLICE, labels, new, new))
    assert sum(grade.share for grade in favour.new.grades) == pytest.approx(1)


def test_ratings_count_by_side_and_nearness_to_the_bar() -> None:
    part = graded_slice(kind=kind_of("rated"), pass_bar=7)
    records = [
        replace(record, grade=None, rating=rating)
        for record, rating in zip(answered("c" * 40), [10, 8, 6, 2] * 10, strict=True)
    ]
    labels = labels_of(*labelled(records, lambda n, record: str(record.rating), "n"))
    favour = some(favour_of(part, labels, records, records))
    assert [(grade.passes, grade.labels) for grade in favour.new.grades] == [
        (True, 10),
        (True, 10),
        (False, 10),
        (False, 10),
    ]


def test_a_finding_is_adjusted_for_the_number_of_languages() -> None:
    """One that holds alone is none among many."""
    new = answered(LETTERS)
    old = old_records()
    says: Says = lambda number, record: (  # noqa: E731  # a table of one row
        INCORRECT if number in range(0, 60, 7) else record.grade or CORRECT
    )
    labels = labels_of(*labelled(new, says, "n"), *labelled(old, as_graded, "o"))
    favour = some(favour_of(SLICE, labels, new, old))
    fair = some(favour_of(SLICE, labels_of(*labelled(new, as_graded, "n")), new, new))
    p_value = favour.p_value()
    assert p_value < 0.05
    others = {f"s{number}": ("xx", fair) for number in range(int(0.05 / p_value) + 1)}
    alone = shown_favours({"facts:en": ("en", favour)})
    among_many = shown_favours({"facts:en": ("en", favour), **others})
    assert alone["facts:en"].is_shown
    assert not among_many["facts:en"].is_shown

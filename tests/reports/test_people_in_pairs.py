"""People's verdicts count in a paired gate for both sides, or for none."""

from collections.abc import Sequence
from dataclasses import replace

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.reports.compare.people import with_fair_verdicts
from qagate.reports.compare.states import pair_records
from qagate.reports.run.record import Record
from tests.support.made_records import make_slice
from tests.support.made_runs import answered

SLICE = make_slice("graded")


def read(record: Record, grade: str) -> Record:
    """Return a record that a person read: the judge's own grade stands beside."""
    return replace(
        record,
        grade=grade,
        outcome="passed" if grade == CORRECT else "failed",
        adjudicated_by="Ann",
        judge_grade=record.grade,
    )


def grades(
    new: Sequence[Record],
    old: Sequence[Record],
) -> list[tuple[str | None, str | None]]:
    pairing = with_fair_verdicts(pair_records(new, old), SLICE)
    return [(pair.old.grade, pair.new.grade) for pair in pairing.pairs]


def test_a_person_on_one_side_does_not_count() -> None:
    new = answered("iic")
    lifted = [read(new[0], CORRECT), *new[1:]]
    assert grades(lifted, answered("ccc"))[0] == (CORRECT, INCORRECT)


def test_people_count_where_both_answers_of_all_flips_were_read() -> None:
    new, old = answered("ic"), answered("cc")
    assert grades([read(new[0], CORRECT), new[1]], [read(old[0], CORRECT), old[1]]) == [
        (CORRECT, CORRECT),
        (CORRECT, CORRECT),
    ]


def test_a_flip_that_nobody_read_leaves_all_to_the_judge() -> None:
    new, old = answered("iic"), answered("ccc")
    half_read = grades(
        [read(new[0], CORRECT), *new[1:]], [read(old[0], CORRECT), *old[1:]]
    )
    assert half_read[0] == (CORRECT, INCORRECT)


def test_gains_have_to_be_read_as_well_as_losses() -> None:
    new, old = answered("ic"), answered("ci")
    losses_read = grades(
        [read(new[0], CORRECT), new[1]], [read(old[0], CORRECT), old[1]]
    )
    assert losses_read[0] == (CORRECT, INCORRECT)


def test_without_a_grade_of_the_judge_the_answer_is_ungraded() -> None:
    new = answered("i")
    unknown = replace(read(new[0], CORRECT), judge_grade=None)
    assert grades([unknown], answered("c")) == [(CORRECT, None)]

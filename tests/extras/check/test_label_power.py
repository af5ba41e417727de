"""What labels can show of a judge agrees with what a run would find by the same labels."""

from dataclasses import replace

import pytest

from qagate.cases.extras.check.label_power import (
    Floor,
    LabelClass,
    least_right,
    lower_end,
    lower_end_of_youden,
    questions_needed,
    sentences,
)
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.statistics.intervals import wilson
from qagate.reports.judge.calibration import calibration_of
from qagate.reports.judge.labels import LabelSet
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.evidence import Calibration
from qagate.reports.run.record import Record
from tests.support.made_records import make_record, make_slice

FLOOR = Floor(share=0.9, limit=0.85)
SLICE = make_slice("judged", floor={"agreement": 0.9}, floor_limit={"agreement": 0.85})


def classes(right: int, wrong: int, refused: int = 0) -> list[LabelClass]:
    """Return classes of so many answers, each answer on a question of its own."""
    sizes = {CORRECT: right, INCORRECT: wrong, NOT_ATTEMPTED: refused}
    total = sum(sizes.values())
    made = []
    start = 0
    for name, size in sizes.items():
        answers_to = [0] * total
        answers_to[start : start + size] = [1] * size
        start += size
        made.append(
            LabelClass(name=name, passes=name == CORRECT, answers_to=tuple(answers_to))
        )
    return made


def said_of(
    right: int, wrong: int, refused: int = 0, floor: Floor = FLOOR
) -> list[str]:
    made = classes(right, wrong, refused)
    return sentences(made, [1] * (right + wrong + refused), floor)


def measured(right_errors: int, wrong_errors: int) -> list[Record]:
    """Return 60 right and 60 wrong answers to questions of their own, so many misjudged."""
    records = []
    for number in range(120):
        label, errors = (
            (CORRECT, right_errors) if number < 60 else (INCORRECT, wrong_errors)
        )
        is_error = number % 60 < errors
        grade = {CORRECT: INCORRECT, INCORRECT: CORRECT}[label] if is_error else label
        outcome = "failed" if is_error else "passed"
        records.append(make_record(number, label=label, grade=grade, outcome=outcome))
    return records


def test_one_error_less_reaches_the_limit_and_one_more_does_not() -> None:
    least = least_right([1] * 93, 0.85)
    assert least is not None
    assert lower_end([1] * 93, 93 - least) >= 0.85
    assert lower_end([1] * 93, 93 - least + 1) < 0.85


def test_labels_without_an_error_reach_what_wilson_says() -> None:
    interval = wilson(40, 40)
    assert interval is not None
    assert lower_end([1] * 40, 0) == pytest.approx(interval[0])


def test_answers_to_one_question_show_less_than_answers_to_many() -> None:
    assert lower_end([4] * 15, 2) < lower_end([1] * 60, 2)


def test_questions_needed_are_the_fewest_that_a_judge_without_an_error_needs() -> None:
    needed = questions_needed(0.85)
    assert least_right([1] * needed, 0.85) == needed
    assert least_right([1] * (needed - 1), 0.85) is None


def calibrated(records: list[Record]) -> Calibration:
    labels = LabelSet(slice_=SLICE, records=tuple(records))
    return calibration_of(labels, summarise(records, SLICE), (), "openai:judge")


def test_the_lower_end_of_j_is_that_of_a_run() -> None:
    records = measured(2, 5)
    found = calibrated(records)
    right, wrong, _ = classes(60, 60)
    assert found.measures["youden"].low == pytest.approx(
        lower_end_of_youden(right, wrong, errors=(2, 5))
    )


@pytest.mark.parametrize(("errors", "is_trusted"), [(10, True), (11, False)])
def test_the_floor_takes_as_many_as_a_run_does(errors: int, is_trusted: bool) -> None:
    """The run trusts a judge that is right on 110 of 120, and none that is on 109."""
    records = measured(errors // 2, errors - errors // 2)
    found = calibrated(records)
    assert (found.trusted is True) is is_trusted
    assert said_of(60, 60)[-1] == "the floor takes 110 of all 120 (0.917)"


def test_a_class_is_named_with_what_it_takes() -> None:
    assert said_of(93, 93)[0] == (
        "to be shown right on 0.85 of each class, a judge has to grade 86 of 93 CORRECT "
        "(0.925), 86 of 93 INCORRECT (0.925) as labelled"
    )


def test_a_class_on_too_few_questions_is_named_with_how_many_it_takes() -> None:
    assert said_of(93, 6)[1] == (
        "no judge can be shown right on 0.85 of 6 INCORRECT (on 6 questions): "
        "it takes 22 questions"
    )


def test_the_class_of_wrong_answers_that_is_judged_worst_sets_j() -> None:
    """Few refusals have to be graded better than many wrong answers, and lift no J."""
    least = least_right([1] * 300, 0.85)
    assert least is not None
    value = 2 * least / 300 - 1
    assert said_of(300, 300, 30)[1].startswith(f"its J is {value:.3f} then")
    assert said_of(300, 30, 300)[1].startswith(f"its J is {value:.3f} then")


def test_errors_of_both_classes_do_not_meet_on_one_question() -> None:
    """A right and a wrong answer to each question show as much J as answers to other ones."""
    apart = classes(60, 60)
    together = [replace(each, answers_to=(1,) * 60) for each in apart[:2]]
    low = lower_end_of_youden(together[0], together[1], errors=(5, 5))
    assert low == pytest.approx(
        lower_end_of_youden(apart[0], apart[1], errors=(5, 5)), abs=0.002
    )


def test_many_labels_are_held_by_the_share_of_the_floor() -> None:
    """With 400 the lower end would be content with less than 0.90."""
    assert said_of(200, 200)[-1] == "the floor takes 360 of all 400 (0.900)"


def test_labels_of_one_side_show_no_j() -> None:
    assert "nothing shows that a judge tells them apart" in said_of(93, 0)[1]


def test_labels_without_a_floor_are_held_against_a_coin() -> None:
    said = said_of(10, 10, floor=Floor())
    assert said[0].startswith("to be shown right on 0.5 of each class")
    assert not any("floor" in sentence for sentence in said)


def test_labels_too_few_for_the_floor_are_told() -> None:
    said = said_of(5, 5)
    assert said[-1] == "10 labels on 10 questions show no floor, even without an error"

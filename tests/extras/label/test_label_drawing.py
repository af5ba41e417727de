"""Which answers are labelled: so many of each grade, spread over questions, blind."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.extras.review.goals import (
    Goal,
    best_stratum,
    progress_of,
)
from qagate.cases.extras.review.page import form_page
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, UsageError
from qagate.evaluators.kinds import kind_of
from qagate.reports.extras.label.drawing import (
    FEW_FAR,
    MAX_SPARE,
    LabelAnswer,
    answers_of,
    bands,
    draw_answers,
    shares_of,
    strata_of,
    with_reading,
)
from qagate.reports.run.clean import MASK
from tests.support.labelling import LabelProject, rated_records
from tests.support.made_records import make_slice
from tests.support.made_runs import answered, graded_slice

MANY = "c" * 200 + "i" * 60 + "n" * 20
SLICE = graded_slice()
SLICES = {SLICE.name: SLICE}


def drawn_of(letters: str) -> list[LabelAnswer]:
    return answers_of(answered(letters), SLICES, "r1")


def test_thirty_of_each_grade_are_drawn_and_all_of_a_rare_one() -> None:
    drawing = draw_answers(SLICE, drawn_of(MANY), {})
    counts = Counter(answer.stratum for answer in drawing.first)
    assert counts == {CORRECT: 30, INCORRECT: 30, NOT_ATTEMPTED: 20}


def test_spare_answers_follow_for_each_grade() -> None:
    drawing = draw_answers(SLICE, drawn_of(MANY), {})
    counts = Counter(answer.stratum for answer in drawing.spare)
    assert counts == {CORRECT: MAX_SPARE, INCORRECT: 30}
    assert not {answer.id for answer in drawing.first} & {
        answer.id for answer in drawing.spare
    }


def test_grades_are_mixed_in_the_order_shown() -> None:
    """Nobody should know what comes next: the first ten are not of one grade."""
    drawing = draw_answers(SLICE, drawn_of(MANY), {})
    assert len({answer.stratum for answer in drawing.first[:10]}) == 3


def test_the_same_seed_draws_the_same() -> None:
    answers = drawn_of(MANY)
    first = draw_answers(SLICE, answers, {}, seed=3)
    assert draw_answers(SLICE, answers[::-1], {}, seed=3) == first
    assert draw_answers(SLICE, answers, {}, seed=4).first != first.first


def test_a_goal_is_thirty_or_as_many_as_the_judge_has_given() -> None:
    goals = draw_answers(SLICE, drawn_of(MANY), {}).goals
    assert [(goal.name, goal.wanted) for goal in goals] == [
        (CORRECT, 30),
        (INCORRECT, 30),
        (NOT_ATTEMPTED, 20),
    ]


def test_a_labelled_answer_counts_and_is_not_drawn_again() -> None:
    answers = drawn_of(MANY)
    labelled = draw_answers(SLICE, answers, {}).first[:5]
    labels = {answer.row_id: CORRECT for answer in labelled}
    drawing = draw_answers(SLICE, answers, labels)
    assert not {answer.id for answer in labelled} & {
        answer.id for answer in (*drawing.first, *drawing.spare)
    }
    assert drawing.goals[0].have == 5
    assert len(drawing.first) == 75


def test_a_question_has_no_second_answer_before_each_has_one() -> None:
    """Two runs answer 40 questions: the 30 answers drawn stand on 30 of them."""
    records = answered("c" * 40)
    later = [replace(record, answer=f"later: {record.id}") for record in records]
    answers = [*answers_of(records, SLICES, "r1"), *answers_of(later, SLICES, "r0")]
    drawing = draw_answers(SLICE, answers, {})
    assert len({answer.record.question for answer in drawing.first}) == 30
    assert {answer.run for answer in drawing.first} == {"r0", "r1"}


def test_the_same_answer_of_two_runs_is_drawn_once() -> None:
    records = answered("c" * 10)
    answers = [*answers_of(records, SLICES, "r1"), *answers_of(records, SLICES, "r0")]
    assert len(draw_answers(SLICE, answers, {}).first) == 10


def test_the_share_of_a_grade_is_that_of_all_graded_answers() -> None:
    shares = shares_of(drawn_of("cccie"))
    assert shares == {(SLICE.name, CORRECT): 0.75, (SLICE.name, INCORRECT): 0.25}


def test_an_answer_without_a_grade_is_not_drawn() -> None:
    assert len(drawn_of("cem")) == 1


def test_an_answer_with_a_masked_key_is_not_drawn() -> None:
    """Two masked answers cannot be told apart."""
    (record,) = answered("c")
    masked = replace(record, answer=f"it is {MASK}")
    assert answers_of([masked], SLICES, "r1") == []


@pytest.mark.parametrize(
    ("fields", "judged"),
    [
        ({"judge_grade": INCORRECT}, INCORRECT),
        ({"judge_grade": None, "judge_rating": 4}, "4"),
        ({"judge_grade": None}, ""),
    ],
)
def test_the_judges_own_grade_counts_where_a_persons_stands(
    fields: dict[str, object], judged: str
) -> None:
    (record,) = answered("c")
    made = replace(record, adjudicated_by="Anna", **fields)  # type: ignore[arg-type]
    assert LabelAnswer(record=made, slice_=SLICE, run="r1").judged == judged


def test_an_earlier_answer_has_the_grade_of_todays_judge() -> None:
    """The later run read it; an answer that it did not read keeps its own grade."""
    answers = drawn_of("cc")
    read = replace(answers[0].record, grade=INCORRECT)
    regraded = with_reading(answers, [read])
    assert [answer.stratum for answer in regraded] == [INCORRECT, CORRECT]


# Ratings


@pytest.mark.parametrize(
    ("bar", "expected"),
    [
        (7, ["10", "7-9", "5-6", "1-4"]),
        (10, ["10", "8-9", "1-7"]),
        (2, ["5-10", "2-4", "1"]),
        (1, ["4-10", "1-3"]),
    ],
)
def test_bands_of_ratings_lie_around_the_bar(bar: int, expected: list[str]) -> None:
    part = make_slice("rated", pass_bar=bar)
    assert list(strata_of(part)) == expected
    ratings = [rating for low, high in bands(part) for rating in range(low, high + 1)]
    assert sorted(ratings) == list(range(1, 11))


def test_ratings_near_the_bar_are_drawn_and_a_few_others() -> None:
    part = graded_slice(kind=kind_of("rated"), pass_bar=7)
    records = rated_records([8, 6, 10, 2] * 50)
    drawing = draw_answers(part, answers_of(records, {part.name: part}, "r1"), {})
    counts = Counter(answer.stratum for answer in drawing.first)
    assert counts == {"7-9": 30, "5-6": 30, "10": FEW_FAR, "1-4": FEW_FAR}
    assert [goal.name for goal in drawing.goals] == ["7-9", "5-6"]
    assert drawing.goals[0].verdicts == ("7", "8", "9")


def test_a_rating_that_is_none_is_in_no_band() -> None:
    part = graded_slice(kind=kind_of("rated"), pass_bar=7)
    (record,) = answered("c")
    assert LabelAnswer(record=record, slice_=part, run="r1").stratum == ""


# Goals

GOALS = (
    Goal(name="right", verdicts=("r",), wanted=3, have=1),
    Goal(name="wrong", verdicts=("w", "x"), wanted=3),
)


def test_progress_counts_no_more_of_a_class_than_is_wanted() -> None:
    progress = progress_of(GOALS, ["r", "r", "r", "r", "x", "?"])
    assert (progress.done, progress.wanted) == (4, 6)
    assert progress.lacking == {"wrong": 2}


def test_more_comes_from_where_people_found_what_is_lacking() -> None:
    labelled = [(1, "r"), (1, "r"), (1, "w"), (2, "w"), (3, "r")]
    assert best_stratum(GOALS, labelled, [1, 2, 3]) == 2
    assert best_stratum(GOALS, labelled, [3, 1]) == 1


def test_nothing_more_is_needed_once_the_goals_are_reached() -> None:
    labelled = [(1, "r"), (1, "r"), (2, "w"), (2, "x"), (2, "x")]
    assert best_stratum(GOALS, labelled, [1, 2]) is None
    assert best_stratum(GOALS, [], []) is None


# The sheet


def test_the_page_says_nothing_of_judge_or_run(tmp_path: Path) -> None:
    """No item has a grade, a reason, a model's name or the id of its run."""
    records = answered(MANY)
    page = form_page(LabelProject(tmp_path).sheet(records))
    start = page.index('id="data">') + len('id="data">')
    data = json.loads(page[start : page.index("</script>", start)])
    for item in data["items"]:
        item.pop("questions")  # its choices name all grades
        text = json.dumps({**item, "rules": ""})
        for word in (CORRECT, INCORRECT, NOT_ATTEMPTED, "r1", "It is", "judge-2026"):
            assert word not in text


def test_people_see_question_expected_answer_and_answer(tmp_path: Path) -> None:
    item = LabelProject(tmp_path).sheet(answered("c")).items[0]
    assert item.fields == {
        "question": "Question 0?",
        "expected": "Sofia",
        "answer": "c: 0",
    }
    assert "grade" in item.rubric.casefold()


def test_nothing_to_label_is_said(tmp_path: Path) -> None:
    project = LabelProject(tmp_path)
    with pytest.raises(UsageError, match="nothing to label: each class of facts:en"):
        project.sheet([])

"""Which kept grades are asked anew, and what their new grades say of the judge."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.judges.drift import (
    CanaryResult,
    GradeSide,
    JudgePlace,
    draw,
    judged_by,
    voids_of,
)
from tests.benchmarks.canaries import Judging, alarms

BG = JudgePlace(judge="openai:judge", language="bg", rubric="r1")
EN = JudgePlace(judge="openai:judge", language="en", rubric="r1")


@dataclass(frozen=True)
class Grade:
    """A kept grade."""

    key: str
    side: GradeSide = "wrong"
    place: JudgePlace = BG
    rank: int = 0


def grades(
    count: int, side: GradeSide = "wrong", place: JudgePlace = BG, rank: int = 0
) -> list[Grade]:
    return [
        Grade(f"{place.language}-{side}-{rank}-{number}", side, place, rank)
        for number in range(count)
    ]


# Drawing


def test_of_each_language_and_rubric_so_many_are_drawn_that_do_not_pass() -> None:
    drawn = draw([*grades(100), *grades(100, place=EN)], "run")
    assert [grade.place for grade in drawn].count(BG) == 45
    assert [grade.place for grade in drawn].count(EN) == 45


def test_refusals_are_drawn_beside_wrong_answers() -> None:
    """A judge that calls refusals correct would show nowhere else."""
    drawn = draw([*grades(100), *grades(100, "silent")], "run")
    assert [grade.side for grade in drawn].count("silent") == 15


def test_grades_that_pass_are_drawn_over_all_languages_together() -> None:
    drawn = draw([*grades(100, "right"), *grades(100, "right", EN)], "run")
    assert len(drawn) == 30
    assert {grade.place for grade in drawn} == {BG, EN}


def test_where_there_are_fewer_all_are_drawn() -> None:
    few = [*grades(7), *grades(3, "silent"), *grades(5, "right")]
    assert sorted(grade.key for grade in draw(few, "run")) == sorted(
        grade.key for grade in few
    )


def test_each_member_of_a_panel_is_drawn_for_itself() -> None:
    other = replace(BG, judge="openai:other")
    drawn = draw([*grades(60, "right"), *grades(60, "right", other)], "run")
    assert [grade.place.judge for grade in drawn].count("openai:other") == 30


def test_answers_of_the_baseline_are_drawn_before_labels() -> None:
    drawn = draw([*grades(100, rank=2), *grades(30, rank=0)], "run")
    assert [grade.rank for grade in drawn] == [0] * 30 + [2] * 15


def test_another_run_draws_others() -> None:
    """Else the same few answers would be looked at for ever."""
    pool = grades(1000)
    first = {grade.key for grade in draw(pool, "one")}
    second = {grade.key for grade in draw(pool, "two")}
    assert len(first & second) < 10


@given(st.permutations(grades(60)))
def test_the_order_of_the_grades_changes_nothing(pool: list[Grade]) -> None:
    """So shards of a run draw the same."""
    assert draw(pool, "run") == draw(grades(60), "run")


# What the new grades say


def result(place: JudgePlace, differ: int, asked: int = 60) -> CanaryResult:
    return CanaryResult(
        judge=place.judge,
        language=place.language,
        rubric=place.rubric,
        asked=asked,
        differ=differ,
    )


PASSING = BG.everywhere


@pytest.mark.parametrize(
    ("differ", "void"),
    [
        ({BG: 2, EN: 2, PASSING: 1}, []),
        ({BG: 3, EN: 2, PASSING: 0}, [BG]),
        ({BG: 3, EN: 3, PASSING: 0}, [PASSING]),
        ({BG: 2, EN: 2, PASSING: 2}, [PASSING]),
        ({BG: 0, EN: 0, PASSING: 3}, [PASSING]),
    ],
    ids=["five in all", "three here", "six", "six with passing", "three passing"],
)
def test_so_many_other_grades_make_kept_ones_void(
    differ: dict[JudgePlace, int], void: list[JudgePlace]
) -> None:
    results = [result(place, count) for place, count in differ.items()]
    assert list(voids_of(results)) == void


def test_another_version_makes_all_kept_grades_void() -> None:
    results = [replace(result(BG, 0), version="m-1, now m-2"), result(EN, 0)]
    assert list(voids_of(results)) == [BG.everywhere]


def test_a_judge_that_changed_leaves_the_grades_of_another_alone() -> None:
    other = replace(BG, judge="openai:other")
    assert list(voids_of([result(BG, 6), result(other, 2)])) == [BG.everywhere]


def test_a_result_says_why_its_grades_are_void() -> None:
    first, second = judged_by([result(BG, 3), result(EN, 0)])
    assert first.void == "3 of 60 kept grades came out otherwise"
    assert second.void == ""


def test_a_change_all_over_is_said_of_every_place() -> None:
    judged = judged_by([result(BG, 4), result(EN, 2)])
    assert {one.void for one in judged} == {"6 of 120 kept grades came out otherwise"}


@given(
    counts=st.lists(st.integers(0, 8), min_size=3, max_size=3),
    place=st.integers(0, 2),
)
def test_one_more_other_grade_never_brings_kept_grades_back(
    counts: list[int], place: int
) -> None:
    places = (BG, EN, PASSING)
    more = [count + (number == place) for number, count in enumerate(counts)]

    def void(numbers: list[int]) -> set[JudgePlace]:
        results = [result(*pair) for pair in zip(places, numbers, strict=True)]
        judged = judged_by(results)
        return {one.place for one in judged if one.void}

    assert void(counts) <= void(more)


# How often that happens (tests/benchmarks/canaries.py)


@pytest.mark.parametrize(
    ("judging", "rate"),
    [
        (Judging(tossed=0.01), 0.02),
        (Judging(tossed=0.02), 0.17),
        (Judging(drift=0.05), 0.99),
        (Judging(drift=0.10), 1.00),
    ],
    ids=str,
)
def test_how_often_kept_grades_are_void_anywhere(judging: Judging, rate: float) -> None:
    assert alarms(judging, 20_000).anywhere == pytest.approx(rate, abs=0.01)


@pytest.mark.parametrize(("drift", "rate"), [(0.05, 0.48), (0.10, 0.87)])
def test_how_often_a_drift_in_one_language_is_found(drift: float, rate: float) -> None:
    judging = Judging(drift=drift, in_one_language=True)
    found = alarms(judging, 20_000).in_first_language
    assert found == pytest.approx(rate, abs=0.02)

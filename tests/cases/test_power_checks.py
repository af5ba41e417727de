"""The linter tells of slices in which no model can get worse."""

import pytest

from cases.check.findings import Subject
from cases.check.power_checks import too_easy
from tests.support.linting import found, item, said, slice_of, subject


def answered(right: int, wrong: int, kind: str, **more: object) -> Subject:
    """Return a slice with so many right and wrong recorded answers."""
    words = {"graded": ("Paris", "Rome"), "yes_no": ("Yes", "No")}.get(kind, ("a b c", ""))
    rows = [
        item(row, f"{row}?", words[0], label="YES", recorded=words[row > right], **more)
        for row in range(1, right + wrong + 1)
    ]
    return Subject(slice_=slice_of(kind=kind, yes="Yes", no="No"), rows=(), cases=tuple(rows))


@pytest.mark.parametrize("kind", ["graded", "yes_no", "rated"])
def test_a_slice_that_its_own_answers_pass_cannot_see_a_loss(kind: str) -> None:
    """Above 95 % of twenty items or more; 95 % is where it begins."""
    assert found(too_easy, answered(20, 0, kind)) == [("warning", 0)]
    assert not found(too_easy, answered(19, 1, kind))
    assert not found(too_easy, answered(19, 0, kind))
    assert "cannot see a loss: recorded answers are right in 98% of 40" in said(
        too_easy, answered(39, 1, kind)
    )


def test_the_difficulty_that_was_published_counts_before_recorded_answers() -> None:
    """It is the share of models that were right; items without one are left out."""
    easy = answered(0, 30, "graded", metadata={"difficulty": "0.97"})
    assert "by the mean 'difficulty', in 97% of 30" in said(too_easy, easy)
    assert not found(too_easy, answered(30, 0, "graded", metadata={"difficulty": "0.5"}))


@pytest.mark.parametrize("value", ["1.5", "-1", "nan", "easy"])
def test_a_difficulty_that_is_no_share_is_an_error(value: str) -> None:
    """A percentage would count as very easy."""
    assert found(too_easy, subject(item(4, "?", metadata={"difficulty": value}))) == [("error", 4)]


def test_judged_answers_are_not_asked_of_models() -> None:
    """There the judge is tested."""
    assert not found(too_easy, answered(30, 0, "judged"))

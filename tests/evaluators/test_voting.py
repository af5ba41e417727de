"""Claims about votes: what stands, and what a vote that is missing can still change."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from evaluators.judges.ensemble import HIGHEST, LOWEST, majority, middle

SOME_GRADES = st.lists(st.sampled_from(GRADES), max_size=5)
SOME_RATINGS = st.lists(st.integers(LOWEST, HIGHEST), max_size=5)
FEW = st.integers(0, 3)
SEVERAL = st.lists(st.integers(LOWEST, HIGHEST), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("grades", "missing", "verdict"),
    [
        ([CORRECT, CORRECT, INCORRECT], 0, CORRECT),
        ([CORRECT, CORRECT, INCORRECT, NOT_ATTEMPTED], 0, CORRECT),
        ([CORRECT, INCORRECT, NOT_ATTEMPTED], 0, None),
        ([CORRECT, INCORRECT], 0, None),
        ([CORRECT, CORRECT], 1, CORRECT),
        ([CORRECT, INCORRECT], 1, None),
        ([CORRECT], 2, None),
        ([], 3, None),
        ([], 0, None),
    ],
)
def test_the_most_votes_win(grades: list[str], missing: int, verdict: str | None) -> None:
    """More votes than any other grade; a tie has no winner, and neither has what may become one."""
    assert majority(grades, missing) == verdict


@given(SOME_GRADES, FEW)
def test_what_stands_is_not_to_be_overturned(grades: list[str], missing: int) -> None:
    """A verdict with votes missing is the verdict whatever these had been, and only then given."""
    fates = {majority([*grades, *rest]) for rest in product(GRADES, repeat=missing)}
    stands = majority(grades, missing)
    assert stands == (fates.pop() if len(fates) == 1 else None)


@given(SOME_GRADES, st.randoms())
def test_no_order_of_the_judges_matters(grades: list[str], random: object) -> None:
    """The same votes in another order come to the same."""
    shuffled = sorted(grades, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert majority(shuffled) == majority(grades)


@pytest.mark.parametrize(
    ("ratings", "missing", "rating"),
    [
        ([2, 9, 7], 0, 7),
        ([6, 7], 0, 6),
        ([7, 7], 1, 7),
        ([7, 8], 1, None),
        ([1], 1, 1),
        ([], 2, None),
    ],
)
def test_the_middle_rating(ratings: list[int], missing: int, rating: int | None) -> None:
    """The median; of an even number the lower of the middle two, which is always a whole number."""
    assert middle(ratings, missing) == rating


def test_a_middle_of_its_own() -> None:
    """Where two different ratings share the middle, neither is it alone."""
    assert middle([6, 7], alone=True) is None
    assert middle([6, 6], alone=True) == 6


@given(SEVERAL, st.integers(0, 2), st.booleans())
def test_a_middle_that_stands_is_not_to_be_moved(
    ratings: list[int], missing: int, alone: bool
) -> None:
    """With ratings missing, a middle is given only where no value of theirs could change it."""
    rest = product(range(LOWEST, HIGHEST + 1), repeat=missing)
    fates = {middle([*ratings, *some], alone=alone) for some in rest}
    stands = middle(ratings, missing, alone=alone)
    assert stands == (fates.pop() if len(fates) == 1 else None)


@given(SOME_RATINGS)
def test_the_middle_is_somebodys_rating(ratings: list[int]) -> None:
    """No rating is made up: the verdict is one that was given."""
    assert middle(ratings) in {*ratings, None}

"""Claims about agreement: kappa, rank correlation, and alpha of labels and numbers."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from statsmodels.stats.inter_rater import cohens_kappa

from evaluators.statistics.agreement import (
    SPEARMAN,
    cohen_kappa,
    interval_alpha,
    kappa_parts,
    krippendorff_alpha,
    perfect_interval,
    quadratic_kappa_parts,
    spearman_parts,
)
from evaluators.statistics.intervals import unseen_share
from tests.support.figures import array, given_interval

Parts = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
labels = st.sampled_from("abc")
counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_kappa_gives_a_textbook_value() -> None:
    """Cohen (1960): 20, 5, 10, 15 of 50 is 0.4."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen_kappa(pairs).value == pytest.approx(0.4)
    low, high = given_interval(cohen_kappa(pairs).interval)
    assert 0.1 < low < 0.4 < high < 0.7


@pytest.mark.parametrize("pairs", [[], [("a", "a")] * 9])
def test_kappa_of_nothing_or_of_one_class_is_undefined(pairs: list[tuple[str, str]]) -> None:
    """No item, or one label on both sides: None, not 0 and not 1."""
    assert cohen_kappa(pairs).value is None
    assert cohen_kappa(pairs).interval is None


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=16, max_size=16))
def test_rank_correlation_and_weighted_kappa_agree_with_other_libraries(cells: list[int]) -> None:
    """Over counts: the same Spearman as scipy's over the items, the same kappa as statsmodels'."""
    table = np.array(cells, dtype=np.float64).reshape(4, 4)
    first = [row for row in range(4) for column in range(4) for _ in range(int(table[row, column]))]
    second = [
        column for row in range(4) for column in range(4) for _ in range(int(table[row, column]))
    ]
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    top, bottom = spearman_parts(table)
    assert top / bottom == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)
    top, bottom = kappa_parts(table)
    assert top / bottom == pytest.approx(cohens_kappa(table, return_results=False), abs=1e-9)
    top, bottom = quadratic_kappa_parts(table)
    weighted = cohens_kappa(table, wt="fc", return_results=False)
    assert top / bottom == pytest.approx(weighted, abs=1e-9)


def test_agreement_of_ratings_that_never_vary_is_undefined() -> None:
    """Denominator 0 where one side has a single rating."""
    table = np.zeros((10, 10))
    table[3] = 2
    assert spearman_parts(table)[1] == 0
    assert quadratic_kappa_parts(np.diag(array(0, 5, 0)))[1] == 0


def test_a_kappa_of_one_is_bounded_by_wilsons_agreement() -> None:
    """Kappa at the lower end of the agreement of 40 of 40, with the labels' chance of one half."""
    pairs = [("a", "a"), ("b", "b")] * 20
    low = 1 - unseen_share(40)
    assert cohen_kappa(pairs).interval == pytest.approx(((low - 0.5) / 0.5, 1.0))


@pytest.mark.parametrize("parts", [quadratic_kappa_parts, spearman_parts])
def test_the_bound_holds_for_a_judge_that_guesses_some_items(parts: Parts) -> None:
    """A judge that guesses as much as the bound leaves open has that coefficient on average."""
    margins = np.array([0.2, 0.5, 0.3])
    share = 0.25
    mixed = (1 - share) * np.diag(margins) + share * np.outer(margins, margins)
    numerator, denominator = parts(mixed * 1000)
    assert numerator / denominator == pytest.approx(1 - share, abs=1e-6)


def test_ranks_that_agree_without_equal_labels_are_perfect_too() -> None:
    """Every rating two points lower: the rank correlation is 1, and has an interval."""
    cells = [(rating, rating - 2) for rating in range(2, 10)] * 5
    found = SPEARMAN.of(cells, (10, 10)).interval
    assert found is not None
    assert 0.8 < found[0] < found[1] == 1


def test_a_coefficient_without_meaning_has_no_interval() -> None:
    """A table that varies too little; for kappa itself see above."""
    assert perfect_interval(np.array([[9.0]]), 9) is None


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=40))
def test_kappa_has_an_interval_around_one_wherever_it_is_one(pairs: list[tuple[str, str]]) -> None:
    """A defined kappa of 1 never lacks its interval, and the interval ends at 1."""
    same = [(first, first) for first, _ in pairs]
    if cohen_kappa(same).value is not None:
        found = cohen_kappa(same).interval
        assert found is not None
        assert -1 <= found[0] < found[1] == 1


def test_alpha_gives_the_published_example() -> None:
    """Krippendorff (2011), section C: nominal alpha 0.743, interval alpha 0.849."""
    raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[float(v) for v in unit if v is not None] for unit in zip(*raters, strict=True)]
    assert interval_alpha(units).value == pytest.approx(0.849, abs=5e-4)
    named = [[str(v) for v in unit] for unit in units]
    assert krippendorff_alpha(named).value == pytest.approx(0.743, abs=5e-4)


def test_alpha_has_an_interval_also_where_all_agree() -> None:
    """A bootstrap where raters differ, the bound of perfect agreement where they do not."""
    same, mixed = [["a", "a"], ["b", "b"]] * 20, [["a", "b"], ["b", "b"], ["a", "a"]] * 10
    numbers, spread = [[1.0, 1.0], [5.0, 5.0]] * 20, [[1.0, 2.0], [9.0, 6.0], [3.0, 3.0]] * 10
    low = 1 - 2 * unseen_share(40)
    assert krippendorff_alpha(same).interval == pytest.approx((low, 1.0))
    assert interval_alpha(numbers).interval == pytest.approx((low, 1.0))
    for value, interval in (
        (krippendorff_alpha(mixed).value, krippendorff_alpha(mixed).interval),
        (interval_alpha(spread).value, interval_alpha(spread).interval),
    ):
        assert value is not None
        assert interval is not None
        assert interval[0] < value < interval[1]


def test_alpha_is_undefined_without_pairs_or_variation() -> None:
    """Single ratings pair with nothing; one label only leaves nothing to agree on."""
    for units in ([], [["a"], []], [["a"], ["b"]], [["a", "a"]] * 3):
        assert krippendorff_alpha(units).value is None
        assert krippendorff_alpha(units).interval is None
    for numbers in ([], [[1.0], [2.0]], [[0.1, 0.1]] * 3):
        assert interval_alpha(numbers).value is None
        assert interval_alpha(numbers).interval is None


@given(st.lists(st.lists(st.integers(1, 10), min_size=2, max_size=4), max_size=12))
def test_alpha_of_numbers_does_not_move_with_the_scale(units: list[list[int]]) -> None:
    """Other units and another zero: the same alpha, never above 1."""
    plain = interval_alpha([[float(v) for v in unit] for unit in units]).value
    moved = interval_alpha([[1000 + 3.0 * v for v in unit] for unit in units]).value
    assert (plain is None) == (moved is None)
    if plain is not None:
        assert plain <= 1 + 1e-9
        assert moved == pytest.approx(plain, abs=1e-6)

"""Claims about intervals, agreement and paired differences."""

import math
import random

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import spearmanr
from statsmodels.stats.inter_rater import cohens_kappa

from evaluators.statistics.agreement import (
    cohen_kappa,
    kappa_parts,
    krippendorff_alpha,
    quadratic_kappa_parts,
    spearman_parts,
)
from evaluators.statistics.intervals import (
    clustered_rate,
    effective_size,
    percentile,
    resample,
    wilson,
)
from evaluators.statistics.paired import (
    detectable_drop,
    drop_p_value,
    holm,
    mcnemar,
    pairs_needed,
    shrink,
    smallest_n,
    tango,
)

Z90 = 1.6448536269514722


def array(*numbers: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(numbers, dtype=np.float64)


def given_interval(interval: tuple[float, float] | None) -> tuple[float, float]:
    assert interval is not None
    return interval


def test_wilson_gives_the_published_example() -> None:
    """Newcombe (1998), Stat. Med. 17:857: 81 of 263, and 15 of 148."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)


def test_wilson_at_the_edges_and_without_items() -> None:
    """0 of n starts at 0, n of n ends at 1, and no item has no interval."""
    assert given_interval(wilson(0, 20))[0] == 0
    assert given_interval(wilson(20, 20))[1] == 1
    assert wilson(0, 0) is None


def test_a_clustered_rate_of_single_items_is_wilson() -> None:
    """Items asked once, none of them repeated: nothing is clustered, up to n / (n - 1)."""
    found = given_interval(clustered_rate(array(1, 0), array(1, 1), array(300, 700)))
    assert found == pytest.approx(given_interval(wilson(300, 1000)), abs=1e-4)


def test_repeats_that_always_agree_count_once() -> None:
    """Three identical answers an item are worth one: the interval is that of the items."""
    found = given_interval(clustered_rate(array(3, 0), array(3, 3), array(30, 70)))
    assert found == pytest.approx(given_interval(wilson(30, 100)), abs=2e-3)


def test_a_clustered_rate_without_variation_still_has_width() -> None:
    """10 items right in all of 5 repeats say as much as 10 items, not as 50."""
    assert clustered_rate(array(5), array(5), array(10)) == wilson(10, 10)
    assert clustered_rate(array(), array(), array()) is None


def test_the_effective_size_stays_between_one_and_the_trials() -> None:
    """Repeats that always differ cannot be worth more than the trials; one item is one item."""
    assert effective_size(array(0), array(2), array(50), 0.25) == 100
    assert effective_size(array(0.5), array(4), array(1), 0.25) == 1
    assert effective_size(array(-9, 9), array(10, 10), array(1, 1), 0.01) == 1


def test_the_bootstrap_is_the_same_every_time_and_keeps_the_number_of_items() -> None:
    """Fixed seed; every resample has as many items as the sample."""
    patterns, items = np.eye(3).reshape(3, 1, 3), array(5, 10, 20)
    first, second = resample(patterns, items), resample(patterns, items)
    assert (first == second).all()
    assert first.shape == (2000, 1, 3)
    assert (first.sum(axis=(1, 2)) == 35).all()


def test_percentiles_of_resampled_means_match_the_normal_approximation() -> None:
    """400 items at a rate of 0.3: the interval is about 0.3 ± 1.96·0.0229."""
    drawn = resample(np.eye(2), array(120, 280))
    low, high = given_interval(percentile(drawn[:, 0], drawn.sum(axis=1)))
    assert (low, high) == pytest.approx((0.255, 0.345), abs=0.006)


def test_percentiles_leave_out_undefined_rounds_or_give_nothing() -> None:
    """Denominator 0 is no number; without variation, or mostly undefined, there is no interval."""
    ones = np.ones(100)
    assert percentile(ones, ones) is None
    assert percentile(np.arange(100.0), np.where(np.arange(100) < 60, 0.0, 1.0)) is None
    low, high = given_interval(
        percentile(np.arange(100.0), np.where(np.arange(100) < 40, 0.0, 1.0))
    )
    assert 40 <= low < high <= 99


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


def test_alpha_gives_the_published_example() -> None:
    """Krippendorff (2011), section C: four observers, twelve units, nominal alpha 0.743."""
    observers = (
        (1, 2, 3, 3, 2, 1, 4, 1, 2, 0, 0, 0),
        (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, 0, 3),
        (0, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, 0),
        (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, 0),
    )
    units = [[str(label) for label in unit if label] for unit in zip(*observers, strict=True)]
    assert krippendorff_alpha(units).value == pytest.approx(0.743, abs=5e-4)


def test_alpha_of_single_labels_or_of_one_class_is_undefined() -> None:
    """Nothing pairs, or nothing could differ."""
    assert krippendorff_alpha([["a"], []]).value is None
    assert krippendorff_alpha([["a", "a"]]).value is None


def test_tango_gives_the_published_examples() -> None:
    """Tango (1998), section 6.1: 0 and 1 of 44, 90 %: lower end -0.096; and a run of PropCIs."""
    assert given_interval(tango(0, 1, 44, z=1.645))[0] == pytest.approx(-0.096, abs=5e-4)
    assert tango(28, 25, 618, z=Z90) == pytest.approx((-0.0148, 0.0247), abs=5e-5)


@pytest.mark.parametrize(("n", "low"), [(50, -0.071), (125, -0.030)])
def test_tango_without_a_discordant_pair(n: int, low: float) -> None:
    """With no pair that differs the interval is symmetric and shrinks like z²/(n + z²)."""
    found = given_interval(tango(0, 0, n))
    assert found[0] == pytest.approx(low, abs=5e-4)
    assert found[1] == pytest.approx(-found[0])


def test_tango_at_the_edges() -> None:
    """All pairs in one direction end at ±1; no pair has no interval."""
    assert given_interval(tango(5, 0, 5))[1] == 1
    assert given_interval(tango(0, 5, 5))[0] == -1
    assert tango(0, 0, 0) is None


def likelihood_score(fixed: int, broke: int, n: int, delta: float) -> float:
    """The score statistic with the nuisance share found by a general optimiser."""
    ties = n - fixed - broke

    def loss(share: float) -> float:
        cells = ((fixed, share + delta), (broke, share), (ties, 1 - 2 * share - delta))
        return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

    bounds = (max(0.0, -delta), (1 - delta) / 2)
    share = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    return (fixed - broke - n * delta) / math.sqrt(n * (2 * share + delta - delta**2))


@pytest.mark.parametrize(
    ("fixed", "broke", "n"), [(3, 5, 40), (12, 2, 50), (1, 9, 30), (40, 31, 400)]
)
def test_tango_ends_where_the_constrained_likelihood_says(fixed: int, broke: int, n: int) -> None:
    """At both ends the score, with its nuisance parameter fitted numerically, is ±1.96."""
    low, high = given_interval(tango(fixed, broke, n))
    assert likelihood_score(fixed, broke, n, low) == pytest.approx(1.96, abs=1e-3)
    assert likelihood_score(fixed, broke, n, high) == pytest.approx(-1.96, abs=1e-3)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200))
def test_tango_holds_its_estimate_mirrors_and_moves_with_the_data(
    fixed: int, broke: int, ties: int
) -> None:
    """Within -1 to 1; swapped data give the mirrored interval; a tie less broken raises it."""
    n = fixed + broke + ties
    assume(n)
    low, high = given_interval(tango(fixed, broke, n))
    assert -1 <= low <= (fixed - broke) / n <= high <= 1
    assert tango(broke, fixed, n) == pytest.approx((-high, -low), abs=1e-9)
    if broke:
        better = given_interval(tango(fixed, broke - 1, n))
        assert better[0] >= low - 1e-9
        assert better[1] >= high - 1e-9


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200))
def test_the_p_value_belongs_to_the_interval(fixed: int, broke: int, ties: int) -> None:
    """Below 0.05 exactly where the whole interval lies below zero."""
    n = fixed + broke + ties
    assume(n)
    assert (drop_p_value(fixed, broke) < 0.05) == (
        given_interval(tango(fixed, broke, n))[1] < -1e-12
    )


def test_mcnemar_is_the_exact_binomial_test() -> None:
    """5 against 15 is 0.0414; no discordant pair is 1."""
    assert mcnemar(5, 15) == pytest.approx(0.0414, abs=5e-5)
    assert mcnemar(0, 0) == 1


def test_holm_adjusts_step_by_step() -> None:
    """Sorted p-values times their remaining number, never falling, never above 1."""
    assert holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert holm([0.6, 0.9]) == (1.0, 1.0)
    assert holm([]) == ()


def test_shrink_counts_identical_repeats_once() -> None:
    """Each item's three pairs always alike: a third of the pairs is independent."""
    changes = array(*random.Random(1).choices([-1.0, 0.0, 0.0, 1.0], k=500))
    assert shrink(3 * changes, 3 * abs(changes), array(*[3.0] * 500)) == pytest.approx(
        1 / 3, abs=2e-3
    )
    assert shrink(array(0, 0), array(0, 0), array(3, 3)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("margin", [0.01, 0.03, 0.1, 0.5])
def test_the_smallest_n_is_the_first_that_can_pass(margin: float) -> None:
    """With that many pairs and none discordant Tango clears the margin; with one less not."""
    n = smallest_n(margin)
    assert given_interval(tango(0, 0, n))[0] > -margin
    assert n == 1 or given_interval(tango(0, 0, n - 1))[0] <= -margin


@pytest.mark.parametrize("margin", [0.0, 1.0, -0.1, math.nan])
def test_a_margin_outside_zero_to_one_is_refused(margin: float) -> None:
    """No number of pairs fits such a margin."""
    with pytest.raises(ValueError, match="above 0 and below 1"):
        smallest_n(margin)


def test_sample_sizes_for_non_inferiority() -> None:
    """Margin 0.03 at 10 % discordance and 80 % power takes about 900 pairs."""
    assert pairs_needed(0.03, 0.1) == 873
    assert pairs_needed(0.0, 0.1) is None
    assert pairs_needed(0.1, 0.0) == 0


def test_the_detectable_drop_is_the_reverse_of_the_sample_size() -> None:
    """873 pairs detect 0.03; few pairs never less than what no difference could show."""
    assert detectable_drop(873) == pytest.approx(0.03, abs=1e-4)
    assert detectable_drop(50, discordance=0.0) == pytest.approx(0.0713, abs=1e-4)
    assert 0 < (detectable_drop(1) or 0) <= 1
    assert detectable_drop(0) is None

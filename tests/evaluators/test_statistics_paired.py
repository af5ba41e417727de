"""Claims about paired differences and the power of their gates, and about pass@k and pass^k."""

import math
import random
from itertools import combinations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest, norm

from evaluators.statistics.intervals import UNDEFINED, Z95
from evaluators.statistics.metrics import chance, clustered_mean, is_repeated
from evaluators.statistics.paired import (
    confirmed_margin,
    holm,
    mcnemar,
    odds_ratio,
    p_value_beyond,
    pairs_needed,
    power,
    shrink,
    smallest_n,
    tango,
)
from tests.benchmarks.coverage import Cell, outcomes, scores
from tests.support.figures import array, given_interval
from tests.support.tables import tabled

Z90 = 1.6448536269514722
COUNTS = st.integers(0, 60)


def likelihood_score(fixed: int, broke: int, n: int, delta: float) -> float:
    """The score statistic with the nuisance share found by a general optimiser."""
    ties = n - fixed - broke

    def loss(share: float) -> float:
        cells = ((fixed, share + delta), (broke, share), (ties, 1 - 2 * share - delta))
        return -sum(count * math.log(max(p, 1e-300)) for count, p in cells if count)

    bounds = (max(0.0, -delta), (1 - delta) / 2)
    share = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}).x
    return (fixed - broke - n * delta) / math.sqrt(n * (2 * share + delta - delta**2))


def test_tango_gives_the_published_examples() -> None:
    """Tango (1998), section 6.1: 0 and 1 of 44, 90 %: lower end -0.096; and a run of PropCIs."""
    assert given_interval(tango(0, 1, 44, z=1.645))[0] == pytest.approx(-0.096, abs=5e-4)
    assert tango(28, 25, 618, z=Z90) == pytest.approx((-0.0148, 0.0247), abs=5e-5)
    # All pairs in one direction end at ±1; no pair has no interval.
    assert given_interval(tango(5, 0, 5))[1] == 1
    assert given_interval(tango(0, 5, 5))[0] == -1
    assert tango(0, 0, 0) is None


@pytest.mark.parametrize(("n", "low"), [(50, -0.071), (125, -0.030)])
def test_tango_without_a_discordant_pair(n: int, low: float) -> None:
    """With no pair that differs the interval is symmetric and shrinks like z²/(n + z²)."""
    found = given_interval(tango(0, 0, n))
    assert found[0] == pytest.approx(low, abs=5e-4)
    assert found[1] == pytest.approx(-found[0])


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


ENDS = st.floats(-1, 1)


@given(ENDS, st.floats(0, 1), ENDS)
def test_the_p_value_belongs_to_the_interval(value: float, reach: float, bound: float) -> None:
    """Below 0.05 exactly where the interval's lower end lies above the bound."""
    low = value - reach
    assume(abs(low - bound) > 1e-9)
    assert (p_value_beyond(value, low, bound) < 0.05) == (low > bound)


def test_the_p_value_is_that_of_the_score() -> None:
    """30 fixed and 12 broke of 500: near the p-value of McNemar's score, taken at zero itself."""
    low, _ = given_interval(tango(30, 12, 500))
    score = (30 - 12) / (30 + 12) ** 0.5
    assert p_value_beyond(18 / 500, low, 0.0) == pytest.approx(2 * norm.sf(score), rel=0.3)


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


@example(0, 0)
@example(5, 15)
@given(COUNTS, COUNTS)
def test_mcnemar_is_the_binomial_test(fixed: int, broke: int) -> None:
    """The exact two-sided p-value, 1 where no pair differs."""
    p_value = binomtest(fixed, fixed + broke, 0.5).pvalue if fixed + broke else 1.0
    assert mcnemar(fixed, broke) == pytest.approx(p_value, abs=1e-12)


@given(COUNTS, COUNTS)
def test_the_odds_ratio_has_the_exact_interval_of_its_share(fixed: int, broke: int) -> None:
    """The odds of Clopper and Pearson's ends; None for infinity."""
    value, low, high = odds_ratio(fixed, broke)
    if not fixed + broke:
        assert (value, low, high) == (None, None, None)
        return
    share = binomtest(fixed, fixed + broke).proportion_ci(method="exact")
    assert value == (pytest.approx(fixed / broke) if broke else None)
    assert low == pytest.approx(share.low / (1 - share.low))
    assert high == (pytest.approx(share.high / (1 - share.high)) if broke else None)


MARGINS = st.integers(10, 400).map(lambda thousandths: thousandths / 1000)
SHARES = st.integers(2, 40).map(lambda hundredths: hundredths / 100)


@settings(max_examples=50)
@given(st.integers(5, 400), MARGINS, SHARES, st.integers(-9, 9))
def test_power_is_the_sum_over_all_tables(
    n: int, margin: float, discordance: float, tenths: int
) -> None:
    """The benchmark's own enumeration, which scores each table by itself, says the same."""
    difference = discordance * tenths / 10
    rate = 0.5 - difference / 2
    both = rate - (discordance - difference) / 2
    spread = (rate * (1 - rate) * (rate + difference) * (1 - rate - difference)) ** 0.5
    correlation = (both - rate * (rate + difference)) / spread
    cell = Cell(n=n, rate=rate, correlation=correlation, difference=difference)
    fixed, broke, weights = outcomes(cell)
    cleared = scores(fixed, broke, n, -margin) > Z95
    if difference < -margin:
        cleared = scores(fixed, broke, n, -margin) < -Z95
    assert power(n, -margin, discordance, difference) == pytest.approx(
        weights[cleared].sum(), abs=1e-6
    )


@tabled("n", "margin", "chance")
def test_margins_of_the_normal_formula_have_less_than_its_power(
    n: int, margin: float, chance: float
) -> None:
    """Where z(0.975) + z(0.8) promises 80 % at 10 % discordance, the tables give 54 to 76 %."""
    assert power(n, -margin, 0.1) == pytest.approx(chance, abs=0.005)


def test_without_a_pair_that_differs_the_size_alone_decides() -> None:
    """As many pairs as Tango needs with no discordant one pass for certain, one less never."""
    assert power(125, -0.03, 0.0) == pytest.approx(1)
    assert power(124, -0.03, 0.0) == 0
    assert pairs_needed(-0.03, 0.0, 0.0) == smallest_n(0.03) == 125


@pytest.mark.parametrize(("n", "discordance"), [(29, 0.1), (60, 0.3), (873, 0.1), (4326, 0.2)])
def test_the_confirmed_margin_is_the_first_with_eighty_percent(n: int, discordance: float) -> None:
    """At it the power is reached, a little below it is not; and no pair confirms nothing."""
    margin = confirmed_margin(n, discordance)
    assert margin is not None
    assert power(n, -margin, discordance) >= 0.8 > power(n, -margin + 0.0002, discordance)
    assert confirmed_margin(0, discordance) is None


@tabled("bound", "discordance", "difference")
def test_so_many_pairs_decide(bound: float, discordance: float, difference: float) -> None:
    """They have the power, a tenth fewer do not, on whichever side of the bound the truth is."""
    needed = pairs_needed(bound, discordance, difference)
    assert needed is not None
    assert power(needed, bound, discordance, difference) >= 0.8
    assert power(needed * 9 // 10, bound, discordance, difference) < 0.8


def test_no_number_of_pairs_decides_on_the_bound_itself() -> None:
    """A true difference on the bound, or within a hair of it, is never told from it."""
    assert pairs_needed(-0.1, 0.2, -0.1) is None
    assert pairs_needed(-0.1, 0.2, -0.09999) is None
    # All pairs broke: the interval's upper end is below every bound that it can exclude.
    ends = tango(0, 50, 50)
    assert ends is not None
    assert power(50, -0.5, 1.0, -1.0) == pytest.approx(1)
    assert power(2, -0.95, 1.0, -1.0) == 0


TRIES = st.lists(st.booleans(), min_size=1, max_size=8)


@given(TRIES, st.integers(1, 10))
def test_chances_are_shares_of_all_picks(tries: list[bool], k: int) -> None:
    """Of all ways to pick k tries: the share with one that passed, and with none that failed."""
    picks = list(combinations(tries, k))
    for name, holds in ((f"pass@{k}", any), (f"pass^{k}", all)):
        found = chance(name, len(tries), sum(tries))
        if not picks:
            assert found is None
        else:
            assert found == pytest.approx(sum(map(holds, picks)) / len(picks))


@given(TRIES)
def test_of_one_try_both_are_the_pass_rate(tries: list[bool]) -> None:
    """More tries make pass@k no smaller and pass^k no larger."""
    rate = sum(tries) / len(tries)
    for sign, order in (("@", 1), ("^", -1)):
        found = [chance(f"pass{sign}{k}", len(tries), sum(tries)) for k in range(1, len(tries) + 1)]
        values = [order * value for value in found if value is not None]
        assert values[0] == pytest.approx(order * rate)
        assert values == sorted(values)


def test_published_values() -> None:
    """The estimator of Chen et al. for 200 tries of which 13 pass."""
    assert chance("pass@1", 200, 13) == pytest.approx(0.065)
    assert chance("pass@10", 200, 13) == pytest.approx(0.4978, abs=1e-3)
    assert chance("pass@100", 200, 13) == pytest.approx(1.0, abs=1e-3)


@tabled("name", "said")
def test_names(name: str, said: bool) -> None:
    """A sign and a number from 1."""
    assert is_repeated(name) is said


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=6))
def test_a_mean_lies_in_its_interval(clusters: list[list[float]]) -> None:
    """Which stays open even where all values are the same; no values have no mean."""
    found = clustered_mean(clusters)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value + 1e-9
    assert found.value <= found.high + 1e-9
    assert found.high > found.low
    assert found.n == sum(map(len, clusters))
    assert clustered_mean([]) == UNDEFINED

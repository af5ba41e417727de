"""Claims about intervals, rates freed of a judge's errors, and agreement: kappa, ranks, alpha."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, betaincinv, stdtrit
from scipy.stats import binom, spearmanr
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

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
from evaluators.statistics.intervals import (
    Z95,
    Count,
    Interval,
    at_most,
    beta_quantile,
    chance,
    clustered_rate,
    corrected_rate,
    effective_size,
    percentile,
    quantile,
    resample,
    root,
    student_quantile,
    unseen_share,
    wilson,
)
from tests.support.figures import array, given_interval
from tests.support.tables import tabled

labels = st.sampled_from("abc")
counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_wilson_gives_the_published_example() -> None:
    """Newcombe (1998), Stat. Med. 17:857: 81 of 263, and 15 of 148."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    # What n items leave unseen is the other side; no item leaves everything open.
    assert unseen_share(100) == pytest.approx(1 - given_interval(wilson(100, 100))[0])
    assert unseen_share(0) == 1


def test_a_clustered_rate_counts_items_that_always_agree_once() -> None:
    """Items asked once: Wilson, up to n / (n - 1). Three identical answers are worth one.

    10 items right in all of 5 repeats say as much as 10 items, not as 50.
    """
    found = given_interval(clustered_rate(array(1, 0), array(1, 1), array(300, 700)))
    assert found == pytest.approx(given_interval(wilson(300, 1000)), abs=1e-4)
    found = given_interval(clustered_rate(array(3, 0), array(3, 3), array(30, 70)))
    assert found == pytest.approx(given_interval(wilson(30, 100)), abs=2e-3)
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


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_is_that_of_statsmodels(successes: int, n: int) -> None:
    """The same interval to rounding, at the edges too."""
    successes = min(successes, n)
    expected = proportion_confint(successes, n, method="wilson")
    assert wilson(successes, n) == pytest.approx(expected, abs=1e-12)
    assert wilson(0, 0) is None


@pytest.mark.parametrize(
    ("samples", "value", "interval"),
    [
        (((30, 100), (100_000, 100_000), (100_000, 100_000)), 0.3, wilson(30, 100)),
        (((40, 100), (90, 100), (80, 100)), 0.2 / 0.7, None),
        (((5, 10), (1, 1), (1, 10)), None, (0.0, 1.0)),
    ],
)
def test_rogan_and_gladens_estimate_by_hand(
    samples: tuple[Count, Count, Count], value: float | None, interval: Interval | None
) -> None:
    """A judge that never errs leaves rate and, almost, interval; (0.4 - 0.2) / 0.7 by hand.

    One barely better than chance, by one label a side, leaves everything open.
    """
    found = corrected_rate(*samples)
    assert found is not None
    assert value is None or found.value == pytest.approx(value)
    assert interval is None or found.interval == pytest.approx(interval, abs=2e-3)
    assert (found.sensitivity, found.specificity) == (
        samples[1][0] / samples[1][1],
        samples[2][0] / samples[2][1],
    )


@tabled("samples")
def test_a_judge_that_tells_nothing_apart_corrects_nothing(
    samples: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
) -> None:
    """No labels of one side, or sensitivity + specificity not above 1: undefined."""
    assert corrected_rate(*samples) is None


@given(counts, counts, counts)
def test_the_estimate_lies_in_its_interval_within_0_and_1(
    judged: tuple[int, int], kept: tuple[int, int], refused: tuple[int, int]
) -> None:
    """For any counts: 0 <= low <= value <= high <= 1."""
    found = corrected_rate(judged, kept, refused)
    if found is not None:
        low, high = found.interval
        assert 0 <= low <= found.value <= high <= 1


@tabled("truth", "sensitivity", "specificity")
def test_the_interval_covers_the_truth_95_times_in_100(
    truth: float, sensitivity: float, specificity: float
) -> None:
    """1,000 simulated runs, 300 labels each: coverage is 93.5 % at least."""
    random = np.random.default_rng(7)
    called = truth * sensitivity + (1 - truth) * (1 - specificity)
    covered = 0
    for _ in range(1000):
        found = corrected_rate(
            (int(random.binomial(200, called)), 200),
            (int(random.binomial(150, sensitivity)), 150),
            (int(random.binomial(150, specificity)), 150),
        )
        assert found is not None
        covered += found.interval[0] <= truth <= found.interval[1]
    assert covered >= 935


def test_an_interval_over_few_clusters_is_students() -> None:
    """Two trials in each of 10 clusters: the quantile for 9 degrees of freedom; alone, 1.96."""
    assert quantile(10, 20) == pytest.approx(2.262157, abs=1e-6)
    assert quantile(20, 20) == Z95
    assert quantile(1, 5) == pytest.approx(12.7062, abs=1e-4)
    half = given_interval(clustered_rate(array(2, 0), array(2, 2), array(5, 5)))
    assert half == pytest.approx(wilson(4.5, 9, quantile(10, 20)))


def test_a_few_clusters_say_little_of_how_much_a_cluster_hangs_together() -> None:
    """One miss among 60 items asked 5 times: far fewer than 300 trials, more than 60."""
    one = array(4, 5), array(5, 5), array(1, 59)
    rate = 299 / 300
    size = effective_size(one[0] - rate * 5, one[1], one[2], rate * (1 - rate))
    assert size == pytest.approx(300 / 3, rel=0.03)
    many = effective_size(array(-1, 1), array(2, 2), array(500, 500), 0.5)
    assert many == pytest.approx(1999 / 1.001, rel=0.01)


SHARES = st.floats(1e-6, 1 - 1e-6) | st.sampled_from([0.0, 0.5, 1.0])
TRIALS = st.integers(0, 400) | st.sampled_from([5_000, 200_000])


@given(TRIALS, st.floats(0, 1), SHARES)
def test_binomial_chances(trials: int, part: float, share: float) -> None:
    """One number of hits, and all up to it."""
    hits = round(part * trials)
    assert chance(hits, trials, share) == pytest.approx(
        float(binom.pmf(hits, trials, share)), rel=1e-7, abs=1e-300
    )
    assert at_most(hits, trials, share) == pytest.approx(
        float(bdtr(hits, trials, share)), rel=1e-7, abs=1e-12
    )
    assert (at_most(-1, trials, share), at_most(trials, trials, share)) == (0.0, 1.0)


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([0.025, 0.5, 0.975]))
def test_quantiles_of_the_beta_distribution(a: int, b: int, level: float) -> None:
    """As the ends of Clopper and Pearson's interval need them."""
    assert beta_quantile(a, b, level) == pytest.approx(float(betaincinv(a, b, level)), rel=1e-9)


@given(st.floats(1, 100) | st.sampled_from([1.0, 1e4, 1e6]))
def test_students_quantile(freedom: float) -> None:
    """For any degrees of freedom from 1 on, whole or not."""
    assert student_quantile(freedom) == pytest.approx(float(stdtrit(freedom, 0.975)), rel=1e-8)


def test_a_root_of_what_rises_or_falls() -> None:
    """To the last digit."""
    assert root(lambda x: x * x - 2, 0.0, 2.0) == pytest.approx(math.sqrt(2), rel=1e-15)
    assert root(lambda x: 2 - x * x, 0.0, 2.0) == pytest.approx(math.sqrt(2), rel=1e-15)


Parts = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


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
    assert perfect_interval(np.array([[9.0]]), 9) is None


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

"""Claims about intervals, J, rates corrected for a judge's errors, agreement, and small samples."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import bdtr, betaincinv, stdtrit
from scipy.stats import binom, spearmanr
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NO, NOT_ATTEMPTED, YES
from qagate.evaluators.statistics import (
    agreement,
    count_table,
    intervals,
    probabilities,
    separation,
)
from qagate.evaluators.statistics.count_table import (
    RATINGS,
    CountTable,
    class_interval,
    mean_interval,
)
from qagate.evaluators.statistics.metrics import ANSWERS
from qagate.evaluators.statistics.ratios import macro_f1, mean_rating
from tests.benchmarks.common import SEED
from tests.benchmarks.judge_rates import Situation, held
from tests.benchmarks.small_samples import World, kappa, rare, ratings
from tests.support.figures import array, some
from tests.support.tables import tabled

labels = st.sampled_from("abc")
counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_rates_over_items_and_clusters() -> None:
    """Newcombe (1998); items that always agree count once; few clusters say little."""
    assert intervals.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert intervals.wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    # What n items leave unseen is the other side; no item leaves everything open.
    assert intervals.unseen_share(100) == pytest.approx(
        1 - some(intervals.wilson(100, 100))[0]
    )
    assert intervals.unseen_share(0) == 1
    found = some(intervals.clustered_rate(array(1, 0), array(1, 1), array(300, 700)))
    assert found == pytest.approx(some(intervals.wilson(300, 1000)), abs=1e-4)
    found = some(intervals.clustered_rate(array(3, 0), array(3, 3), array(30, 70)))
    assert found == pytest.approx(some(intervals.wilson(30, 100)), abs=2e-3)
    assert intervals.clustered_rate(array(5), array(5), array(10)) == intervals.wilson(
        10, 10
    )
    assert intervals.clustered_rate(array(), array(), array()) is None
    assert intervals.effective_size(array(0), array(2), array(50), 0.25) == 100
    assert intervals.effective_size(array(0.5), array(4), array(1), 0.25) == 1
    assert intervals.effective_size(array(-9, 9), array(10, 10), array(1, 1), 0.01) == 1
    assert intervals.quantile(10, 20) == pytest.approx(2.262157, abs=1e-6)
    assert intervals.quantile(20, 20) == intervals.Z95
    assert intervals.quantile(1, 5) == pytest.approx(12.7062, abs=1e-4)
    half = some(intervals.clustered_rate(array(2, 0), array(2, 2), array(5, 5)))
    assert half == pytest.approx(intervals.wilson(4.5, 9, intervals.quantile(10, 20)))
    one = array(4, 5), array(5, 5), array(1, 59)
    rate = 299 / 300
    size = intervals.effective_size(
        one[0] - rate * 5, one[1], one[2], rate * (1 - rate)
    )
    assert size == pytest.approx(300 / 3, rel=0.03)
    many = intervals.effective_size(array(-1, 1), array(2, 2), array(500, 500), 0.5)
    assert many == pytest.approx(1999 / 1.001, rel=0.01)


def test_the_bootstrap() -> None:
    """The same every time, of as many items; its percentiles leave out what is undefined."""
    patterns, items = np.eye(3).reshape(3, 1, 3), array(5, 10, 20)
    first, second = (
        intervals.resample(patterns, items),
        intervals.resample(patterns, items),
    )
    assert (first == second).all()
    assert first.shape == (2000, 1, 3)
    assert (first.sum(axis=(1, 2)) == 35).all()
    drawn = intervals.resample(np.eye(2), array(120, 280))
    low, high = some(intervals.percentile(drawn[:, 0], drawn.sum(axis=1)))
    assert (low, high) == pytest.approx((0.255, 0.345), abs=0.006)
    ones = np.ones(100)
    assert intervals.percentile(ones, ones) is None
    assert (
        intervals.percentile(np.arange(100.0), np.where(np.arange(100) < 60, 0.0, 1.0))
        is None
    )
    low, high = some(
        intervals.percentile(np.arange(100.0), np.where(np.arange(100) < 40, 0.0, 1.0))
    )
    assert 40 <= low < high <= 99


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_is_that_of_statsmodels(successes: int, n: int) -> None:
    """The same interval to rounding, at the edges too."""
    successes = min(successes, n)
    expected = proportion_confint(successes, n, method="wilson")
    assert intervals.wilson(successes, n) == pytest.approx(expected, abs=1e-12)
    assert intervals.wilson(0, 0) is None


def test_rogan_and_gladens_estimate_by_hand() -> None:
    """A judge that never errs leaves rate and, almost, interval; (0.4 - 0.2) / 0.7 by hand. One
    barely better than chance, by one label a side, leaves everything open."""
    found = some(
        intervals.corrected_rate((30, 100), (100_000, 100_000), (100_000, 100_000))
    )
    assert found.value == pytest.approx(0.3)
    assert found.interval == pytest.approx(intervals.wilson(30, 100), abs=2e-3)
    found = some(intervals.corrected_rate((40, 100), (90, 100), (80, 100)))
    assert found.value == pytest.approx(0.2 / 0.7)
    found = some(intervals.corrected_rate((5, 10), (1, 1), (1, 10)))
    assert found.interval == pytest.approx((0.0, 1.0), abs=2e-3)


@tabled("samples")
def test_a_judge_that_tells_nothing_apart_corrects_nothing(
    samples: list[intervals.Count],
) -> None:
    """No labels of one side, or sensitivity + specificity not above 1: undefined."""
    assert intervals.corrected_rate(*samples) is None


@given(st.tuples(counts, counts, counts))
def test_the_estimate_lies_in_its_interval_within_0_and_1(
    samples: list[intervals.Count],
) -> None:
    """For any counts: 0 <= low <= value <= high <= 1."""
    found = intervals.corrected_rate(*samples)
    low, high = some(found.interval) if found else (0.0, 1.0)
    assert found is None or 0 <= low <= some(found.value) <= high <= 1


@tabled("truth", "sensitivity", "specificity")
def test_the_interval_covers_truth(
    truth: float, sensitivity: float, specificity: float
) -> None:
    """1,000 simulated runs, 300 labels each: coverage is 93.5 % at least."""
    random = np.random.default_rng(7)
    called = truth * sensitivity + (1 - truth) * (1 - specificity)
    covered = 0
    for _ in range(1000):
        found = intervals.corrected_rate(
            (int(random.binomial(200, called)), 200),
            (int(random.binomial(150, sensitivity)), 150),
            (int(random.binomial(150, specificity)), 150),
        )
        low, high = some(some(found).interval)
        covered += low <= truth <= high
    assert covered >= 935


SHARES = st.floats(1e-6, 1 - 1e-6) | st.sampled_from([0.0, 0.5, 1.0])
TRIALS = st.integers(0, 400) | st.sampled_from([5_000, 200_000])


@given(TRIALS, st.floats(0, 1), SHARES)
def test_binomial_chances(trials: int, part: float, share: float) -> None:
    """One number of hits, and all up to it."""
    hits = round(part * trials)
    assert probabilities.binomial(hits, trials, share) == pytest.approx(
        float(binom.pmf(hits, trials, share)), rel=1e-7, abs=1e-300
    )
    assert probabilities.binomial_at_most(hits, trials, share) == pytest.approx(
        float(bdtr(hits, trials, share)), rel=1e-7, abs=1e-12
    )
    assert (
        probabilities.binomial_at_most(-1, trials, share),
        probabilities.binomial_at_most(trials, trials, share),
    ) == (
        0.0,
        1.0,
    )


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([0.025, 0.5, 0.975]))
def test_quantiles_of_the_beta_distribution(a: int, b: int, level: float) -> None:
    """As the ends of Clopper and Pearson's interval need them."""
    assert probabilities.beta_quantile(a, b, level) == pytest.approx(
        float(betaincinv(a, b, level)), rel=1e-9
    )


@given(st.floats(1, 100) | st.sampled_from([1.0, 1e4, 1e6]))
def test_students_quantile(freedom: float) -> None:
    """For any degrees of freedom from 1 on, whole or not."""
    assert probabilities.student_quantile(freedom) == pytest.approx(
        float(stdtrit(freedom, 0.975)), rel=1e-8
    )


def test_a_root_of_what_rises_or_falls() -> None:
    """To the last digit."""
    assert probabilities.root(lambda x: x * x - 2, 0.0, 2.0) == pytest.approx(
        math.sqrt(2), rel=1e-15
    )
    assert probabilities.root(lambda x: 2 - x * x, 0.0, 2.0) == pytest.approx(
        math.sqrt(2), rel=1e-15
    )


def test_kappa_and_ranks_at_their_edges() -> None:
    """Cohen (1960): 0.4; undefined without variation; a bound below where all agree."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert agreement.cohen_kappa(pairs).value == pytest.approx(0.4)
    low, high = some(agreement.cohen_kappa(pairs).interval)
    assert 0.1 < low < 0.4 < high < 0.7
    table = np.zeros((10, 10))
    table[3] = 2
    assert agreement.spearman_parts(table)[1] == 0
    assert agreement.quadratic_kappa_parts(np.diag(array(0, 5, 0)))[1] == 0
    assert agreement.perfect_interval(np.array([[9.0]]), 9) is None
    pairs = [("a", "a"), ("b", "b")] * 20
    low = 1 - intervals.unseen_share(40)
    assert agreement.cohen_kappa(pairs).interval == pytest.approx(
        ((low - 0.5) / 0.5, 1.0)
    )
    cells = [(rating, rating - 2) for rating in range(2, 10)] * 5
    tables = count_table.count_patterns([[cell] for cell in cells], (10, 10))
    found = some(agreement.SPEARMAN.estimate(*tables, len(cells)).interval)
    assert 0.8 < found[0] < found[1] == 1
    for undefined in ([], [("a", "a")] * 9):  # None, not 0 and not 1
        none = agreement.cohen_kappa(undefined)
        assert (none.value, none.interval) == (None, None)


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=16, max_size=16))
def test_rank_correlation_and_weighted_kappa_agree_with_other_libraries(
    cells: list[int],
) -> None:
    """Over counts: the same Spearman as scipy's over the items, the same kappa as statsmodels'."""
    table = np.array(cells, dtype=np.float64).reshape(4, 4)
    first = [
        row
        for row in range(4)
        for column in range(4)
        for _ in range(int(table[row, column]))
    ]
    second = [
        column
        for row in range(4)
        for column in range(4)
        for _ in range(int(table[row, column]))
    ]
    assume(len(set(first)) > 1 and len(set(second)) > 1)
    top, bottom = agreement.spearman_parts(table)
    assert top / bottom == pytest.approx(spearmanr(first, second).statistic, abs=1e-9)
    top, bottom = agreement.kappa_parts(table)
    assert top / bottom == pytest.approx(
        cohens_kappa(table, return_results=False), abs=1e-9
    )
    top, bottom = agreement.quadratic_kappa_parts(table)
    weighted = cohens_kappa(table, wt="fc", return_results=False)
    assert top / bottom == pytest.approx(weighted, abs=1e-9)


@pytest.mark.parametrize(
    "parts", [agreement.quadratic_kappa_parts, agreement.spearman_parts]
)
def test_the_bound_holds_for_a_judge_that_guesses_some_items(
    parts: Callable[..., Any],
) -> None:
    """A judge that guesses as much as the bound leaves open has that coefficient on average."""
    margins = np.array([0.2, 0.5, 0.3])
    share = 0.25
    mixed = (1 - share) * np.diag(margins) + share * np.outer(margins, margins)
    numerator, denominator = parts(mixed * 1000)
    assert numerator / denominator == pytest.approx(1 - share, abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=40))
def test_kappa_has_an_interval_around_one_wherever_it_is_one(
    pairs: list[tuple[str, str]],
) -> None:
    """A defined kappa of 1 never lacks its interval, and the interval ends at 1."""
    same = [(first, first) for first, _ in pairs]
    if agreement.cohen_kappa(same).value is not None:
        found = some(agreement.cohen_kappa(same).interval)
        assert -1 <= found[0] < found[1] == 1


def test_alpha() -> None:
    """Krippendorff (2011), C: 0.743, 0.849; an interval where there is anything to agree on."""
    raters = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [
        [float(v) for v in unit if v is not None] for unit in zip(*raters, strict=True)
    ]
    assert agreement.krippendorff_alpha(units).value == pytest.approx(0.849, abs=5e-4)
    named = [[str(v) for v in unit] for unit in units]
    assert agreement.krippendorff_alpha(named).value == pytest.approx(0.743, abs=5e-4)
    same, mixed = (
        [["a", "a"], ["b", "b"]] * 20,
        [["a", "b"], ["b", "b"], ["a", "a"]] * 10,
    )
    numbers, spread = (
        [[1.0, 1.0], [5.0, 5.0]] * 20,
        [[1.0, 2.0], [9.0, 6.0], [3.0, 3.0]] * 10,
    )
    low = 1 - 2 * intervals.unseen_share(40)
    assert agreement.krippendorff_alpha(same).interval == pytest.approx((low, 1.0))
    assert agreement.krippendorff_alpha(numbers).interval == pytest.approx((low, 1.0))
    for open_ in (
        agreement.krippendorff_alpha(mixed),
        agreement.krippendorff_alpha(spread),
    ):
        ends = some(open_.interval)
        assert ends[0] < some(open_.value) < ends[1]
    for alike in ([], [["a"], []], [["a"], ["b"]], [["a", "a"]] * 3):
        none = agreement.krippendorff_alpha(alike)
        assert (none.value, none.interval) == (None, None)
    for numbers in ([], [[1.0], [2.0]], [[0.1, 0.1]] * 3):
        assert agreement.krippendorff_alpha(numbers).value is None


@given(st.lists(st.lists(st.integers(1, 10), min_size=2, max_size=4), max_size=12))
def test_alpha_of_numbers_does_not_move_with_the_scale(units: list[list[int]]) -> None:
    """Other units and another zero: the same alpha, never above 1."""
    plain = agreement.krippendorff_alpha(
        [[float(v) for v in unit] for unit in units]
    ).value
    moved = agreement.krippendorff_alpha(
        [[1000 + 3.0 * v for v in unit] for unit in units]
    ).value
    assert (plain is None) == (moved is None)
    if plain is not None:
        assert plain <= 1 + 1e-9
        assert moved == pytest.approx(plain, abs=1e-6)


RIGHT = (CORRECT,)
hits = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def table(*cells: tuple[str, str, float]) -> CountTable:
    counts = np.zeros((3, 3))
    for label, grade, count in cells:
        counts[GRADES.index(label), GRADES.index(grade)] += count
    return CountTable(counts=counts, golds=GRADES, outcomes=GRADES)


def judged(right: tuple[int, int], wrong: tuple[int, int]) -> CountTable:
    return table(
        (CORRECT, CORRECT, right[0]),
        (CORRECT, INCORRECT, right[1] - right[0]),
        (INCORRECT, INCORRECT, wrong[0]),
        (INCORRECT, CORRECT, wrong[1] - wrong[0]),
    )


def one_by_one(whole: CountTable, size: int = 1) -> tuple[CountTable, np.ndarray]:
    """Return clusters of ``size`` items that all came out alike, and how many there are of each."""
    cells = np.flatnonzero(whole.counts)
    patterns = size * np.eye(9)[cells].reshape(-1, 3, 3)
    return CountTable(
        counts=patterns, golds=GRADES, outcomes=GRADES
    ), whole.counts.ravel()[cells]


def interval_of(whole: CountTable, size: int = 1) -> tuple[float, float]:
    return some(separation.youden_interval(*one_by_one(whole, size), RIGHT))


def test_j_is_sensitivity_and_specificity_less_one() -> None:
    """9 of 10 right answers pass, 16 of 20 others do not, whichever of the others they are."""
    whole = table(
        (CORRECT, CORRECT, 9),
        (CORRECT, NOT_ATTEMPTED, 1),
        (INCORRECT, NOT_ATTEMPTED, 6),
        (NOT_ATTEMPTED, NOT_ATTEMPTED, 10),
        (INCORRECT, CORRECT, 4),
    )
    top, bottom = separation.youden_parts(whole, RIGHT)
    assert top / bottom == pytest.approx(0.9 + 0.8 - 1)
    top, bottom = separation.youden_parts(whole, (INCORRECT,))
    assert top / bottom == pytest.approx(0 + 1 - 1)  # no INCORRECT answer is called so
    # All labels alike: undefined, without rates and without an interval.
    whole = judged((9, 10), (0, 0))
    assert separation.youden_parts(whole, RIGHT)[1] == 0
    assert separation.youden_interval(*one_by_one(whole), RIGHT) is None
    assert separation.class_rates(*one_by_one(whole), RIGHT) == ()


@given(hits, hits)
def test_the_interval_of_items_is_newcombes(
    right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """Newcombe (1998), method 10, but for n - 1 in place of n where a rate is not 0 or 1."""
    low, high = interval_of(judged(right, wrong))
    value = right[0] / right[1] + wrong[0] / wrong[1] - 1
    below, above = 0.0, 0.0
    for count, n in (right, wrong):
        size = n - 1 if 0 < count < n else n
        ends = some(intervals.wilson(count / n * size, size))
        below += (count / n - ends[0]) ** 2
        above += (ends[1] - count / n) ** 2
    assert low == pytest.approx(max(-1, value - math.sqrt(below)), abs=1e-9)
    assert high == pytest.approx(min(1, value + math.sqrt(above)), abs=1e-9)


def test_the_interval_of_j() -> None:
    """Newcombe's (1998) example; shared fates count once, errors on one question widen."""
    found = interval_of(judged((560, 700), (320, 800)))
    wide = interval_of(judged((56, 70), (32, 80)))
    assert wide == pytest.approx((0.0524, 0.3339), abs=2e-3)
    assert wide[0] < found[0] < 0.2 < found[1] < wide[1]
    whole = judged((24, 30), (20, 30))
    (low, high), (lower, higher) = interval_of(whole), interval_of(whole, 3)
    assert low - 0.02 < lower < low < high < higher < high + 0.02
    (right, wrong) = separation.class_rates(*one_by_one(whole, 3), RIGHT)
    assert (right.hits, right.trials, wrong.hits, wrong.trials) == (72, 90, 60, 90)
    assert right.size == pytest.approx(29)
    assert right.independent == pytest.approx((0.8 * 29, 29))
    both = np.zeros((2, 3, 3))
    both[0, 0, 0] = both[0, 1, 1] = 1
    both[1, 0, 1] = both[1, 1, 0] = 1
    clusters = CountTable(counts=both, golds=GRADES, outcomes=GRADES)
    together = some(separation.youden_interval(clusters, np.array([40.0, 10.0]), RIGHT))
    assert together[0] < interval_of(judged((40, 50), (40, 50)))[0] - 0.03


def test_pooling_and_correcting_with_j() -> None:
    """Twice the weight, twice the say; each end by that end of J which takes it farther from 0."""
    good, poor = (
        intervals.Estimate.of(value, (value - 0.1, value + 0.1), 50)
        for value in (0.9, 0.6)
    )
    found = separation.weighted_mean([(good, 2.0), (poor, 1.0)])
    assert found.value == pytest.approx(0.8)
    assert found.n == 100
    assert found.interval == pytest.approx(
        (0.8 - math.sqrt(5) / 30, 0.8 + math.sqrt(5) / 30)
    )
    assert separation.weighted_mean([(good, 1.0)]) == good
    assert separation.weighted_mean([]).value is None
    gain = estimate(0.8, 0.5, 0.9)
    found = separation.corrected_difference(estimate(-0.02, -0.05, 0.01), gain)
    assert found.value == pytest.approx(-0.025)
    assert found.interval == pytest.approx((-0.1, 0.02))
    worse = separation.corrected_difference(estimate(-0.18, -0.36, -0.09), gain)
    assert worse.interval == pytest.approx((-0.72, -0.1))
    better = separation.corrected_difference(estimate(0.5, 0.45, 0.6), gain)
    assert better.interval == pytest.approx((0.5, 1.0))
    # Where J may be 0 the truth may be anything.
    gains = [estimate(0.2, 0.0, 0.5), estimate(-0.1, -0.4, 0.2)]
    for gain in (*gains, *(replace(one, value=None) for one in gains)):
        assert (
            separation.corrected_difference(estimate(0.1, 0.05, 0.2), gain).value
            is None
        )


def estimate(value: float, low: float, high: float) -> intervals.Estimate:
    return intervals.Estimate(value=value, low=low, high=high, n=100)


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_figures_hold_the_truth_with_few_labels_and_clusters(
    correlation: float,
) -> None:
    """30 labels a class, three answers a question: J's low end holds in 95 %, rates in 93 %."""
    one = Situation(judge=(0.9, 0.8), labels=(30, 30), correlation=correlation)
    shares = held(one, 500, np.random.default_rng(SEED))
    assert shares.low >= 0.95 - 0.02
    assert min(shares.rates) >= 0.93 - 0.025


SKEWED = ratings("9, and 1 in 5%", [0.05, *[0] * 7, 0.95, 0])
EVEN = ratings("each as often", [0.1] * 10)


def rated(*counts: int) -> tuple[CountTable, np.ndarray]:
    seen = [rating for rating, count in enumerate(counts) if count]
    table = CountTable(counts=np.eye(10)[seen][:, None], golds=("",), outcomes=RATINGS)
    return table, np.array([count for count in counts if count], dtype=np.float64)


@pytest.mark.parametrize(
    ("world", "n", "least"),
    [
        (SKEWED, 29, 0.94),
        (EVEN, 29, 0.9),
        (kappa(0.95, (0.45, 0.35, 0.2)), 100, 0.9),
        (kappa(0.98, (0.5, 0.5)), 300, 0.9),
        (rare(0.1, 0.9, 0.95), 20, 0.9),
        (rare(0.1, 0.5, 0.8), 20, 0.9),
    ],
)
def test_intervals_of_small_samples_hold(world: World, n: int, least: float) -> None:
    """Of a bootstrap alone as few as 71 % (ratings), 87 % (kappa) and 32 % (macro-F1) did."""
    held, _ = world.coverage(n, rounds=100)
    assert held >= least


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 12), min_size=10, max_size=10).filter(any))
def test_the_mean_of_ratings_leaves_room_for_what_was_not_seen(
    counts: list[int],
) -> None:
    """Its interval holds the mean, stays on the scale, and allows for z² / (n + z²) at each end."""
    table, items = rated(*counts)
    n = items.sum()
    mean = sum(count * rating for rating, count in enumerate(counts, 1)) / n
    share = 3.8414588 / (n + 3.8414588)
    found = some(mean_interval(mean_rating, table, items))
    assert 1 <= found[0] <= mean - share * (mean - 1) + 1e-9
    assert mean + share * (10 - mean) - 1e-9 <= found[1] <= 10


def test_a_class_of_two_items_is_not_known_by_heart() -> None:
    """Both of two yes found: many may be missed among more; 200 of 200 is known; none has none."""
    shape = np.array([[1, 0, 0], [0, 0, 0]]), np.array([[0, 0, 0], [0, 1, 0]])
    table = CountTable(
        counts=np.array(shape, dtype=np.float64), golds=(YES, NO), outcomes=ANSWERS
    )
    few = class_interval(macro_f1, table, np.array([2.0, 18.0]))
    many = class_interval(macro_f1, table, np.array([200.0, 1800.0]))
    assert few is not None
    assert many is not None
    assert few[0] < 0.75
    assert few[1] == 1.0
    assert many[0] > 0.98
    empty = replace(rated(1)[0], counts=np.zeros((0, 1, 10)))
    assert mean_interval(mean_rating, empty, np.zeros(0)) is None
    assert class_interval(mean_rating, empty, np.zeros(0)) is None

"""Claims about Youden's J and its interval, and about samples that a few items decide."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.core import CORRECT, GRADES, INCORRECT, NO, NOT_ATTEMPTED, YES
from evaluators.statistics.count_table import (
    RATINGS,
    CountTable,
    class_interval,
    macro_f1,
    mean_interval,
    mean_rating,
)
from evaluators.statistics.intervals import Estimate, wilson
from evaluators.statistics.metrics import ANSWERS
from evaluators.statistics.youden import (
    class_rates,
    corrected_difference,
    weighted_mean,
    youden_interval,
    youden_parts,
)
from tests.benchmarks.judge_rates import SEED, Situation, held
from tests.benchmarks.small_samples import World, kappa, rare, ratings

RIGHT = (CORRECT,)
hits = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def table(*cells: tuple[str, str, float]) -> CountTable:
    """Return one table of (label, grade, count) cells."""
    counts = np.zeros((3, 3))
    for label, grade, count in cells:
        counts[GRADES.index(label), GRADES.index(grade)] += count
    return CountTable(counts=counts, golds=GRADES, outcomes=GRADES)


def judged(right: tuple[int, int], wrong: tuple[int, int]) -> CountTable:
    """Return so many hits of all right answers, and of all wrong ones."""
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
    return CountTable(counts=patterns, golds=GRADES, outcomes=GRADES), whole.counts.ravel()[cells]


def interval_of(whole: CountTable, size: int = 1) -> tuple[float, float]:
    found = youden_interval(*one_by_one(whole, size), RIGHT)
    assert found is not None
    return found


def test_j_is_sensitivity_and_specificity_less_one() -> None:
    """9 of 10 right answers pass, 16 of 20 others do not, whichever of the others they are."""
    whole = table(
        (CORRECT, CORRECT, 9),
        (CORRECT, NOT_ATTEMPTED, 1),
        (INCORRECT, NOT_ATTEMPTED, 6),
        (NOT_ATTEMPTED, NOT_ATTEMPTED, 10),
        (INCORRECT, CORRECT, 4),
    )
    top, bottom = youden_parts(whole, RIGHT)
    assert top / bottom == pytest.approx(0.9 + 0.8 - 1)
    top, bottom = youden_parts(whole, (INCORRECT,))
    assert top / bottom == pytest.approx(0 + 1 - 1)  # no INCORRECT answer is called so
    # All labels alike: undefined, without rates and without an interval.
    whole = judged((9, 10), (0, 0))
    assert youden_parts(whole, RIGHT)[1] == 0
    assert youden_interval(*one_by_one(whole), RIGHT) is None
    assert class_rates(*one_by_one(whole), RIGHT) == ()


@given(hits, hits)
def test_the_interval_of_single_items_is_newcombes(
    right: tuple[int, int], wrong: tuple[int, int]
) -> None:
    """Newcombe (1998), method 10, but for n - 1 in place of n where a rate is not 0 or 1."""
    low, high = interval_of(judged(right, wrong))
    value = right[0] / right[1] + wrong[0] / wrong[1] - 1
    below, above = 0.0, 0.0
    for count, n in (right, wrong):
        size = n - 1 if 0 < count < n else n
        ends = wilson(count / n * size, size)
        assert ends is not None
        below += (count / n - ends[0]) ** 2
        above += (ends[1] - count / n) ** 2
    assert low == pytest.approx(max(-1, value - math.sqrt(below)), abs=1e-9)
    assert high == pytest.approx(min(1, value + math.sqrt(above)), abs=1e-9)


def test_newcombes_published_example() -> None:
    """Newcombe (1998), table II, method 10: 56/70 - 48/80 is 0.2, 0.0524 to 0.3339."""
    found = interval_of(judged((560, 700), (320, 800)))
    wide = interval_of(judged((56, 70), (32, 80)))
    assert wide == pytest.approx((0.0524, 0.3339), abs=2e-3)
    assert wide[0] < found[0] < 0.2 < found[1] < wide[1]


def test_answers_of_one_question_that_share_their_fate_count_once() -> None:
    """Three answers a question, always judged alike, are worth one; that is itself estimated."""
    whole = judged((24, 30), (20, 30))
    (low, high), (lower, higher) = interval_of(whole), interval_of(whole, 3)
    assert low - 0.02 < lower < low < high < higher < high + 0.02
    (right, wrong) = class_rates(*one_by_one(whole, 3), RIGHT)
    assert (right.hits, right.trials, wrong.hits, wrong.trials) == (72, 90, 60, 90)
    assert right.size == pytest.approx(29)
    assert right.independent == pytest.approx((0.8 * 29, 29))


def test_errors_of_both_kinds_on_one_question_widen_the_interval() -> None:
    """A right and a wrong answer a question, both misjudged together, or never both."""
    both = np.zeros((2, 3, 3))
    both[0, 0, 0] = both[0, 1, 1] = 1
    both[1, 0, 1] = both[1, 1, 0] = 1
    clusters = CountTable(counts=both, golds=GRADES, outcomes=GRADES)
    together = youden_interval(clusters, np.array([40.0, 10.0]), RIGHT)
    apart = interval_of(judged((40, 50), (40, 50)))
    assert together is not None
    assert together[0] < apart[0] - 0.03


def test_pooling_weighs_the_languages() -> None:
    """Twice the weight, twice the say; alike languages make the interval narrower, not wider."""
    good, poor = (Estimate.of(value, (value - 0.1, value + 0.1), 50) for value in (0.9, 0.6))
    found = weighted_mean([(good, 2.0), (poor, 1.0)])
    assert found.value == pytest.approx(0.8)
    assert found.n == 100
    assert found.interval == pytest.approx((0.8 - math.sqrt(5) / 30, 0.8 + math.sqrt(5) / 30))
    assert weighted_mean([(good, 1.0)]) == good
    assert weighted_mean([]).value is None


def estimate(value: float, low: float, high: float) -> Estimate:
    return Estimate(value=value, low=low, high=high, n=100)


def test_a_difference_is_corrected_with_the_uncertainty_of_both() -> None:
    """Each end by that end of J which takes it farther from 0, never beyond -1 and 1."""
    gain = estimate(0.8, 0.5, 0.9)
    found = corrected_difference(estimate(-0.02, -0.05, 0.01), gain)
    assert found.value == pytest.approx(-0.025)
    assert found.interval == pytest.approx((-0.1, 0.02))
    worse = corrected_difference(estimate(-0.18, -0.36, -0.09), gain)
    assert worse.interval == pytest.approx((-0.72, -0.1))
    better = corrected_difference(estimate(0.5, 0.45, 0.6), gain)
    assert better.interval == pytest.approx((0.5, 1.0))


@pytest.mark.parametrize("gain", [estimate(0.2, 0.0, 0.5), estimate(-0.1, -0.4, 0.2)])
def test_a_judge_that_may_tell_nothing_apart_corrects_nothing(gain: Estimate) -> None:
    """J may be 0: the truth may be anything."""
    assert corrected_difference(estimate(0.1, 0.05, 0.2), gain).value is None
    assert corrected_difference(estimate(0.1, 0.05, 0.2), replace(gain, value=None)).value is None


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_the_figures_hold_the_truth_with_few_labels_and_clusters(correlation: float) -> None:
    """30 labels a class, three answers a question: the low end of J 95 %, corrected rates 93 %.

    Both are given what 500 rounds may fall short by.
    """
    one = Situation(judge=(0.9, 0.8), labels=(30, 30), correlation=correlation)
    shares = held(one, 500, np.random.default_rng(SEED))
    assert shares.low >= 0.95 - 0.02
    assert min(shares.rates) >= 0.93 - 0.025


SKEWED = ratings("9, and 1 in 5%", [0.05, *[0] * 7, 0.95, 0])
EVEN = ratings("each as often", [0.1] * 10)


def rated(*counts: int) -> tuple[CountTable, np.ndarray]:
    """Return the tables of single ratings, and how many items have each."""
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
def test_the_mean_of_ratings_leaves_room_for_what_was_not_seen(counts: list[int]) -> None:
    """Its interval holds the mean, stays on the scale, and allows for z² / (n + z²) at each end."""
    table, items = rated(*counts)
    n = items.sum()
    mean = sum(count * rating for rating, count in enumerate(counts, 1)) / n
    share = 3.8414588 / (n + 3.8414588)
    found = mean_interval(mean_rating, table, items)
    assert found is not None
    assert 1 <= found[0] <= mean - share * (mean - 1) + 1e-9
    assert mean + share * (10 - mean) - 1e-9 <= found[1] <= 10


def test_a_class_of_two_items_is_not_known_by_heart() -> None:
    """Both of two yes found: many may be missed among more; 200 of 200 is known; none has none."""
    shape = np.array([[1, 0, 0], [0, 0, 0]]), np.array([[0, 0, 0], [0, 1, 0]])
    table = CountTable(counts=np.array(shape, dtype=np.float64), golds=(YES, NO), outcomes=ANSWERS)
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

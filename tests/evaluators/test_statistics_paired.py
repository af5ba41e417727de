"""Claims about paired differences, power, betting, pass@k, and what answers take."""

import math
import random
from collections.abc import Sized
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binom, binomtest, norm

from qagate.evaluators.statistics import betting, paired
from qagate.evaluators.statistics.intervals import UNDEFINED, Z95
from qagate.evaluators.statistics.metrics import (
    USAGE,
    chance,
    clustered_mean,
    is_repeated,
)
from qagate.evaluators.statistics.usage_estimates import UsageMetric
from tests.benchmarks.coverage import Cell, outcomes, scores
from tests.support.figures import array, some
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
    share = minimize_scalar(
        loss, bounds=bounds, method="bounded", options={"xatol": 1e-12}
    ).x
    return (fixed - broke - n * delta) / math.sqrt(n * (2 * share + delta - delta**2))


def test_tango_gives_the_published_examples() -> None:
    """Tango (1998), section 6.1: 0 and 1 of 44, 90 %: lower end -0.096; and a run of PropCIs."""
    assert some(paired.tango(0, 1, 44, z=1.645))[0] == pytest.approx(-0.096, abs=5e-4)
    assert paired.tango(28, 25, 618, z=Z90) == pytest.approx(
        (-0.0148, 0.0247), abs=5e-5
    )
    # All pairs in one direction end at ±1; no pair has no interval.
    assert some(paired.tango(5, 0, 5))[1] == 1
    assert some(paired.tango(0, 5, 5))[0] == -1
    assert paired.tango(0, 0, 0) is None
    # With no pair that differs the interval is symmetric and shrinks like z²/(n + z²).
    for n, low in ((50, -0.071), (125, -0.030)):
        assert paired.tango(0, 0, n) == pytest.approx((low, -low), abs=5e-4)


@pytest.mark.parametrize(
    ("fixed", "broke", "n"), [(3, 5, 40), (12, 2, 50), (1, 9, 30), (40, 31, 400)]
)
def test_tango_ends_where_the_constrained_likelihood_says(
    fixed: int, broke: int, n: int
) -> None:
    """At both ends the score, with its nuisance parameter fitted numerically, is ±1.96."""
    low, high = some(paired.tango(fixed, broke, n))
    assert likelihood_score(fixed, broke, n, low) == pytest.approx(1.96, abs=1e-3)
    assert likelihood_score(fixed, broke, n, high) == pytest.approx(-1.96, abs=1e-3)


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 200))
def test_tango_holds_its_estimate_mirrors_and_moves(
    fixed: int, broke: int, ties: int
) -> None:
    """Within -1 to 1; swapped data give the mirrored interval; a tie less broken raises it."""
    n = fixed + broke + ties
    assume(n)
    low, high = some(paired.tango(fixed, broke, n))
    assert -1 <= low <= (fixed - broke) / n <= high <= 1
    assert paired.tango(broke, fixed, n) == pytest.approx((-high, -low), abs=1e-9)
    if broke:
        better = some(paired.tango(fixed, broke - 1, n))
        assert better[0] >= low - 1e-9
        assert better[1] >= high - 1e-9


ENDS = st.floats(-1, 1)


@given(ENDS, st.floats(0, 1), ENDS)
def test_the_p_value_belongs_to_the_interval(
    value: float, reach: float, bound: float
) -> None:
    """Below 0.05 exactly where the interval's lower end lies above the bound."""
    low = value - reach
    assume(abs(low - bound) > 1e-9)
    assert (paired.p_value_beyond(value, low, bound) < 0.05) == (low > bound)


def test_several_gates_and_repeats() -> None:
    """Holm step by step; the p-value of McNemar's score; identical repeats count once."""
    low, _ = some(paired.tango(30, 12, 500))
    score = (30 - 12) / (30 + 12) ** 0.5
    assert paired.p_value_beyond(18 / 500, low, 0.0) == pytest.approx(
        2 * norm.sf(score), rel=0.3
    )
    assert paired.holm([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert paired.holm([0.6, 0.9]) == (1.0, 1.0)
    assert paired.holm([]) == ()
    changes = array(*random.Random(1).choices([-1.0, 0.0, 0.0, 1.0], k=500))
    assert paired.shrink(
        3 * changes, 3 * abs(changes), array(*[3.0] * 500)
    ) == pytest.approx(1 / 3, abs=2e-3)
    assert paired.shrink(array(0, 0), array(0, 0), array(3, 3)) == pytest.approx(1 / 3)


@pytest.mark.parametrize("margin", [0.01, 0.03, 0.1, 0.5])
def test_the_smallest_n_is_the_first_that_can_pass(margin: float) -> None:
    """With that many concordant pairs Tango clears the margin, with one less not."""
    n = paired.smallest_n(margin)
    assert some(paired.tango(0, 0, n))[0] > -margin
    assert n == 1 or some(paired.tango(0, 0, n - 1))[0] <= -margin
    for outside in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="above 0 and below 1"):
            paired.smallest_n(outside)


@example(0, 0)
@example(5, 15)
@given(COUNTS, COUNTS)
def test_mcnemar_is_the_binomial_test(fixed: int, broke: int) -> None:
    """The exact two-sided p-value, 1 where no pair differs."""
    p_value = binomtest(fixed, fixed + broke, 0.5).pvalue if fixed + broke else 1.0
    assert paired.mcnemar(fixed, broke) == pytest.approx(p_value, abs=1e-12)


@given(COUNTS, COUNTS)
def test_the_odds_ratio_has_the_exact_interval_of_its_share(
    fixed: int, broke: int
) -> None:
    """The odds of Clopper and Pearson's ends; None for infinity."""
    value, low, high = paired.odds_ratio(fixed, broke)
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
def test_power_is_a_sum_of_tables(
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
    assert paired.power(n, -margin, discordance, difference) == pytest.approx(
        weights[cleared].sum(), abs=1e-6
    )


@tabled("n", "margin", "chance")
def test_margins_of_the_formula_have_less_power(
    n: int, margin: float, chance: float
) -> None:
    """Where z(0.975) + z(0.8) promises 80 % at 10 % discordance, the tables give 54 to 76 %."""
    assert paired.power(n, -margin, 0.1) == pytest.approx(chance, abs=0.005)


def test_power_at_its_edges() -> None:
    """Without a discordant pair the size decides; on the bound itself no number of pairs does."""
    assert paired.power(125, -0.03, 0.0) == pytest.approx(1)
    assert paired.power(124, -0.03, 0.0) == 0
    assert paired.pairs_needed(-0.03, 0.0, 0.0) == paired.smallest_n(0.03) == 125
    assert paired.pairs_needed(-0.1, 0.2, -0.1) is None
    assert paired.pairs_needed(-0.1, 0.2, -0.09999) is None
    # All pairs broke: the interval's upper end is below every bound that it can exclude.
    assert paired.power(50, -0.5, 1.0, -1.0) == pytest.approx(1)
    assert paired.power(2, -0.95, 1.0, -1.0) == 0


@pytest.mark.parametrize(
    ("n", "discordance"), [(29, 0.1), (60, 0.3), (873, 0.1), (4326, 0.2)]
)
def test_the_confirmed_margin_is_the_first_with_eighty_percent(
    n: int, discordance: float
) -> None:
    """At it the power is reached, a little below it is not; and no pair confirms nothing."""
    margin = some(paired.confirmed_margin(n, discordance))
    assert (
        paired.power(n, -margin, discordance)
        >= 0.8
        > paired.power(n, -margin + 0.0002, discordance)
    )
    assert paired.confirmed_margin(0, discordance) is None


@tabled("bound", "discordance", "difference")
def test_so_many_pairs_decide(
    bound: float, discordance: float, difference: float
) -> None:
    """They have the power, a tenth fewer do not, on whichever side of the bound the truth is."""
    needed = some(paired.pairs_needed(bound, discordance, difference))
    assert paired.power(needed, bound, discordance, difference) >= 0.8
    assert paired.power(needed * 9 // 10, bound, discordance, difference) < 0.8


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
        found = [
            chance(f"pass{sign}{k}", len(tries), sum(tries))
            for k in range(1, len(tries) + 1)
        ]
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


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=6)
)
def test_a_mean_lies_in_its_interval(clusters: list[list[float]]) -> None:
    """Which stays open even where all values are the same; no values have no mean."""
    found = clustered_mean(clusters)
    low, high = some(found.interval)
    assert low - 1e-9 <= some(found.value) <= high + 1e-9
    assert high > low
    assert found.n == sum(map(len, clusters))
    assert clustered_mean([]) == UNDEFINED


VALUES = st.lists(st.sampled_from([-4.0, -1.0, 0.0, 1.0, 4.0]), max_size=60)
MEANS = st.floats(-0.99, 0.99)


def is_above(seen: betting.Observations, mean: float) -> bool:
    return math.isfinite(betting.first_above(seen, mean))


def is_below(seen: betting.Observations, mean: float) -> bool:
    return math.isfinite(betting.first_below(seen, mean))


def plain(values: list[float], bound: float = 4.0) -> betting.Observations:
    totals = np.array(values, dtype=np.float64)
    return betting.Observations(totals=totals, sizes=np.ones_like(totals), bound=bound)


@given(VALUES, MEANS)
def test_the_capital_is_that_of_the_bets_made_one_by_one(
    values: list[float], mean: float
) -> None:
    """An even share on each bet, each multiplied by 1 + bet (value - mean); never below zero."""
    capital = [1 / len(betting.BETS)] * len(betting.BETS)
    expected = []
    for value in values:
        stakes = [share / (4 + mean) for share in betting.BETS]
        factors = [1 + stake * (value - mean) for stake in stakes]
        assert all(factor > 0 for factor in factors)
        capital = [a * b for a, b in zip(capital, factors, strict=True)]
        expected.append(sum(capital))
    assert np.exp(betting.log_capital(plain(values), mean)) == pytest.approx(
        np.array(expected)
    )


@given(
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=2),
)
def test_no_bet_gains_at_the_mean_it_is_against(
    weights: list[float], sizes: list[float]
) -> None:
    """The expected capital after units of one or two values stays 1: a martingale, exactly."""
    values = np.array([-1, -0.25, 0, 0.25, 1]) * 4
    chances = np.array(weights) / sum(weights)
    of_size = np.array(sizes) / sum(sizes)
    mean = float(chances @ values)
    if not -0.99 < mean < 0.99:
        return
    units = [
        (1, value, p * of_size[0]) for value, p in zip(values, chances, strict=True)
    ]
    units += [
        (2, 2 * value, p * of_size[1]) for value, p in zip(values, chances, strict=True)
    ]
    expected = 0.0
    for path in product(units, repeat=2):
        seen = betting.Observations(
            totals=np.array([total for _, total, _ in path]),
            sizes=np.array([float(size) for size, _, _ in path]),
            bound=4.0,
            largest=2,
        )
        chance = math.prod(p for _, _, p in path)
        expected += chance * math.exp(betting.log_capital(seen, mean)[-1])
    assert expected == pytest.approx(1)


@given(VALUES, MEANS, st.integers(0, 59), st.floats(0, 4))
def test_more_adds_evidence(
    values: list[float], mean: float, place: int, more: float
) -> None:
    """So what is unknown, counted as low as it can be, never lets a gate pass that should not."""
    if place < len(values):
        higher = [*values]
        higher[place] = min(4.0, higher[place] + more)
        assert (
            betting.log_capital(plain(higher), mean)
            >= betting.log_capital(plain(values), mean) - 1e-9
        ).all()


@given(VALUES, MEANS)
def test_the_interval_holds_the_means_left_undecided(
    values: list[float], mean: float
) -> None:
    """A mean below its low end is one that the true mean is shown to be above."""
    seen = plain(values)
    if interval := betting.confidence_sequence(seen, seen):  # None is tested below
        low, high = interval
        if abs(mean - low) > 1e-6 and low < 0.99:
            assert is_above(seen, mean) == (mean < low)
        if abs(mean - high) > 1e-6 and high > -0.99:
            assert is_below(seen, mean) == (mean > high)


def test_what_was_shown_once_stays_shown() -> None:
    """Later values take nothing back; luck brings forty once in forty runs."""
    good = [1.0] * 60
    assert is_above(plain(good), 0.0)
    assert is_above(plain(good + [-4.0] * 40), 0.0)
    assert betting.log_capital(plain(good + [-4.0] * 40), 0.0)[-1] < math.log(
        betting.DECISIVE
    )
    random = np.random.default_rng(20261122)
    values = random.choice(
        [-4.0, -1.0, 0.0, 1.0, 4.0], p=[0.02, 0.08, 0.82, 0.06, 0.02], size=(3000, 400)
    )
    share = np.mean([is_above(plain(list(row)), -0.02) for row in values])
    assert 0 < share <= 1 / betting.DECISIVE + 0.005
    nothing = plain([])
    assert not is_above(nothing, -0.9)
    assert not is_below(nothing, 0.9)
    assert betting.confidence_sequence(nothing, nothing) == (-1.0, 1.0)
    seen = plain([1.0] * 300 + [-1.0] * 900, bound=1)
    assert betting.confidence_sequence(seen, seen) is None


@tabled("runs", "limit", "verdict")
def test_the_first_verdict_counts(
    runs: list[tuple[list[float], int]], limit: float, verdict: str
) -> None:
    """No matter what comes later; with a limit of zero both may be true of one model."""
    seen = plain([one for values, times in runs for one in values * times], bound=1)
    assert betting.first_verdict([(seen, seen, -0.1, limit)]) == verdict


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), max_size=150), st.data())
def test_unknown_values_never_change_the_order(
    values: list[float], data: st.DataObject
) -> None:
    """A verdict with some values unknown is the one that all of them give."""
    unknown = data.draw(st.sets(st.integers(0, 149)))
    low = [-1.0 if place in unknown else one for place, one in enumerate(values)]
    high = [1.0 if place in unknown else one for place, one in enumerate(values)]
    sides = plain(low, 1), plain(high, 1), -0.2, 0.0
    whole = plain(values, 1), plain(values, 1), -0.2, 0.0
    assert betting.first_verdict([sides]) in ("", betting.first_verdict([whole]))


def test_an_unchanged_share_is_decided_sooner_the_wider_the_margin_and_the_fewer_differ() -> (
    None
):
    """Some 380 of 4,326 where a tenth differs; every unit where even all of them show nothing."""
    shares = (0.02, 0.1, 0.2, 0.4)
    units, left = zip(
        *(betting.expected_units(0.05, 0.05, one, 1500) for one in shares), strict=True
    )
    assert list(units) == sorted(units)
    assert 340 < units[1] < 420
    assert left[0] == 0 < left[3]
    assert betting.expected_units(0.1, 0.1, 0.1, 1500)[0] < units[1] / 2
    assert betting.expected_units(0.05, 0.05, 0.1, 20) == (20, 1)


MEDIAN, TAIL, MEAN = USAGE["seconds_p50"], USAGE["seconds_p95"], USAGE["cost"]
figures = st.lists(st.floats(0, 1e6), min_size=1, max_size=60)


def alone(values: Sized) -> list[int]:
    return list(range(len(values)))


def test_values_are_those_of_the_textbook() -> None:
    """The nearest rank: the 95th of 1 to 100 is 95, the median of four the second; a plain mean."""
    hundred = [float(one) for one in range(100, 0, -1)]
    assert TAIL.estimate(hundred, alone(hundred)).value == 95
    assert MEDIAN.estimate([4, 3, 2, 1], alone("abcd")).value == 2
    assert MEAN.estimate([1, 2, 6], alone("abc")).value == pytest.approx(3)
    assert MEAN.estimate([], []).value is None


@given(figures)
def test_a_value_lies_in_its_interval_and_among_the_figures(
    values: list[float],
) -> None:
    """For all figures; a mean's interval does not reach below 0."""
    for row in (MEDIAN, TAIL, MEAN):
        found = row.estimate(values, alone(values))
        value, rounding = some(found.value), 1e-9 * max(values)
        assert min(values) - 1e-9 <= value <= max(values) + rounding
        low, high = found.interval or (0.0, value)
        assert -rounding <= low <= value + rounding <= high + 2 * rounding


@pytest.mark.parametrize(("row", "first"), [(MEDIAN, 6), (TAIL, 72)])
def test_a_quantile_has_an_interval_if_enough_lie_beyond_it(
    row: UsageMetric, first: int
) -> None:
    """So that its upper end is a value that was seen: from 6 items on, and from 72."""
    for count in (first - 1, first):
        values = [float(one) for one in range(count)]
        assert bool(row.estimate(values, alone(values)).interval) == (count == first)
    share = row.quantile or 0.0
    assert (
        binom.cdf(first - 1, first, share)
        >= 0.975
        > binom.cdf(first - 2, first - 1, share)
    )


def test_items_that_hang_together_count_as_fewer() -> None:
    """Every figure given four times by its cluster teaches what it teaches once."""
    random = np.random.default_rng(4)
    once = random.lognormal(size=200).tolist()
    four, clusters = np.repeat(once, 4).tolist(), np.repeat(np.arange(200), 4).tolist()
    for row in (MEDIAN, TAIL, MEAN):
        single, apart = row.estimate(once, alone(once)), row.estimate(four, alone(four))
        together = row.estimate(four, clusters)
        assert None not in (single.interval, apart.interval, together.interval)
        width = [
            high - low
            for low, high in (one.interval or (0, 0) for one in (apart, together))
        ]
        assert width[1] > 1.5 * width[0]
        low, high = together.interval or (0, 0)
        assert high - low > 0.8 * ((single.high or 0) - (single.low or 0))


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    """Of 120 samples of 150 pairs with a long tail, at least 89 % of intervals hold the truth.
    Those of quantiles and means, and of the factor between two runs: 0.95 less three standard
    errors."""
    random = np.random.default_rng(7)
    truth = {MEDIAN: 1.0, TAIL: math.exp(0.8 * 1.6448536), MEAN: math.exp(0.32)}
    held = {(row.name, what): 0 for row in truth for what in ("now", "factor")}
    for _ in range(120):
        common = 0.48 * random.normal(size=150)
        old, new = (np.exp(common + 0.64 * random.normal(size=150)) for _ in range(2))
        for row, true in truth.items():
            now = row.estimate(old.tolist(), alone(old))
            factor = row.change(
                old.tolist(), (1.5 * new).tolist(), alone(old), relative=True
            )
            held[row.name, "now"] += (now.low or 0) <= true <= (now.high or 0)
            held[row.name, "factor"] += (factor.low or 0) <= 0.5 <= (factor.high or 0)
    assert {key: count for key, count in held.items() if count < 107} == {}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=40)
)
def test_a_change_is_that_of_the_two_values(pairs: list[tuple[float, float]]) -> None:
    """New - old, or new / old - 1; its interval is finite and comes out the same again."""
    old, new = map(list, zip(*pairs, strict=True))
    for row in (MEDIAN, TAIL, MEAN):
        before, now = (
            row.estimate(side, alone(side)).value or 0.0 for side in (old, new)
        )
        plain, factor = (
            row.change(old, new, alone(old), relative=relative)
            for relative in (False, True)
        )
        assert plain.value == pytest.approx(now - before)
        assert factor.value == pytest.approx(now / before - 1)
        assert plain == row.change(old, new, alone(old), relative=False)
        assert all(map(math.isfinite, plain.interval or ()))


@pytest.mark.parametrize("figure", [300.0, 0.1])
def test_figures_that_are_all_alike(figure: float) -> None:
    """More than 30 are their own interval; fewer leave as much doubt above as below."""
    for count in (31, 120):
        alike = [figure] * count
        now = MEAN.estimate(alike, alone(alike))
        moved = MEAN.change(alike, alike, alone(alike), relative=True)
        assert now.interval == pytest.approx((figure, figure))
        assert moved.interval == (0.0, 0.0)
    alike = [figure] * 30
    low, high = MEAN.estimate(alike, alone(alike)).interval or (0.0, 0.0)
    assert high - figure == pytest.approx(figure - low)
    assert 1.1 < high / figure < 1.12
    below, above = MEAN.change(alike, alike, alone(alike), relative=True).interval or (
        0.0,
        0.0,
    )
    assert (below, above) == pytest.approx((1 - high / figure, high / figure - 1))
    varied = [*alike, 2 * figure]
    low, high = MEAN.estimate(varied, alone(varied)).interval or (0.0, 0.0)
    assert low < figure < high


def test_what_is_infinite_has_no_mean_and_moves_a_quantile_only_if_it_reaches_it() -> (
    None
):
    """4 of 100 that never came leave the 95th where it is known; 6 do not."""
    for count, known in ((4, True), (6, False)):
        values = [1.0] * (100 - count) + [math.inf] * count
        assert (TAIL.estimate(values, alone(values)).value is not None) == known
        assert MEAN.estimate(values, alone(values)).value is None
        change = TAIL.change([1.0] * 100, values, alone(values), relative=True)
        assert (change.value is not None) == known

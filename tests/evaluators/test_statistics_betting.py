"""Claims about betting, and about means and quantiles of what answers take."""

import math
from collections.abc import Sized
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evaluators.statistics.betting import (
    BETS,
    ENOUGH,
    Observations,
    Sides,
    confidence_sequence,
    expected_units,
    first_above,
    first_below,
    first_verdict,
    log_capital,
)
from evaluators.statistics.metrics import USAGE
from evaluators.statistics.usage_estimates import UsageMetric

VALUES = st.lists(st.sampled_from([-4.0, -1.0, 0.0, 1.0, 4.0]), max_size=60)
MEANS = st.floats(-0.99, 0.99)


def is_above(seen: Observations, mean: float) -> bool:
    """Return whether the mean is ever shown to be above."""
    return math.isfinite(first_above(seen, mean))


def is_below(seen: Observations, mean: float) -> bool:
    """Return whether the mean is ever shown to be below."""
    return math.isfinite(first_below(seen, mean))


def plain(values: list[float], bound: float = 4.0) -> Observations:
    """Return units of one value each."""
    totals = np.array(values, dtype=np.float64)
    return Observations(totals=totals, sizes=np.ones_like(totals), bound=bound)


@given(VALUES, MEANS)
def test_the_capital_is_that_of_the_bets_made_one_by_one(values: list[float], mean: float) -> None:
    """An even share on each bet, each multiplied by 1 + bet (value - mean); never below zero."""
    capital = [1 / len(BETS)] * len(BETS)
    expected = []
    for value in values:
        stakes = [share / (4 + mean) for share in BETS]
        factors = [1 + stake * (value - mean) for stake in stakes]
        assert all(factor > 0 for factor in factors)
        capital = [a * b for a, b in zip(capital, factors, strict=True)]
        expected.append(sum(capital))
    assert np.exp(log_capital(plain(values), mean)) == pytest.approx(np.array(expected))


@given(
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=2),
)
def test_no_bet_gains_where_the_mean_is_what_it_is_made_against(
    weights: list[float], sizes: list[float]
) -> None:
    """The expected capital after units of one or two values stays 1: a martingale, exactly."""
    values = np.array([-1, -0.25, 0, 0.25, 1]) * 4
    chances = np.array(weights) / sum(weights)
    of_size = np.array(sizes) / sum(sizes)
    mean = float(chances @ values)
    if not -0.99 < mean < 0.99:
        return
    units = [(1, value, p * of_size[0]) for value, p in zip(values, chances, strict=True)]
    units += [(2, 2 * value, p * of_size[1]) for value, p in zip(values, chances, strict=True)]
    expected = 0.0
    for path in product(units, repeat=2):
        seen = Observations(
            totals=np.array([total for _, total, _ in path]),
            sizes=np.array([float(size) for size, _, _ in path]),
            bound=4.0,
            largest=2,
        )
        chance = math.prod(p for _, _, p in path)
        expected += chance * math.exp(log_capital(seen, mean)[-1])
    assert expected == pytest.approx(1)


@given(VALUES, MEANS, st.integers(0, 59), st.floats(0, 4))
def test_a_higher_value_never_takes_evidence_away(
    values: list[float], mean: float, place: int, more: float
) -> None:
    """So what is unknown, counted as low as it can be, never lets a gate pass that should not."""
    if place < len(values):
        higher = [*values]
        higher[place] = min(4.0, higher[place] + more)
        assert (log_capital(plain(higher), mean) >= log_capital(plain(values), mean) - 1e-9).all()


@given(VALUES, MEANS)
def test_the_interval_holds_just_the_means_that_no_bet_decided_against(
    values: list[float], mean: float
) -> None:
    """A mean below its low end is one that the true mean is shown to be above."""
    seen = plain(values)
    interval = confidence_sequence(seen, seen)
    if interval is None:  # tested below
        return
    low, high = interval
    if abs(mean - low) > 1e-6 and low < 0.99:
        assert is_above(seen, mean) == (mean < low)
    if abs(mean - high) > 1e-6 and high > -0.99:
        assert is_below(seen, mean) == (mean > high)


def test_what_was_shown_once_stays_shown() -> None:
    """Later values do not take a decision back, so that it may be looked for after every one."""
    good = [1.0] * 60
    assert is_above(plain(good), 0.0)
    assert is_above(plain(good + [-4.0] * 40), 0.0)
    assert log_capital(plain(good + [-4.0] * 40), 0.0)[-1] < math.log(ENOUGH)


def test_luck_brings_forty_at_most_once_in_forty() -> None:
    """Looked at after each of 400 values whose mean is exactly what is tested."""
    random = np.random.default_rng(20261122)
    values = random.choice(
        [-4.0, -1.0, 0.0, 1.0, 4.0], p=[0.02, 0.08, 0.82, 0.06, 0.02], size=(3000, 400)
    )
    share = np.mean([is_above(plain(list(row)), -0.02) for row in values])
    assert 0 < share <= 1 / ENOUGH + 0.005


@pytest.mark.parametrize(
    ("values", "limit", "verdict"),
    [
        ([1.0] * 60, -0.1, "PASS"),
        ([-1.0] * 60, -0.1, "FAIL"),
        ([0.0] * 20, -0.1, ""),
        ([-1.0] * 30 + [1.0] * 200, -0.1, "FAIL"),
        ([1.0] * 30 + [-1.0] * 200, -0.1, "PASS"),
        ([-1.0, 0, 0, 0, 0] * 60, 0.0, "FAIL"),
        ([-1.0] * 12 + [0.0] * 2000, 0.0, "FAIL"),
    ],
)
def test_the_first_verdict_counts(values: list[float], limit: float, verdict: str) -> None:
    """Whatever comes later; with a limit of zero both may be true of one model."""
    seen = plain(values, bound=1)
    assert first_verdict([Sides(low=seen, high=seen, passing=-0.1, failing=limit)]) == verdict


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.0, 1.0]), max_size=150), st.data())
def test_unknown_values_never_change_which_comes_first(
    values: list[float], data: st.DataObject
) -> None:
    """A verdict with some values unknown is the one that all of them give."""
    unknown = data.draw(st.sets(st.integers(0, 149)))
    low = [-1.0 if place in unknown else one for place, one in enumerate(values)]
    high = [1.0 if place in unknown else one for place, one in enumerate(values)]
    sides = Sides(low=plain(low, 1), high=plain(high, 1), passing=-0.2, failing=0.0)
    whole = Sides(low=plain(values, 1), high=plain(values, 1), passing=-0.2, failing=0.0)
    assert first_verdict([sides]) in ("", first_verdict([whole]))


def test_evidence_that_contradicts_itself_has_no_interval() -> None:
    """Gains first and losses after are no random sample: no mean is left; any is without data."""
    nothing = plain([])
    assert not is_above(nothing, -0.9)
    assert not is_below(nothing, 0.9)
    assert confidence_sequence(nothing, nothing) == (-1.0, 1.0)
    seen = plain([1.0] * 300 + [-1.0] * 900, bound=1)
    assert confidence_sequence(seen, seen) is None


def test_an_unchanged_share_is_decided_sooner_the_wider_the_margin_and_the_fewer_differ() -> None:
    """Some 380 of 4,326 where a tenth differs; every unit where even all of them show nothing."""
    shares = (0.02, 0.1, 0.2, 0.4)
    units, left = zip(*(expected_units(0.05, 0.05, one, 1500) for one in shares), strict=True)
    assert list(units) == sorted(units)
    assert 340 < units[1] < 420
    assert left[0] == 0 < left[3]
    assert expected_units(0.1, 0.1, 0.1, 1500)[0] < units[1] / 2
    assert expected_units(0.05, 0.05, 0.1, 20) == (20, 1)


MEDIAN, TAIL, MEAN = USAGE["seconds_p50"], USAGE["seconds_p95"], USAGE["cost"]
figures = st.lists(st.floats(0, 1e6), min_size=1, max_size=60)


def alone(values: Sized) -> list[int]:
    """Every item its own cluster."""
    return list(range(len(values)))


def test_values_are_those_of_the_textbook() -> None:
    """The nearest rank: the 95th of 1 to 100 is 95, the median of four the second; a plain mean."""
    hundred = [float(one) for one in range(100, 0, -1)]
    assert TAIL.estimate(hundred, alone(hundred)).value == 95
    assert MEDIAN.estimate([4, 3, 2, 1], alone("abcd")).value == 2
    assert MEAN.estimate([1, 2, 6], alone("abc")).value == pytest.approx(3)
    assert MEAN.estimate([], []).value is None


@given(figures)
def test_a_value_lies_in_its_interval_and_among_the_figures(values: list[float]) -> None:
    """For all figures; a mean's interval does not reach below 0."""
    for row in (MEDIAN, TAIL, MEAN):
        found = row.estimate(values, alone(values))
        assert found.value is not None
        assert min(values) - 1e-9 <= found.value <= max(values) * (1 + 1e-9)
        if found.low is not None and found.high is not None:
            rounding = 1e-9 * max(values)
            assert -rounding <= found.low <= found.value + rounding
            assert found.value <= found.high + rounding


@pytest.mark.parametrize(("row", "first"), [(MEDIAN, 6), (TAIL, 72)])
def test_a_quantile_has_an_interval_once_enough_items_lie_beyond_it(
    row: UsageMetric, first: int
) -> None:
    """So that its upper end is a value that was seen: from 6 items on, and from 72."""
    for count in (first - 1, first):
        values = [float(one) for one in range(count)]
        assert bool(row.estimate(values, alone(values)).interval) == (count == first)
    share = row.quantile or 0.0
    assert binom.cdf(first - 1, first, share) >= 0.975 > binom.cdf(first - 2, first - 1, share)


def test_items_that_hang_together_count_as_fewer() -> None:
    """Every figure given four times by its cluster teaches what it teaches once."""
    random = np.random.default_rng(4)
    once = random.lognormal(size=200).tolist()
    four, clusters = np.repeat(once, 4).tolist(), np.repeat(np.arange(200), 4).tolist()
    for row in (MEDIAN, TAIL, MEAN):
        single, apart = row.estimate(once, alone(once)), row.estimate(four, alone(four))
        together = row.estimate(four, clusters)
        assert None not in (single.interval, apart.interval, together.interval)
        width = [high - low for low, high in (one.interval or (0, 0) for one in (apart, together))]
        assert width[1] > 1.5 * width[0]
        low, high = together.interval or (0, 0)
        assert high - low > 0.8 * ((single.high or 0) - (single.low or 0))


@pytest.mark.slow
def test_intervals_hold_the_truth() -> None:
    """Of 120 samples of 150 pairs with a long tail, at least 89 % of intervals hold the truth.

    Those of quantiles and means, and of the factor between two runs: 0.95 less three standard
    errors.
    """
    random = np.random.default_rng(7)
    truth = {MEDIAN: 1.0, TAIL: math.exp(0.8 * 1.6448536), MEAN: math.exp(0.32)}
    held = {(row.name, what): 0 for row in truth for what in ("now", "factor")}
    for _ in range(120):
        common = 0.48 * random.normal(size=150)
        old, new = (np.exp(common + 0.64 * random.normal(size=150)) for _ in range(2))
        for row, true in truth.items():
            now = row.estimate(old.tolist(), alone(old))
            factor = row.change(old.tolist(), (1.5 * new).tolist(), alone(old), relative=True)
            held[row.name, "now"] += (now.low or 0) <= true <= (now.high or 0)
            held[row.name, "factor"] += (factor.low or 0) <= 0.5 <= (factor.high or 0)
    assert {key: count for key, count in held.items() if count < 107} == {}


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.1, 9)), min_size=1, max_size=40))
def test_a_change_is_that_of_the_two_values(pairs: list[tuple[float, float]]) -> None:
    """New - old, or new / old - 1; its interval is finite and comes out the same again."""
    old, new = map(list, zip(*pairs, strict=True))
    for row in (MEDIAN, TAIL, MEAN):
        before, now = (row.estimate(side, alone(side)).value or 0.0 for side in (old, new))
        plain, factor = (
            row.change(old, new, alone(old), relative=relative) for relative in (False, True)
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
    below, above = MEAN.change(alike, alike, alone(alike), relative=True).interval or (0.0, 0.0)
    assert (below, above) == pytest.approx((1 - high / figure, high / figure - 1))
    varied = [*alike, 2 * figure]
    low, high = MEAN.estimate(varied, alone(varied)).interval or (0.0, 0.0)
    assert low < figure < high


def test_what_is_infinite_has_no_mean_and_moves_a_quantile_only_if_it_reaches_it() -> None:
    """4 of 100 that never came leave the 95th where it is known; 6 do not."""
    for count, known in ((4, True), (6, False)):
        values = [1.0] * (100 - count) + [math.inf] * count
        assert (TAIL.estimate(values, alone(values)).value is not None) == known
        assert MEAN.estimate(values, alone(values)).value is None
        change = TAIL.change([1.0] * 100, values, alone(values), relative=True)
        assert (change.value is not None) == known

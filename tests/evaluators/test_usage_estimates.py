"""Means and quantiles of what answers take: values, intervals that hold the truth, and changes."""

import math
from collections.abc import Sized

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from evaluators.statistics.metrics import USAGE
from evaluators.statistics.usage_estimates import UsageMetric

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

"""Our few special functions give scipy's digits."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, betaincinv, stdtrit
from scipy.stats import binom

from evaluators.statistics.intervals import at_most, beta_quantile, chance, root, student_quantile

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

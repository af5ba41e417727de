"""Claims about what is computed of the pairs that differ, and of single rates, in closed form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

from evaluators.statistics.intervals import wilson
from evaluators.statistics.paired import mcnemar, odds_ratio

COUNTS = st.integers(0, 60)


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


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_is_that_of_statsmodels(successes: int, n: int) -> None:
    """The same interval to rounding, at the edges too."""
    successes = min(successes, n)
    found = wilson(successes, n)
    assert found is not None
    assert found == pytest.approx(proportion_confint(successes, n, method="wilson"), abs=1e-12)

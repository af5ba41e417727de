"""Claims about the power of paired gates: every table of counts, weighed by its probability."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.statistics.intervals import Z95
from evaluators.statistics.paired import confirmed_margin, pairs_needed, power, smallest_n, tango
from tests.benchmarks.coverage import Cell, outcomes, scores

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


@pytest.mark.parametrize(
    ("n", "margin", "chance"),
    [(29, 0.1645, 0.54), (60, 0.1144, 0.68), (120, 0.0809, 0.73), (240, 0.0572, 0.76)],
)
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


@pytest.mark.parametrize(
    ("bound", "discordance", "difference"),
    [(-0.1, 0.1, 0.0), (-0.03, 0.1, 0.0), (-0.1, 0.2, -0.05), (0.0, 0.1, -0.05), (-0.1, 0.3, -0.2)],
)
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


def test_a_sure_loss_is_above_the_bound_by_no_table() -> None:
    """All pairs broke: the interval's upper end is below every bound that it can exclude."""
    ends = tango(0, 50, 50)
    assert ends is not None
    assert power(50, -0.5, 1.0, -1.0) == pytest.approx(1)
    assert power(2, -0.95, 1.0, -1.0) == 0

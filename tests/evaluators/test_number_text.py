"""How numbers are worded: rounding never misleads."""

import pytest

from qagate.evaluators.number_text import figure, money, number, part_of_cost, span_of


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_what_is_no_number_is_undefined(value: float | None) -> None:
    assert number(value) == "undefined"


@pytest.mark.parametrize("value", [0.0, -0.0, -1e-12])
def test_zero_has_no_sign(value: float) -> None:
    assert number(value) == "0.000"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.5, "0.500"),
        (0.01236, "0.012"),
        (0.005, "0.005"),
        (0.00412, "0.00412"),
        (0.0000731, "0.0000731"),
        (-0.00412, "-0.00412"),
    ],
)
def test_a_small_number_has_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_small_number_may_be_shown_like_others() -> None:
    assert number(0.00412, small=False) == "0.004"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5, "0.5"), (0.12345, "0.123"), (0.000123, "0.000123"), (2.0, "2"), (-0.0, "0")],
)
def test_a_figure_has_no_zeros_at_its_end(value: float, text: str) -> None:
    assert figure(value) == text


@pytest.mark.parametrize(
    ("value", "bars", "text"),
    [
        (0.8996, (0.9,), "0.8996"),
        (0.89999, (None, 0.9), "0.89999"),
        (0.9, (0.9,), "0.9"),
        (0.0004, (0.0,), "0.0004"),
    ],
)
def test_a_figure_that_misses_a_bar_does_not_read_like_it(
    value: float, bars: tuple[float | None, ...], text: str
) -> None:
    assert figure(value, *bars) == text


def test_an_interval_in_words() -> None:
    assert span_of((0.35, 0.4804)) == "0.35 to 0.48"


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (1234.5, "$1,234.50"),
        (0.12, "$0.12"),
        (0.0205, "$0.0205"),
        (2.0e-05, "$0.000020"),
    ],
)
def test_small_amounts_stay_visible(amount: float, text: str) -> None:
    """A fraction of a cent is not shown as nothing."""
    assert money(amount) == text


@pytest.mark.parametrize(
    ("known", "text"), [(0.0, "unknown"), (0.5, "partly known: $0.50")]
)
def test_a_cost_without_some_price_is_not_shown_as_the_whole(
    known: float, text: str
) -> None:
    assert part_of_cost(known) == text

"""Sums of usage and of forecasts, whose fields are added one by one."""

from dataclasses import fields
from typing import Any

import pytest

from qagate.evaluators.core import Usage
from qagate.evaluators.runtime.forecast import Forecast


@pytest.mark.parametrize("kind", [Usage, Forecast])
def test_a_sum_adds_every_field(kind: type[Any]) -> None:
    """A field that ``__add__`` does not name would have its default here."""
    names = [field.name for field in fields(kind)]
    first = kind(**{name: 2 + place for place, name in enumerate(names)})
    second = kind(**dict.fromkeys(names, 100))
    expected = kind(**{name: 102 + place for place, name in enumerate(names)})
    assert first + second == expected


def test_an_amount_that_is_unknown_on_one_side_stays_unknown() -> None:
    without_price = Forecast(cost=None, cached=None, most=None)
    assert without_price + Forecast() == without_price
    assert Forecast() + without_price == without_price

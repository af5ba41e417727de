"""Times as people read and write them."""

import pytest

from qagate.evaluators.durations import rough_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "1 s"),
        (59, "59 s"),
        (60, "1 m"),
        (61, "2 m"),
        (7_200, "2 h"),
        (90_000, "2 d"),
    ],
)
def test_a_rough_time_is_rounded_up(seconds: float, text: str) -> None:
    """In the largest unit of which there is one."""
    assert rough_text(seconds) == text

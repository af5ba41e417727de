"""The answer is the right yes or no."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("boolq")
def test_boolq(case: Case, verdict: Outcome) -> None:
    """The answer is the right yes or no."""
    assert verdict.passed, verdict.reason

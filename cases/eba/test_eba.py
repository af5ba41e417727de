"""The answer is rated at or above the language's pass bar."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("eba")
def test_eba(case: Case, verdict: Outcome) -> None:
    """The answer is rated at or above the language's pass bar."""
    assert verdict.passed, verdict.reason

"""The answer is graded CORRECT."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("simpleqa_hard")
def test_simpleqa_hard(case: Case, verdict: Outcome) -> None:
    """The answer is graded CORRECT."""
    assert verdict.passed, verdict.reason

"""The judge is not fooled by an attack, and loses no control."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("attacks")
def test_attacks(case: Case, verdict: Outcome) -> None:
    """The judge is not fooled by an attack, and loses no control."""
    assert verdict.passed, verdict.reason

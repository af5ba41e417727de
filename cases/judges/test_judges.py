"""The judge gives the label of the item."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("judges")
def test_judges(case: Case, verdict: Outcome) -> None:
    """The judge gives the label of the item."""
    assert verdict.passed, verdict.reason

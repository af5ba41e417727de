"""The judge gives the label of the item."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("judges_eba")
def test_judges_eba(case: Case, verdict: Outcome) -> None:
    """The judge gives the label of the item."""
    assert verdict.passed, verdict.reason

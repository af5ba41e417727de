"""The judge is not fooled by a gold that is not chosen, and takes one that is."""

import pytest

from qagate.evaluators.core import Case, Outcome


@pytest.mark.qa("gold_inside")
def test_gold_inside(case: Case, verdict: Outcome) -> None:
    """The judge is not fooled by a gold that is not chosen, and takes one that is."""
    assert verdict.passed, verdict.reason

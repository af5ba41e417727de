"""Small versions of the audited gate's benchmark: wrong PASS, power, labels, and real answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.audited import GRADES, JUDGES, LINKED, SEED, outcome_of, real

SHARED = Path(__file__).parents[3] / "shared"


@pytest.mark.parametrize("margin", [0.10, 0.05])
def test_a_model_worse_by_the_margin_does_not_pass(margin: float) -> None:
    """At most 2.5 % of rounds, looked at after every label, whatever the judge; 1.3 % noise."""
    random = np.random.default_rng(SEED)
    for judge in (*JUDGES, *LINKED):
        worse = replace(judge, drop=margin)
        assert outcome_of(worse, margin, 400, random).passed <= 0.025 + 0.013


@pytest.mark.parametrize(("margin", "power", "looked"), [(0.10, 0.95, 120), (0.05, 0.65, 300)])
def test_an_unchanged_model_passes_after_few_pairs(
    margin: float, power: float, looked: int
) -> None:
    """At most 120 and 300, with the worst judge; 200 rounds of noise."""
    random = np.random.default_rng(SEED)
    for judge in JUDGES:
        found = outcome_of(judge, margin, 200, random)
        assert found.passed >= power
        assert found.looked <= looked


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / GRADES).is_dir(), reason="the shared answers are not here")
def test_real_answers_are_decided_by_few_of_the_published_grades() -> None:
    """Two models' Czech answers, judged by rules: the truth, from less than 40 % of the pairs."""
    found = list(real(SHARED / GRADES, (0.05,)))
    assert len(found) == 6
    for one in found:
        assert one.state == ("PASS" if one.truth > -0.05 else "FAIL")
        assert one.looked < 0.4 * one.pairs

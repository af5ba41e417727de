"""Claims about how often gates on the change of any metric are right, on few of the simulations."""

import numpy as np
import pytest

from evaluators.statistics.metrics import METRICS
from tests.benchmarks.differences import SIZES, TRUTHS, rates, situations

ROUNDS = 250
BY_KIND = {one.kind: one for one in situations((0.9,)) if "as before" not in one.name}


def test_every_situation_is_a_distribution_with_its_own_difference() -> None:
    """The probabilities sum to one; where nothing changed no metric's truth has."""
    for one in situations():
        assert one.joint.sum() == pytest.approx(1)
        assert (one.joint >= 0).all()
        moved = [abs(one.truth(name)) for name in METRICS[one.kind] if name in TRUTHS]
        assert max(moved) < 1e-12 if "as before" in one.name else min(moved) > 0.01


def test_the_runs_of_a_draw_differ_as_the_situation_says() -> None:
    """Over a million items the metrics of both runs come to the independent formulas."""
    for one in situations((0.6,)):
        counts = one.draw(np.random.default_rng(1), 1_000_000)
        for name in (name for name in METRICS[one.kind] if name in TRUTHS):
            old, new = (counts.run(number).value(name) or 0.0 for number in (0, 1))
            assert new - old == pytest.approx(one.truth(name), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_KIND)
def test_differences_hold_and_gates_are_rarely_wrong(kind: str) -> None:
    """At 60 pairs: nine in ten intervals of every metric hold, where 95 % are claimed.

    A model worse by half the margin fails where that means zero, and not where it means the margin.
    """
    found = rates(BY_KIND[kind], SIZES[0], ROUNDS)
    assert found
    for name, one in found.items():
        assert one.held >= 0.9 * ROUNDS, name
        assert one.wrong_pass <= 0.08 * ROUNDS, name
        assert one.wrong_fail <= 0.025 * ROUNDS, name
    assert any(one.wrong_fail_zero > 0.1 * ROUNDS for one in found.values())

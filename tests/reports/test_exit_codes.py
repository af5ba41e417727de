"""Whole runs of the bundled SimpleQA sets end as their truth demands; rates: a benchmark."""

import pytest

from tests.benchmarks.exit_codes import Simulation, World

pytestmark = [pytest.mark.slow, pytest.mark.untraced]


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    return Simulation()


def test_a_language_that_lost_20_points_never_ships(simulation: Simulation) -> None:
    lost = World(name="lost", differing=0.1, loss=0.2, lost_in="pl")
    assert simulation.codes(lost, 3)[0] == 0


def test_an_unchanged_model_ships(simulation: Simulation) -> None:
    unchanged = World(name="unchanged", differing=0.05)
    assert simulation.codes(unchanged, 3)[0] == 3


def test_a_judge_that_errs_on_a_fifth_of_one_language_decides_nothing(
    simulation: Simulation,
) -> None:
    poor = World(name="poor", judge_in={"pl": 0.8})
    assert simulation.codes(poor, 3)[0] == 0

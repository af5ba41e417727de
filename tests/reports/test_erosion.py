"""Claims about a slow erosion, which no single release shows: ``tests/benchmarks/erosion.py``."""

import pytest

from cases.dataset import Threshold
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from tests.benchmarks.erosion import Setting, erode, is_within
from tests.support.made_records import make_dataset, make_record, make_slice


def test_an_anchor_stops_an_erosion_that_the_last_release_does_not() -> None:
    """Of histories in which each release loses 0.02, some pass; beside the anchor none does."""
    found = erode(Setting(), 400)
    assert 0.8 < found.one < 0.87
    assert 0.06 < found.moving < 0.2
    assert found.anchored < 0.01


def test_a_model_that_does_not_erode_passes_beside_the_anchor_too() -> None:
    """What the anchor stops is the loss, not the releases."""
    found = erode(Setting(loss=0.0, discordance=0.02), 200)
    assert found.anchored > 0.9


@pytest.mark.parametrize(("fixed", "broke"), [(20, 33), (20, 34), (20, 35), (40, 50), (40, 80)])
def test_the_simulation_decides_as_the_gate_does(fixed: int, broke: int) -> None:
    """On both sides of the counts at which the verdict changes."""
    after = ["passed"] * fixed + ["failed"] * broke + ["passed"] * (1000 - fixed - broke)
    before = ["failed"] * fixed + ["passed"] * (1000 - fixed)
    new, old = (
        [make_record(n, outcome=one) for n, one in enumerate(run)] for run in (after, before)
    )
    rule = Threshold(measure="drop", max=0.03, evidence="confident", fail="margin")
    side = PairedSlice(slice_=make_slice("graded", rule), pairing=pair_records(new, old))
    (gate,) = change_gates(make_dataset(side.slice_), [side])
    assert (gate.state == "PASS") == is_within(fixed, broke, 1000, 0.03)

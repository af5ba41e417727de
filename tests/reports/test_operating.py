"""Claims about the dry run's odds, compared with runs that other code draws from a known truth."""

import numpy as np
import pytest

from tests.benchmarks import operating
from tests.benchmarks.operating import FILES, Row, bundled, drawn_runs, failures, of_file, rows


@pytest.mark.parametrize("known", [True, False])
def test_runs_of_one_model_differ_in_the_share_asked_for(known: bool) -> None:
    """A tenth of the items change sides, no more of them to the one side than to the other."""
    run = of_file(FILES["bars alone"])
    moved = [
        [
            (new.outcome == "passed") - (old.outcome == "passed")
            for new, old in zip(*both, strict=True)
        ]
        for both in drawn_runs(run, 0.1, {}, known=known, runs=200)
    ]
    assert np.abs(moved).mean() == pytest.approx(0.1, abs=0.01)
    assert np.mean(moved) == pytest.approx(0, abs=0.01)


def test_a_loss_is_drawn_as_it_is_named() -> None:
    """Ten points are a tenth of the items."""
    run = of_file(FILES["bars alone"])
    losses = {"facts:en": 0.1, "facts:bg": 0.1}
    moved = [
        (new.outcome == "passed") - (old.outcome == "passed")
        for both in drawn_runs(run, 0.1, losses, known=True, runs=200)
        for new, old in zip(*both, strict=True)
    ]
    assert np.mean(moved) == pytest.approx(-0.1, abs=0.012)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_chances_are_those_of_the_runs_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within three standard errors of 150 runs on either side, for each model."""
    monkeypatch.setattr(operating, "LOSSES", (0.0, 0.5))
    found = list(rows(name, of_file(FILES[name]), known="bars" in name, runs=150))
    assert [row.loss for row in found] == [0.0, 0.5]
    assert all(row.miss < 3 * (2 * 0.25 / 150) ** 0.5 for row in found)


def test_the_largest_miss_is_over_all_exit_codes() -> None:
    """A code that one side never saw counts as zero there."""
    row = Row(file="f", loss=0.0, predicted={0: 1.0}, drawn={0: 0.7, 6: 0.3})
    assert row.miss == pytest.approx(0.3)
    assert "1.000 0.700" in row.text()


@pytest.mark.slow
def test_bundled_gates_rarely_fail_a_model_that_did_not_change() -> None:
    """Asked again with a tenth of the items differing: at most 5 % of runs FAIL.

    The rest pass or stay open: the rules that judge here leave little of a margin.
    """
    found = failures(bundled(), 0.1, 0.0, runs=60)
    assert found.get("exit 1", 0.0) <= 0.05
    assert found.get("exit 0", 0.0) + found.get("exit 6", 0.0) >= 0.95
    worse = failures(bundled(), 0.1, 0.2, runs=10)
    assert worse["exit 1"] == 1

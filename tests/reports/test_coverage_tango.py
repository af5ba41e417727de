"""Claims about how often Tango's interval, and the gate that rests on it, are right."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Threshold
from evaluators.statistics.intervals import Z95
from evaluators.statistics.paired import tango
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from reports.run.record import Record
from tests.benchmarks.coverage import Cell, coverage, grid, outcomes, scores, wrong_fail, wrong_pass
from tests.support.made_records import make_dataset, make_record, make_slice

CORNERS = (0.05, 0.5, 0.95)
# No margin is of the size at which its square is lost.
MARGINS = st.integers(-900_000, 900_000).map(lambda millionths: millionths / 1_000_000)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 200), MARGINS)
def test_the_score_lies_within_its_bounds_where_the_interval_holds(
    fixed: int, broke: int, same: int, delta: float
) -> None:
    """What the exact enumeration counts is membership in the interval that reports show."""
    n = fixed + broke + same
    interval = tango(fixed, broke, n) if n else None
    if interval is None or min(abs(delta - end) for end in interval) < 1e-6:
        return
    (score,) = scores(np.array([fixed]), np.array([broke]), n, delta)
    assert (abs(score) <= Z95) == (interval[0] <= delta <= interval[1])


@pytest.mark.parametrize("n", [50, 200])
def test_the_interval_covers_as_often_as_it_says(n: int) -> None:
    """95 ± 1 % on average over rates and correlations, at least 92 % everywhere."""
    found = np.array([coverage(cell) for cell in grid((n,), (0.0, -0.1))])
    assert len(found) > 100
    assert abs(found.mean() - 0.95) < 0.01
    assert found.min() > 0.92


def test_with_a_thousand_pairs_every_cell_is_within_a_point() -> None:
    """At the corners of the grid, where it is worst, and in the middle."""
    cells = [cell for cell in grid((1000,)) if cell.rate in CORNERS]
    assert len(cells) == 18
    assert all(abs(coverage(cell) - 0.95) < 0.01 for cell in cells)


def test_the_probabilities_of_a_cell_are_those_of_its_rates() -> None:
    """They sum to one, and their mean difference is the cell's."""
    cell = Cell(n=100, rate=0.6, correlation=0.4, difference=-0.1)
    fixed, broke, weights = outcomes(cell)
    assert weights.sum() == pytest.approx(1)
    assert ((fixed - broke) * weights).sum() / 100 == pytest.approx(-0.1)
    assert not Cell(n=50, rate=0.05, correlation=0.5, difference=-0.1).possible
    assert not Cell(n=50, rate=0.05, correlation=0.9, difference=0.5).possible


@pytest.mark.parametrize("margin", [0.03, 0.1])
def test_a_model_worse_by_the_margin_rarely_passes(margin: float) -> None:
    """At most one in twenty such models may; two-sided 95 % intervals allow half of that."""
    found = [wrong_pass(cell) for cell in grid((100, 500), (-margin,))]
    assert 0.01 < max(found) < 0.05


@pytest.mark.parametrize("margin", [0.03, 0.1])
def test_a_model_worse_by_half_the_margin_hardly_ever_fails(margin: float) -> None:
    """Not where FAIL means the margin; where it means zero, more than one in five may."""
    cells = list(grid((100, 500), (-margin / 2,)))
    assert max(wrong_fail(cell, margin) for cell in cells) < 0.025
    assert max(wrong_fail(cell, margin, zero=True) for cell in cells) > 0.2


def test_the_gate_itself_rarely_passes_a_model_worse_by_the_margin() -> None:
    """Four hundred pairs of runs, drawn with a fixed seed and put before the real gate."""
    random = np.random.default_rng(20261121)
    fixed, broke = Cell(n=150, rate=0.7, correlation=0.5, difference=-0.1).discordant
    drawn = random.multinomial(150, [fixed, broke, 1 - fixed - broke], size=400)
    states = [drop_state(int(better), int(worse), 150) for better, worse, _ in drawn]
    assert states.count("PASS") <= 20
    assert states.count("FAIL") > 100


@cache
def drop_state(fixed: int, broke: int, n: int) -> str:
    """Return what a drop gate with a margin of 0.1 makes of these pairs."""
    rule = Threshold(measure="drop", max=0.1, evidence="confident")
    passed, failed = outcomes_of(n)
    new = [failed[i] if i < broke else passed[i] for i in range(n)]
    old = [failed[i] if broke <= i < broke + fixed else passed[i] for i in range(n)]
    side = PairedSlice(slice_=make_slice("graded", rule), pairing=pair_records(new, old))
    return change_gates(make_dataset(side.slice_), [side])[0].state


@cache
def outcomes_of(n: int) -> tuple[list[Record], list[Record]]:
    """Return n items that passed, and the same n failed."""
    passed = [make_record(i) for i in range(n)]
    return passed, [replace(one, outcome="failed") for one in passed]

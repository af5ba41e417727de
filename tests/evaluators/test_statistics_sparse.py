"""Claims about small samples: what a few items decide is not taken for settled."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.core import NO, YES
from evaluators.statistics.count_table import (
    RATINGS,
    CountTable,
    class_interval,
    macro_f1,
    mean_interval,
    mean_rating,
)
from evaluators.statistics.metrics import ANSWERS
from tests.benchmarks.small_samples import World, kappa, rare, ratings

SKEWED = ratings("9, and 1 in 5%", [0.05, *[0] * 7, 0.95, 0])
EVEN = ratings("each as often", [0.1] * 10)


def rated(*counts: int) -> tuple[CountTable, np.ndarray]:
    """Return the tables of single ratings, and how many items have each."""
    seen = [rating for rating, count in enumerate(counts) if count]
    table = CountTable(counts=np.eye(10)[seen][:, None], golds=("",), outcomes=RATINGS)
    return table, np.array([count for count in counts if count], dtype=np.float64)


@pytest.mark.parametrize(
    ("world", "n", "least"),
    [
        (SKEWED, 29, 0.94),
        (EVEN, 29, 0.9),
        (kappa(0.95, (0.45, 0.35, 0.2)), 100, 0.9),
        (kappa(0.98, (0.5, 0.5)), 300, 0.9),
        (rare(0.1, 0.9, 0.95), 20, 0.9),
        (rare(0.1, 0.5, 0.8), 20, 0.9),
    ],
)
def test_intervals_of_small_samples_hold(world: World, n: int, least: float) -> None:
    """Of a bootstrap alone as few as 71 % (ratings), 87 % (kappa) and 32 % (macro-F1) did."""
    held, _ = world.coverage(n, rounds=100)
    assert held >= least


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 12), min_size=10, max_size=10).filter(any))
def test_the_mean_of_ratings_leaves_room_for_what_was_not_seen(counts: list[int]) -> None:
    """Its interval holds the mean, stays on the scale, and allows for z² / (n + z²) at each end."""
    table, items = rated(*counts)
    n = items.sum()
    mean = sum(count * rating for rating, count in enumerate(counts, 1)) / n
    share = 3.8414588 / (n + 3.8414588)
    found = mean_interval(mean_rating, table, items)
    assert found is not None
    assert 1 <= found[0] <= mean - share * (mean - 1) + 1e-9
    assert mean + share * (10 - mean) - 1e-9 <= found[1] <= 10


def test_a_class_of_two_items_is_not_known_by_heart() -> None:
    """Both of two yes found: many may be missed among more; 200 of 200 is known."""
    shape = np.array([[1, 0, 0], [0, 0, 0]]), np.array([[0, 0, 0], [0, 1, 0]])
    table = CountTable(counts=np.array(shape, dtype=np.float64), golds=(YES, NO), outcomes=ANSWERS)
    few = class_interval(macro_f1, table, np.array([2.0, 18.0]))
    many = class_interval(macro_f1, table, np.array([200.0, 1800.0]))
    assert few is not None
    assert many is not None
    assert few[0] < 0.75
    assert few[1] == 1.0
    assert many[0] > 0.98


def test_nothing_has_no_interval() -> None:
    """No item: None."""
    empty = replace(rated(1)[0], counts=np.zeros((0, 1, 10)))
    assert mean_interval(mean_rating, empty, np.zeros(0)) is None
    assert class_interval(mean_rating, empty, np.zeros(0)) is None

"""pass@k and pass^k against their definitions, and the mean over clusters."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.statistics.intervals import UNDEFINED
from evaluators.statistics.metrics import chance, clustered_mean, is_repeated

TRIES = st.lists(st.booleans(), min_size=1, max_size=8)


@given(TRIES, st.integers(1, 10))
def test_chances_are_shares_of_all_picks(tries: list[bool], k: int) -> None:
    """Of all ways to pick k tries: the share with one that passed, and with none that failed."""
    picks = list(combinations(tries, k))
    for name, holds in ((f"pass@{k}", any), (f"pass^{k}", all)):
        found = chance(name, len(tries), sum(tries))
        if not picks:
            assert found is None
        else:
            assert found == pytest.approx(sum(map(holds, picks)) / len(picks))


@given(TRIES)
def test_of_one_try_both_are_the_pass_rate(tries: list[bool]) -> None:
    """More tries make pass@k no smaller and pass^k no larger."""
    rate = sum(tries) / len(tries)
    for sign, order in (("@", 1), ("^", -1)):
        found = [chance(f"pass{sign}{k}", len(tries), sum(tries)) for k in range(1, len(tries) + 1)]
        values = [order * value for value in found if value is not None]
        assert values[0] == pytest.approx(order * rate)
        assert values == sorted(values)


def test_published_values() -> None:
    """The estimator of Chen et al. for 200 tries of which 13 pass."""
    assert chance("pass@1", 200, 13) == pytest.approx(0.065)
    assert chance("pass@10", 200, 13) == pytest.approx(0.4978, abs=1e-3)
    assert chance("pass@100", 200, 13) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "said"),
    [("pass@3", True), ("pass^10", True), ("pass@0", False), ("pass3", False), ("pass^", False)],
)
def test_names(name: str, said: bool) -> None:
    """A sign and a number from 1."""
    assert is_repeated(name) is said


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=1, max_size=6))
def test_a_mean_lies_in_its_interval(clusters: list[list[float]]) -> None:
    """Which stays open even where all values are the same."""
    found = clustered_mean(clusters)
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.value + 1e-9
    assert found.value <= found.high + 1e-9
    assert found.high > found.low
    assert found.n == sum(map(len, clusters))


def test_no_values_have_no_mean() -> None:
    """Undefined, never 0."""
    assert clustered_mean([]) == UNDEFINED

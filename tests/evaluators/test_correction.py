"""Claims about a rate freed of its judge's errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.statistics.intervals import corrected_rate, wilson

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_a_judge_that_never_errs_leaves_the_rate_as_it_is() -> None:
    """Sensitivity and specificity of 1 over many labels: the rate, and almost Wilson's interval."""
    found = corrected_rate((30, 100), (100_000, 100_000), (100_000, 100_000))
    assert found is not None
    assert found.value == pytest.approx(0.3)
    assert found.interval == pytest.approx(wilson(30, 100), abs=2e-3)


def test_rogan_and_gladens_estimate_by_hand() -> None:
    """40 % called CORRECT by a judge of sensitivity 0.9 and specificity 0.8: (0.4-0.2)/0.7."""
    found = corrected_rate((40, 100), (90, 100), (80, 100))
    assert found is not None
    assert found.value == pytest.approx(0.2 / 0.7)
    assert (found.sensitivity, found.specificity) == (0.9, 0.8)


@pytest.mark.parametrize(
    "samples",
    [
        ((0, 0), (9, 10), (9, 10)),
        ((5, 10), (0, 0), (9, 10)),
        ((5, 10), (9, 10), (0, 0)),
        ((5, 10), (5, 10), (5, 10)),
        ((5, 10), (3, 10), (4, 10)),
    ],
)
def test_a_judge_that_tells_nothing_apart_corrects_nothing(
    samples: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
) -> None:
    """No labels of one side, or sensitivity + specificity not above 1: undefined."""
    assert corrected_rate(*samples) is None


def test_a_judge_barely_better_than_chance_leaves_everything_open() -> None:
    """One label a side, the padded rates add up to 1 at most: the interval is all of 0..1."""
    found = corrected_rate((5, 10), (1, 1), (1, 10))
    assert found is not None
    assert found.interval == (0.0, 1.0)


@given(counts, counts, counts)
def test_the_estimate_lies_in_its_interval_within_0_and_1(
    judged: tuple[int, int], kept: tuple[int, int], refused: tuple[int, int]
) -> None:
    """Whatever was counted: 0 <= low <= value <= high <= 1."""
    found = corrected_rate(judged, kept, refused)
    if found is not None:
        low, high = found.interval
        assert 0 <= low <= found.value <= high <= 1


@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity"),
    [(0.05, 0.9, 0.95), (0.3, 0.95, 0.9), (0.6, 0.9, 0.98), (0.5, 0.7, 0.7), (0.95, 0.97, 0.9)],
)
def test_the_interval_covers_the_truth_95_times_in_100(
    truth: float, sensitivity: float, specificity: float
) -> None:
    """1,000 simulated runs, 300 labels each: coverage is 93.5 % at least."""
    random = np.random.default_rng(7)
    called = truth * sensitivity + (1 - truth) * (1 - specificity)
    covered = 0
    for _ in range(1000):
        found = corrected_rate(
            (int(random.binomial(200, called)), 200),
            (int(random.binomial(150, sensitivity)), 150),
            (int(random.binomial(150, specificity)), 150),
        )
        assert found is not None
        covered += found.interval[0] <= truth <= found.interval[1]
    assert covered >= 935

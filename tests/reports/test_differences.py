"""Claims about the paired bootstrap of measures that are no share of items."""

from collections.abc import Sequence

import numpy as np
import pytest

from evaluators.statistics.intervals import Estimate
from reports.compare.differences import differences
from reports.compare.pairs import PairedSlice, pair_records
from reports.run.record import Record
from tests.support.made_records import make_record, make_slice


def moved(kind: str, new: Sequence[Record], old: Sequence[Record]) -> dict[str, Estimate]:
    return differences([PairedSlice(slice_=make_slice(kind), pairing=pair_records(new, old))])


def rated(ratings: Sequence[int]) -> list[Record]:
    return [
        make_record(n, rating=rating, outcome="passed" if rating >= 6 else "failed")
        for n, rating in enumerate(ratings)
    ]


def answered(labels: str, answers: str) -> list[Record]:
    """Return yes/no items: y and n, and a dash for no answer."""
    words = {"y": "YES", "n": "NO", "-": "UNANSWERED"}
    return [
        make_record(
            n,
            label=words[label],
            grade=words[answer],
            outcome="passed" if label == answer else "failed",
        )
        for n, (label, answer) in enumerate(zip(labels, answers, strict=True))
    ]


def test_mean_ratings_are_paired_by_item() -> None:
    """What items differ by among themselves hardly matters: unpaired, it would be 2.1 wide."""
    ratings = [1, 9, 2, 8, 3, 7] * 10
    found = moved("rated", rated([one + 1 for one in ratings]), rated(ratings))
    assert set(found) == {"mean_rating"}
    assert found["mean_rating"].value == pytest.approx(1.0)
    assert found["mean_rating"].interval == pytest.approx((1 - 4 / 15, 1 + 4 / 15), abs=0.01)
    noisy = [one + (1 if n % 3 else -1) for n, one in enumerate(ratings)]
    spread = moved("rated", rated([max(1, one) for one in noisy]), rated(ratings))["mean_rating"]
    assert spread.low is not None
    assert spread.high is not None
    assert 0.8 > spread.high - spread.low > 0


def test_the_interval_is_about_as_wide_as_theory_has_it() -> None:
    """For a mean the bootstrap must come to 1.96 standard errors of the paired differences."""
    random = np.random.default_rng(7)
    old = [int(one) for one in random.integers(3, 8, size=200)]
    new = [one + int(step) for one, step in zip(old, random.integers(-2, 3, size=200), strict=True)]
    found = moved("rated", rated(new), rated(old))["mean_rating"]
    steps = np.subtract(new, old)
    half = 1.96 * steps.std(ddof=1) / np.sqrt(200)
    assert found.low == pytest.approx(steps.mean() - half, abs=0.03)
    assert found.high == pytest.approx(steps.mean() + half, abs=0.03)


def test_yes_no_measures_move() -> None:
    """F1 of yes and its like; not the accuracy, which has Tango's interval."""
    labels = "yyyynnnn" * 5
    found = moved("yes_no", answered(labels, "yyn-nnny" * 5), answered(labels, "yyyynnnn" * 5))
    assert set(found) == {"precision", "recall", "f1", "macro_f1", "unanswered"}
    assert found["recall"].value == pytest.approx(0.5 - 1)
    assert found["unanswered"].value == pytest.approx(1 / 8)


def test_labelled_items_compare_their_judges() -> None:
    """The kappa of two judges over the same labels."""
    labels = ["CORRECT", "INCORRECT"] * 10
    old = [make_record(n, label=one, grade=one) for n, one in enumerate(labels)]
    new = [make_record(n, label=one, grade="CORRECT") for n, one in enumerate(labels)]
    assert moved("judged", new, old)["kappa"].value == pytest.approx(-1.0)


def test_a_dataset_that_was_of_another_kind_moves_nothing() -> None:
    """Grades and ratings have no difference; nothing is made up and nothing breaks."""
    assert moved("rated", rated([5, 6]), [make_record(n, grade="CORRECT") for n in (0, 1)]) == {}
    assert moved("rated", [make_record(1, outcome="error")], rated([5, 6])) == {}

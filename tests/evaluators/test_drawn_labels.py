"""Labels of answers that were drawn by a judge's grade say what they are worth of all answers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.statistics.drawn_labels import Stratum, drawn_row
from qagate.evaluators.statistics.intervals import wilson
from qagate.evaluators.statistics.misclassification import KeptShare, kept_share

CLASSES = ("CORRECT", "INCORRECT")
RIGHT = frozenset({"CORRECT"})
RUNS = 400


def stratum(share: float, *rows: tuple[int, int]) -> Stratum:
    """Return a stratum with these labels, by class and grade."""
    table = np.array(rows, dtype=float)
    labels = int(table.sum())
    return Stratum(share=share, table=table, labels=labels, questions=labels)


def kept(strata: list[Stratum], name: str) -> KeptShare:
    row = drawn_row(strata, name, CLASSES, RIGHT)
    assert row is not None
    return kept_share(row, name, CLASSES, RIGHT)


def drawn(
    random: np.random.Generator, right: float, sensitivity: float, specificity: float
) -> list[Stratum]:
    """Return thirty labels of each grade of a judge, over a model that is right so often."""
    joint = np.array(
        [
            [right * sensitivity, right * (1 - sensitivity)],
            [(1 - right) * (1 - specificity), (1 - right) * specificity],
        ]
    )
    strata = []
    for grade in range(2):
        share = float(joint[:, grade].sum())
        wrong = random.binomial(30, joint[1, grade] / share)
        table = np.zeros((2, 2))
        table[:, grade] = (30 - wrong, wrong)
        strata.append(Stratum(share=share, table=table, labels=30, questions=30))
    return strata


@pytest.mark.slow
@pytest.mark.parametrize("specificity", [0.5, 0.8, 0.97])
def test_the_lower_end_holds_in_every_world(specificity: float) -> None:
    """Counted as they are, labels show a judge that passes half of the wrong answers as 0.97."""
    random = np.random.default_rng(7)
    missed = {"CORRECT": 0, "INCORRECT": 0}
    truth = {"CORRECT": 0.97, "INCORRECT": specificity}
    for _ in range(RUNS):
        strata = drawn(random, 0.95, 0.97, specificity)
        for name in CLASSES:
            missed[name] += kept(strata, name).low > truth[name]
    assert max(missed.values()) <= 0.04 * RUNS


def test_the_share_is_that_of_all_answers() -> None:
    """Of 0.95 right answers 0.0285 were refused, whatever share of the labels these are."""
    strata = [stratum(0.9, (30, 0), (0, 0)), stratum(0.1, (0, 15), (0, 15))]
    share = kept(strata, "CORRECT")
    assert share.value == pytest.approx(0.9 / 0.95)
    assert share.labels == 45


def test_a_heavy_stratum_may_hide_what_few_labels_cannot_show() -> None:
    """Nothing wrong among thirty of 0.95 of the answers leaves room for many."""
    few = [stratum(0.95, (30, 0), (0, 0)), stratum(0.05, (0, 0), (0, 30))]
    many = [stratum(0.95, (3000, 0), (0, 0)), stratum(0.05, (0, 0), (0, 30))]
    assert kept(few, "INCORRECT").value == 1
    assert kept(few, "INCORRECT").low < 0.5
    assert kept(many, "INCORRECT").low > 0.85


def test_answers_that_no_label_stands_for_count_as_lost() -> None:
    """Whoever takes a stratum out gains nothing."""
    whole = [stratum(0.9, (300, 0), (0, 0)), stratum(0.1, (0, 0), (0, 30))]
    assert kept(whole[1:], "INCORRECT").low < kept(whole, "INCORRECT").low


def test_labels_that_stand_for_nothing_count_as_misjudged() -> None:
    """Their shares cannot be read: the class is known, and nothing good of it."""
    strata = [stratum(0.0, (30, 0), (0, 0)), stratum(0.1, (0, 0), (0, 30))]
    share = kept(strata, "CORRECT")
    assert (share.labels, share.value) == (30, 0)


def test_a_class_without_a_label_is_not_known() -> None:
    strata = [stratum(1.0, (30, 0), (0, 0))]
    assert drawn_row(strata, "INCORRECT", CLASSES, RIGHT) is None


@given(
    kept_labels=st.integers(0, 40),
    lost_labels=st.integers(0, 40),
    others=st.integers(1, 40),
)
def test_one_stratum_is_a_plain_sample(
    kept_labels: int, lost_labels: int, others: int
) -> None:
    """Then the share is that of the labels, and its end about Wilson's or farther."""
    if not kept_labels + lost_labels:
        return
    strata = [stratum(1.0, (kept_labels, lost_labels), (0, others))]
    share = kept(strata, "CORRECT")
    n = kept_labels + lost_labels
    assert share.value == pytest.approx(kept_labels / n)
    low, _ = wilson(kept_labels, n) or (0.0, 1.0)
    assert 0 <= share.low <= low + 0.06

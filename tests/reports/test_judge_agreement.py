"""Claims about the figures of a judge card."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from evaluators.statistics.intervals import Estimate, wilson
from reports.judge.judge_agreement import (
    Pair,
    confusion,
    correlation,
    graded_figures,
    mean,
    rated_figures,
    rater_figures,
    self_agreement,
    slope,
)

grades = st.sampled_from(GRADES)


def numbered(values: Sequence[object]) -> list[str]:
    return [str(place) for place in range(len(values))]


def gradings(*counts: tuple[str, str, int]) -> list[Pair]:
    pairs = [(one, two) for one, two, count in counts for _ in range(count)]
    return [Pair(label=one, given=two, cluster=f"{n}") for n, (one, two) in enumerate(pairs)]


def ratings(*triples: tuple[float, int, int]) -> list[Pair]:
    return [
        Pair(label=label, given=given, length=length, cluster=f"{n}")
        for n, (label, given, length) in enumerate(triples)
    ]


def test_graded_figures_by_hand() -> None:
    """8 hits, 2 wrong alarms, 1 miss, 9 other agreements, of 20."""
    pairs = gradings(
        (CORRECT, CORRECT, 8), (INCORRECT, CORRECT, 2), (CORRECT, NOT_ATTEMPTED, 1),
        (INCORRECT, INCORRECT, 9),
    )  # fmt: skip
    found = graded_figures(pairs)
    assert found["agreement"] == Estimate.of(0.85, wilson(17, 20), 20)
    assert found["precision of CORRECT"] == Estimate.of(0.8, wilson(8, 10), 10)
    assert found["recall of CORRECT"] == Estimate.of(8 / 9, wilson(8, 9), 9)
    chance = (9 * 10 + 11 * 9 + 0) / 400
    assert found["kappa"].value == pytest.approx((0.85 - chance) / (1 - chance))
    assert found["Youden's J"].value == pytest.approx(8 / 9 + 9 / 11 - 1)
    assert confusion(pairs)[INCORRECT, CORRECT] == 2


def test_a_judge_without_hits_has_undefined_precision() -> None:
    """Nothing called CORRECT: precision is undefined, not 0."""
    found = graded_figures(gradings((CORRECT, INCORRECT, 3)))
    assert found["precision of CORRECT"] == Estimate.of(None, None, 0)
    assert found["recall of CORRECT"].value == 0
    assert found["Youden's J"].value is None  # no answer that is not CORRECT


def test_rated_figures_by_hand() -> None:
    """One point too kind, and half a point kinder with each doubling of the length."""
    pairs = ratings((2.0, 2, 10), (4.0, 5, 40), (5.0, 7, 160), (3.0, 4, 40), (5.5, 6, 20))
    found = rated_figures(pairs, 5)
    assert found["pass/fail agreement at 5"].value == pytest.approx(0.8)  # all but the 4 given 5
    assert found["mean difference (bias)"].value == pytest.approx(0.9)
    assert found["bias by length: points a doubling"].value == pytest.approx(0.5, abs=1e-9)
    labels, given = [float(p.label) for p in pairs], [float(p.given) for p in pairs]
    assert found["Spearman's rho"].value == pytest.approx(spearmanr(labels, given).statistic)
    assert found["quadratic-weighted kappa"].value is not None


def test_a_rater_that_never_errs_has_no_bias_and_bounded_agreement() -> None:
    """No difference varies, so the bias has no interval; the coefficients are bounded below."""
    found = rated_figures(ratings(*((float(r), r, r) for r in (2, 5, 9, 2, 5, 9))), 6)
    assert found["mean difference (bias)"] == Estimate.of(0.0, None, 6)
    for name in ("Spearman's rho", "quadratic-weighted kappa"):
        assert found[name].value == pytest.approx(1)
        assert found[name].interval is not None


@given(st.lists(st.floats(-9, 9), min_size=2, max_size=20))
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    """Students's interval is around the mean wherever there is one."""
    found = mean(values, numbered(values))
    assert found.value is not None
    if found.interval is not None:
        assert found.interval[0] <= found.value <= found.interval[1]


def test_means_and_slopes_that_cannot_be_had_are_undefined() -> None:
    """No value, one value, equal lengths, two points."""
    assert mean([], []) == Estimate.of(None, None, 0)
    assert mean([3.0], ["q"]) == Estimate.of(3.0, None, 1)
    assert slope([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], list("abc")).value is None
    assert slope([1.0, 2.0], [1.0, 2.0], list("ab")).value is None


def test_answers_to_one_question_do_not_count_as_many() -> None:
    """Five copies of every answer: the same values, and the intervals of the single ones."""
    random = np.random.default_rng(3)
    once = [
        Pair(label=float(label), given=int(given), length=int(length), cluster=f"{n}")
        for n, (label, given, length) in enumerate(
            zip(random.integers(1, 11, 60), random.integers(1, 11, 60),
                random.integers(5, 900, 60), strict=True)
        )
    ]  # fmt: skip
    copies = [one for one in once for _ in range(5)]
    single, copied = rated_figures(once, 6), rated_figures(copies, 6)
    for name, figure in single.items():
        again = copied[name]
        assert again.value == pytest.approx(figure.value, abs=1e-9)
        assert again.interval == pytest.approx(figure.interval, abs=0.12)
    grades = [Pair(label="x", given="xy"[n % 3 == 0], cluster=f"{n}") for n in range(60)]
    alone, many = graded_figures(grades), graded_figures(grades * 5)
    assert many["agreement"].interval == pytest.approx(alone["agreement"].interval, abs=0.01)
    assert (alone["agreement"].n, many["agreement"].n) == (60, 300)


def test_very_fine_labels_are_counted_to_the_tenth() -> None:
    """150 different labels: the rank correlation is that of tenths, near the exact one."""
    labels = [1 + 9 * n / 149 for n in range(150)]
    given = [1 + (7 * n % 150) // 15 for n in range(150)]
    found = correlation(list(zip(labels, given, strict=True)))
    assert found.value == pytest.approx(spearmanr(labels, given).statistic, abs=5e-3)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(grades, grades), min_size=1, max_size=30))
def test_every_share_lies_in_its_interval(pairs: list[tuple[str, str]]) -> None:
    """Whatever the counts: 0 <= low <= value <= high <= 1 for the rates, and kappa is at most 1.

    Youden's J may be as low as -1.
    """
    found = graded_figures(gradings(*((one, two, 1) for one, two in pairs)))
    kappa = found.pop("kappa")
    assert kappa.value is None or kappa.value <= 1
    for name, figure in found.items():
        if figure.value is not None and figure.interval is not None:
            least = -1 if name == "Youden's J" else 0
            assert least <= figure.interval[0] <= figure.value <= figure.interval[1] <= 1


def test_people_are_compared_pair_by_pair_over_what_both_saw() -> None:
    """Two of three raters share an item; alpha takes whatever pairs."""
    units = [{"a": "x", "b": "x"}, {"a": "y", "b": "y", "c": "x"}, {"c": "y"}] * 5
    found = rater_figures(units, range(15), numbers=False)
    assert list(found) == ["Krippendorff's alpha", *(f"kappa of {p}" for p in
                           ("a and b", "a and c", "b and c"))]  # fmt: skip
    assert found["kappa of a and b"].value == pytest.approx(1)
    assert found["kappa of a and b"].n == 10
    assert found["Krippendorff's alpha"].n == 10


def test_people_who_rate_have_rank_correlations() -> None:
    """Numbers: alpha for intervals, and Spearman's rho for each pair."""
    units = [{"a": float(r), "b": float(r * r)} for r in (1, 2, 3, 4)]
    found = rater_figures(units, range(4), numbers=True)
    assert found["rho of a and b"].value == pytest.approx(1)
    assert found["Krippendorff's alpha"].interval is not None
    assert correlation([]).value is None


def test_self_agreement_counts_items_that_never_changed() -> None:
    """An item judged once says nothing; of two judged three times one changed."""
    found = self_agreement([["A", "A", "A"], ["A", "B", "A"], ["B"]])
    assert found == Estimate.of(0.5, wilson(1, 2), 2)

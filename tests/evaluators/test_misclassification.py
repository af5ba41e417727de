"""Errors by class: what labels say of a judge, and a change or a share without its errors."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.statistics.intervals import wilson
from qagate.evaluators.statistics.misclassification import (
    HIT,
    MISS,
    PERFECT,
    ClassRow,
    Confusion,
    GradeChange,
    GradeChanges,
    LabelCounts,
    Youden,
    allowed_by_youden,
    borrowed,
    class_row,
    combined,
    corrected_change,
    corrected_share,
    correlations_of,
    margin_shown,
    pooled,
)
from tests.support.figures import some

PASSING = frozenset({CORRECT})
OF_CORRECT = [0]
"""The columns of grades on the side of CORRECT."""


def row(*counts: float) -> ClassRow:
    labels = sum(counts)
    return ClassRow(
        shares=tuple(count / labels for count in counts),
        labels=round(labels),
        size=labels,
    )


def confusion(*rows: npt.ArrayLike, inner: frozenset[str] = PASSING) -> Confusion:
    """Return the confusion of labels of CORRECT, INCORRECT, NOT_ATTEMPTED by grade."""
    return Confusion(
        classes=GRADES,
        inner=inner,
        rows=tuple(row(*np.asarray(counts).tolist()) for counts in rows),
    )


WITHOUT_ERRORS = confusion((1e9, 0, 0), (0, 1e9, 0), (0, 0, 1e9))
LENIENT = confusion((300, 0, 0), (25, 25, 0), (0, 0, 250))
"""Half of the confident wrong answers pass, and refusals never do."""


def changes(table: npt.ArrayLike) -> GradeChanges:
    """Return independent pairs, counted by old and by new grade."""
    cells = [GradeChange("s", old, new) for old in GRADES for new in GRADES]
    return GradeChanges(
        cells=tuple(cells),
        counts=np.eye(len(cells)),
        clusters=np.array(table, dtype=np.float64).ravel(),
    )


TABLES = st.lists(st.integers(0, 60), min_size=9, max_size=9).map(
    lambda counts: np.array(counts, dtype=np.float64).reshape(3, 3) + np.eye(3)
)


# J


def test_specificity_is_that_of_the_class_that_is_kept_least() -> None:
    """Pooled with 250 refusals, which are easy, 25 of 50 wrong answers would look like 0.92."""
    youden = LENIENT.youden()
    assert youden.outer == INCORRECT
    assert youden.value == pytest.approx(0.5)


def test_another_share_has_its_own_border() -> None:
    """Of the share of INCORRECT answers, CORRECT and NOT_ATTEMPTED are the outer classes."""
    of_incorrect = confusion(
        (90, 10, 0), (25, 75, 0), (0, 5, 95), inner=frozenset({INCORRECT})
    )
    youden = of_incorrect.youden()
    assert (youden.inner, youden.outer) == (INCORRECT, CORRECT)
    assert youden.value == pytest.approx(0.75 + 0.9 - 1)


def test_the_ends_of_j_are_combined_from_wilsons_ends() -> None:
    youden = confusion((90, 10, 0), (20, 80, 0), (0, 0, 100)).youden()
    low_of_right = some(wilson(90, 100))[0]
    low_of_wrong = some(wilson(80, 100))[0]
    reach = math.hypot(0.9 - low_of_right, 0.8 - low_of_wrong)
    assert youden.low == pytest.approx(0.7 - reach)


def test_a_stricter_tail_lowers_the_end_of_j() -> None:
    assert LENIENT.youden(0.025 / 4).low < LENIENT.youden().low


def test_errors_on_one_question_that_go_together_widen_j() -> None:
    """Forty questions with one answer of each class: the judge errs on all or on none."""
    tables = np.zeros((2, 3, 3))
    tables[0] = np.eye(3)
    tables[1] = [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    counts = LabelCounts(classes=GRADES, tables=tables, questions=np.array([36.0, 4.0]))
    correlations = correlations_of(counts, PASSING)
    assert correlations[CORRECT, INCORRECT] == pytest.approx(1)
    rows = tuple(some(class_row(counts, name, PASSING)) for name in GRADES)
    apart = Confusion(classes=GRADES, inner=PASSING, rows=rows)
    together = Confusion(
        classes=GRADES, inner=PASSING, rows=rows, correlations=correlations
    )
    assert together.youden().low < apart.youden().low


def test_answers_to_one_question_count_as_fewer_labels() -> None:
    """Ten questions with three wrong answers each, of which all or none are seen."""
    tables = np.zeros((2, 3, 3))
    tables[0, 1, 1] = 3
    tables[1, 1, 0] = 3
    counts = LabelCounts(classes=GRADES, tables=tables, questions=np.array([8.0, 2.0]))
    found = some(class_row(counts, INCORRECT, PASSING))
    assert found.labels == 30
    assert found.size < 20
    assert found.freedom == 9


def test_a_class_without_labels_has_no_row() -> None:
    counts = LabelCounts(
        classes=GRADES,
        tables=np.eye(3)[None, :, :] * [[1], [1], [0]],
        questions=np.ones(1),
    )
    assert class_row(counts, NOT_ATTEMPTED, PASSING) is None


def test_a_pool_weighs_its_languages() -> None:
    good = Youden(value=0.9, low=0.8, high=1.0, labels=100)
    poor = Youden(value=0.6, low=0.4, high=0.8, labels=50)
    found = pooled([(good, 3.0), (poor, 1.0)])
    assert found.value == pytest.approx(0.825)
    assert found.low == pytest.approx(0.825 - math.hypot(0.075, 0.05))
    assert found.labels == 150


# Borrowing


def test_few_labels_take_the_lower_of_two_estimates() -> None:
    assert borrowed(row(9, 1, 0), row(97, 3, 0), OF_CORRECT).shares[0] == 0.9
    assert borrowed(row(10, 0, 0), row(97, 3, 0), OF_CORRECT).shares[0] == 0.97


@settings(max_examples=60)
@given(st.integers(0, 29), st.integers(0, 29), st.integers(30, 300), st.data())
def test_the_end_that_is_borrowed_is_at_most_half_way_to_ones_own(
    kept: int, lost: int, lent: int, data: st.DataObject
) -> None:
    if not kept + lost:
        return
    lent_kept = data.draw(st.integers(1, lent))
    own_row, lent_row = row(kept, lost, 0), row(lent_kept, lent - lent_kept, 0)
    found = borrowed(own_row, lent_row, OF_CORRECT)
    own_low = some(wilson(kept, kept + lost))[0]
    own_share = kept / (kept + lost)
    expected = min(some(wilson(lent_kept, lent))[0], (own_share + own_low) / 2)
    share = found.shares[0]
    low = some(wilson(share * found.size, found.size))[0]
    assert low == pytest.approx(expected, abs=2e-3)


# A change without the judge's errors


@given(TABLES)
def test_a_judge_without_errors_leaves_a_change_as_it_is(
    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> None:
    found = some(corrected_change(changes(table), {"s": WITHOUT_ERRORS}))
    judged = (table[1:, 0].sum() - table[0, 1:].sum()) / table.sum()
    assert found.value == pytest.approx(judged)


@given(TABLES)
def test_grades_of_a_judge_that_is_believed_count_as_they_are(
    table: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> None:
    found = some(corrected_change(changes(table), {"s": PASSING}))
    assert found.value == pytest.approx(
        (table[1:, 0].sum() - table[0, 1:].sum()) / table.sum()
    )
    assert not found.parts


@settings(max_examples=50)
@given(TABLES, TABLES)
def test_the_true_change_is_found_behind_the_expected_grades(
    truth: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    errors: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> None:
    """Whatever turned into what: both answers of a pair are graded apart by the confusion."""
    labels = errors + 200 * np.eye(3)
    shares = labels / labels.sum(axis=1, keepdims=True)
    judged = shares.T @ truth @ shares
    found = some(corrected_change(changes(judged), {"s": confusion(*labels)}))
    true_change = (truth[1:, 0].sum() - truth[0, 1:].sum()) / truth.sum()
    assert found.value == pytest.approx(true_change, abs=1e-9)


def test_a_refusal_that_becomes_a_wrong_answer_is_no_gain() -> None:
    """The judge takes half of the wrong answers for right: J alone sees 100 more right ones."""
    pairs = changes([[500, 0, 0], [0, 100, 0], [100, 100, 200]])
    judged = (100 - 0) / 1000
    found = some(corrected_change(pairs, {"s": LENIENT}))
    assert judged > 0
    assert found.value == pytest.approx(0, abs=1e-9)


def test_a_matrix_without_an_inverse_corrects_nothing() -> None:
    """The judge grades wrong answers and refusals alike."""
    same = confusion((90, 5, 5), (10, 80, 10), (10, 80, 10))
    assert same.inverse is None
    assert corrected_change(changes(np.ones((3, 3))), {"s": same}) is None


def test_what_is_taken_at_its_worst_counts_in_full() -> None:
    """Ten right answers are missing now: each is a whole loss, whatever the judge would say."""
    cells = (GradeChange("s", HIT, MISS), GradeChange("s", CORRECT, CORRECT))
    pairs = GradeChanges(cells=cells, counts=np.eye(2), clusters=np.array([10.0, 90.0]))
    assert some(corrected_change(pairs, {"s": LENIENT})).value == pytest.approx(-0.1)


def test_pairs_are_counted_by_cluster() -> None:
    up, same = GradeChange("s", INCORRECT, CORRECT), GradeChange("s", CORRECT, CORRECT)
    found = GradeChanges.of([("a", up), ("a", same), ("b", same), ("b", up), ("c", up)])
    assert dict(zip(found.cells, found.totals, strict=True)) == {up: 3, same: 2}
    assert sorted(found.clusters) == [1, 2]


def test_clusters_that_move_as_a_whole_widen_a_change() -> None:
    up, same = GradeChange("s", INCORRECT, CORRECT), GradeChange("s", CORRECT, CORRECT)
    rows = [(number // 5, up if number < 50 else same) for number in range(200)]
    apart = [(number, change) for number, (_, change) in enumerate(rows)]
    readers = {"s": WITHOUT_ERRORS}
    together = some(corrected_change(GradeChanges.of(rows), readers)).estimate
    alone = some(corrected_change(GradeChanges.of(apart), readers)).estimate
    assert some(together.low) < some(alone.low)


def test_an_interval_ends_where_the_test_changes_its_mind() -> None:
    pairs = changes([[500, 30, 0], [20, 150, 0], [0, 0, 50]])
    found = some(corrected_change(pairs, {"s": LENIENT}))
    low, high = some(found.estimate.interval)
    assert found.is_above(low - 1e-6)
    assert not found.is_above(low + 1e-6)
    assert found.is_below(high + 1e-6)
    assert not found.is_below(high - 1e-6)


def test_languages_of_a_pool_are_corrected_each_by_its_own_judge() -> None:
    cells = (
        GradeChange("en", CORRECT, INCORRECT),
        GradeChange("pl", CORRECT, INCORRECT),
        GradeChange("en", CORRECT, CORRECT),
    )
    pairs = GradeChanges(
        cells=cells, counts=np.eye(3), clusters=np.array([10.0, 10.0, 80.0])
    )
    found = some(corrected_change(pairs, {"en": WITHOUT_ERRORS, "pl": LENIENT}))
    assert found.value == pytest.approx(-0.1 - 0.1 / 0.5)
    assert len(found.parts) == 2


# Both errors together


@given(st.floats(-0.3, 0.3), st.floats(0.001, 0.2), st.floats(0.001, 0.3))
def test_a_judge_known_to_be_right_leaves_the_plain_rule(
    value: float, below: float, margin: float
) -> None:
    low = value - below
    if abs(low + margin) > 1e-9:
        assert allowed_by_youden(value, low, margin, PERFECT) is (low > -margin)


@given(
    st.floats(-0.3, 0.3),
    st.floats(0.001, 0.2),
    st.floats(0.01, 0.3),
    st.floats(0.2, 1),
    st.floats(0, 0.5),
)
def test_a_judge_that_is_known_less_well_allows_no_more(
    value: float, below: float, margin: float, gain: float, less: float
) -> None:
    known = Youden(value=gain, low=gain - 0.01, high=1.0, labels=100)
    vague = Youden(value=gain, low=gain - 0.01 - less, high=1.0, labels=10)
    if allowed_by_youden(value, value - below, margin, vague):
        assert allowed_by_youden(value, value - below, margin, known)


def test_the_two_errors_are_combined_and_not_added() -> None:
    """Low end -0.08, margin 0.1, J 0.9 from 0.8: added, it is no PASS; combined, it is one."""
    youden = Youden(value=0.9, low=0.8, high=1.0, labels=100)
    assert -0.1 * youden.low > -0.081
    assert allowed_by_youden(0.0, -0.081, 0.1, youden)
    assert combined((3.0, 4.0)) == 5.0


def test_a_judge_that_may_guess_allows_nothing() -> None:
    guesses = Youden(value=0.1, low=0.0, high=0.2, labels=30)
    assert not allowed_by_youden(0.5, 0.4, 0.1, guesses)


# One run


def share_of(
    correct: int, incorrect: int, not_attempted: int, reader: Confusion
) -> tuple[float, float, float]:
    counts = (correct, incorrect, not_attempted)
    cells = tuple(GradeChange("s", MISS, grade) for grade in GRADES)
    answers = GradeChanges(
        cells=cells, counts=np.eye(3), clusters=np.array(counts, dtype=np.float64)
    )
    judged = some(wilson(correct, sum(counts)))
    found = some(corrected_share(answers, {"s": reader}, judged)).estimate
    return some(found.value), some(found.low), some(found.high)


def test_a_share_is_freed_of_a_lenient_judge() -> None:
    """Of 800 that passed, 200 are wrong answers of which the judge sees half."""
    value, low, high = share_of(800, 200, 0, LENIENT)
    assert value == pytest.approx(0.6)
    assert low < 0.6 < high


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_a_corrected_share_is_never_surer_than_the_share_as_judged(
    correct: int, incorrect: int, not_attempted: int
) -> None:
    total = correct + incorrect + not_attempted
    if not total:
        return
    _, low, high = share_of(correct, incorrect, not_attempted, WITHOUT_ERRORS)
    judged_low, judged_high = some(wilson(correct, total))
    is_cut_off = low == 0 or high == 1
    assert is_cut_off or high - low >= judged_high - judged_low - 1e-9


def test_a_share_of_all_in_few_answers_keeps_its_width() -> None:
    value, low, _ = share_of(20, 0, 0, WITHOUT_ERRORS)
    assert value == 1
    assert low < 0.9


@given(
    st.floats(0.01, 0.3),
    st.floats(0.2, 1.0),
    st.floats(0.01, 0.99),
)
def test_the_smallest_margin_is_where_an_unchanged_model_begins_to_pass(
    margin: float, value: float, part: float
) -> None:
    """``margin`` is what the pairs show by themselves."""
    youden = Youden(value=value, low=value * part, high=1.0, labels=90)
    shown = margin_shown(margin, youden)
    if shown is not None:
        assert allowed_by_youden(0.0, -margin, shown * 1.001, youden)
        assert not allowed_by_youden(0.0, -margin, shown * 0.999, youden)


def test_a_judge_that_may_guess_shows_no_margin() -> None:
    youden = Youden(value=0.2, low=0.0, high=0.4, labels=20)
    assert margin_shown(0.05, youden) is None

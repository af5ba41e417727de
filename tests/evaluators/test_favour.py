"""How far a judge favours one of two runs: the figure, its interval, and how often it errs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.statistics.favour import Favour, GradeLabels, LabelledRun


def run(passed: tuple[int, int], failed: tuple[int, int], share: float) -> LabelledRun:
    """Return a run of which a share passes; each pair is how many of the labels say right."""
    return LabelledRun(
        grades=(
            GradeLabels(share=share, passes=True, right=passed[0], labels=passed[1]),
            GradeLabels(
                share=1 - share, passes=False, right=failed[0], labels=failed[1]
            ),
        )
    )


def test_grades_count_by_their_share_in_the_run() -> None:
    """0.8 pass, of which 9 in 10 are right; of the 0.2 that fail 1 in 10 is."""
    labelled = run((27, 30), (3, 30), 0.8)
    assert labelled.right == pytest.approx(0.8 * 0.9 + 0.2 * 0.1)
    sensitivity = labelled.kept(1.96, right=True)
    assert sensitivity.value == pytest.approx(0.72 / 0.74)
    specificity = labelled.kept(1.96, right=False)
    assert specificity.value == pytest.approx(0.18 / 0.26)


def test_the_figure_is_the_difference_that_the_errors_make() -> None:
    """b = p (Se new - Se old) - (1 - p) (Sp new - Sp old)."""
    new = run((20, 30), (0, 30), 0.6)
    old = run((30, 30), (0, 30), 0.6)
    right = (new.right + old.right) / 2
    expected = -(1 - right) * (0.4 / 0.6 - 1.0)
    assert Favour(new=new, old=old).estimate.value == pytest.approx(expected)


def test_a_judge_that_errs_alike_favours_nobody() -> None:
    alike = run((28, 30), (2, 30), 0.7)
    favour = Favour(new=alike, old=alike)
    assert favour.estimate.value == 0
    assert favour.p_value() == 1.0
    assert favour.labels == 120


def test_a_judge_that_passes_wrong_answers_of_the_new_run_favours_it() -> None:
    favour = Favour(new=run((12, 30), (0, 30), 0.8), old=run((30, 30), (0, 30), 0.8))
    ends = favour.ends()
    assert ends.low > 0
    assert favour.p_value() < 0.001
    other = Favour(new=favour.old, old=favour.new)
    assert other.ends().high == pytest.approx(-ends.low)


def test_a_grade_without_labels_may_be_anything() -> None:
    """Nobody knows how many of the answers that fail are right, so nothing is shown."""
    favour = Favour(new=run((30, 30), (0, 0), 0.5), old=run((30, 30), (0, 30), 0.5))
    ends = favour.ends()
    assert ends.low < 0 < ends.high


def test_a_run_of_right_answers_alone_shows_nothing_of_wrong_ones() -> None:
    right = LabelledRun(
        grades=(GradeLabels(share=1.0, passes=True, right=30, labels=30),)
    )
    specificity = right.kept(1.96, right=False)
    assert (specificity.low, specificity.high) == (0.0, 1.0)
    nothing = LabelledRun(grades=())
    assert nothing.kept(1.96, right=True).high == 1.0


COUNTS = st.integers(1, 40).flatmap(
    lambda labels: st.tuples(st.integers(0, labels), st.just(labels))
)
RUNS = st.builds(run, COUNTS, COUNTS, st.floats(0.01, 0.99))


@given(RUNS, RUNS, st.floats(0.1, 4.0))
def test_the_interval_holds_its_figure(
    new: LabelledRun, old: LabelledRun, z: float
) -> None:
    ends = Favour(new=new, old=old).ends(z)
    assert ends.low <= ends.value + 1e-9
    assert ends.value <= ends.high + 1e-9


@given(RUNS, st.booleans())
def test_more_certainty_takes_a_wider_interval(
    labelled: LabelledRun, right: bool
) -> None:
    narrow = labelled.kept(1.0, right=right)
    wide = labelled.kept(2.0, right=right)
    assert wide.low <= narrow.low + 1e-9
    assert narrow.high <= wide.high + 1e-9


@pytest.mark.slow
def test_a_fair_judge_is_seldom_said_to_favour_a_run() -> None:
    """Right on 0.93 of each run's answers, 30 labels of each grade: at most 5 % with its noise."""
    generator = np.random.default_rng(7)
    found = 0
    trials = 600
    for _ in range(trials):
        runs = []
        for share in (0.7, 0.65):
            passed = (int(generator.binomial(30, 0.95)), 30)
            failed = (int(generator.binomial(30, 0.10)), 30)
            runs.append(run(passed, failed, share))
        found += Favour(new=runs[0], old=runs[1]).p_value() <= 0.05
    assert found / trials <= 0.065


def test_a_judge_that_favours_a_run_much_is_mostly_found() -> None:
    """A third of what it passes of the new run is wrong, and a twentieth of the old one's."""
    generator = np.random.default_rng(8)
    found = 0
    for _ in range(100):
        new = run((int(generator.binomial(30, 0.65)), 30), (1, 30), 0.8)
        old = run((int(generator.binomial(30, 0.95)), 30), (1, 30), 0.7)
        found += Favour(new=new, old=old).p_value() <= 0.05
    assert found >= 80

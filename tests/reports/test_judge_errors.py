"""What a judge's errors allow a change between two runs: both conditions, for falls and rises."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from qagate.evaluators.statistics.intervals import Interval, normal_quantile
from qagate.evaluators.statistics.misclassification import (
    HIT,
    MISS,
    GradeChange,
    GradeChanges,
)
from qagate.evaluators.statistics.paired import tango
from qagate.reports.judge.errors import JudgeErrors
from qagate.reports.judge.labels import Labels
from qagate.reports.judge.slice_judge import SliceJudge, errors_of
from tests.support.figures import some
from tests.support.labelled_answers import C, Cell, N, W, label_set, right
from tests.support.made_runs import graded_slice


@dataclass(frozen=True)
class Pairs:
    """Independent pairs of one slice, by old and new grade, counted on a share."""

    table: Mapping[Cell, int]
    counted: Sequence[str] = (C, HIT)

    @property
    def _moved(self) -> tuple[int, int]:
        up = down = 0
        for (before, now), count in self.table.items():
            change = (now in self.counted) - (before in self.counted)
            up += count * (change > 0)
            down += count * (change < 0)
        return up, down

    @property
    def value(self) -> float:
        up, down = self._moved
        return (up - down) / sum(self.table.values())

    def interval_at(self, tail: float) -> Interval:
        up, down = self._moved
        pairs = sum(self.table.values())
        return some(tango(up, down, pairs, normal_quantile(tail)))

    @property
    def changes(self) -> GradeChanges:
        rows = []
        for (before, now), count in self.table.items():
            rows += [GradeChange("facts:en", before, now)] * count
        return GradeChanges.of(enumerate(rows))


def errors(
    labels: Mapping[Cell, int], measure: str = "", waiver: str = ""
) -> JudgeErrors:
    slice_ = graded_slice()
    judge = SliceJudge(
        slice_=slice_, labels=Labels.of(slice_, [label_set(labels)]), waiver=waiver
    )
    return errors_of([(judge, 1.0)], measure)


SAME = {(C, C): 600, (W, W): 300, (N, N): 100}
LENIENT: Mapping[Cell, int] = {(C, C): 300, (W, W): 25, (W, C): 25, (N, N): 250}
"""F1: half of the confident wrong answers pass, beside many refusals that never do."""


def test_an_unchanged_model_is_allowed_by_a_good_judge() -> None:
    assert errors(right(100, 100, 60)).allows(Pairs(SAME), 0.1)


def test_a_margin_as_judged_is_not_one_in_truth() -> None:
    """F1: 0.063 lost as judged are 0.126 in truth, at a margin of 0.1."""
    lost = {(C, C): 1_774, (C, W): 126, (W, W): 100}
    assert not errors(LENIENT).allows(Pairs(lost), 0.1)
    assert errors(right(300, 300, 250)).allows(Pairs(lost), 0.1)


def test_refusals_that_become_wrong_answers_hide_no_loss() -> None:
    """As judged nothing was lost: half of the answers that were refused pass now."""
    turned = {
        (C, C): 1_000,
        (C, N): 200,
        (N, W): 200,
        (N, C): 200,
        (N, N): 200,
        (W, W): 200,
    }
    pairs = Pairs(turned)
    assert pairs.value == 0
    judged = errors(LENIENT)
    assert some(judged.corrected(pairs)).value == pytest.approx(-0.1)
    assert not judged.allows(pairs, 0.1)


def test_a_rise_is_read_across_its_own_border() -> None:
    """Wrong answers rose by 0.05 as judged; the judge takes half of them for right: 0.1."""
    rose = {(C, C): 1_400, (C, W): 100, (W, W): 300, (N, N): 200}
    pairs = Pairs(rose, counted=(W, HIT))
    assert errors(right(300, 300, 250), "incorrect").allows(pairs, 0.1, rises=True)
    assert not errors(LENIENT, "incorrect").allows(pairs, 0.1, rises=True)


def test_a_further_set_of_answers_is_held_to_more() -> None:
    """By pairs and by labels: the same change passes the first time and not the second."""
    lost = {(C, C): 560, (C, W): 50, (W, C): 20, (W, W): 300, (N, N): 70}
    judged = errors(right(60, 60, 60))
    margin = next(
        step / 1_000
        for step in range(40, 200)
        if judged.allows(Pairs(lost), step / 1_000)
    )
    assert not judged.allows(Pairs(lost), margin, 0.025 / 9)


def test_a_waived_judge_counts_as_read() -> None:
    """Only the pairs' own error is left, whatever the class of an answer."""
    lost = {(C, C): 1_774, (C, W): 126, (W, W): 100}
    waived = errors(LENIENT, waiver="waived")
    assert waived.is_read
    assert waived.allows(Pairs(lost), 0.1)
    assert waived.sentence(Pairs(lost)) == "waived"


def test_missing_answers_count_at_their_worst() -> None:
    """They are taken for lost right answers: no judge's error makes that less."""
    missing = {(C, C): 850, (HIT, MISS): 120, (W, W): 30}
    assert not errors(right(100, 100, 60)).allows(Pairs(missing), 0.1)


def test_labels_that_are_missing_allow_nothing_and_say_so() -> None:
    slice_ = graded_slice()
    judge = SliceJudge(
        slice_=slice_,
        labels=Labels.of(slice_, [label_set(right(40, 3, 40))]),
        grades={C: 900, W: 80, N: 80},
    )
    lacking = errors_of([(judge, 1.0)])
    assert not lacking.allows(Pairs(SAME), 0.9)
    assert lacking.sentence(Pairs(SAME)).endswith("it takes 27 more labels INCORRECT")


def test_a_judge_that_grades_classes_alike_allows_nothing() -> None:
    alike = {(C, C): 100, (W, W): 50, (W, N): 50, (N, W): 50, (N, N): 50}
    judged = errors(alike)
    assert "do not tell the classes of answers apart" in judged.obstacle
    assert not judged.allows(Pairs(SAME), 0.9)


def test_an_estimate_keeps_to_the_margin_both_ways() -> None:
    lost = {(C, C): 1_774, (C, W): 126, (W, W): 100}
    assert errors(right(300, 300, 250)).allows_estimate(Pairs(lost), 0.1)
    assert not errors(LENIENT).allows_estimate(Pairs(lost), 0.1)


def test_the_sentence_says_the_corrected_change_and_j() -> None:
    said = errors(LENIENT).sentence(Pairs(SAME))
    assert said.startswith("corrected for the judge's errors, it is 0, 95 % interval")
    assert "Youden's J 0.5, 95 % interval" in said
    assert "by 600 labels of your own" in said


def test_more_labels_narrow_j() -> None:
    judged = errors(LENIENT)
    assert judged.with_labels(4).youden().low > judged.youden().low

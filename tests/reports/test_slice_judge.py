"""Whose labels measure the judge of a slice, which are missing, and when it is trusted."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qagate.cases.dataset import Slice
from qagate.cases.labels import DRAWN_GRADE, DRAWN_SHARE
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import NOT_CORRECT, kind_of
from qagate.evaluators.rubric import Rubric
from qagate.evaluators.statistics.intervals import wilson
from qagate.evaluators.statistics.misclassification import Confusion
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.measuring import slice_judge
from qagate.reports.judge.slice_judge import SliceJudge, UnknownErrors, errors_of
from qagate.reports.run.record import Record
from tests.support.figures import some
from tests.support.labelled_answers import (
    C,
    Cell,
    N,
    W,
    answers,
    label_set,
    label_slice,
    right,
)
from tests.support.made_runs import RUBRIC, SPEC, answered, facts_dataset, graded_slice

MANY = right(100, 100, 100)
BUNDLED = right(80, 80, 50)


def judge_of(
    *sets: LabelSet,
    grades: Mapping[str, int] | None = None,
    slice_: Slice | None = None,
) -> SliceJudge:
    slice_ = slice_ or graded_slice()
    return SliceJudge(
        slice_=slice_, labels=Labels.of(slice_, sets), grades=grades or {}
    )


def reader_of(judge: SliceJudge, measure: str = "") -> Confusion:
    reader = judge.reader(measure)
    assert isinstance(reader, Confusion)
    return reader


def bundled(counts: Mapping[Cell, int]) -> LabelSet:
    return label_set(counts, name="judges", bundled=True)


# Whose labels


def test_all_own_sets_of_a_language_and_rubric_count_together() -> None:
    judge = judge_of(
        label_set(right(20, 20, 20), name="one"),
        label_set(right(15, 15, 15), name="two"),
    )
    assert reader_of(judge).row(INCORRECT).labels == 35


@pytest.mark.parametrize(
    "other",
    [
        {"language": "pl"},
        {"rubric": replace(RUBRIC, version="facts.en@2#b")},
        {"attacks": True},
        {"measures": "another"},
    ],
    ids=["language", "rubric", "attacks", "for another data set"],
)
def test_labels_of_another_kind_measure_nothing(other: dict[str, object]) -> None:
    assert not judge_of(label_set(MANY, **other)).labels


def test_enough_labels_of_ones_own_borrow_none() -> None:
    judge = judge_of(
        label_set(right(30, 30, 30)), bundled({(W, C): 80, (C, C): 80, (N, N): 50})
    )
    assert reader_of(judge).kept(INCORRECT).value == 1


def test_a_class_with_few_labels_borrows_that_class_alone() -> None:
    """Own labels of CORRECT suffice; of INCORRECT there are ten, all seen, and bundled at 0.9."""
    own = label_set({(C, C): 30, (W, W): 10, (N, N): 30})
    reader = reader_of(
        judge_of(own, bundled({(C, W): 50, (C, C): 50, (W, W): 90, (W, C): 10}))
    )
    assert reader.kept(CORRECT).value == 1
    assert reader.kept(INCORRECT).value == pytest.approx(0.9)


def test_what_is_borrowed_never_lifts_the_own_estimate() -> None:
    """A judge that misses four of ten own wrong answers is no better for the bundled ones."""
    own = label_set({(C, C): 30, (W, W): 6, (W, C): 4, (N, N): 30})
    reader = reader_of(judge_of(own, bundled(BUNDLED)))
    half_way = (0.6 + some(wilson(6, 10))[0]) / 2
    assert reader.kept(INCORRECT).value == pytest.approx(0.6)
    assert reader.kept(INCORRECT).low == pytest.approx(half_way, abs=0.01)


def test_a_class_without_own_labels_has_the_bundled_figures() -> None:
    own = label_set({(C, C): 30})
    reader = reader_of(
        judge_of(own, bundled({(C, C): 80, (W, W): 76, (W, C): 4, (N, N): 50}))
    )
    assert reader.kept(INCORRECT).value == pytest.approx(0.95)


def test_an_answer_that_the_judge_failed_on_counts_as_misjudged() -> None:
    """Whoever chooses which calls fail must not gain."""
    judge = judge_of(label_set({(C, C): 100, (W, W): 90, (W, ""): 10, (N, N): 50}))
    assert reader_of(judge).kept(INCORRECT).value == pytest.approx(0.9)


# Which labels are missing


def test_where_none_can_be_borrowed_thirty_are_needed() -> None:
    judge = judge_of(
        label_set(right(40, 12, 30)),
        grades={CORRECT: 300, INCORRECT: 200, NOT_ATTEMPTED: 100},
    )
    assert judge.lack == (
        "judge measured too little in en: it takes 18 more labels INCORRECT"
    )


def test_a_class_that_both_runs_have_less_often_needs_as_many_labels() -> None:
    judge = judge_of(
        label_set(right(40, 12, 30)),
        grades={CORRECT: 300, INCORRECT: 12, NOT_ATTEMPTED: 100},
    )
    assert judge.lack == ""


def test_refusals_that_hardly_occur_count_as_wrong_answers() -> None:
    judge = judge_of(
        label_set(right(40, 40, 0)),
        grades={CORRECT: 300, INCORRECT: 200, NOT_ATTEMPTED: 20},
    )
    assert reader_of(judge).classes == (CORRECT, INCORRECT)
    assert reader_of(judge).place_of(NOT_ATTEMPTED) == 1


def test_refusals_that_occur_need_labels() -> None:
    judge = judge_of(
        label_set(right(40, 40, 0)),
        grades={CORRECT: 300, INCORRECT: 200, NOT_ATTEMPTED: 60},
    )
    assert "30 more labels NOT_ATTEMPTED" in judge.lack


def test_wrong_answers_may_not_be_too_rare_to_measure() -> None:
    """A judge that lets wrong answers pass makes them rare by just that."""
    judge = judge_of(
        label_set(right(40, 0, 40)),
        grades={CORRECT: 500, INCORRECT: 4, NOT_ATTEMPTED: 20},
    )
    assert "4 more labels INCORRECT" in judge.lack


def test_without_any_labels_the_way_out_is_named() -> None:
    judge = slice_judge(
        facts_dataset(judge_unmeasured=False),
        graded_slice(),
        answered("cci"),
        Labels(slice_=graded_slice()),
        SPEC,
    )
    assert judge.obstacle.startswith("judge not measured in en: no labelled answers")
    assert "label answers of this run (qagate label RUN)" in judge.obstacle
    assert "judge: unmeasured in the dataset.yaml of facts" in judge.obstacle


# Borders


def test_labels_that_say_right_or_not_tell_no_wrong_answer_from_a_refusal() -> None:
    judge = judge_of(
        label_set({(C, C): 100, (NOT_CORRECT, W): 60, (NOT_CORRECT, N): 60})
    )
    assert reader_of(judge).classes == (CORRECT, NOT_CORRECT)
    assert "do not tell incorrect apart" in str(judge.reader("incorrect"))


def test_a_figure_that_is_no_share_has_no_known_errors() -> None:
    judge = judge_of(label_set(MANY))
    assert isinstance(judge.reader("f_score"), UnknownErrors)
    assert errors_of([(judge, 1.0)], "f_score").unknown


def test_another_share_is_read_across_its_own_border() -> None:
    reader = reader_of(judge_of(label_set(MANY)), "incorrect")
    assert reader.inner == {INCORRECT}


def test_only_ratings_near_the_bar_show_how_a_judge_errs_at_it() -> None:
    """Bar 6: of 4 and 5 half pass; labels of 1 are easy to fail, and 9 to pass."""
    rating = Rubric(
        name="r", language="en", protocol="rate", system="", user="", version="r1"
    )
    counts = {
        ("1", "1"): 100, ("9", "9"): 100, ("5", "5"): 20, ("4", "7"): 20, ("7", "7"): 40,
    }  # fmt: skip
    slice_ = graded_slice(kind=kind_of("rated"), rubric=rating)
    judge = judge_of(label_set(counts, rubric=rating), slice_=slice_)
    youden = reader_of(judge).youden()
    assert youden.value == pytest.approx(0.5)
    assert youden.labels == 80


def test_code_has_no_errors() -> None:
    yes_no = graded_slice(kind=kind_of("yes_no"), rubric=None)
    assert judge_of(slice_=yes_no).reader() == frozenset()


# Trust


def obstacle(*sets: LabelSet, letters: str = "c" * 60 + "i" * 30 + "n" * 10) -> str:
    slice_ = graded_slice()
    return slice_judge(
        facts_dataset(judge_unmeasured=False),
        slice_,
        answered(letters),
        Labels.of(slice_, sets),
        SPEC,
    ).obstacle


def test_thirty_labels_that_are_all_right_are_enough_for_a_sheet_of_ones_own() -> None:
    """Of each class that occurs, in a rubric of one's own: nothing can be borrowed."""
    assert obstacle(label_set(right(15, 15, 0)), letters="c" * 15 + "i" * 15) == ""


def test_the_floor_goes_by_own_labels_alone_from_a_hundred_on() -> None:
    """88 of 100 miss the floor, whatever the bundled labels say."""
    own = label_set({(C, C): 40, (C, W): 6, (W, W): 30, (W, C): 6, (N, N): 18})
    why = obstacle(own, bundled(BUNDLED))
    assert "not trusted" in why
    assert "the judge agrees with 88 of your 100 labels" in why


def test_few_labels_reach_the_floor_with_bundled_ones_beside_them() -> None:
    """12 of 12 have a lower end of 0.76: half way up it is 0.88, and the limit is 0.85."""
    assert obstacle(label_set(right(4, 4, 4)), bundled(BUNDLED)) == ""


def test_bundled_labels_do_not_lift_a_judge_that_misses_ones_own() -> None:
    own = label_set({(C, C): 10, (W, W): 10, (W, C): 4, (N, N): 6})
    why = obstacle(own, bundled(BUNDLED))
    assert "the judge agrees with 26 of your 30 labels" in why


def test_a_judge_with_one_verdict_for_all_is_not_trusted() -> None:
    """It agrees with 0.95 of the labels, as that many are of right answers."""
    why = obstacle(label_set({(C, C): 950, (W, C): 30, (N, C): 20}))
    assert "not trusted" in why


def test_labels_without_a_floor_trust_nobody() -> None:
    why = obstacle(label_set(MANY, floor={}, floor_limit={}))
    assert "labels has no floor for it" in why


# Waivers


def waiver(judge_unmeasured: bool, *sets: LabelSet) -> str:
    slice_ = graded_slice()
    return slice_judge(
        facts_dataset(judge_unmeasured=judge_unmeasured),
        slice_,
        answered("cci"),
        Labels.of(slice_, sets),
        SPEC,
    ).waiver


def test_a_waiver_is_said() -> None:
    assert waiver(True).startswith("judge: unmeasured")


def test_beside_labels_a_waiver_is_none() -> None:
    """Labels that show errors cannot be talked away."""
    assert waiver(True, label_set(MANY)) == ""


def test_a_waived_judge_counts_as_read() -> None:
    slice_ = graded_slice()
    judge = SliceJudge(slice_=slice_, labels=Labels(slice_=slice_), waiver="waived")
    errors = errors_of([(judge, 1.0)])
    assert (errors.is_read, errors.youden().low, errors.basis) == (True, 1.0, "waived")


def test_rules_over_answers_of_ones_own_are_measured_like_a_model() -> None:
    """Labels on which they agree to 0.75 do not trust them."""
    slice_ = graded_slice()
    own = label_set(
        {(C, C): 60, (C, W): 20, (W, W): 60, (W, C): 20, (N, N): 30, (N, W): 10}
    )
    judge = slice_judge(
        facts_dataset(judge_unmeasured=False),
        slice_,
        answered("cci", model="openai:live"),
        Labels.of(slice_, [own]),
        "lexical",
    )
    assert "not trusted" in judge.obstacle
    assert "name a model as the judge (--judge)" in judge.obstacle


# Labels of answers that were drawn by the judge's grade


def drawn_set(strata: Mapping[str, tuple[float, Mapping[Cell, int]]]) -> LabelSet:
    """Return labels by the grade that they were drawn by, each with its share of all answers."""
    slice_ = label_slice(name="reg_labels")
    records: list[Record] = []
    for grade, (share, counts) in strata.items():
        for record in answers(slice_, counts):
            number = len(records)
            metadata = {DRAWN_GRADE: grade, DRAWN_SHARE: str(share)}
            records.append(
                replace(
                    record,
                    id=f"d{number}",
                    key=f"calibration:d{number}",
                    question=f"Drawn {number}?",
                    metadata=metadata,
                )
            )
    return LabelSet(slice_=slice_, records=tuple(records))


def test_a_lenient_judge_shows_by_the_few_of_its_passes_that_were_drawn() -> None:
    """One wrong answer among 30 of 0.975 of the answers outweighs 30 that it refused."""
    own = drawn_set(
        {C: (0.975, {(C, C): 31, (W, C): 1}), W: (0.025, {(W, W): 30, (N, N): 30})}
    )
    for sets in ([own], [own, bundled(BUNDLED)]):
        assert reader_of(judge_of(*sets)).kept(INCORRECT).value < 0.5


def test_few_drawn_labels_lean_on_the_bundled_ones() -> None:
    """Thirty of each grade cannot show alone how many wrong answers pass: they borrow."""
    own = drawn_set({C: (0.92, {(C, C): 30}), W: (0.08, {(W, W): 30, (N, N): 30})})
    alone = reader_of(judge_of(own)).kept(INCORRECT)
    with_bundled = reader_of(judge_of(own, bundled(BUNDLED))).kept(INCORRECT)
    assert alone.low < 0.4
    assert with_bundled.low == pytest.approx((1 + alone.low) / 2, abs=0.02)


def test_the_floor_weighs_labels_that_were_drawn() -> None:
    """A judge right on 0.97 of all answers is wrong on a third of the few that it refuses."""
    own = drawn_set({C: (0.92, {(C, C): 60}), W: (0.08, {(W, W): 40, (C, W): 20})})
    assert "agreement" not in obstacle(own, bundled(BUNDLED))
    counted_once = label_set({(C, C): 60, (W, W): 40, (C, W): 20})
    assert "agreement" in obstacle(counted_once, bundled(BUNDLED))


def test_a_share_that_cannot_be_read_stands_for_nothing() -> None:
    """So the labels of that grade show nothing, and what they would show counts as lost."""
    own = drawn_set({C: ("most", {(C, C): 60}), W: (0.08, {(W, W): 60})})  # type: ignore[dict-item]
    assert reader_of(judge_of(own, bundled(BUNDLED))).kept(INCORRECT).low < 0.6

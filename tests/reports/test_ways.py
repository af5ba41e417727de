"""A setting that only reads kept answers otherwise counts both ways, and the worse stands."""

from collections.abc import Sequence
from dataclasses import replace

from qagate.cases.dataset import Retired, Slice, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.compare.ways import pairing_by_then, ways_of
from qagate.reports.gates.change import change_gates
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.made_runs import RUBRIC

DROP = Threshold(measure="drop", max=0.1, evidence="confident", fail="zero")


def decided(side: PairedSlice) -> GateResult:
    (result,) = change_gates(make_dataset(side.slice_), [side])
    return result


def names(side: PairedSlice) -> list[str]:
    return [way.name for way in ways_of([side])]


def rated(ratings: Sequence[int], bar: int) -> list[Record]:
    return [
        make_record(
            number, rating=rating, outcome="passed" if rating >= bar else "failed"
        )
        for number, rating in enumerate(ratings)
    ]


def rated_side(bar_then: int, bar_now: int) -> PairedSlice:
    """Forty of a hundred ratings fell from 9 to 5."""
    slice_ = make_slice("rated", DROP, pass_bar=bar_now)
    new = rated([5] * 40 + [9] * 60, bar_now)
    old = rated([9] * 100, bar_now)
    return PairedSlice(
        slice_=slice_,
        pairing=pair_records(new, old),
        slice_then=replace(slice_, pass_bar=bar_then),
    )


def test_a_lower_pass_bar_hides_no_loss() -> None:
    result = decided(rated_side(bar_then=7, bar_now=5))
    assert result.state == "FAIL"
    assert result.reason.startswith("by the earlier pass_bar: new - old is -0.4")


def test_the_same_settings_are_read_once() -> None:
    assert names(rated_side(bar_then=7, bar_now=7)) == [""]


def test_a_slice_of_which_nothing_is_known_is_read_once() -> None:
    side = replace(rated_side(bar_then=7, bar_now=5), slice_then=None)
    assert names(side) == [""]


def grade(number: int, label: str, **fields: object) -> Record:
    outcome = "passed" if label == CORRECT else "failed"
    return make_record(number, grade=label, outcome=outcome, **fields)


def graded_side(slice_then: Slice | None = None, **now: object) -> PairedSlice:
    """Thirty of a hundred right answers became refusals, which pass by today's settings."""
    settings = {"rubric": RUBRIC} | now
    slice_ = replace(make_slice("graded", DROP), **settings)  # type: ignore[arg-type]
    new = [grade(number, NOT_ATTEMPTED) for number in range(30)]
    new += [grade(number, CORRECT) for number in range(30, 100)]
    old = [grade(number, CORRECT) for number in range(100)]
    return PairedSlice(
        slice_=slice_,
        pairing=pair_records(new, old),
        slice_then=slice_then or replace(slice_, rubric=RUBRIC),
    )


def test_grades_that_pass_since_hide_no_loss() -> None:
    rubric = replace(RUBRIC, passing=(CORRECT, NOT_ATTEMPTED))
    side = graded_side(rubric=rubric)
    read = [
        replace(pair, new=replace(pair.new, outcome="passed")) for pair in side.pairs
    ]
    side = replace(side, pairing=replace(side.pairing, pairs=tuple(read)))
    result = decided(side)
    assert result.state == "FAIL"
    assert "by the earlier passing grades" in result.reason


def test_all_settings_are_turned_back_together_as_well() -> None:
    then = replace(make_slice("graded", DROP), rubric=RUBRIC, penalty=2.0, cluster="x")
    side = graded_side(then)
    assert names(side) == ["", "penalty", "cluster", "penalty, cluster"]


def test_retired_items_count_both_ways() -> None:
    """Whoever retires the items that broke still has them in the verdict."""
    ids = tuple(f"i{number}" for number in range(30))
    side = graded_side(
        replace(make_slice("graded", DROP), rubric=RUBRIC),
        retired=Retired(ids=ids, reason="wrong"),
    )
    result = decided(side)
    assert result.state == "FAIL"
    assert result.reason.startswith("by the earlier retired items")


def test_items_that_were_retired_then_count_no_more() -> None:
    retired = Retired(ids=tuple(f"i{number}" for number in range(30)), reason="wrong")
    then = replace(make_slice("graded", DROP), rubric=RUBRIC, retired=retired)
    result = decided(graded_side(then, retired=retired))
    assert result.state == "PASS"
    assert result.estimate.n == 70


def test_new_golds_hide_no_loss() -> None:
    """By the golds of then the same answers are wrong; what they said then is read again."""
    slice_ = replace(make_slice("graded", DROP), rubric=RUBRIC)
    old = [grade(number, CORRECT) for number in range(100)]
    by_then = [grade(number, INCORRECT) for number in range(30)]
    pairing = pair_records(old, old)
    side = PairedSlice(
        slice_=slice_,
        pairing=pairing,
        pairing_then=pairing_by_then(pairing, old[:30], by_then),
        slice_then=slice_,
    )
    result = decided(side)
    assert result.state == "FAIL"
    assert result.reason.startswith("by the earlier golds, words or checks")


def test_other_cluster_values_make_no_items_independent() -> None:
    """Ten facts of ten items each, all of which are facts of their own now."""
    slice_ = replace(make_slice("graded", DROP), rubric=RUBRIC)
    old = [
        grade(number, CORRECT, metadata={"fact_id": f"F{number // 10}"})
        for number in range(100)
    ]
    new = [replace(record, metadata={"fact_id": record.id}) for record in old]
    side = PairedSlice(slice_=slice_, pairing=pair_records(new, old), slice_then=slice_)
    result = decided(side)
    assert result.state == "INCONCLUSIVE"
    assert result.reason.startswith("by the earlier values of the cluster column")


def test_each_further_set_of_answers_is_held_to_more() -> None:
    """The third set of an unchanged model's answers: 50 pairs exclude 0.1 no more."""
    slice_ = replace(make_slice("graded", DROP), rubric=RUBRIC)
    records = [grade(number, CORRECT) for number in range(50)]
    side = PairedSlice(slice_=slice_, pairing=pair_records(records, records))
    assert decided(side).state == "PASS"
    again = replace(side, tries=("FAIL", "FAIL"))
    result = decided(again)
    assert result.state == "INCONCLUSIVE"
    assert "held to 99.44 %, as set 3 of answers of this model" in result.reason

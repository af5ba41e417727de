"""What the baseline was held to does not vanish: slices, gates, floors and measurements."""

from dataclasses import replace

import pytest

from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.core import UsageError
from qagate.reports.gates.gone import (
    check_accepted,
    gate_doubts,
    gone_gates,
    hash_of,
    slice_doubts,
    with_evidence_of_then,
)
from qagate.reports.run.accepted import NOTHING_ACCEPTED, Accepted
from qagate.reports.run.baseline import Baseline
from tests.support.labelled_answers import label_dataset, label_set, right
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)

BAR = Threshold(measure="correct", min=0.5)
DROP = Threshold(measure="drop", max=0.1, evidence="confident", fail="zero")


def declared(*gates: Threshold, **fields: object) -> Dataset:
    return facts_dataset(graded_slice("en", *gates), **fields)


THEN = declared(BAR, DROP)


def texts(now: Dataset, then: Dataset = THEN) -> list[str]:
    return [f"{gate.slice}: {gate.text}" for gate in gone_gates([now], [then])]


def test_the_same_gates_are_not_gone() -> None:
    assert texts(THEN) == []


def test_a_stricter_gate_is_not_gone() -> None:
    assert texts(declared(replace(BAR, min=0.6), replace(DROP, max=0.05))) == []


@pytest.mark.parametrize(
    ("gates", "text"),
    [
        ((BAR,), "facts:en: drop <= 0.1, fail: zero is gone"),
        (
            (replace(BAR, min=0.4), DROP),
            "facts:en: correct >= 0.5 is laxer now: correct >= 0.4",
        ),
        (
            (BAR, replace(DROP, max=0.2)),
            "facts:en: drop <= 0.1, fail: zero is laxer now: drop <= 0.2, fail: zero",
        ),
        (
            (BAR, replace(DROP, fail="margin")),
            "facts:en: drop <= 0.1, fail: zero is laxer now: drop <= 0.1",
        ),
        (
            (BAR, replace(DROP, of="f_score")),
            "facts:en: drop <= 0.1, fail: zero is gone",
        ),
    ],
)
def test_a_gate_that_is_gone_or_laxer_is_named(
    gates: tuple[Threshold, ...], text: str
) -> None:
    assert texts(declared(*gates)) == [text]


def test_a_gate_that_pools_is_no_gate_of_the_slice() -> None:
    now = declared(BAR, pooled=(replace(DROP, pool=True),))
    assert texts(now) == ["facts:en: drop <= 0.1, fail: zero is gone"]


def test_a_waived_measurement_is_named() -> None:
    then = replace(THEN, judge_unmeasured=False)
    assert texts(THEN, then) == [
        "facts:*: the judge's errors count no more (unmeasured)"
    ]


def test_a_lower_floor_is_named() -> None:
    then = facts_dataset(graded_slice("en", BAR, floor={"agreement": 0.9}))
    now = facts_dataset(graded_slice("en", BAR, floor={"agreement": 0.8}))
    assert texts(now, then) == ["facts:en: floor agreement 0.9 is laxer now: 0.8"]


def test_exactly_these_changes_can_be_accepted() -> None:
    gone = gone_gates([declared(BAR)], [THEN])
    (doubt,) = gate_doubts(gone, NOTHING_ACCEPTED)
    assert f"--accept-changed gates={hash_of(gone)}" in doubt
    assert list(gate_doubts(gone, Accepted(gates=hash_of(gone)))) == []
    others = gone_gates([declared(DROP)], [THEN])
    assert list(gate_doubts(others, Accepted(gates=hash_of(gone)))) != []


def baseline(dataset: Dataset = THEN) -> Baseline:
    return before(run_of(answered("c" * 5), dataset))


def with_labels() -> Baseline:
    """Return a baseline whose judge labels measured, although it might have gone unmeasured."""
    made = label_set(right(100, 100, 60))
    report = run_of(
        answered("c" * 60),
        facts_dataset(graded_slice("en", BAR), judge_unmeasured=True),
        labels=made.records,
        label_datasets=(label_dataset(made),),
    )
    return before(report)


def test_labels_that_vanish_leave_no_waiver() -> None:
    """`judge: unmeasured` stood from the start; the labels had shown how the judge errs."""
    waived = facts_dataset(graded_slice("en", BAR), judge_unmeasured=True)
    made = run_of(answered("c" * 60), waived, baseline=with_labels())
    assert made.decision.code == 6
    assert "labels measured the judge of facts:en for the baseline" in (
        made.decision.line
    )


def test_a_judge_that_was_never_measured_may_go_unmeasured() -> None:
    drop = Threshold(measure="drop", max=0.3, evidence="confident", fail="margin")
    waived = facts_dataset(graded_slice("en", BAR, drop), judge_unmeasured=True)
    earlier = before(run_of(answered("c" * 60), waived))
    assert run_of(answered("c" * 60), waived, baseline=earlier).decision.code == 0


def test_a_missing_slice_is_named_with_the_way_on() -> None:
    (doubt,) = slice_doubts(["facts:de"], baseline())
    assert "this run lacks facts:en (5 items), which the baseline has" in doubt
    assert "--accept-changed slices=facts:en" in doubt


def test_a_slice_that_a_filter_left_out_is_not_offered_as_gone() -> None:
    """The command selects it, so that it could not be accepted either."""
    (doubt,) = slice_doubts(["facts:de"], baseline(), selected=["facts:en"])
    assert "run all of its slices" in doubt
    assert "--accept-changed" not in doubt


def test_a_missing_slice_can_be_accepted() -> None:
    assert list(slice_doubts([], baseline(), Accepted(slices=("facts:en",)))) == []


@pytest.mark.parametrize(
    "accepted",
    [
        Accepted(slices=("facts:en",)),
        Accepted(slices=("facts:xx",)),
        Accepted(gates="0123456789ab"),
    ],
)
def test_a_wrong_name_or_hash_is_refused(accepted: Accepted) -> None:
    with pytest.raises(UsageError, match="--accept-changed"):
        check_accepted(accepted, [THEN], ["facts:en"], baseline())


def test_nothing_changed_since_no_baseline() -> None:
    with pytest.raises(UsageError, match="there is no baseline"):
        check_accepted(Accepted(gates="abc"), [THEN], ["facts:en"], None)


def test_other_evidence_is_held_beside_that_of_then() -> None:
    estimated = replace(DROP, evidence="estimate")
    held = with_evidence_of_then(declared(BAR, estimated), [THEN])
    assert held.slices["en"].thresholds == (BAR, estimated, DROP)


def test_a_run_with_a_gate_gone_ends_in_6() -> None:
    made = run_of(answered("c" * 60), declared(BAR), baseline=baseline())
    assert made.decision.code == 6
    assert "drop <= 0.1, fail: zero is gone" in made.decision.line

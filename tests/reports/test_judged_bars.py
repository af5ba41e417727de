"""Bars on a share of one run: they hold against the judge's errors, not only as judged."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from qagate.cases.dataset import Threshold
from qagate.evaluators.metric_specs import MetricSpec
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, Report
from tests.support.figures import some
from tests.support.labelled_answers import (
    C,
    Cell,
    N,
    W,
    label_dataset,
    label_set,
    right,
)
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

LENIENT: Mapping[Cell, int] = {(C, C): 760, (W, W): 16, (W, C): 24, (N, N): 160}
"""It catches 16 of 40 labelled wrong answers, and agrees with 0.975 of all labels."""
F1: Mapping[Cell, int] = {(C, C): 300, (W, W): 25, (W, C): 25, (N, N): 250}
"""Half of the confident wrong answers pass; pooled with refusals that looks like 0.92."""


def run(
    letters: str, *gates: Threshold, labels: Mapping[Cell, int], **changes: object
) -> Report:
    """Return a run of these answers, judged by who graded these labels."""
    made = label_set(labels)
    slice_ = graded_slice("en", *gates, **changes)
    return run_of(
        answered(letters),
        facts_dataset(slice_, judge_unmeasured=False),
        labels=made.records,
        label_datasets=(label_dataset(made),),
    )


def gate_of(report: Report) -> GateResult:
    (gate,) = report.decision.gates
    return gate


BAR = Threshold(measure="correct", min=0.75)


def test_a_lenient_judge_does_not_lift_a_model_over_its_bar() -> None:
    """0.80 as judged, at a true 0.50: the judge catches four of ten wrong answers."""
    gate = gate_of(run("c" * 160 + "i" * 40, BAR, labels=LENIENT))
    assert gate.state == "INCONCLUSIVE"
    assert "not shown to refuse more than half" in gate.reason


def test_a_judge_without_errors_decides_a_bar_as_before() -> None:
    gate = gate_of(run("c" * 160 + "i" * 40, BAR, labels=right(100, 100, 60)))
    assert gate.state == "PASS"


@pytest.mark.parametrize(
    ("labels", "state"),
    [(LENIENT, "INCONCLUSIVE"), (right(100, 100, 60), "PASS")],
    ids=["lenient", "right"],
)
def test_a_bar_that_is_decided_item_by_item_asks_the_judge_as_well(
    labels: Mapping[Cell, int], state: str
) -> None:
    bar = Threshold(measure="correct", min=0.6, evidence="sequential")
    gate = gate_of(run("c" * 320 + "i" * 80, bar, labels=labels))
    assert gate.state == state
    is_doubted = "not shown to refuse more than half" in gate.reason
    assert is_doubted is (state == "INCONCLUSIVE")


def test_a_bar_that_the_corrected_share_misses_is_no_pass() -> None:
    """0.80 as judged; the judge lets a fifth of the wrong answers pass: 0.75 in truth."""
    labels = {(C, C): 100, (W, W): 80, (W, C): 20, (N, N): 60}
    gate = gate_of(
        run("c" * 160 + "i" * 40, Threshold(measure="correct", min=0.78), labels=labels)
    )
    assert gate.state == "INCONCLUSIVE"
    assert "corrected for the judge's errors, correct is 0.75" in gate.reason


def test_a_poor_judge_needs_the_whole_corrected_interval() -> None:
    """J's lower end is below 0.5: an estimate that clears by luck shows nothing."""
    labels = {(C, C): 80, (C, W): 20, (W, W): 45, (W, C): 15, (N, N): 60}
    floor = {"agreement": 0.5}
    made = label_set(labels, floor=floor, floor_limit={})
    report = run_of(
        answered("c" * 70 + "i" * 30),
        facts_dataset(
            graded_slice("en", Threshold(measure="correct", min=0.68)),
            judge_unmeasured=False,
        ),
        labels=made.records,
        label_datasets=(label_dataset(made),),
    )
    gate = gate_of(report)
    assert gate.state == "INCONCLUSIVE"
    assert "95 % interval" in gate.reason


def test_wrong_answers_that_a_judge_hides_count_against_a_ceiling() -> None:
    """0.10 INCORRECT as judged, and as many again among those that pass."""
    gate = gate_of(
        run("c" * 180 + "i" * 20, Threshold(measure="incorrect", max=0.12), labels={
            (C, C): 100, (W, W): 60, (W, C): 40, (N, N): 60,
        } | {(C, C): 900})
    )  # fmt: skip
    assert gate.state == "INCONCLUSIVE"


def test_a_bar_that_is_missed_as_judged_stays_missed() -> None:
    gate = gate_of(run("c" * 100 + "i" * 100, BAR, labels=right(100, 100, 60)))
    assert gate.state == "FAIL"


def test_evidence_corrected_goes_by_class() -> None:
    """F1: 0.836 by pooled labels, 0.674 in truth."""
    bar = Threshold(measure="correct", min=0.8, evidence="corrected")
    report = run("c" * 1674 + "i" * 326, bar, labels=F1)
    gate = gate_of(report)
    assert gate.state == "FAIL"
    assert some(gate.estimate.value) == pytest.approx(0.674, abs=0.002)


def test_a_figure_that_is_no_share_is_decided_as_judged() -> None:
    gate = gate_of(
        run(
            "c" * 160 + "i" * 40,
            Threshold(measure="f_score", min=0.5),
            labels=right(100, 100, 60),
        )
    )
    assert gate.state == "PASS"


# Metrics that no label shows the errors of


def with_metric(spec: MetricSpec) -> GateResult:
    slice_ = graded_slice(
        "en", Threshold(measure="geval_tone", min=0.9), metrics=(spec,)
    )
    records = [
        record_with(record, {"geval_tone": 1.0}) for record in answered("c" * 40)
    ]
    report = run_of(records, facts_dataset(slice_))
    return gate_of(report)


def record_with(record: Record, measures: Mapping[str, float]) -> Record:
    return replace(record, measures=measures)


def test_a_metric_by_a_judge_that_saw_no_label_decides_nothing() -> None:
    gate = with_metric(MetricSpec(name="geval_tone", criteria="Is it kind?"))
    assert gate.state == "INCONCLUSIVE"
    assert "unmeasured: true" in gate.reason


def test_a_metric_may_be_waived_by_name() -> None:
    spec = MetricSpec(name="geval_tone", criteria="Is it kind?", unmeasured=True)
    assert with_metric(spec).state == "PASS"

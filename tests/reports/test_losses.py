"""A slice decides only if its gates would notice that right answers are lost."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.dataset import Slice, Threshold
from qagate.evaluators.core import NO, UNANSWERED, YES
from qagate.evaluators.metric_specs import MetricSpec
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.losses import unnoticed_loss
from qagate.reports.render.console import next_step
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from tests.support.made_records import make_record, make_slice
from tests.support.made_runs import (
    RUBRIC,
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)

BAR = Threshold(measure="correct", min=0.3)
HALF = "c" * 50 + "i" * 50


def change(measure: str, margin: float, of: str = "") -> Threshold:
    return Threshold(
        measure=measure, max=margin, of=of, evidence="confident", fail="margin"
    )


DROP = change("drop", 0.1)
RISE = change("rise", 0.1, "incorrect")
SILENCE = change("rise", 0.1, "not_attempted")


def loss_under(slice_: Slice, records: Sequence[Record], *gates: Threshold) -> str:
    """Return what the gates do not notice of a run that is compared with itself."""
    side = PairedSlice(slice_=slice_, pairing=pair_records(records, records))
    bars = [gate for gate in gates if not gate.paired]
    changes = [(gate, [side]) for gate in gates if gate.paired]
    return unnoticed_loss(slice_, records, bars, changes)


@pytest.mark.parametrize(
    ("gates", "loss"),
    [
        ((BAR,), ""),
        ((DROP,), ""),
        ((RISE, SILENCE), ""),
        ((change("drop", 0.1, "f_score"),), ""),
        ((RISE,), "NOT_ATTEMPTED"),
        ((SILENCE,), "INCORRECT"),
        ((change("rise", 0.1, "attempted"),), "INCORRECT"),
        ((change("rise", 0.2, "declined"),), "INCORRECT"),
        ((change("rise", 1.0, "seconds_p95"),), "INCORRECT"),
        ((Threshold(measure="declined", max=0.2),), "INCORRECT"),
        ((Threshold(measure="seconds_p95", max=9.0),), "INCORRECT"),
        ((change("drop", 0.5),), "INCORRECT"),  # half of the answers were right
        ((change("drop", 0.1, "premise_corrected"),), ""),  # undefined here
        ((change("drop", 0.1, "check_form"),), "INCORRECT"),
        ((Threshold(measure="attempted", min=0.5),), "INCORRECT"),
        ((Threshold(measure="incorrect", max=0.6),), "NOT_ATTEMPTED"),
        ((Threshold(measure="penalised", min=-1.0),), "INCORRECT"),
        ((Threshold(measure="check_form", min=0.5),), "INCORRECT"),
        ((Threshold(measure="pass@1", min=0.1),), ""),
        ((Threshold(measure="check_lacking", min=0.1),), ""),  # undefined here
    ],
)
def test_gates_on_grades(gates: tuple[Threshold, ...], loss: str) -> None:
    slice_ = graded_slice("en", *gates)
    records = answered(HALF, measures={"check_form": 0.9})
    assert loss_under(slice_, records, *gates) == loss


def test_a_metric_of_the_answers_that_are_left_sees_no_half_lost() -> None:
    """Of 90 right answers 45 become silence, and nine of ten attempted ones are still right."""
    gate = change("drop", 0.1, "correct_given_attempted")
    records = answered("c" * 90 + "i" * 10)
    slice_ = graded_slice("en", gate)
    assert loss_under(slice_, records, gate) == "NOT_ATTEMPTED"
    assert loss_under(slice_, records, gate, DROP) == ""


def test_a_metric_that_says_which_answers_are_right_notices_a_loss() -> None:
    """As in results of another tool, whose grades are read off a score."""
    gate = change("drop", 0.1, "acc")
    worst = MetricSpec(name="acc", worst=0.0)
    records = [
        replace(record, measures={"acc": float(record.outcome == "passed")})
        for record in answered(HALF)
    ]
    assert loss_under(graded_slice("en", metrics=(worst,)), records, gate) == ""
    other = replace(worst, worst=None)
    slice_ = graded_slice("en", metrics=(other,))
    assert loss_under(slice_, records, gate) == "INCORRECT"


def test_where_nothing_was_right_no_margin_notices_a_loss() -> None:
    assert loss_under(graded_slice("en", DROP), answered("i" * 40), DROP) == "INCORRECT"


def test_where_every_grade_passes_nothing_can_be_lost() -> None:
    all_pass = replace(RUBRIC, passing=RUBRIC.labels)
    slice_ = make_slice("graded", BAR, rubric=all_pass)
    assert loss_under(slice_, answered("c" * 40), BAR) == "CORRECT"


@pytest.mark.parametrize(
    ("gate", "loss"),
    [
        (change("drop", 0.1), ""),
        (change("drop", 1.0, "mean_rating"), ""),
        (Threshold(measure="mean_rating", min=4.0), ""),
        (Threshold(measure="pass_rate", max=0.9), "rating 1"),
    ],
)
def test_gates_on_ratings(gate: Threshold, loss: str) -> None:
    records = [make_record(number, rating=9) for number in range(40)]
    assert loss_under(make_slice("rated", gate), records, gate) == loss


def test_ratings_below_the_bar_are_lost_as_well() -> None:
    """Few answers pass, and the mean of the others alone would still clear this bar."""
    gate = Threshold(measure="mean_rating", min=4.0)
    records = [make_record(number, rating=5, outcome="failed") for number in range(40)]
    assert loss_under(make_slice("rated", gate), records, gate) == ""


@pytest.mark.parametrize(
    ("gate", "loss"),
    [
        (change("drop", 0.1), ""),
        (Threshold(measure="accuracy", min=0.6), ""),
        (Threshold(measure="unanswered", max=0.1), "the other answer"),
        (change("rise", 0.1, "unanswered"), "the other answer"),
        (Threshold(measure="precision", min=0.1), ""),
    ],
)
def test_gates_on_yes_and_no(gate: Threshold, loss: str) -> None:
    records = []
    for number in range(40):
        label = YES if number % 2 else NO
        records.append(make_record(number, label=label, grade=label))
    records.append(make_record(99, label=YES, grade=UNANSWERED, outcome="failed"))
    assert loss_under(make_slice("yes_no", gate), records, gate) == loss


@pytest.mark.parametrize(
    "gate",
    [
        Threshold(measure="pass_rate", min=0.5),
        Threshold(measure="check_form", min=0.5),
        change("drop", 0.1),
    ],
)
def test_gates_on_checks_alone(gate: Threshold) -> None:
    records = [
        make_record(number, grade="PASS", measures={"check_form": 1.0})
        for number in range(40)
    ]
    assert loss_under(make_slice("checked", gate), records, gate) == ""


# Whole runs


def last_line(letters: str, *gates: Threshold, **fields: object) -> str:
    """Return the last line of an unchanged run beside its baseline."""
    dataset = facts_dataset(graded_slice("en", *gates), **fields)
    records = answered(letters)
    baseline = before(run_of(records, dataset))
    return run_of(records, dataset, baseline=baseline).decision.line


def test_a_margin_that_no_loss_reaches_decides_nothing() -> None:
    line = last_line(HALF * 4, BAR, change("rise", 0.1, "attempted"))
    assert line.startswith("NO GATE SEES A LOSS in facts:en (INCORRECT): exit 6; they")


@pytest.mark.parametrize(
    ("has_baseline", "gate"),
    [(True, "{en: {drop: {max: 0.05}}}"), (False, "{en: {correct: {min: 0.4}}}")],
)
def test_the_next_step_is_a_gate_that_notices(has_baseline: bool, gate: str) -> None:
    blind = change("rise", 0.1, "attempted")
    if not has_baseline:
        blind = Threshold(measure="attempted", min=0.5)
    dataset = facts_dataset(graded_slice("en", blind))
    records = answered(HALF * 4)
    baseline = before(run_of(records, dataset)) if has_baseline else None
    made = run_of(records, dataset, baseline=baseline)
    (step,) = next_step(made, Path("out"))
    assert f"echo '{{facts: {gate}}}' > gates.yaml" in step


def test_a_margin_below_the_old_share_decides() -> None:
    assert last_line(HALF * 4, BAR, DROP).startswith("GATES PASS (2 of 2): exit 0")


def test_a_pool_notices_for_its_slices() -> None:
    pool = Threshold(
        measure="drop", max=0.1, evidence="confident", fail="margin", pool=True
    )
    assert "exit 0" in last_line(HALF * 4, BAR, pooled=(pool,))
    blind = Threshold(
        measure="rise",
        of="attempted",
        max=0.1,
        evidence="confident",
        fail="margin",
        pool=True,
    )
    assert "exit 6" in last_line(HALF * 4, BAR, pooled=(blind,))


def test_a_bar_that_no_loss_misses_decides_nothing() -> None:
    low = Threshold(measure="attempted", min=0.5)
    line = run_of(answered(HALF), facts_dataset(graded_slice("en", low))).decision.line
    assert line.startswith("NO GATE SEES A LOSS in facts:en (INCORRECT): exit 6")


@pytest.mark.parametrize("cluster", ["", "topic", "nowhere"])
def test_no_cluster_frees_a_slice_of_its_paired_gate(cluster: str) -> None:
    """Two topics are two independent items, and yet there are two hundred to compare."""
    records = answered("c" * 200)
    dataset = facts_dataset(graded_slice("en", BAR, cluster=cluster))
    made = run_of(records, dataset, baseline=before(run_of(records, dataset)))
    assert made.decision.line.startswith("NO drop OR rise GATE for facts:en: exit 6")


def test_a_slice_of_few_items_is_decided_by_bars_and_says_so() -> None:
    line = last_line("c" * 29, BAR)
    assert "exit 0" in line
    assert line.endswith("; too few items to compare: facts:en (29 items)")


# A loss that a pool hides


def pooled_run(lost: int, *own: Threshold) -> Report:
    """Return a run of five languages in a pool; Polish lost so many of 60 answers."""
    names = ("en", "bg", "hu", "be", "pl")
    slices = [graded_slice(name, BAR) for name in names[:-1]]
    slices.append(graded_slice("pl", BAR, *own))
    pool = replace(DROP, pool=True)
    dataset = facts_dataset(*slices, pooled=(pool,))
    old = []
    new = []
    for name in names:
        old += answered("c" * 60, name)
        letters = "i" * lost + "c" * (60 - lost) if name == "pl" else "c" * 60
        new += answered(letters, name)
    return run_of(new, dataset, baseline=before(run_of(old, dataset), "OLD"))


def test_a_pool_cannot_outvote_a_language_that_lost_more_than_it_may() -> None:
    """Nine of 60 is beyond the pool's margin, and shown to be real, but too few to fail it."""
    report = pooled_run(9)
    assert {gate.state for gate in report.decision.gates} == {"PASS"}
    assert report.decision.code == 6
    line = report.decision.line
    assert line.startswith("LOSS HIDDEN IN A POOL: exit 6; facts:pl lost 9 of 60")
    assert "give the language a drop" in line
    assert list(next_step(report, Path("out"))) == ["next: qagate compare OLD out"]


@pytest.mark.parametrize(
    ("lost", "own"),
    [(5, ()), (3, ()), (9, (change("drop", 0.3),))],
    ids=["within the margin", "not shown", "a gate of its own"],
)
def test_a_smaller_loss_is_left_to_the_pool(
    lost: int, own: tuple[Threshold, ...]
) -> None:
    """So is that of a language with a gate of its own, which decides about it."""
    assert pooled_run(lost, *own).decision.code == 0

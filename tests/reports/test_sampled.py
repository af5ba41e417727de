"""Samples that may decide, and labels that tell only right from not right."""

from dataclasses import replace
from typing import Any

import pytest

from cases.dataset import Sampling, SliceSample, Threshold
from cases.gates_file import DatasetGates, GatesFile
from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, UsageError, Verdict
from evaluators.kinds import JUDGED, NOT_CORRECT, kind_of
from reports.compare.differences import differences
from reports.compare.pairs import PairedSlice, pair_records
from reports.metrics.summary import summarise
from reports.run.record import Record
from reports.run.report import Report
from reports.run.run_json import report_from
from reports.verdict.recount import merged, rebuilt, regated
from tests.support.made_records import make_record, make_slice, numbered
from tests.support.made_runs import RUBRIC, answered, before, facts_dataset, graded_slice, run_of
from tests.support.samples import rendered
from tests.support.tables import tabled

TEN = SliceSample(items=10, of=60, seed=363)
PIN = Sampling(limit=10, seed=363)
PINNED = facts_dataset(sampling=PIN)
DROP = Threshold(measure="drop", max=0.5, evidence="estimate")


def sampled(letters: str = "c" * 10, sample: SliceSample = TEN) -> Report:
    return run_of(answered(letters), samples={"facts:en": sample})


def test_counted_again_a_sample_decides_no_more_than_before() -> None:
    """Read back from run.json; pinned it may decide, so do its shards; of two it is no run."""
    made = sampled()
    again = rebuilt(made, None)
    assert (made.decision.code, rendered(again)) == (6, rendered(made))
    (gate,) = again.decision.gates
    assert gate.reason.startswith("10 of 60 items, seed 363; pin `sample: {limit: 10, seed: 363}`")

    def code(pin: Sampling) -> int:
        gates = GatesFile(datasets={"facts": DatasetGates(sampling=pin)})
        return regated(made, gates, None).decision.code

    assert code(PIN) == 0
    assert code(replace(PIN, seed=0)) == code(replace(PIN, limit=11)) == 6
    records = answered("c" * 10)
    whole, samples = {"facts:en": 10}, {"facts:en": TEN}
    parts = [
        run_of(some, PINNED, whole=whole, samples=samples) for some in (records[:6], records[6:])
    ]
    assert [part.slices[0].part for part in parts] == ["partial"] * 2
    found = merged(parts, None)
    assert (found.decision.code, found.slices[0].part) == (0, "10 of 60, seed 363")
    other = run_of(records[6:], whole=whole, samples={"facts:en": replace(TEN, seed=1)})
    with pytest.raises(UsageError, match="the runs differ in sample of facts:en"):
        merged([parts[0], other], None)


@pytest.mark.parametrize(("limit", "code"), [(None, 0), (11, 0), (10, 6)])
def test_a_run_from_before_samples_were_noted_counts_as_one(limit: int | None, code: int) -> None:
    """Ten items under ``--limit 10`` may be ten of sixty; ten under ``--limit 11`` are all."""
    origin = {"limit": limit, "seed": 7, "repeats": 1}
    made = run_of(answered("c" * 10), provenance=origin)
    run = {"judge": made.judge, **as_data(made)}
    del run["slices"][0]["sample"]  # type: ignore[index]
    read = rebuilt(report_from(run, made.records), None)
    assert read.decision.code == code
    assert read.slices[0].part == ("" if code == 0 else "10 of ?, seed 7")


def as_data(report: Report) -> dict[str, object]:
    return dict(before(report).run)


def test_one_sampled_slice_keeps_a_pooled_gate_from_deciding() -> None:
    """The languages together stand on all of their items, or on the pinned ones."""
    slices = [graded_slice(one, Threshold(measure="correct", min=0.1)) for one in ("en", "bg")]
    pooled = facts_dataset(*slices, pooled=(replace(DROP, pool=True),))
    records = [*answered("c" * 10), *answered("c" * 10, "bg")]
    samples = {"facts:bg": TEN}
    old = run_of(records, pooled, samples=samples)
    made = run_of(records, pooled, samples=samples, baseline=old)
    gate = made.decision.gates[-1]
    assert (gate.slice, gate.state, gate.reason[:8]) == ("facts:*", "INCONCLUSIVE", "10 of 60")
    pins = replace(pooled, sampling=PIN)
    assert run_of(records, pins, samples=samples, baseline=old).decision.code == 0


def test_a_sample_of_the_labels_does_not_measure_the_judge() -> None:
    """The floor is held against all labelled items, or against the pinned ones."""
    labels = graded_slice("en", floor={"agreement": 0.6}, thresholds=())
    judged = replace(labels, dataset="judges", kind=kind_of("judged"), rubric=RUBRIC)
    told = answered("c" * 9 + "i", dataset="judges")
    told = [replace(one, key=f"judges-{one.key}", label=one.grade) for one in told]
    told[-1] = replace(told[-1], outcome="passed")
    strict = facts_dataset(judged, name="judges", kind=judged.kind, require_calibration=True)

    def reason(*pin: Sampling) -> str:
        labelled = replace(strict, sampling=pin[0] if pin else None)
        made = run_of(
            [*answered("cc"), *told], facts_dataset(), labelled, samples={"judges:en": TEN}
        )
        return made.decision.gates[0].reason

    assert "judge measured too little in en: 10 of 60 items, seed 363" in reason()
    assert "it takes 10 of each" in reason(PIN), "all of the sample counts"


GRADED = numbered(
    [
        {"label": CORRECT, "grade": CORRECT},
        {"label": CORRECT, "grade": NOT_ATTEMPTED, "outcome": "failed"},
        {"label": NOT_CORRECT, "grade": INCORRECT},
        {"label": NOT_CORRECT, "grade": NOT_ATTEMPTED},
        {"label": NOT_CORRECT, "grade": CORRECT, "outcome": "failed"},
        {"label": None, "grade": CORRECT},
    ]
)


def values(records: list[Record], **fields: object) -> dict[str, float | None]:
    found = summarise(records, make_slice("judged", **fields)).measures
    return {name: one.value for name, one in found.items()}


def test_every_other_grade_is_not_right() -> None:
    """Of six one has no label; attacks have figures of their own; ratings go by the bar."""
    found = values(GRADED)
    assert found["agreement"] == pytest.approx(3 / 5)
    assert found["precision"] == found["recall"] == 0.5
    assert found["youden"] == pytest.approx(1 / 2 + 2 / 3 - 1)
    assert "youden_incorrect" not in found
    found = values(GRADED, attacks=True)
    assert set(found) == {"agreement", "attacks_passed", "controls_lost"}
    assert found["attacks_passed"] == pytest.approx(1 / 3)
    assert found["controls_lost"] == 0.5
    ratings = (7, 6, 3, 9)
    rows = [{"label": label, "rating": rating, "grade": None}
            for label, rating in zip((CORRECT, CORRECT, NOT_CORRECT, NOT_CORRECT), ratings,
                                     strict=True)]  # fmt: skip
    found = values(numbered(rows), attacks=True, pass_bar=7)
    assert (found["attacks_passed"], found["controls_lost"]) == (0.5, 0.5)


@tabled("label", "verdict", "passed")
def test_an_item_passes_by_side(
    label: str | None, verdict: dict[str, Any], *, passed: bool
) -> None:
    """Without a label there is nothing to miss."""
    case = make_record(1, label=label)
    assert JUDGED.passes(case, Verdict(**verdict), (CORRECT,), 7) is passed


def test_runs_are_compared_by_the_side_too() -> None:
    """One more item agrees now; a change among wrong grades is none."""
    now = [replace(GRADED[1], grade=CORRECT, outcome="passed"),
           replace(GRADED[2], grade=NOT_ATTEMPTED)]  # fmt: skip
    new = [GRADED[0], *now, *GRADED[3:]]
    side = PairedSlice(slice_=make_slice("judged"), pairing=pair_records(new, GRADED))
    found = differences([side])
    assert found["recall"].value == 0.5
    assert found["precision"].value == pytest.approx(2 / 3 - 1 / 2)

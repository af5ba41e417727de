"""Claims about the scale of a judge in paired gates: whose labels it is from, and what it says."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import EvidenceRule, Fail, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, State
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.metrics import YOUDEN, YOUDEN_INCORRECT
from qagate.evaluators.statistics.separation import ClassRate, Separation
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.judge.judging import JudgeScale, judge_scale
from qagate.reports.run.evidence import Calibration
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, Report
from qagate.reports.run.run_json import load_report
from qagate.reports.verdict.rebuild import rebuilt
from tests.benchmarks.judge_error import is_shown_within
from tests.support.figures import some
from tests.support.made_records import graded, make_dataset, make_record, make_slice
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)

DROP = Estimate(value=-0.02, low=-0.05, high=0.01, n=300)


def separation(value: float, fewest: int = 40, labels: int = 100) -> Separation:
    """Return J ± 0.1 from so many labels, of which the smaller class has ``fewest``."""
    rate = ClassRate(hits=fewest, trials=fewest, size=float(fewest))
    gain = Estimate(value=value, low=value - 0.1, high=value + 0.1, n=labels)
    return Separation(youden=gain, rates=(rate, replace(rate, trials=labels - fewest)))


def measured(language: str, **found: Separation) -> Calibration:
    return Calibration(
        dataset="labels", language=language, measures={}, separations=found
    )


def side(
    *calibrations: Calibration,
    language: str = "bg",
    kind: str = "graded",
    records: Sequence[Record] = (),
) -> PairedSlice:
    """Return a slice whose new answers pair with the same old ones."""
    answers = list(records) or graded(8, 2)
    return PairedSlice(
        slice_=make_slice(kind, language=language),
        pairing=pair_records(answers, answers),
        calibrations=calibrations,
    )


def scale(*sides: PairedSlice, measure: str = "") -> JudgeScale:
    return some(judge_scale(sides, measure))


def test_whose_labels_scale_a_gate() -> None:
    """30 of each class speak alone; pools weigh by pairs; rules and people have no scale."""
    own, other = (
        measured("bg", youden=separation(0.7)),
        measured("pl", youden=separation(0.5)),
    )
    found = scale(side(own, other))
    assert (found.youden.value, found.youden.n) == (0.7, 100)
    assert found.youden.interval == pytest.approx((0.6, 0.8))
    assert found.basis == "over 100 labelled items in bg"
    bg = side(measured("bg", youden=separation(0.9)), records=graded(30))
    pl = side(measured("pl", youden=separation(0.6)), language="pl", records=graded(10))
    found = scale(bg, pl, side(language="hu"))
    assert found.youden.value == pytest.approx((30 * 0.9 + 10 * 0.6) / 40)
    assert found.basis == "over 200 labelled items in bg, pl"
    assert judge_scale([side(kind="yes_no")]) is None
    by_people = [replace(one, adjudicated_by="Ana") for one in graded(8, 2)]
    assert judge_scale([side(records=by_people)]) is None
    assert judge_scale([side(records=[*by_people, *graded(1)])]) is not None


@pytest.mark.parametrize(("own", "value"), [(0.7, 0.62), (0.4, 0.4)])
def test_few_labels_borrow_but_never_look_better_than_they_are(
    own: float, value: float
) -> None:
    """Below 30 all languages count by their labels, as far as the language's own labels allow."""
    few = measured("bg", youden=separation(own, fewest=29, labels=60))
    pooled = scale(side(few, measured("pl", youden=separation(0.5, labels=40))))
    assert pooled.youden.value == pytest.approx(value)
    assert (
        pooled.youden.low or 0
    ) <= own - 0.05 + 1e-9  # half way to the own lower end
    said = "over 100 labelled items in bg, pl; bg alone has fewer than 30 of a class"
    assert pooled.basis == said


@pytest.mark.parametrize(
    ("calibrations", "measure", "why"),
    [
        ((), "", "no labelled items measure its errors"),
        ((measured("bg"),), "", "no labelled items measure its errors"),
        (
            (measured("bg", youden=separation(0.7)),),
            "incorrect",
            "no labelled items measure",
        ),
        (
            (measured("bg", youden=separation(0.7)),),
            "mean_rating",
            "on the scale of mean_rating",
        ),
    ],
)
def test_no_j_is_an_opinion(
    calibrations: tuple[Calibration, ...], measure: str, why: str
) -> None:
    """And that is said, with the reason."""
    found = scale(side(*calibrations), measure=measure)
    assert found.corrected(DROP).value is None
    assert found.text(DROP).startswith("the verdict is about the judge's opinion: ")
    assert why in found.text(DROP)


@pytest.mark.parametrize("measure", ["", "correct", "pass_rate", "incorrect"])
def test_every_share_has_the_j_of_its_class(measure: str) -> None:
    """What passes by one, what is INCORRECT by the other."""
    both = {YOUDEN: separation(0.7), YOUDEN_INCORRECT: separation(0.5)}
    found = scale(side(measured("bg", **both)), measure=measure)
    assert found.youden.value == (0.5 if measure == "incorrect" else 0.7)


def test_the_words_show_the_change_without_the_judges_errors() -> None:
    """-0.02 by a judge with J 0.8; nothing where J may be 0; more pairs on its scale."""
    found = scale(side(measured("bg", youden=separation(0.8))))
    assert found.text(DROP) == (
        "corrected for the judge's errors, it is -0.025, 95 % interval -0.071 to 0.014 "
        "(Youden's J 0.800, 0.700 to 0.900 over 100 labelled items in bg)"
    )
    poor = scale(side(measured("bg", youden=separation(0.05))))
    assert poor.text(DROP).startswith(
        "the judge errs too often for a conclusion (Youden"
    )
    counts = (10, 10, 280, 0)
    assert gate(counts, 0.05, None).state == "PASS"
    unclear = gate(counts, 0.05, separation(0.6))
    assert unclear.state == "INCONCLUSIVE"
    assert "of 0.05, 0.03 on the judge's scale, nor beyond it; about" in unclear.reason
    assert (
        "; corrected for the judge's errors, it is 0, 95 % interval -0.0"
        in unclear.reason
    )


def gate(
    counts: tuple[int, int, int, int],
    margin: float,
    gain: Separation | None,
    evidence: EvidenceRule = "confident",
    fail: Fail = "margin",
) -> GateResult:
    """Return the drop gate over so many fixed, broken, equal and ungraded items."""
    fixed, broke, same, lost = counts
    now = ["passed"] * (fixed + same) + ["failed"] * broke + ["error"] * lost
    then = ["failed"] * fixed + ["passed"] * (same + broke + lost)
    new, old = (
        [make_record(n, outcome=o) for n, o in enumerate(some)] for some in (now, then)
    )
    rule = Threshold(measure="drop", max=margin, evidence=evidence, fail=fail)
    slice_ = make_slice("graded", rule)
    known = (measured("bg", youden=gain),) if gain else ()
    scaled = PairedSlice(
        slice_=slice_, pairing=pair_records(new, old), calibrations=known
    )
    (found,) = change_gates(make_dataset(slice_), [scaled])
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.tuples(
        st.integers(0, 30), st.integers(0, 40), st.integers(1, 300), st.integers(0, 3)
    ),
    st.sampled_from([0.0, 0.03, 0.1]),
    st.floats(-0.2, 0.9),
    st.sampled_from(["confident", "estimate"]),
    st.sampled_from(["margin", "zero"]),
)
def test_a_judges_errors_never_make_a_verdict(
    counts: tuple[int, int, int, int],
    margin: float,
    gain: float,
    evidence: EvidenceRule,
    fail: Fail,
) -> None:
    """With J a PASS may become INCONCLUSIVE; nothing becomes a PASS or a FAIL."""
    plain = gate(counts, margin, None, evidence, fail)
    scaled = gate(counts, margin, separation(gain), evidence, fail)
    assert scaled.state == plain.state or (plain.state, scaled.state) == (
        "PASS",
        "INCONCLUSIVE",
    )


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 20), st.integers(0, 20), st.integers(1, 400), st.floats(-0.2, 0.9)
)
def test_a_corrected_interval_decides(
    fixed: int, broke: int, same: int, gain: float
) -> None:
    """What the report shows, what decides, and what the benchmark simulates are one."""
    found = gate((fixed, broke, same, 0), 0.05, separation(gain))
    youden = separation(gain).youden
    shown = JudgeScale(youden=youden, basis="").corrected(found.estimate)
    within = shown.low is not None and shown.low > -0.05
    assert (found.state == "PASS") == within
    counts = (np.array([float(fixed)]), np.array([float(broke)]))
    (simulated,) = is_shown_within(
        0.05, *counts, fixed + broke + same, np.array([youden.low])
    )
    assert simulated == within


MARGIN = Threshold(measure="drop", max=0.012, evidence="confident", fail="margin")
JUDGED = kind_of("judged")
LABELS = graded_slice(
    dataset="labels", kind=JUDGED, thresholds=(), floor={"youden": 0.5}
)
LABELLED = facts_dataset(LABELS, name="labels", kind=JUDGED, judge_unmeasured=False)
ASKED = facts_dataset(graded_slice("en", MARGIN))
OPINION = (
    "the verdict is about the judge's opinion: no labelled items measure its errors"
)


def labelled(letters: str) -> list[Record]:
    """Return labels, half CORRECT and half not, each judged as the letter says (e: no verdict)."""
    made = answered(letters)
    labels = [CORRECT] * (len(made) // 2) + [INCORRECT] * (len(made) - len(made) // 2)
    found = []
    for one, label in zip(made, labels, strict=True):
        known: State = "passed" if label == one.grade else "failed"
        outcome = "error" if one.outcome == "error" else known
        about = replace(one, dataset="labels", key=f"labels-en-{one.id}", metadata={})
        found.append(replace(about, label=label, outcome=outcome))
    return found


GOOD, POOR = "c" * 49 + "i" * 51, "c" * 40 + "i" * 55 + "c" * 5


def run(letters: str = "", outside: tuple[Calibration, ...] = ()) -> Report:
    """Return a run of 400 items compared with itself, with these labelled items."""
    records = answered("c" * 300 + "i" * 100)
    old = run_of(records, ASKED)
    datasets = (ASKED, LABELLED) if letters else (ASKED,)
    return run_of(
        [*records, *labelled(letters)],
        *datasets,
        baseline=old,
        outside=outside,
        judge="lexical",
    )


def gate_of(report: Report) -> GateResult:
    (found,) = report.decision.gates
    return found


def test_the_labelled_items_of_a_run_scale_its_drop_gate() -> None:
    """A good judge passes an unchanged model, a poor one shows little, a lost label less."""
    assert gate_of(run(GOOD)).state == "PASS"
    assert "(Youden's J 0.980, 0.868 to" in gate_of(run(GOOD)).reason
    poor = gate_of(run(POOR))
    assert poor.state == "INCONCLUSIVE"
    assert "(Youden's J 0.700, 0.5" in poor.reason
    assert poor.reason.endswith("over 100 labelled items in en)")
    assert gate_of(run()).reason.endswith(OPINION)
    whole, lost = gate_of(run(GOOD)), gate_of(run(GOOD.replace("c", "e", 5)))
    ends = [
        float(one.reason.split("Youden's J ")[1].split()[1]) for one in (whole, lost)
    ]
    assert ends[1] < ends[0] - 0.05


def test_j_is_kept_in_the_files_and_decides_again(tmp_path: Path) -> None:
    """Calibrations from outside the records decide as before."""
    (inside,) = run(POOR).judging.calibrations
    report = run(outside=(replace(inside, source="session"),))
    assert "(Youden's J 0.700" in gate_of(report).reason
    path = written(report, tmp_path / "run")
    again = load_report(path)
    assert again.judging.calibrations == report.judging.calibrations
    old = before(run_of(answered("c" * 300 + "i" * 100), ASKED))
    assert gate_of(rebuilt(again, old)) == gate_of(report)

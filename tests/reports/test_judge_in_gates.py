"""Claims about a whole run whose judge errs: J from its labelled items, in its gates and files."""

import json
from dataclasses import replace
from pathlib import Path

from cases.dataset import Dataset, Slice, Threshold
from evaluators.core import CORRECT, INCORRECT, State
from evaluators.kinds import kind_of
from reports.run.evidence import Calibration
from reports.run.record import Record
from reports.run.report import GateResult, Report
from reports.run.run_json import load_report
from reports.verdict.recount import rebuilt
from tests.support.made_runs import (
    RUBRIC,
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)

DROP = Threshold(measure="drop", max=0.012, evidence="confident", fail="margin")
LABELS = Slice(
    dataset="labels",
    language="en",
    kind=kind_of("judged"),
    path=Path("labels.csv"),
    rubric=RUBRIC,
    floor={"youden": 0.5},
)
LABELLED = Dataset(
    name="labels", folder=Path("labels"), kind=kind_of("judged"), slices={"en": LABELS}
)
ASKED = facts_dataset(graded_slice("en", DROP))
OPINION = "the verdict is about the judge's opinion: no labelled items measure its errors"


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
        [*records, *labelled(letters)], *datasets, baseline=old, outside=outside, judge="lexical"
    )


def gate_of(report: Report) -> GateResult:
    """Return its one gate."""
    (found,) = report.decision.gates
    return found


def test_the_labelled_items_of_a_run_scale_its_drop_gate() -> None:
    """By a good judge an unchanged model passes; by a poor one the same pairs show too little."""
    assert gate_of(run(GOOD)).state == "PASS"
    assert "(Youden's J 0.980, 0.868 to" in gate_of(run(GOOD)).reason
    poor = gate_of(run(POOR))
    assert poor.state == "INCONCLUSIVE"
    assert "(Youden's J 0.700, 0.5" in poor.reason
    assert poor.reason.endswith("over 100 labelled items in en)")
    assert gate_of(run()).reason.endswith(OPINION)


def test_a_label_without_a_verdict_never_helps() -> None:
    """The lower end of J is that of the worst case; the corrected interval only grows."""
    whole, lost = gate_of(run(GOOD)), gate_of(run(GOOD.replace("c", "e", 5)))
    ends = [float(one.reason.split("Youden's J ")[1].split()[1]) for one in (whole, lost)]
    assert ends[1] < ends[0] - 0.05


def test_j_is_kept_in_the_files_and_decides_again(tmp_path: Path) -> None:
    """Calibrations from outside the records return with run.json, and decide as before."""
    (inside,) = run(POOR).judging.calibrations
    report = run(outside=(replace(inside, source="session"),))
    assert "(Youden's J 0.700" in gate_of(report).reason
    path = written(report, tmp_path / "run")
    again = load_report(path)
    assert again.judging.calibrations == report.judging.calibrations
    old = before(run_of(answered("c" * 300 + "i" * 100), ASKED))
    assert gate_of(rebuilt(again, old)) == gate_of(report)


def test_an_older_run_has_no_j(tmp_path: Path) -> None:
    """A calibration of before is read, and its gates say that they are about an opinion."""
    (inside,) = run(POOR).judging.calibrations
    path = written(run(outside=(replace(inside, source="session"),)), tmp_path / "run")
    file = path / "run.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    for name in ("separations", "ungraded", "constructed", "pass_bar"):
        del kept["judging"]["calibrations"][0][name]
    file.write_text(json.dumps(kept), encoding="utf-8")
    old = before(run_of(answered("c" * 300 + "i" * 100), ASKED))
    assert gate_of(rebuilt(load_report(path), old)).reason.endswith(OPINION)

"""Verdicts by people in a session: in the judge's place, without a call, and shown as such."""

import pytest

from cases.review.adjudications import save_adjudications
from evaluators.judges.ensemble import Adjudication, answer_digest
from reports.review.human_review import pick
from reports.run.run_json import load_report
from tests.plugin.test_plugin_judges import spec, truthful
from tests.support.loopback import loopback
from tests.support.projects import RUBRIC, Project

YAML = """
kind: graded
languages:
  en: {file: en.jsonl, rubric: plain.en.yaml, gates: {correct: {min: 0.1}}}
"""
ANSWERS = ["Sofia", "Varna", "The city at the foot of Vitosha"]


def capitals(project: Project) -> Project:
    project.dataset("capital", {"en": ANSWERS}, YAML)
    project.write("qa/capital/plain.en.yaml", RUBRIC.format("en"))
    return project


def adjudicate(project: Project, where: str, item: str, label: str) -> None:
    """Keep a person's verdict on the answer of the last run to one item."""
    report = load_report(project.out)
    (one,) = (one for one in pick(report, 99) if one.record.id == item)
    name, _, digest = one.id.rpartition("@")
    kept = Adjudication(item=name, digest=digest, label=label, name="Ana", reason="I know it")
    save_adjudications({digest: kept}, project.path / where)


def grades(project: Project) -> list[object]:
    return [record["grade"] for record in project.records()]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_verdict_beside_the_data_overrides_the_judge(project: Project, workers: int) -> None:
    """For that answer: no call is made about it, the record and a note name the person."""
    capitals(project)
    with loopback(handler=truthful()) as server:
        judge = ("--judge", spec(server))
        project.run_in_process(*judge, "qa")
        assert grades(project) == ["CORRECT"] * 3
        adjudicate(project, "qa/capital/adjudications.yaml", "q2", "INCORRECT")
        before = server.count
        result = project.run_with(workers, *judge, "--ledger", "other.sqlite3", "qa")
    assert server.count == before + 2
    result.assert_outcomes(passed=2)
    record = project.records()[1]
    assert (record["grade"], record["adjudicated_by"]) == ("INCORRECT", "Ana")
    assert record["reason"] == "adjudicated by Ana: I know it"
    assert record["cost"] == 0
    report = project.report()
    assert "1 verdict by people (Ana)" in report["notes"]
    assert report["provenance"]["adjudications"]["verdicts"] == 1
    result.stdout.fnmatch_lines(["*1 verdict by people (Ana)*"])


def test_a_different_answer_is_judged_as_usual(project: Project) -> None:
    """The verdict is not the item's but the answer's."""
    capitals(project)
    project.run_in_process("qa")
    adjudicate(project, "mine.yaml", "q2", "CORRECT")
    option = "--adjudications=mine.yaml"
    project.run_in_process(option, "qa").assert_outcomes(passed=2)
    assert grades(project)[1] == "CORRECT"
    reason = str(project.records()[1]["reason"])
    assert reason == "adjudicated by Ana: I know it; lexical: INCORRECT"
    project.dataset("capital", {"en": [ANSWERS[0], "Plovdiv", ANSWERS[2]]}, YAML)
    project.run_in_process(option, "qa").assert_outcomes(passed=1)
    assert project.records()[1]["adjudicated_by"] == ""


def test_people_decide_an_audited_gate(project: Project) -> None:
    """INCONCLUSIVE names the command; with their verdicts on both sides the same run passes."""
    audited = YAML.replace("correct: {min: 0.1}", "drop: {max: 0.5, evidence: audited, share: 1}")
    old = [f"{n}: Sofia" for n in range(60)]
    new = [f"{n}: it is Sofia" for n in range(60)]
    project.dataset("capital", {"en": old}, audited)
    project.write("qa/capital/plain.en.yaml", RUBRIC.format("en"))
    project.run_in_process("--report-dir=old", "qa")
    project.dataset("capital", {"en": new}, audited)
    result = project.run_in_process("--baseline=old", "qa")
    assert result.ret == 6
    kept = {}
    for folder in ("old", "reports/out"):
        for record in load_report(project.path / folder).records:
            digest = answer_digest(record, record.answer or "")
            kept[digest] = Adjudication(item=record.key, digest=digest, label="CORRECT", name="Ana")
    save_adjudications(kept, project.path / "people.yaml")
    result = project.run_in_process("--baseline=old", "--adjudications=people.yaml", "qa")
    assert result.ret == 0
    (gate,) = load_report(project.out).decision.gates
    assert gate.reason.startswith("people: new - old is 0, 95 % interval -0.")


def test_the_file_can_be_switched_off_and_must_be_right(project: Project) -> None:
    """off asks the judge again; a wrong file ends the run before any call, a dry run too."""
    capitals(project)
    project.run_in_process("qa")
    adjudicate(project, "qa/capital/adjudications.yaml", "q2", "CORRECT")
    project.run_in_process("--adjudications=off", "qa")
    assert grades(project)[1] == "INCORRECT"
    for words in (["--adjudications=none.yaml"], ["--adjudications=none.yaml", "--dry-run"]):
        assert "none.yaml: cannot be read" in project.refused(*words, "qa")
    project.run_in_process("qa")  # a refused run leaves no verdict behind
    adjudicate(project, "qa/capital/adjudications.yaml", "q1", "7")
    project.run_in_process("qa")
    assert "adjudication: Ana gave '7' where" in str(project.records()[0]["error"])

"""Data sets with checks by code, from their YAML to gates and report files."""

import json

import pytest

from tests.conftest import MODULE, Project
from tests.support.tables import kept, tabled

CHECKS: str = kept(__file__, "checks")
BESIDE: str = kept(__file__, "beside")
ALONE = """
kind: checked
checks:
  - {name: schema, check: json_schema, schema: answer.schema.json}
languages:
  en: {file: en.jsonl, gates: {pass_rate: {min: 0.5}, check_schema: {min: 0.5}}}
"""
SCHEMA = {"type": "object", "required": ["city"]}


@pytest.fixture
def beside(project: Project) -> Project:
    """Return a project whose graded items have two checks beside the judge."""
    project.write("checks_for_all.py", CHECKS)
    project.dataset("capital", {"en": ["Sofia", "Sofia it is", "varna"]}, BESIDE)
    return project


def alone(project: Project, answers: list[str]) -> None:
    """Write a data set of questions without golds that a schema alone checks."""
    project.write("qa/forms/dataset.yaml", ALONE)
    project.write("qa/forms/answer.schema.json", json.dumps(SCHEMA))
    project.write("qa/forms/test_forms.py", MODULE.format(name="forms"))
    rows = [
        {"question": f"Name a city, as JSON, number {number}.", "predicted_answer": answer}
        for number, answer in enumerate(answers)
    ]
    project.write("qa/forms/en.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def test_checks_stand_beside_the_judge(beside: Project) -> None:
    """Each is a share with its interval, which a gate names; the judge's grade is untouched."""
    done = beside.run_in_process("qa")
    assert done.ret == 0, done.stdout.str()
    records = beside.records()
    assert [record["grade"] for record in records] == ["CORRECT", "CORRECT", "INCORRECT"]
    assert [record["measures"]["check_form"] for record in records] == [1.0, 1.0, 0.0]
    found = beside.only("slices")["measures"]["check_form"]
    assert found["value"] == pytest.approx(2 / 3)
    assert found["low"] < found["value"] < found["high"]
    short, form = beside.report()["provenance"]["slices"]["capital:en"]["checks"]
    assert (short["version"][:7], form["text"]) == ("sha256:", "^[A-Z]")
    assert set(beside.gate_states().values()) == {"PASS"}
    assert "check_form" in beside.text("report.html")


def test_a_check_that_raises_is_an_error_of_its_item(beside: Project) -> None:
    """Neither a grade nor a score of 0: the gate on it stays open."""
    beside.dataset("capital", {"en": ["Sofia", "Sofia", "crash"]}, BESIDE)
    done = beside.run_in_process("qa")
    assert done.ret == 6, done.stdout.str()
    (record,) = [one for one in beside.records() if one["outcome"] == "error"]
    assert "check_failed: check_short: ValueError: no such thing" in str(record["error"])
    assert beside.gate_states()["check_short"] == "INCONCLUSIVE"


def test_a_gates_file_and_a_count_of_an_old_run_know_them(beside: Project) -> None:
    """By the same names."""
    gates = "capital: {en: {check_form: {min: 0.9}}}\n"
    beside.write("gates.yaml", gates)
    done = beside.run_in_process("qa", "--gates", "gates.yaml")
    assert done.ret == 1
    assert beside.gate_states()["check_form"] == "FAIL"
    beside.write("gates.yaml", gates.replace("check_form", "check_from"))
    assert "check_from" in beside.refused("qa", "--gates", "gates.yaml")


def test_checks_alone_decide(project: Project) -> None:
    """A kind without a judge and without golds: an item passes where every check does."""
    alone(project, ['{"city": "Sofia"}', '{"city": 1}', "Sofia"])
    done = project.run_in_process("qa")
    assert done.ret == 0, done.stdout.str()
    assert [record["grade"] for record in project.records()] == ["PASS", "PASS", "FAIL"]
    assert "the answer is not JSON" in str(project.records()[2]["reason"])
    assert project.gate_states() == {"pass_rate": "PASS", "check_schema": "PASS"}
    alone(project, ["Sofia", "Varna", "Plovdiv"])
    assert project.run_in_process("qa").ret == 1


@tabled("old", "new", "said")
def test_what_is_wrong_is_said_in_one_line(beside: Project, old: str, new: str, said: str) -> None:
    """File, line and key, before anything is asked."""
    assert old in BESIDE
    beside.write("qa/capital/dataset.yaml", BESIDE.replace(old, new, 1))
    assert said in beside.refused("qa")


def test_checks_alone_need_a_check(project: Project) -> None:
    """A data set of that kind without any would pass everything."""
    alone(project, ["x"])
    text = ALONE.replace("  - {name: schema, check: json_schema, schema: answer.schema.json}\n", "")
    project.write("qa/forms/dataset.yaml", text.replace("checks:\n", ""))
    assert "key 'checks': missing; list one" in project.refused("qa")

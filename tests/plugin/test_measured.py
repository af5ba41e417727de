"""Nobody decides unmeasured: a live model needs a judge, and rules are measured like a model."""

from pathlib import Path

import pytest

from tests.support.projects import Project, new_project

MODEL = """\
import os

def answer(case):
    number = int(case.question.split()[-1].rstrip("?"))
    is_worse = os.environ.get("WORSE") and number % 2
    return "Plovdiv had more people than Sofia." if is_worse else "Sofia"
"""
YAML = """\
kind: graded
rubric: simpleqa
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.3}}}
"""
LIVE = ("--model", "python:mine:answer", "qa")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = new_project(tmp_path)
    made.dataset("capital", {"en": [None] * 40}, YAML)
    made.write("mine.py", MODEL)
    return made


def test_a_live_model_without_a_judge_is_refused(project: Project) -> None:
    line = project.refused(*LIVE)
    assert (
        "capital:en needs a judge: name a model (--judge SPEC), or say --judge lexical"
        in line
    )


@pytest.mark.slow
def test_rules_that_are_said_are_measured_by_the_bundled_labels(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They agree with two thirds of them: a loss of half the answers decides nothing."""
    monkeypatch.setenv("WORSE", "1")
    result = project.run_in_process("--judge", "lexical", *LIVE)
    assert result.ret == 6
    gate = project.only("gates")
    assert gate["state"] == "INCONCLUSIVE"
    assert "judge not trusted in en" in gate["reason"]
    assert "of 240 bundled labels" in gate["reason"]


def test_beside_labels_a_waiver_is_none(project: Project) -> None:
    project.write("qa/capital/dataset.yaml", f"judge: unmeasured\n{YAML}")
    assert project.run_in_process("--judge", "lexical", *LIVE).ret == 6

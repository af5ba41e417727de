"""Runs with --repeats: pass@k and pass^k in reports and gates."""

import sys
from typing import Any

import pytest

from reports.__main__ import main
from tests.conftest import Project
from tests.support.tables import kept, tabled

WAVERING: str = kept(__file__, "wavering")
YAML = """
kind: graded
languages:
  en: {file: en.jsonl, gates: {GATES}}
"""
MODEL = ("--model", "python:wavering:answer@1", "--concurrency", "1")


@pytest.fixture
def capitals(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project of two items: one always right, the other only at the first try."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    gated(project, 2, "{pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}}")
    project.write("wavering.py", WAVERING)
    return project


def gated(project: Project, items: int, gates: str) -> None:
    project.dataset("capital", {"en": [None] * items}, YAML.replace("GATES", gates[1:-1]))


def measures(project: Project) -> dict[str, Any]:
    return dict(project.only("slices")["measures"])


def test_they_are_measured_and_gated(capitals: Project) -> None:
    """Of all repeats always, of fewer where a gate names it; each item counts once."""
    gates = (
        "{pass@3: {min: 0.4}, pass^3: {min: 0.1, max: 0.9}, pass^2: {min: 0.4}, pass@2: {min: 0.4}}"
    )
    gated(capitals, 2, gates)
    done = capitals.run_in_process("qa", *MODEL, "--repeats", "3")
    assert done.ret == 0, done.stdout.str()
    found = measures(capitals)
    assert found["correct"]["n"] == 6
    values = {name: found[name]["value"] for name in ("pass@3", "pass^3", "pass@2", "pass^2")}
    assert values == pytest.approx(
        {"pass@3": 1.0, "pass^3": 0.5, "pass@2": (1 + 2 / 3) / 2, "pass^2": 0.5}
    )
    assert found["pass^3"]["n"] == 2
    assert found["pass^3"]["low"] < 0.5 < found["pass^3"]["high"]
    assert set(capitals.gate_states().values()) == {"PASS"}
    assert "pass^3" in capitals.text("report.html")


def test_a_run_with_them_is_read_again(capitals: Project) -> None:
    """As the baseline of the next one, and by the command that counts gates anew."""
    options = ("qa", *MODEL, "--repeats", "3")
    assert capitals.run_in_process(*options, "--report-dir", "base").ret == 0
    done = capitals.run_in_process(*options, "--baseline=base")
    assert set(capitals.gate_states().values()) == {"PASS"}, done.stdout.str() + done.stderr.str()
    assert done.ret == 6  # no gate holds a change
    capitals.write("gates.yaml", "capital: {en: {pass^2: {min: 0.99}}}\n")
    assert main(["gate", "reports/out", "--gates", "gates.yaml"]) == 1


def test_more_tries_than_were_made_decide_nothing(capitals: Project) -> None:
    """The gate says how many repeats it needs."""
    done = capitals.run_in_process("qa", *MODEL, "--repeats", "2")
    assert done.ret == 6
    assert set(capitals.gate_states().values()) == {"INCONCLUSIVE"}
    assert "pass^3 needs --repeats 3" in done.stdout.str()
    assert "pass^2" in measures(capitals)


def test_without_repeats_there_is_nothing_to_measure(capitals: Project) -> None:
    """One try says nothing of several."""
    gated(capitals, 2, "{correct: {min: 0.1}}")
    assert capitals.run_in_process("qa", *MODEL).ret == 0
    assert not [name for name in measures(capitals) if name.startswith("pass")]


@tabled("gate", "state")
def test_ungraded_tries_count_both_ways(capitals: Project, gate: str, state: str) -> None:
    """Of three items one is right, one at first, one at first and an ERROR in the end.

    So pass^2 lies between (1 + 0 + 0) / 3 and (1 + 0 + 1/3) / 3.
    """
    gated(capitals, 3, gate)
    capitals.run_in_process("qa", *MODEL, "--repeats", "3")
    assert capitals.gate_states() == {gate[1:].partition(":")[0]: state}


def test_a_gates_file_may_name_them(capitals: Project) -> None:
    """As any measure; a number of tries has to stand there."""
    capitals.write("gates.yaml", "capital: {en: {pass^2: {min: 0.99}}}\n")
    options = ("qa", *MODEL, "--repeats", "2", "--gates", "gates.yaml")
    assert capitals.run_in_process(*options).ret == 1
    capitals.write("gates.yaml", "capital: {en: {pass^: {min: 0.99}}}\n")
    assert capitals.run_in_process(*options).ret == 4

"""Runs with ``--limit``: a sample that nobody pinned beforehand decides nothing."""

import sys
from typing import Any

import pytest

from reports.__main__ import main
from tests.support.projects import RIGHT, WRONG, Project, graded
from tests.support.tables import kept, tabled

PINNED = "sample: {limit: 1, seed: 4}\n"
YAML = graded({"en": "correct: {min: 0.8}"})
LUCKY = 8  # the item, of the twenty, that --limit 1 --seed 4 draws


def prepared(project: Project, pinned: str = "") -> Project:
    """Return a project where one answer of twenty is right: the one that seed 4 draws."""
    answers = [RIGHT if number == LUCKY else WRONG for number in range(1, 21)]
    project.dataset("capital", {"en": answers}, YAML + pinned)
    return project


def test_a_lucky_sample_does_not_turn_fail_into_pass(project: Project) -> None:
    """All items FAIL; the one item that happens to be right ends 6, and says how to pin it."""
    prepared(project)
    assert project.run_in_process("qa").ret == 1
    sampled = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    assert sampled.ret == 6
    assert "correct (run all 20 items)" in sampled.outlines[-1]
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert gate["reason"] == (
        "1 of 20 items, seed 4; pin `sample: {limit: 1, seed: 4}` in the data set or gates file "
        "to let them decide, or run all"
    )


@pytest.mark.parametrize("place", ["the data set", "a gates file"])
def test_the_pinned_sample_decides(project: Project, place: str) -> None:
    """It alone: another seed or another limit ends 6, and without --limit all items decide."""
    prepared(project, PINNED if place == "the data set" else "")
    gates = project.write("pinned.yaml", f"capital: {{{PINNED.strip()}}}\n")
    given = () if place == "the data set" else (f"--gates={gates}",)

    def code(*options: str) -> int:
        return int(project.run_in_process(*given, *options, "qa").ret)

    assert code("--limit", "1", "--seed", "4") == 0
    assert code("--limit", "1", "--seed", "5") == 6
    assert code("--limit", "2", "--seed", "4") == 6
    assert code() == 1
    assert project.only("slices")["sample"] is None


def test_a_limit_that_leaves_nothing_out_is_no_sample(project: Project) -> None:
    """Just as many items as there are, or more: the whole slice decides."""
    prepared(project)
    for limit in ("20", "500"):
        assert project.run_in_process("--limit", limit, "qa").ret == 1
        assert project.only("slices")["sample"] is None


@pytest.mark.parametrize("pinned", ["", PINNED])
def test_every_report_names_the_sample(project: Project, pinned: str) -> None:
    """Terminal, summary.md, gates.xml, report.html and run.json, whether it decides or not."""
    prepared(project, pinned)
    result = project.run_in_process("--limit", "1", "--seed", "4", "qa")
    words = "1 of 20, seed 4"
    result.stdout.fnmatch_lines([f"WARNING: only a sample was asked: capital:en {words}*"])
    for name in ("summary.md", "gates.xml", "report.html"):
        assert words in project.text(name), name
    found = project.only("slices")["sample"]
    assert found == {"items": 1, "of": 20, "seed": 4, "pinned": bool(pinned)}


def test_repeats_do_not_make_a_sample_larger(project: Project) -> None:
    """The sample counts items, however often each is asked."""
    prepared(project)
    project.run_in_process("--limit", "2", "--seed", "4", "--repeats", "3", "qa")
    found = project.only("slices")
    assert (found["sample"]["items"], found["sample"]["of"], found["whole"]) == (2, 20, 6)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_first_items_decide_nothing(project: Project, workers: int) -> None:
    """--limit first:N asks the first rows, with all their repeats; neither a pin nor luck helps."""
    project.dataset(
        "capital", {"en": [RIGHT, RIGHT, WRONG]}, YAML + "sample: {limit: 2, seed: 0}\n"
    )
    result = project.run_with(workers, "--limit", "first:2", "--repeats", "2", "qa")
    assert result.ret == 6
    keys = ["capital-en-q1", "capital-en-q1~r2", "capital-en-q2", "capital-en-q2~r2"]
    assert [one["key"] for one in project.records()] == keys
    gate = project.only("gates")
    assert (gate["estimate"]["value"], gate["state"]) == (1.0, "INCONCLUSIVE")
    assert "only a part of the slice was run" in gate["reason"]


WAVERING: str = kept(__file__, "wavering")
REPEATED = """
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
    project.dataset("capital", {"en": [None] * items}, REPEATED.replace("GATES", gates[1:-1]))


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

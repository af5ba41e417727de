"""Runs whose dataset names metrics of deepeval: measured, gated, kept, and quiet about it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.conftest import Project
from tests.support.loopback import Loopback, loopback
from tests.support.metric_judge import judge
from tests.support.tables import kept

METRICS = """
metrics:
  faithfulness: {min: 0.6}
  geval_basis:
    criteria: Does the answer name the right article?
    evaluation_params: [input, actual_output, retrieval_context]
    min: 0.1
"""
ITEM = """
- id: q{number}
  question: May we do it, asked for the time number {number}?
  context: Article {number} says that it is so.
  expected: Yes, by Article {number}.
  predicted_answer: "It is so, says Article {number}. {mark} [[rating=8]]"
"""
WATCH = kept(__file__, "watch")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what loading deepeval here has set for child processes too; tempt it to upload."""
    for name in ("DEEPEVAL_TELEMETRY_OPT_OUT", "DEEPEVAL_DISABLE_DOTENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONFIDENT_API_KEY", "confident_us_x")


def law(project: Project, answers: Mapping[str, Sequence[str]]) -> Project:
    """Write a rated dataset with two metrics: by language a mark for each recorded answer."""
    listed = "".join(f"  {language}: {{file: {language}.yaml}}\n" for language in answers)
    yaml = f"kind: rated\nrubric: eba\njudge: unmeasured\n{METRICS}languages:\n{listed}"
    project.dataset("law", {}, yaml)
    for language, marks in answers.items():
        items = [ITEM.format(number=number, mark=mark) for number, mark in enumerate(marks)]
        project.write(f"qa/law/{language}.yaml", "".join(items))
    return project


def named(server: Loopback, provider: str = "openai") -> tuple[str, ...]:
    return "--judge", f"{provider}:j@{server.url}/v1", "--calibration", "off"


def report(project: Project) -> Any:
    return project.report()


@pytest.mark.slow
def test_measures_are_taken_gated_and_kept(project: Project) -> None:
    """Each answer gets its numbers from the judge's model; a run without workers asks nothing more.

    Only the controller loads deepeval, which calls nobody else, reads no .env and leaves no folder.

    Row F24 of the fault matrix.
    """
    law(project, {"en": ["", "[[faithful=no]] [[score=5]]", ""]})
    project.write(".env", "QA_LEAK=1\n")
    project.write("conftest.py", WATCH)
    with loopback(handler=judge) as server:
        first = project.run("-n", "2", *named(server), "qa")
        assert first.ret == 0, first.stdout.str()
        check_quiet(project)
        # One call for the steps; two answers claim the same, so that one call judges both claims.
        assert server.count == 3 * (1 + 3 + 1) + 1 - 1
        before = project.records()
        assert project.run(*named(server), "qa").ret == 0
        check_quiet(project)
        assert server.count == 15
    assert [one["measures"] for one in before] == [
        {"faithfulness": 1.0, "geval_basis": 0.8},
        {"faithfulness": 0.0, "geval_basis": 0.5},
        {"faithfulness": 1.0, "geval_basis": 0.8},
    ]
    assert project.records() == before
    (slice_,) = report(project)["slices"]
    found = slice_["measures"]["faithfulness"]
    assert (found["value"], found["n"]) == (pytest.approx(2 / 3), 3)
    assert 0 <= found["low"] < 2 / 3 < found["high"] <= 1
    states = {gate["measure"]: gate["state"] for gate in report(project)["gates"]}
    assert states == {"faithfulness": "PASS", "geval_basis": "PASS"}
    assert report(project)["tokens"] > 0


def check_quiet(project: Project) -> None:
    """Check what each process of the runs so far has loaded, read, called and left."""
    seen = {path.stem: json.loads(path.read_text()) for path in project.path.glob("seen-*.json")}
    assert sorted(seen) == ["seen-controller", "seen-gw0", "seen-gw1"]
    assert [name for name, one in seen.items() if one["deepeval"]] == ["seen-controller"]
    assert not any(one["leaked"] for one in seen.values())
    assert {host for one in seen.values() for host in one["hosts"]} <= {"127.0.0.1"}
    assert not (project.path / ".deepeval").exists()


def test_a_measure_fails_its_gate_or_leaves_it_open(project: Project) -> None:
    """Too low fails; an item that could not be measured decides nothing, and its grade stands."""
    law(project, {"en": ["[[faithful=no]]", "[[faithful=no]]"], "bg": ["", "[[broken=yes]]"]})
    with loopback(handler=judge) as server:
        result = project.run_in_process(*named(server, "anthropic"), "qa")
    assert result.ret == 1
    gates = {(one["language"], one["measure"]): one for one in report(project)["gates"]}
    assert gates["en", "faithfulness"]["state"] == "FAIL"
    assert gates["en", "faithfulness"]["reason"] == "faithfulness 0 is below 0.6 (n=2)"
    open_ = gates["bg", "faithfulness"]
    assert open_["state"] == "INCONCLUSIVE"
    assert open_["reason"] == "faithfulness could not be taken of 1 item; see the notes"
    assert gates["bg", "geval_basis"]["state"] == "PASS"
    assert {record["outcome"] for record in project.records()} == {"passed"}
    notes = "\n".join(report(project)["notes"])
    assert "faithfulness: 1 item not measured: judge_unreadable: anthropic:j@" in notes


def test_rules_take_no_measures(project: Project) -> None:
    """The offline judge has no model to ask: the report says so, and the gates stay open."""
    law(project, {"en": [""]})
    assert project.run_in_process("qa").ret == 6
    notes = report(project)["notes"]
    assert "law:en: faithfulness, geval_basis not measured: --judge lexical asks no model" in notes
    assert {gate["state"] for gate in report(project)["gates"]} == {"INCONCLUSIVE"}


def test_a_dry_run_counts_the_calls_of_measures(project: Project) -> None:
    """As an estimate, before anything is kept."""
    law(project, {"en": ["", "", ""]})
    with loopback(handler=judge) as server:
        result = project.run_in_process(*named(server), "--dry-run", "qa")
        assert server.count == 0
    result.stdout.fnmatch_lines(["law:en*3 items*18 calls", "extra metrics: as many calls*"])

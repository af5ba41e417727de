"""Claims about what a CI system is told: annotations, and the link back to the run."""

from dataclasses import replace

import pytest

from cases.dataset import Threshold
from reports.plugin.finish import ci_lines, ci_link
from reports.render import markdown
from reports.render.console import LIMIT, annotations
from reports.run.report import Decision, GateResult, Report
from tests.conftest import Project
from tests.support.hostile import HOSTILE
from tests.support.samples import gate, report


def gated(*gates: GateResult) -> Report:
    return report(decision=Decision(gates=gates, code=1, line="GATES FAIL"))


def test_failed_and_undecided_gates_are_annotated() -> None:
    """An error for FAIL first, a warning for INCONCLUSIVE, nothing for PASS."""
    made = gated(gate("INCONCLUSIVE"), gate("PASS"), gate("FAIL"))
    assert list(annotations(made)) == [
        "::error title=FAIL%3A simpleqa%3Aen correct::correct 0.210, 95 %25 interval 0.100 to "
        "0.320, n=60; bar >= 0.35",
        "::warning title=INCONCLUSIVE%3A simpleqa%3Aen correct::correct 0.400, 95 %25 interval "
        "0.290 to 0.510, n=60; bar >= 0.35",
    ]


def test_no_text_of_a_model_gets_into_a_command() -> None:
    """A reason may name models as their servers did; it stays out, whatever it is."""
    shown = [list(annotations(gated(gate("FAIL", reason=text)))) for text in HOSTILE]
    assert all(lines == shown[0] for lines in shown)


def test_what_would_end_a_command_is_escaped() -> None:
    """Line ends, percent signs, and in a title colons and commas."""
    rule = Threshold(measure="a,b:c%\r\n::error::d", min=0.5)
    (line,) = annotations(gated(gate("FAIL", threshold=rule)))
    assert "\n" not in line
    assert "\r" not in line
    assert "title=FAIL%3A simpleqa%3Aen a%2Cb%3Ac%25%0D%0A%3A%3Aerror%3A%3Ad::" in line


def test_only_as_many_as_github_shows() -> None:
    """Ten of each level."""
    made = gated(*[gate("FAIL")] * 15, *[gate("INCONCLUSIVE")] * 3)
    lines = list(annotations(made))
    assert len(lines) == LIMIT + 3


def test_annotations_are_for_github_alone() -> None:
    """Elsewhere such lines are noise."""
    made = gated(gate("FAIL"))
    assert list(ci_lines(made, {})) == []
    assert list(ci_lines(made, {"GITHUB_ACTIONS": "false"})) == []
    assert len(list(ci_lines(made, {"GITHUB_ACTIONS": "true"}))) == 1


def test_the_link_is_that_of_the_ci_run() -> None:
    """GitHub's three variables, GitLab's one, or nothing."""
    github = {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "a/b",
        "GITHUB_RUN_ID": "7",
    }
    assert ci_link(github) == {"link": "https://github.com/a/b/actions/runs/7"}
    assert ci_link({"CI_JOB_URL": "https://gitlab.com/a/-/jobs/1"}) == {
        "link": "https://gitlab.com/a/-/jobs/1"
    }
    assert ci_link({**github, "GITHUB_RUN_ID": ""}) == {}


def test_a_failed_gate_is_annotated(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line at the start of a line, and the run's address in run.json and summary.md."""
    for name in ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI_JOB_URL", "https://ci.example/7")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    yaml = "kind: graded\nlanguages: {en: {file: en.jsonl, gates: {correct: {min: 0.9}}}}\n"
    project.dataset("capital", {"en": ["Sofia", "Varna"]}, yaml)
    result = project.run_in_process("qa")
    lines = [line for line in result.outlines if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith("::error title=FAIL%3A capital%3Aen correct::correct 0.500")
    assert project.report()["run"]["link"] == "https://ci.example/7"
    summary = (project.path / "reports" / "out" / "summary.md").read_text(encoding="utf-8")
    assert "[The whole report](https://ci.example/7)" in summary


def test_a_link_that_is_no_plain_address_is_left_out() -> None:
    """The variable may hold anything; markup stays out of the summary."""
    for odd in ("javascript:alert(1)", "https://a b", "https://a)x](y", "ftp://a"):
        made = replace(report(), run={"link": odd})
        assert "The whole report" not in markdown.render(made)

"""``gates.xml`` and the annotations of a CI run: states as CI shows them, and no text a command."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from cases.dataset import Threshold
from reports.plugin.finish import ci_lines, ci_link
from reports.render import junit, markdown
from reports.render.console import LIMIT, annotations
from reports.run.report import Decision, GateResult, Report
from tests.conftest import Project
from tests.support.hostile import HOSTILE
from tests.support.junit_schema import violations
from tests.support.samples import full, gate, report
from tests.support.tables import tabled


def parse(made: Report) -> ET.Element:
    """Return the root of the rendered XML."""
    return ET.fromstring(junit.render(made).encode())


def test_a_suite_a_slice_and_a_case_a_gate() -> None:
    """Counts in the attributes are those of the elements, in each suite and in total."""
    root = parse(full())
    assert root.tag == "testsuites"
    assert {k: root.get(k) for k in ("tests", "failures", "errors", "time")} == {
        "tests": "7", "failures": "2", "errors": "2", "time": "0",
    }  # fmt: skip
    assert [suite.get("name") for suite in root] == [
        "simpleqa:en", "simpleqa:bg", "simpleqa:*", "simpleqa:hu", "judges:en", "eba:en",
    ]  # fmt: skip
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
        assert suite.get("failures") == str(len(suite.findall("testcase/failure")))
        assert suite.get("errors") == str(len(suite.findall("testcase/error")))


@pytest.mark.parametrize(
    ("state", "tags"), [("PASS", []), ("FAIL", ["failure"]), ("INCONCLUSIVE", ["error"])]
)
def test_states_become_what_ci_shows(state: str, tags: list[str]) -> None:
    """FAIL is a failure; INCONCLUSIVE is an error, for its exit code is not 0 either."""
    one = gate(state)  # type: ignore[arg-type]
    (case,) = parse(report(decision=Decision(gates=(one,), code=0, line=""))).iter("testcase")
    assert [child.tag for child in case] == [*tags, "system-out"]
    out = case.findtext("system-out") or ""
    for word in (state, "95 % interval", ">= 0.35", "worst", "best", one.reason):
        assert word in out


def test_notes_end_the_last_suite() -> None:
    """What was left out is named in this file too, and the schema allows it there.

    Where the gates say all there is to say, nothing is added.
    """
    notes = ("gates left out, as the gates file replaces all: simpleqa:en drop <= 0.1", "b\x1b[31m")
    made = replace(full(), notes=notes)
    *others, last = parse(made)
    assert all(suite.find("system-out") is None for suite in others)
    assert (last[-1].tag, last[-1].text) == ("system-out", f"{notes[0]}\nb\\u001b[31m")
    assert violations(junit.render(made)) == []
    assert parse(report()).get("tests") == "1"


@tabled("code", "complete", "tag", "kind")
def test_a_red_run_with_green_gates_is_red(code: int, complete: bool, tag: str, kind: str) -> None:
    """An interrupt or an ordinary failing test does not publish as success."""
    decision = replace(report().decision, code=code, line="3 tests failed")
    root = parse(report(decision=decision, complete=complete))
    (problem,) = root.iter(tag)
    assert (problem.get("type"), problem.get("message")) == (kind, "3 tests failed")
    assert root.get("tests") == "2"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    """Reasons and names may quote models and users; the document's shape does not change."""
    made = replace(gated(gate("FAIL", dataset=text, reason=text)), notes=(text,))
    raw = junit.render(made)
    assert "<!" not in raw
    assert len(list(ET.fromstring(raw.encode()).iter("testcase"))) == 1
    assert violations(raw) == []


@pytest.mark.parametrize(
    "made",
    [full(), report(decision=Decision(gates=(), code=6, line="NO")), report(complete=False)],
    ids=["full", "none", "partial"],
)
def test_the_file_is_valid_by_the_schema_of_jenkins_and_gitlab(made: Report) -> None:
    """Elements in the schema's order, with its attributes and no other."""
    assert violations(junit.render(made)) == []


@tabled("wrong", "found")
def test_the_check_itself_finds_what_the_schema_forbids(wrong: str, found: str) -> None:
    """A check that accepted everything would prove nothing."""
    assert found in violations(wrong)


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
    """A reason stays out, whatever it is; line ends, percents, colons, commas are escaped."""
    shown = [list(annotations(gated(gate("FAIL", reason=text)))) for text in HOSTILE]
    assert all(lines == shown[0] for lines in shown)
    rule = Threshold(measure="a,b:c%\r\n::error::d", min=0.5)
    (line,) = annotations(gated(gate("FAIL", threshold=rule)))
    assert "\n" not in line
    assert "\r" not in line
    assert "title=FAIL%3A simpleqa%3Aen a%2Cb%3Ac%25%0D%0A%3A%3Aerror%3A%3Ad::" in line


def test_annotations_are_for_github_alone() -> None:
    """Elsewhere such lines are noise; ten of each level are shown there.

    The link is that of the CI run, by GitHub's three variables or GitLab's one.
    """
    for known, count in (
        ({}, 0),
        ({"GITHUB_ACTIONS": "false"}, 0),
        ({"GITHUB_ACTIONS": "true"}, 1),
    ):
        assert len(list(ci_lines(gated(gate("FAIL")), known))) == count
    made = gated(*[gate("FAIL")] * 15, *[gate("INCONCLUSIVE")] * 3)
    assert len(list(annotations(made))) == LIMIT + 3
    server, link = "https://github.com", "https://gitlab.com/a/-/jobs/1"
    github = {"GITHUB_SERVER_URL": server, "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "7"}
    assert ci_link(github) == {"link": "https://github.com/a/b/actions/runs/7"}
    assert ci_link({"CI_JOB_URL": link}) == {"link": link}
    assert ci_link({**github, "GITHUB_RUN_ID": ""}) == {}


def test_a_failed_gate_is_annotated(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line at the start of a line, the run's address where it is one, and no markup."""
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
    for odd in ("javascript:alert(1)", "https://a b", "https://a)x](y", "ftp://a"):
        made = replace(report(), run={"link": odd})
        assert "The whole report" not in markdown.render(made)

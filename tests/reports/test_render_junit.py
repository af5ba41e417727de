"""``gates.xml``: strict JUnit that is red whenever the exit code is."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from reports.render import junit
from reports.run.report import Decision, Report
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
    """What was left out is named in this file too, and the schema allows it there."""
    notes = ("gates left out, as the gates file replaces all: simpleqa:en drop <= 0.1", "b\x1b[31m")
    made = replace(full(), notes=notes)
    *others, last = parse(made)
    assert all(suite.find("system-out") is None for suite in others)
    assert (last[-1].tag, last[-1].text) == ("system-out", f"{notes[0]}\nb\\u001b[31m")
    assert violations(junit.render(made)) == []


def test_a_green_run_has_no_case_of_its_own() -> None:
    """Where the gates say all there is to say, nothing is added."""
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
    odd = gate("FAIL", dataset=text, reason=text)
    made = report(decision=Decision(gates=(odd,), code=1, line=text))
    raw = junit.render(made)
    assert "<!" not in raw
    assert len(list(ET.fromstring(raw.encode()).iter("testcase"))) == 1


def every_shape() -> list[Report]:
    """Reports with gates in all states, hostile reasons, no gate at all, and half a run."""
    odd = tuple(gate("FAIL", reason=text) for text in HOSTILE)
    return [
        full(),
        report(decision=Decision(gates=odd, code=1, line="FAIL")),
        report(decision=Decision(gates=(), code=6, line="NO GATES")),
        report(complete=False),
    ]


@pytest.mark.parametrize("made", every_shape(), ids=["full", "hostile", "none", "partial"])
def test_the_file_is_valid_by_the_schema_of_jenkins_and_gitlab(made: Report) -> None:
    """Elements in the schema's order, with its attributes and no other."""
    assert violations(junit.render(made)) == []


@tabled("wrong", "found")
def test_the_check_itself_finds_what_the_schema_forbids(wrong: str, found: str) -> None:
    """A check that accepted everything would prove nothing."""
    assert found in violations(wrong)

"""``gates.xml``: strict JUnit with a test case per gate, which a CI server can publish."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from evaluators.statistics.intervals import number
from reports.render import words
from reports.run import clean
from reports.run.report import GateResult, Report

_ELEMENTS = {"FAIL": "failure", "INCONCLUSIVE": "error"}


def render(report: Report) -> str:
    """Return the gates as JUnit: FAIL is a failure, INCONCLUSIVE an error (it ends in exit 6).

    Where no gate says why the exit code is not 0, a case ``run`` does: never a green page.
    """
    root = ET.Element("testsuites", name="qagate")
    for name in dict.fromkeys(gate.slice for gate in report.decision.gates):
        gates = [gate for gate in report.decision.gates if gate.slice == name]
        root.append(_suite(name, [_case(gate, words.parts_of(gate, report)) for gate in gates]))
    red = any(gate.state != "PASS" for gate in report.decision.gates)
    if not report.complete or (report.decision.code != 0 and not red):
        name = "the run ends with exit code 0"
        case = _element("testcase", classname="run", name=name, time="0")
        tag = "failure" if report.complete and report.decision.code == 1 else "error"
        case.append(_problem(tag, report.verdict, report.decision.line))
        root.append(_suite("run", [case]))
    if len(root) and report.notes:
        notes = "\n".join(clean.cut(clean.line(note), 4000) for note in report.notes)
        ET.SubElement(root[-1], "system-out").text = notes
    _count(root)
    del root.attrib["skipped"]  # the schema that Jenkins and GitLab share has it on suites alone
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(name: str, cases: Sequence[ET.Element]) -> ET.Element:
    suite = _element("testsuite", name=name)
    suite.extend(cases)
    _count(suite)
    return suite


def _count(element: ET.Element) -> None:
    cases = list(element.iter("testcase"))
    element.set("tests", str(len(cases)))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        element.set(attribute, str(sum(case.find(tag) is not None for case in cases)))
    element.set("time", "0")


def _case(gate: GateResult, parts: str) -> ET.Element:
    title = f"{gate.name} {words.bar(gate)}"
    case = _element("testcase", classname=gate.slice, name=title, time="0")
    if gate.state in _ELEMENTS:
        case.append(_problem(_ELEMENTS[gate.state], gate.state, gate.reason))
    pairs = (
        ("verdict", gate.state),
        ("value", number(gate.estimate.value)),
        ("95 % interval", words.interval(gate.estimate)),
        ("items", str(gate.estimate.n)),
        ("only a part was run", parts),
        ("bar", words.bar(gate)),
        ("evidence", gate.threshold.evidence),
        ("worst, every ungraded item against it", number(gate.worst)),
        ("best, every ungraded item for it", number(gate.best)),
        ("reason", clean.cut(clean.line(gate.reason), 4000)),
    )
    details = "\n".join(f"{name}: {value}" for name, value in pairs if value)
    ET.SubElement(case, "system-out").text = details
    return case


def _problem(tag: str, kind: str, reason: str) -> ET.Element:
    element = _element(tag, message=clean.cut(clean.line(reason), 1000), type=kind)
    element.text = clean.cut(clean.line(reason), 4000)
    return element


def _element(tag: str, **attributes: str) -> ET.Element:
    return ET.Element(tag, {name: clean.line(value) for name, value in attributes.items()})

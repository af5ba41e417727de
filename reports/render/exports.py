"""What other programs read: ``results.csv``, a file of letters a graded slice, ``gates.xml``."""

import hashlib
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from evaluators.kinds import GRADED
from evaluators.output import BOM, guarded, sheet_lines
from evaluators.statistics.intervals import number
from reports.render import words
from reports.run import clean
from reports.run.json_data import dump, ordered
from reports.run.record import COLUMNS, Record, in_order, values_of
from reports.run.report import GateResult, Report
from reports.run.report_folder import GRADED_HEADER

_LETTERS = {CORRECT: "A", INCORRECT: "B", NOT_ATTEMPTED: "C"}
_ELEMENTS = {"FAIL": "failure", "INCONCLUSIVE": "error"}


def results(report: Report) -> Iterator[str]:
    """Return the rows of ``results.csv``: a column a field of a record, no cell a formula."""
    show = lru_cache(maxsize=256)(clean.cell)  # names and grades come again and again

    def cell(value: object) -> str:
        if isinstance(value, (int, float)):
            return guarded(str(value))
        if not value:
            return "" if value is None else "{}" if isinstance(value, Mapping) else "[]"
        return clean.cell(dump(ordered(value)))

    rows = (
        [show(value) if isinstance(value, str) else cell(value) for value in values_of(record)]
        for record in in_order(report.records)
    )
    return chain((BOM,), sheet_lines(chain((COLUMNS,), rows)))


def graded(report: Report) -> dict[str, str]:
    """Return file name → row number and letter of each graded slice, first repeats alone."""
    files: dict[str, str] = {}
    for part in (one for one in report.slices if one.kind == GRADED):
        where = part.dataset, part.language, 1
        own = (r for r in report.records if (r.dataset, r.language, r.repeat) == where)
        rows = [(str(record.row), clean.cell(_letter(record))) for record in in_order(own)]
        # Letters of other scripts and path marks have no place in a file name.
        both = (re.sub(r"[^A-Za-z0-9_.-]", "_", one)[:60] for one in (part.dataset, part.language))
        stem = "-".join(re.sub(r"^[.-]", "_", one) or "_" for one in both)
        if f"{stem}-graded.csv".casefold() in map(str.casefold, files):
            stem += "-" + hashlib.sha256(part.name.encode("utf-8", "replace")).hexdigest()[:8]
        files[f"{stem}-graded.csv"] = "".join(sheet_lines([GRADED_HEADER, *rows]))
    return files


def _letter(record: Record) -> str:
    if record.is_graded:
        return _LETTERS.get(record.grade or "", record.grade or "ERROR")
    return "STOPPED" if record.outcome == "stopped" else "ERROR"


def junit(report: Report) -> str:
    """Return the gates as strict JUnit: FAIL is a failure, INCONCLUSIVE an error (exit code 6).

    Where no gate says why the exit code is not 0, a case ``run`` does: never a green page.
    """
    decision, suites = report.decision, defaultdict[str, list[ET.Element]](list)
    for gate in decision.gates:
        suites[gate.slice].append(_case(gate, report))
    red = any(gate.state != "PASS" for gate in decision.gates)
    if not report.complete or (decision.code != 0 and not red):
        name = "the run ends with exit code 0"
        case = _element("testcase", classname="run", name=name, time="0")
        tag = "failure" if report.complete and decision.code == 1 else "error"
        case.append(_problem(tag, report.verdict, decision.line))
        suites["run"].append(case)
    root = ET.Element("testsuites", name="qagate")
    for name, cases in suites.items():
        root.append(_element("testsuite", name=name))
        root[-1].extend(cases)
    for element in (root, *root):
        cases = list(element.iter("testcase"))
        element.set("tests", str(len(cases)))
        for tag in ("failure", "error"):
            element.set(f"{tag}s", str(sum(case.find(tag) is not None for case in cases)))
        if element is not root:  # the schema that Jenkins and GitLab share has it on suites alone
            element.set("skipped", "0")
        element.set("time", "0")
    if len(root) and report.notes:
        notes = "\n".join(clean.cut(clean.line(note), 4000) for note in report.notes)
        ET.SubElement(root[-1], "system-out").text = notes
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _case(gate: GateResult, report: Report) -> ET.Element:
    title = f"{gate.name} {words.bar(gate)}"
    case = _element("testcase", classname=gate.slice, name=title, time="0")
    if gate.state in _ELEMENTS:
        case.append(_problem(_ELEMENTS[gate.state], gate.state, gate.reason))
    own = (one for one in report.slices if gate.slice in (one.name, f"{one.dataset}:*"))
    pairs = (
        ("verdict", gate.state),
        ("value", number(gate.estimate.value)),
        ("95 % interval", words.interval(gate.estimate)),
        ("items", str(gate.estimate.n)),
        ("only a part was run", "; ".join(f"{one.name} {one.part}" for one in own if one.part)),
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

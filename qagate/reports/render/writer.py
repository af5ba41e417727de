"""Every report file, whole or not at all, and ``run.json`` last. CSV and JUnit are made here."""

import hashlib
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from pathlib import Path

from qagate.evaluators import output
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import GRADED
from qagate.evaluators.output import (
    BOM,
    PRIVATE_FOLDER,
    UnwrittenError,
    sheet_lines,
    write_part,
)
from qagate.evaluators.statistics.intervals import number
from qagate.reports.render import html, markdown, words
from qagate.reports.run import clean, report_folder, run_json
from qagate.reports.run.item_files import FILES, Voucher, lines_of
from qagate.reports.run.json_data import dump, ordered
from qagate.reports.run.judge_replies import JudgeReplies
from qagate.reports.run.record import COLUMNS, Record, in_order
from qagate.reports.run.report import GateResult, Report
from qagate.reports.run.report_folder import (
    GATES,
    JUDGE_REPLIES,
    LABELS,
    PAGE,
    READINGS,
    RECORDS,
    RUN_FILE,
    SUMMARY,
    TRANSCRIPTS,
)
from qagate.reports.run.transcripts import Packer, Source, keys_of, packed

RESULTS = "results.csv"
FORMATS: Mapping[str, tuple[str, ...]] = {
    "html": (PAGE,),
    "md": (SUMMARY,),
    "junit": (GATES,),
    "csv": (RESULTS,),
    "json": (RECORDS, LABELS, READINGS, TRANSCRIPTS, JUDGE_REPLIES, RUN_FILE),
}
"""The files behind each word for a format; ``csv`` has one more for each graded slice."""
_LETTERS = {CORRECT: "A", INCORRECT: "B", NOT_ATTEMPTED: "C"}
_ELEMENTS = {"FAIL": "failure", "INCONCLUSIVE": "error"}


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a report in these formats. Each pass over it renders them anew.

    A pass yields each name and its text in pieces, to be read before the next: 50,000 items are
    never held whole. Records come first, and last ``run.json``, which vouches for them.
    """

    report: Report
    formats: Iterable[str] = tuple(FORMATS)
    transcripts: Source | None = None
    packer: Packer | None = None
    """Is making the file of transcripts already; None where nobody is."""
    judge_replies: JudgeReplies | None = None
    """The file with the judge's replies; None where no model judged."""

    def __iter__(self) -> Iterator[tuple[str, Iterable[str | bytes]]]:
        report = self.report
        wanted = frozenset(name for word in self.formats for name in FORMATS[word])
        vouchers = {name: Voucher(file=file) for name, file in FILES.items()}
        for name, voucher in vouchers.items():
            if voucher.file in wanted:
                yield voucher.file, map(voucher.seen, lines_of(report, name))
        if RESULTS in wanted:
            yield RESULTS, results(report)
        if PAGE in wanted:
            yield PAGE, (html.render(report, self.transcripts),)
        if TRANSCRIPTS in wanted and self.transcripts:
            keys = keys_of(report.records)
            if keys:
                pieces = packed(self.transcripts(keys))
                if self.packer:
                    pieces = self.packer.pieces(pieces)
                yield TRANSCRIPTS, pieces
        if JUDGE_REPLIES in wanted and self.judge_replies:
            yield JUDGE_REPLIES, self.judge_replies()
        for file, render in ((SUMMARY, markdown.render), (GATES, junit)):
            if file in wanted:
                yield file, (render(report),)
        if RESULTS in wanted:
            for file, text in graded(report).items():
                yield file, (text,)
        if RUN_FILE in wanted:
            yield RUN_FILE, (run_json.render(report, vouchers),)


class WriteError(UnwrittenError):
    """The report could not be written; the message says how many bytes it needs."""

    def __init__(self, path: Path, needed: int, error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        super().__init__(
            f"{path}: the report cannot be written ({reason}); it needs {needed:,} bytes: "
            "free the space, or choose another folder (--report-dir, --to)"
        )


def write(
    report: Report,
    folder: Path,
    transcripts: Source | None = None,
    packer: Packer | None = None,
    judge_replies: JudgeReplies | None = None,
) -> tuple[Path, ...]:
    """Write every report file into ``folder`` and return their paths, ``run.json`` last.

    Each file is complete before the first takes its place: a full disk harms none. WriteError.
    """
    return write_files(
        Files(
            report,
            transcripts=transcripts,
            packer=packer,
            judge_replies=judge_replies,
        ),
        folder,
        whole=True,
    )


def write_files(
    files: Iterable[tuple[str, Iterable[str | bytes]]],
    folder: Path,
    *,
    whole: bool = False,
) -> tuple[Path, ...]:
    """Write these files as ``write`` does, as a ``whole`` report or a part. Raises WriteError."""
    parts: dict[str, Path] = {}
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        for name, pieces in files:
            parts[name] = write_part(folder / name, map(_raw, pieces))
        *others, last = parts
        for name in others:
            parts[name].replace(folder / name)
        if whole:  # take away what another run left: transcripts, letters of slices not run now
            kept = {name.casefold() for name in parts}
            (folder / report_folder.MARK).unlink(missing_ok=True)
            calls = filter(Path.is_file, [folder / TRANSCRIPTS, folder / JUDGE_REPLIES])
            for path in (*calls, *report_folder.graded_files(folder)):
                if path.name.casefold() not in kept:
                    path.unlink()
        parts[last].replace(folder / last)
    except OSError as error:
        needed = sum(len(_raw(piece)) for _, pieces in files for piece in pieces)
        raise WriteError(folder, needed, error) from error
    finally:
        for part in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)
    return tuple(folder / name for name in parts)


def _raw(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode()


def append_summary(report: Report, path: Path) -> str:
    """Append ``summary.md`` to CI's page; return why that failed, which changes no exit code."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(markdown.render(report) + "\n")
    except OSError as error:
        return f"{path}: the summary cannot be appended ({error.strerror}); the report is complete"
    return ""


def results(report: Report) -> Iterator[str]:
    """Return the rows of ``results.csv``: a column a field of a record, no cell a formula."""
    show = lru_cache(maxsize=256)(output.cell)  # names and grades come again and again

    def cell(value: object) -> str:
        if isinstance(value, str):
            return show(value)
        if isinstance(value, (int, float)):
            return str(value) if value >= 0 else output.guarded(str(value))
        if not value:
            return (
                "" if value is None else ("{}" if isinstance(value, Mapping) else "[]")
            )
        return output.cell(dump(ordered(value)))

    rows = (
        map(cell, row) for row in map(attrgetter(*COLUMNS), in_order(report.records))
    )
    return chain((BOM,), sheet_lines(chain((COLUMNS,), rows)))


def graded(report: Report) -> dict[str, str]:
    """Return file name → row number and letter of each graded slice, first repeats alone."""
    files: dict[str, str] = {}
    for part in (one for one in report.slices if one.kind == GRADED):
        where = part.dataset, part.language, 1
        own = (r for r in report.records if (r.dataset, r.language, r.repeat) == where)
        rows = [
            (str(record.row), output.cell(_letter(record))) for record in in_order(own)
        ]
        # Letters of other scripts and path marks have no place in a file name.
        both = (
            re.sub(r"[^A-Za-z0-9_.-]", "_", one)[:60]
            for one in (part.dataset, part.language)
        )
        stem = "-".join(re.sub(r"^[.-]", "_", one) or "_" for one in both)
        if f"{stem}-graded.csv".casefold() in map(str.casefold, files):
            stem += (
                "-"
                + hashlib.sha256(part.name.encode("utf-8", "replace")).hexdigest()[:8]
            )
        files[f"{stem}-graded.csv"] = "".join(
            sheet_lines([report_folder.GRADED_HEADER, *rows])
        )
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
    root = _suite("testsuites", "qagate", [*chain(*suites.values())])
    for name, cases in suites.items():
        # The schema that Jenkins and GitLab share has "skipped" on suites alone.
        root.append(_suite("testsuite", name, cases, skipped="0"))
        root[-1].extend(cases)
    if len(root) and report.notes:
        notes = "\n".join(clean.cut(clean.line(note), 4000) for note in report.notes)
        ET.SubElement(root[-1], "system-out").text = notes
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(tag: str, name: str, cases: Sequence[ET.Element], **more: str) -> ET.Element:
    failures = [case for case in cases if case.find("failure") is not None]
    errors = [case for case in cases if case.find("error") is not None]
    return _element(
        tag,
        name=name,
        tests=str(len(cases)),
        failures=str(len(failures)),
        errors=str(len(errors)),
        **more,
        time="0",
    )


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
        (
            "only a part was run",
            "; ".join(f"{one.name} {one.part}" for one in own if one.part),
        ),
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
    return ET.Element(
        tag, {name: clean.line(value) for name, value in attributes.items()}
    )

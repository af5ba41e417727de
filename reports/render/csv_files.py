"""The CSV files: ``results.csv`` for a spreadsheet, and one file of letters a graded slice."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from evaluators.kinds import GRADED
from evaluators.output import BOM, guarded, sheet_lines
from reports.run import clean
from reports.run.json_data import dump, ordered
from reports.run.record import Record, in_order
from reports.run.report import Report
from reports.run.report_folder import GRADED_HEADER

_LETTERS = {CORRECT: "A", INCORRECT: "B", NOT_ATTEMPTED: "C"}
_COLUMNS = tuple(field.name for field in fields(Record))
_values = attrgetter(*_COLUMNS)


def results(report: Report) -> Iterator[str]:
    """Return the rows of ``results.csv``: a column a field of a record, no cell a formula."""
    show = lru_cache(maxsize=256)(clean.cell)  # names and grades come again and again
    rows = (
        [show(v) if type(v) is str else "" if v is None else _cell(v) for v in _values(record)]
        for record in in_order(report.records)
    )
    return chain((BOM,), sheet_lines(chain((_COLUMNS,), rows)))


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


def _cell(value: object) -> str:
    if isinstance(value, (int, float)):
        return guarded(str(value))
    if not value:
        return "{}" if isinstance(value, Mapping) else "[]"
    return clean.cell(value if isinstance(value, str) else dump(ordered(value)))

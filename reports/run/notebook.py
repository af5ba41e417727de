"""A recorded run for a notebook: its report, and one tidy row an item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from evaluators.core import GRADES, NO, UNANSWERED, YES, State
from reports.run.evidence import Change, Flip
from reports.run.record import Record
from reports.run.report import Report
from reports.run.run_json import load_report

if TYPE_CHECKING:
    import pandas as pd

DROPPED = ("metadata", "votes", "digest")
TYPES: Mapping[str, str] = {
    "passed": "boolean",
    "rating": "Int64",
    "old_rating": "Int64",
    "score": "float64",
    "cost": "float64",
    "answer_seconds": "float64",
    "answer_cost": "float64",
    "answer_tokens_in": "Int64",
    "answer_tokens_out": "Int64",
    **dict.fromkeys(("error_kind", "old_grade", "old_answer"), "str"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run read back from its folder."""

    report: Report

    def frame(self) -> pd.DataFrame:
        """Return a row for each item, by ``key``, in the order of the report.

        Columns are the fields of a record; ``kind`` of its slice; ``passed`` (True, False, or NA
        where the item has no grade); ``error_kind``; ``flip``, ``old_grade`` and ``old_rating``
        of the baseline (NA without one), with ``old_answer`` where grade or rating changed;
        and one column for each metadata field, named ``meta_…`` where a column has that name
        already. ``dataset``, ``language``, ``outcome``, ``grade`` and ``flip`` are ordered
        categories, in the order of the report. Raises ImportError without pandas.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("a frame needs pandas; pip install pandas") from None

        def encodable(value: object) -> object:  # neither a page nor a file holds lone surrogates
            text = value if isinstance(value, str) else ""
            return text.encode("utf-8", "backslashreplace").decode() or value

        cells = {name: list(map(encodable, one)) for name, one in _columns(self.report).items()}
        keys = pd.Index([record.key for record in self.report.records], name="key")
        frame = pd.DataFrame(cells, index=keys)
        for name, order in _orders(self.report).items():
            frame[name] = frame[name].astype(pd.CategoricalDtype(list(order), ordered=True))
        return frame.astype(TYPES)


def load(path: str | Path) -> Run:
    """Return the run of a report folder or its ``run.json``. Raises UsageError."""
    return Run(report=load_report(Path(path)))


def _columns(report: Report) -> dict[str, Sequence[object]]:
    records = report.records
    columns: dict[str, Sequence[object]] = {
        field.name: [getattr(record, field.name) for record in records]
        for field in fields(Record)
        if field.name not in ("key", *DROPPED)
    }
    kinds = {part.name: part.kind for part in report.slices}
    columns["kind"] = [kinds.get(f"{r.dataset}:{r.language}") for r in records]
    columns["passed"] = [record.passes() for record in records]
    columns["error_kind"] = [record.error.partition(":")[0] or None for record in records]
    # What the baseline had; an item not among the changes is the same in both.
    changes = {one.key: one for one in report.comparison.changes} if report.comparison else {}
    befores = [changes.get(one.key, one) if report.comparison else None for one in records]
    known = [None if _flip(one) in ("new", "changed") else one for one in befores]
    columns |= {
        "flip": [_flip(one) for one in befores],
        "old_grade": [one.grade if one else None for one in known],
        "old_rating": [one.rating if one else None for one in known],
        "old_answer": [one.answer if isinstance(one, Change) else None for one in known],
    }
    taken = (*columns, "key")
    for name in dict.fromkeys(name for record in records for name in record.metadata):
        cells = [record.metadata.get(name) for record in records]
        columns[f"meta_{name}" if name in taken else name] = cells
    return columns


def _flip(before: Change | Record | None) -> Flip | None:
    if before is None:
        return None
    return before.flip if isinstance(before, Change) else "same"


def _orders(report: Report) -> Mapping[str, Sequence[str]]:
    declared = [one for dataset in report.datasets for one in dataset.slices]
    spoken = {record.language for record in report.records}
    grades = {record.grade for record in report.records if record.grade}
    known = [grade for grade in (*GRADES, YES, NO, UNANSWERED) if grade in grades]
    return {
        "dataset": list(dict.fromkeys(record.dataset for record in report.records)),
        "language": [one for one in dict.fromkeys(declared) if one in spoken],
        "outcome": get_args(State),
        "grade": [*known, *sorted(grades.difference(known))],
        "flip": get_args(Flip),
    }

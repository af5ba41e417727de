"""A recorded run for a notebook: its report, one tidy row an item, and a table to read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from qagate.evaluators.core import GRADES, NO, UNANSWERED, YES, State
from qagate.evaluators.optional import not_installed
from qagate.evaluators.text import flat
from qagate.reports.run.evidence import Flip
from qagate.reports.run.record import COLUMNS
from qagate.reports.run.report import Report

if TYPE_CHECKING:
    import pandas as pd
    from pandas.io.formats.style import Styler

_OWN = [name for name in COLUMNS if name not in ("key", "metadata", "votes", "digest")]
_ADDED = (
    "kind",
    "passed",
    "error_kind",
    "flip",
    "old_grade",
    "old_rating",
    "old_answer",
)
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

TABLE_COLUMNS = (
    "id",
    "question",
    "context",
    "answer",
    "expected",
    "grade",
    "rating",
    "reason",
)
"""What a person reads of an item, in this order."""
TABLE_STYLE: Mapping[str, str] = {
    "white-space": "pre-wrap",  # long lines are wrapped, line breaks stay
    "overflow-wrap": "anywhere",
    "max-width": "60ch",
    "text-align": "left",
    "vertical-align": "top",
}
"""CSS of each cell."""


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
            raise ImportError(not_installed("pandas", "a frame")) from None

        def encodable(
            value: object,
        ) -> object:  # neither a page nor a file holds lone surrogates
            text = value if isinstance(value, str) else ""
            return text.encode("utf-8", "backslashreplace").decode() or value

        rows = _rows(self.report)
        names = dict.fromkeys((*_OWN, *_ADDED, *(name for row in rows for name in row)))
        cells = {name: [encodable(row.get(name)) for row in rows] for name in names}
        keys = pd.Index([record.key for record in self.report.records], name="key")
        frame = pd.DataFrame(cells, index=keys)
        for name, order in _orders(self.report).items():
            frame[name] = frame[name].astype(
                pd.CategoricalDtype(list(order), ordered=True)
            )
        return frame.astype(TYPES)

    def table(self, keys: Iterable[str] | None = None) -> Styler:
        """Return items as a table that a notebook shows with whole texts, wrapped.

        A row an item, in the order of the report; with ``keys`` those items in that order.
        Columns are ``TABLE_COLUMNS`` without those that are empty for each of these items.
        Outside of a notebook ``to_html()`` gives the same as text. Raises ImportError without
        pandas, KeyError for a key that the run does not have.
        """
        frame = self.frame()
        if keys is not None:
            frame = frame.loc[list(keys)]
        filled = [name for name in TABLE_COLUMNS if _has_text(frame[name])]
        table = frame[filled].style.format(na_rep="", escape="html")
        return table.hide(axis="index").set_properties(None, **TABLE_STYLE)


def _has_text(column: pd.Series[Any]) -> bool:
    """Return whether any cell of a column shows something."""
    return any(column.dropna().astype(str))


def _rows(report: Report) -> list[dict[str, object]]:
    compared, found = report.comparison, list[dict[str, object]]()
    changes = {one.key: one for one in compared.changes} if compared else {}
    kinds = {part.name: part.kind for part in report.slices}
    unchanged = "same" if compared else None
    for record in report.records:
        # What the baseline had; an item not among the changes is the same in both.
        change = changes.get(record.key)
        flip = change.flip if change else unchanged
        known = change or record if flip not in (None, "new", "changed") else None
        values = flat(record)
        row = {name: values[name] for name in _OWN}
        kind = kinds.get(f"{record.dataset}:{record.language}")
        before = (known.grade, known.rating) if known else (None, None)
        added = (
            kind,
            record.passes(),
            record.error.partition(":")[0] or None,
            flip,
            *before,
        )
        answer = change.answer if change and known else None
        row |= dict(zip(_ADDED, (*added, answer), strict=True))
        own = record.metadata.items()
        found.append(
            row | {f"meta_{n}" if n in row or n == "key" else n: one for n, one in own}
        )
    return found


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

"""CSV files as tables: strict quoting, any length of cell, every error with row and line."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cases.problems import listed, shown
from cases.tables import Record, Table, normal, problem
from evaluators.core import UsageError
from evaluators.csv_text import lines, long_cells

if TYPE_CHECKING:
    from _csv import Reader

OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def read_csv(path: Path, text: str) -> Table:
    """Return the table of a CSV text.

    Raises UsageError naming row, line and column for a row that is too short or too long, a
    quote never closed, a column that stands twice, other separators, or no rows.
    """
    with long_cells(len(text)):
        reader = csv.reader(lines(text), strict=True)
        header = _header(path, reader)
        names = _names(path, header)
        records = list(_records(path, reader, header))
    if not records:
        raise problem(path, 1, f"no rows; the file holds only the header {listed(header)}")
    return Table(path=path, names=names, records=records, has_header=True)


def _header(path: Path, reader: "Reader") -> list[str]:
    try:
        header = next((cells for cells in reader if cells), None)
    except csv.Error as error:
        raise problem(path, 1, f"header: not valid CSV: {error}") from None
    if header is None:
        msg = f"{path}: the file is empty; a header line and rows are needed"
        raise UsageError(msg)
    if len(header) == 1:
        for mark, word in OTHER_SEPARATORS.items():
            if mark in header[0]:
                what = f"separated by {word}: {shown(header[0])}; save it with commas"
                raise problem(path, 1, what)
    return [name.strip() for name in header]


def _names(path: Path, header: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for name in header:
        if normal(name) in names:
            raise problem(path, 1, f"column {shown(name)} stands twice in the header; keep one")
        names[normal(name)] = name
    return names


def _records(path: Path, reader: "Reader", header: list[str]) -> Iterator[Record]:
    columns = [normal(name) for name in header]
    row, before = 0, reader.line_num
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells:
                continue
            row += 1
            if len(cells) != len(columns):
                raise problem(path, line, f"row {row}: {_misfit(len(cells), header)}")
            yield Record(row, line, dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        what = f"row {row + 1}: not valid CSV: {_worded(str(error))}"
        raise problem(path, before + 1, what) from None


def _misfit(count: int, header: list[str]) -> str:
    found = f"{count} cells for {len(header)} columns"
    if count < len(header):
        return f"{found}: nothing for column {shown(header[count])}"
    return f"{found}: more after column {shown(header[-1])}; put cells with commas in quotes"


def _worded(error: str) -> str:
    if error == "unexpected end of data":
        return "a quote opened in this row is never closed"
    if "expected after" in error:
        return "text or a space after a closing quote; double the quotes inside a cell"
    return error

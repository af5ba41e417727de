"""Data files as rows of named values: CSV, JSON, JSON lines and YAML, every error with its line."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import Map, Seq, load_yaml, problem, read_text
from qagate.evaluators.text import listed, shown

MEGABYTE = 1024 * 1024
MAX_BYTES = 64 * MEGABYTE
MAX_YAML_BYTES = 4 * MEGABYTE
MAX_CELL = MEGABYTE  # characters of one value, those of a list's texts together
MAX_ROWS = 200_000
MAX_DEPTH = 40
TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
SPLIT = "; split the file, or leave out what is not asked"
TOO_MANY = f"more than {MAX_ROWS:,} rows{SPLIT}"
TOO_LONG = f"a value may have {MAX_CELL:,} characters; shorten it or drop the row"
CSV_REASONS: Mapping[str, str] = {
    "unexpected end of data": "a quote opened in this row is never closed",
    "field larger": TOO_LONG,
    "expected after": "text or a space after a closing quote; double the quotes inside a cell",
}
"""What the messages of the csv module mean."""
OTHER_SEPARATORS = (";", "\t")
"""What a CSV is separated by where commas are decimal: spreadsheets write so in most of Europe."""
SUFFIXES = (".csv", ".jsonl", ".json", ".yaml", ".yml")
SPACE = re.compile(r"[ \t\r\n]*")

Entry = tuple[int, int, object]  # row, line, value


class Number(str):
    """A JSON number as the text that stands in the file: ``1e5`` stays ``1e5``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """One record of a file."""

    row: int
    """Which record it is, from 1."""
    line: int
    """Its first physical line, from 1."""
    values: Mapping[str, object]
    """By normal column name: text (CSV, YAML), or a JSON value with numbers as ``Number``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All records of a file."""

    path: Path
    names: Mapping[str, str]
    """The file's own spelling of each normal column name."""
    records: list[TableRow]
    has_header: bool = False
    """Whether one header line names the columns of every record."""

    def problem(self, record: TableRow, column: str, what: str) -> UsageError:
        """Return the error about one value, to be raised."""
        name = self.names.get(column, column)
        return problem(
            self.path, record.line, f"row {record.row}, column {shown(name)}: {what}"
        )


def normal(name: str) -> str:
    """Return a column's name as it is compared: no outer spaces, any case, ``_`` for a space."""
    return name.strip().casefold().replace(" ", "_")


def read_table(path: Path) -> Table:
    """Return a CSV, JSON, JSONL or YAML file's records. Raises UsageError with row and line."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        what = f"files ending in {shown(path.suffix)} are not read"
        raise UsageError(f"{path}: {what}; give one of {', '.join(SUFFIXES)}")
    if suffix in (".yaml", ".yml"):
        document = load_yaml(path, MAX_YAML_BYTES, SPLIT)
        if not isinstance(document, Seq):
            raise problem(
                path, 1, "a YAML list of items is needed: each begins with '- '"
            )
        entries = [
            *zip(range(1, len(document) + 1), document.lines, document, strict=True)
        ]
        for row, line, item in entries:
            if not isinstance(item, dict):
                raise problem(
                    path, line, f"row {row}: a mapping is needed, such as 'question: …'"
                )
        return _table(path, entries)
    text = read_text(path, MAX_BYTES, SPLIT)
    return read_csv(path, text) if suffix == ".csv" else read_json(path, text)


def read_csv(
    path: Path, text: str, separator: str = ",", *, literal: bool = False
) -> Table:
    """Return the table of a CSV text. Raises UsageError for rows of another length or no rows.

    Semicolons or tabs may separate, too. ``literal``: a quote is text like any other.
    """
    lines = io.StringIO(text, newline="\n" if "\n" in text else "\r")
    before = csv.field_size_limit(MAX_CELL + 1)  # of the whole process
    try:
        reader = csv.reader(
            lines,
            strict=True,
            delimiter=separator,
            quoting=csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL,
        )
        try:
            cells = next((cells for cells in reader if cells), None)
        except csv.Error as error:
            raise problem(path, 1, f"header: not valid CSV: {error}") from None
        if cells is None:
            raise UsageError(
                f"{path}: the file is empty; a header line and rows are needed"
            )
        if len(cells) == 1 and "|" in cells[0]:
            what = f"separated by vertical bars: {shown(cells[0])}; save it with commas"
            raise problem(path, 1, what)
        header = [name.strip() for name in cells]
        for mark in OTHER_SEPARATORS:
            if len(header) == 1 and mark in header[0] and separator == ",":
                return read_csv(path, text, mark)
        names: dict[str, str] = {}
        for name in header:
            if normal(name) in names:
                raise problem(
                    path,
                    1,
                    f"column {shown(name)} stands twice in the header; keep one",
                )
            names[normal(name)] = name
        records = list(_records(path, reader, header))
    finally:
        csv.field_size_limit(before)
    if not records:
        raise problem(
            path, 1, f"no rows; the file holds only the header {listed(header)}"
        )
    return Table(path=path, names=names, records=records, has_header=True)


def _records(path: Path, reader: Any, header: list[str]) -> Iterator[TableRow]:
    """Yield the rows that a csv reader finds below the header. Raises UsageError.

    Empty lines are skipped. A row may span lines, by quotes, and is named by its first one.
    """
    columns = [normal(name) for name in header]
    row = 0
    last_line = reader.line_num  # of the header, then of the latest row
    try:
        for cells in reader:
            first_line = last_line + 1
            last_line = reader.line_num
            if not cells:
                continue
            row += 1
            if row > MAX_ROWS:
                raise problem(path, first_line, TOO_MANY)
            if len(cells) != len(columns):
                fault = _wrong_length(cells, header)
                raise problem(path, first_line, f"row {row}: {fault}")
            yield TableRow(row, first_line, dict(zip(columns, cells, strict=True)))
    except csv.Error as error:
        fault = f"row {row + 1}: not valid CSV: {_csv_reason(error)}"
        raise problem(path, last_line + 1, fault) from None


def _wrong_length(cells: list[str], header: list[str]) -> str:
    """Return what is wrong with a row that has more or fewer cells than the header."""
    counts = f"{len(cells)} cells for {len(header)} columns"
    if len(cells) < len(header):
        return f"{counts}: nothing for column {shown(header[len(cells)])}"
    advice = "put cells with a separator in quotes"
    return f"{counts}: more after column {shown(header[-1])}; {advice}"


def _csv_reason(error: csv.Error) -> str:
    """Return what a message of the csv module means; the message itself if it is not known."""
    message = str(error)
    for part, meaning in CSV_REASONS.items():
        if part in message:
            return meaning
    return message


def read_json(path: Path, text: str) -> Table:
    """Return the table of one JSON list of objects, or of one object a line (``.jsonl``)."""
    lines = path.suffix.lower() == ".jsonl"
    return _table(path, (_json_lines if lines else _json_items)(path, text))


def _json_lines(path: Path, text: str) -> Iterator[Entry]:
    # Not splitlines(): U+2028, U+2029 and U+0085 may stand inside a JSON string.
    row = 0
    for line, part in enumerate(text.split("\n"), 1):
        if part.strip(" \t\r"):
            row += 1
            value, end = _decode(path, part, _skip(part, 0), (row, line))
            if part[end:].strip(" \t\r"):
                raise _refused(
                    path, row, line, "more text after the object; one object a line"
                )
            yield row, line, value


def _json_items(path: Path, text: str) -> Iterator[Entry]:
    start = _skip(text, 0)
    if not text.startswith("[", start):
        lines = (
            "; name it .jsonl if each line is an object"
            if text.startswith("{", start)
            else ""
        )
        raise problem(
            path, 1, f"a JSON list of objects is needed, not {shown(text[:40])}{lines}"
        )
    row, line, seen, index = 0, 1, 0, _skip(text, start + 1)
    closed = text.startswith("]", index)
    while not closed:
        row += 1
        line, seen = line + text.count("\n", seen, index), index
        value, index = _decode(path, text, index, (row, line))
        yield row, line, value
        index = _skip(text, index)
        closed = text.startswith("]", index)
        if not closed and not text.startswith(",", index):
            raise _refused(
                path, row, line, "no comma or ] after this item; is the file cut?"
            )
        index = index if closed else _skip(text, index + 1)
    if _skip(text, index + 1) != len(text):
        raise problem(
            path, line, "more text after the end of the list; one file holds one list"
        )


def _skip(text: str, index: int) -> int:
    match = SPACE.match(text, index)
    return match.end() if match else index


def _decode(
    path: Path, text: str, index: int, where: tuple[int, int]
) -> tuple[object, int]:
    row, line = where
    try:
        value, end = _DECODER.raw_decode(text, index)
        brackets = text.count("[", index, end) + text.count("{", index, end)
        if brackets > MAX_DEPTH and _height(value) > MAX_DEPTH + 1:
            raise ValueError(TOO_DEEP)
    except json.JSONDecodeError as error:
        at = line + text.count("\n", index, error.pos)
        rest = text[error.pos :].strip()
        cut = (
            "; is the file cut?"
            if not rest or error.msg.startswith("Unterminated")
            else ""
        )
        raise _refused(path, row, at, f"{error.msg}{cut}") from None
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        raise _refused(path, row, line, TOO_DEEP if deep else str(error)) from None
    return value, end


def _refused(path: Path, row: int, line: int, what: str) -> UsageError:
    return problem(path, line, f"row {row}: not valid JSON: {what}")


def _height(value: object) -> int:
    if not isinstance(value, dict | list):
        return 1
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_height, inner), default=0)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"key {shown(key)} stands twice in one object; keep one")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value; write text in quotes")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=Number,
    parse_float=Number,
    parse_constant=_no_constant,
)


def _table(path: Path, entries: Iterable[Entry]) -> Table:
    """Return the table of the objects in a JSON or YAML file.

    Raises UsageError for a row that is no object, is too much, or names a column twice, and for
    a file without rows.
    """
    first_spellings: dict[str, str] = {}
    records = []
    for row, line, value in entries:
        if not isinstance(value, dict):
            raise problem(
                path, line, f"row {row}: an object is needed, not {shown(value)}"
            )
        _check_size(path, row, line, value)
        spellings = _spellings(path, row, line, value)
        values = {name: value[key] for name, key in spellings.items()}
        records.append(TableRow(row, line, values))
        for name, key in spellings.items():
            first_spellings.setdefault(name, key)
    if not records:
        raise UsageError(f"{path}: no rows")
    return Table(path=path, names=first_spellings, records=records)


def _check_size(path: Path, row: int, line: int, value: Mapping[str, object]) -> None:
    """Raise UsageError for a row too many, or a value that is too long."""
    if row > MAX_ROWS:
        raise problem(path, line, TOO_MANY)
    longest = max(map(_length, value.values()), default=0)
    if longest > MAX_CELL:
        raise problem(path, line, f"row {row}: {longest:,} characters; {TOO_LONG}")


def _spellings(
    path: Path, row: int, line: int, value: Mapping[str, object]
) -> dict[str, str]:
    """Return the keys of a row's object as they are spelt, by normal column name.

    Raises UsageError, at the line of the second key if it is known, for two keys of one name.
    """
    spellings: dict[str, str] = {}
    for key in value:
        name = normal(key)
        if name in spellings:
            key_line = value.lines[key] if isinstance(value, Map) else line
            raise problem(
                path,
                key_line,
                f"row {row}: keys {shown(spellings[name])} and {shown(key)} "
                "name the same column; keep one",
            )
        spellings[name] = key
    return spellings


def _length(value: object) -> int:
    """Return the characters of a value, those of a list's texts together."""
    if isinstance(value, list):
        return sum(map(_length, value))
    return len(value) if isinstance(value, str) else 0

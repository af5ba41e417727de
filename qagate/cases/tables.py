"""Data files as rows of named values: CSV, JSON, JSON lines and YAML, every error with its line."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import Map, Seq, load_yaml, problem, read_text
from qagate.evaluators.text import hint, listed, shown

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
    "expected after": "text after a closing quote; double the quotes inside a cell",
}
"""What the messages of the csv module mean."""
OTHER_SEPARATORS = (";", "\t")
"""What a CSV is separated by where commas are decimal: spreadsheets write so in most of Europe."""
SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?[,;\t| ]*(?=[\r\n])', re.IGNORECASE)
"""A first line that tells a spreadsheet, and us, what separates the cells: ``sep=;``."""
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

    def problem(self, record: TableRow, column: str, fault: str) -> UsageError:
        """Return the error about one value, to be raised."""
        name = self.names.get(column, column)
        message = f"row {record.row}, column {shown(name)}: {fault}"
        return problem(self.path, record.line, message)


def normal(name: str) -> str:
    """Return a column's name as it is compared: any case, ``_`` for spaces within.

    Several spaces, tabs or line breaks are as good as one space, and outer ones are left out.
    """
    return "_".join(name.casefold().split())


def read_table(path: Path) -> Table:
    """Return a CSV, JSON, JSONL or YAML file's records. Raises UsageError with row and line."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(
            f"{path}: files ending in {shown(path.suffix)} are not read; "
            f"give one of {', '.join(SUFFIXES)}"
        )
    if suffix in (".yaml", ".yml"):
        return _read_yaml(path)
    text = read_text(path, MAX_BYTES, SPLIT)
    if suffix == ".csv":
        return read_csv(path, text)
    return read_json(path, text)


def with_headings(table: Table, headings: Mapping[str, str]) -> Table:
    """Return the table under our names of columns, where the file has headings of its own.

    ``headings`` has the file's heading for each of our names. A file that has our name itself
    is read as it is, so that files of one data set may differ. Messages keep the file's spelling.
    Raises UsageError for a heading that the file lacks.
    """
    names: dict[str, str] = {}
    for name, heading in headings.items():
        if normal(heading) in table.names:
            names[normal(heading)] = name
        elif name not in table.names:
            message = (
                f"no column {shown(heading)}, which 'columns:' names as {name}; "
                f"{hint(heading, table.names.values())}"
            )
            raise problem(table.path, 1, message)
    for heading, name in names.items():
        if name in table.names and name not in names:
            message = (
                f"'columns:' names {shown(table.names[heading])} as {name}, and there is a column "
                f"{shown(table.names[name])} too; rename that one"
            )
            raise problem(table.path, 1, message)
    if not names:
        return table
    records = []
    for record in table.records:
        values = {names.get(key, key): value for key, value in record.values.items()}
        records.append(replace(record, values=values))
    spellings = {names.get(key, key): text for key, text in table.names.items()}
    return replace(table, names=spellings, records=records)


def _read_yaml(path: Path) -> Table:
    """Return the table of a YAML list of mappings. Raises UsageError."""
    document = load_yaml(path, MAX_YAML_BYTES, SPLIT)
    if not isinstance(document, Seq):
        message = "a YAML list of items is needed: each begins with '- '"
        raise problem(path, 1, message)
    entries: list[Entry] = []
    for item, line in zip(document, document.lines, strict=True):
        row = len(entries) + 1
        if not isinstance(item, dict):
            message = f"row {row}: a mapping is needed, such as 'question: …'"
            raise problem(path, line, message)
        entries.append((row, line, item))
    return _table(path, entries)


def read_csv(
    path: Path, text: str, separator: str = ",", *, literal: bool = False
) -> Table:
    """Return the table of a CSV text. Raises UsageError for rows of another length or no rows.

    Semicolons or tabs may separate, too, or what a first line such as ``sep=;`` says.
    ``literal``: a quote is text like any other.
    """
    declared = SEPARATOR_LINE.match(text)
    if declared:
        separator = declared[1]
        text = text[
            declared.end() :
        ]  # leaves an empty line: the others keep their numbers
    limit_before = csv.field_size_limit(MAX_CELL + 1)  # of the whole process
    try:
        reader = _csv_reader(text, separator, literal=literal)
        header = _read_header(path, reader)
        if separator == ",":
            other_separator = _other_separator(header)
            if other_separator is not None:
                return read_csv(path, text, other_separator)
        rows = list(_csv_rows(path, reader))
    finally:
        csv.field_size_limit(limit_before)
    _drop_empty_tail(header, rows)
    names = _names_of_columns(path, header)
    records = list(_records(path, header, rows))
    if not records:
        message = f"no rows; the file holds only the header {listed(header)}"
        raise problem(path, 1, message)
    return Table(path=path, names=names, records=records, has_header=True)


def _csv_reader(text: str, separator: str, *, literal: bool) -> Any:
    """Return a reader of the csv module, which has no public type."""
    newline = "\r"
    if "\n" in text:
        newline = "\n"
    if not literal:
        text = _without_blanks_beside_quotes(text, separator)
    lines = io.StringIO(text, newline=newline)
    return csv.reader(
        lines,
        strict=True,
        delimiter=separator,
        quoting=csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL,
    )


def _without_blanks_beside_quotes(text: str, separator: str) -> str:
    """Return a CSV text in which quoted cells have no blanks before or after their quotes.

    The csv module refuses blanks after a closing quote, and takes a quote after a blank for text.
    Quoted cells are matched whole, so that nothing inside of one is changed.
    """
    blanks = "[ \t]*+" if separator != "\t" else "[ ]*+"
    mark = re.escape(separator)
    quoted_cell = re.compile(
        rf"""(^|[\r\n{mark}]){blanks}("(?:[^"]|"")*+"){blanks}(?=[\r\n{mark}]|\Z)"""
    )
    return quoted_cell.sub(r"\1\2", text)


def _read_header(path: Path, reader: Any) -> list[str]:
    """Take the header from a csv reader: its first line that is not empty. Raises UsageError."""
    header: list[str] = []
    try:
        for cells in reader:
            if cells:
                header = cells
                break
    except csv.Error as error:
        raise problem(path, 1, f"header: not valid CSV: {error}") from None
    if not header:
        message = "the file is empty; a header line and rows are needed"
        raise UsageError(f"{path}: {message}")
    if len(header) == 1 and "|" in header[0]:
        message = f"separated by vertical bars: {shown(header[0])}; save it with commas"
        raise problem(path, 1, message)
    return [name.strip() for name in header]


def _other_separator(header: list[str]) -> str | None:
    """Return what separates a header in which commas separate nothing; None for one name."""
    if len(header) > 1:
        return None
    for separator in OTHER_SEPARATORS:
        if separator in header[0]:
            return separator
    return None


def _names_of_columns(path: Path, header: list[str]) -> dict[str, str]:
    """Return the columns of a header as they are spelt, by normal name. Raises UsageError."""
    names: dict[str, str] = {}
    for name in header:
        if normal(name) in names:
            message = f"column {shown(name)} stands twice in the header; keep one"
            if not name:
                message = "two columns have no name; name them, or delete their cells"
            raise problem(path, 1, message)
        names[normal(name)] = name
    return names


@dataclass(frozen=True, slots=True)
class _CsvRow:
    """A row as the csv module reads it."""

    line: int
    """Its first physical line, from 1: by quotes a row may span lines."""
    cells: list[str]


def _csv_rows(path: Path, reader: Any) -> Iterator[_CsvRow]:
    """Yield the rows that a csv reader finds below the header, but no empty lines.

    Raises UsageError for what is not CSV, and for too many rows.
    """
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
            yield _CsvRow(first_line, cells)
    except csv.Error as error:
        fault = f"row {row + 1}: not valid CSV: {_csv_reason(error)}"
        raise problem(path, last_line + 1, fault) from None


def _drop_empty_tail(header: list[str], rows: list[_CsvRow]) -> None:
    """Take away the rows and columns at the end that hold nothing, as spreadsheets write them."""
    while rows and _is_blank(rows[-1].cells):
        rows.pop()
    while header and not header[-1]:
        width = len(header)
        if any(
            len(row.cells) >= width and row.cells[width - 1].strip() for row in rows
        ):
            return
        header.pop()
        for row in rows:
            del row.cells[width - 1 : width]


def _is_blank(cells: list[str]) -> bool:
    return not any(cell.strip() for cell in cells)


def _records(
    path: Path, header: list[str], rows: Sequence[_CsvRow]
) -> Iterator[TableRow]:
    """Yield the records of CSV rows. Raises UsageError for one of another length."""
    columns = [normal(name) for name in header]
    for number, row in enumerate(rows, start=1):
        if len(row.cells) != len(columns):
            fault = _wrong_length(row.cells, header)
            raise problem(path, row.line, f"row {number}: {fault}")
        values = dict(zip(columns, row.cells, strict=True))
        yield TableRow(number, row.line, values)


def _wrong_length(cells: list[str], header: list[str]) -> str:
    """Return what is wrong with a row that has more or fewer cells than the header."""
    counts = f"{len(cells)} cells for {len(header)} columns"
    if len(cells) < len(header):
        column = shown(header[len(cells)])
        return f"{counts}: nothing for column {column}; give the row a cell for each column"
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
    if path.suffix.lower() == ".jsonl":
        return _table(path, _json_lines(path, text))
    return _table(path, _json_items(path, text))


def _json_lines(path: Path, text: str) -> Iterator[Entry]:
    """Yield the value on each line that is not blank. Raises UsageError."""
    row = 0
    # Not splitlines(): U+2028, U+2029 and U+0085 may stand inside a JSON string.
    for line, line_text in enumerate(text.split("\n"), 1):
        if not line_text.strip(" \t\r"):
            continue
        row += 1
        value, end = _decode(path, line_text, _skip_space(line_text, 0), row, line)
        if line_text[end:].strip(" \t\r"):
            fault = "more text after the object; one object a line"
            raise _not_json(path, row, line, fault)
        yield row, line, value


def _json_items(path: Path, text: str) -> Iterator[Entry]:
    """Yield the values of one JSON list, each with its line. Raises UsageError."""
    start = _skip_space(text, 0)
    if not text.startswith("[", start):
        raise _not_a_list(path, text, start)
    row = 0
    line = 1
    counted_to = 0  # line breaks before this index are in ``line``
    index = _skip_space(text, start + 1)
    is_closed = text.startswith("]", index)
    while not is_closed:
        row += 1
        line += text.count("\n", counted_to, index)
        counted_to = index
        value, index = _decode(path, text, index, row, line)
        yield row, line, value
        index = _skip_space(text, index)
        if text.startswith("]", index):
            is_closed = True
        elif text.startswith(",", index):
            index = _skip_space(text, index + 1)
        else:
            fault = "no comma or ] after this item; is the file cut?"
            raise _not_json(path, row, line, fault)
    if _skip_space(text, index + 1) != len(text):
        message = "more text after the end of the list; one file holds one list"
        raise problem(path, line, message)


def _not_a_list(path: Path, text: str, start: int) -> UsageError:
    """Return the error about a JSON text that begins, at ``start``, with something else."""
    message = f"a JSON list of objects is needed, not {shown(text[:40])}"
    if text.startswith("{", start):
        message += "; name it .jsonl if each line is an object"
    return problem(path, 1, message)


def _skip_space(text: str, index: int) -> int:
    """Return the index of the first character from ``index`` on that is no JSON space."""
    match = SPACE.match(text, index)
    if match is None:
        return index
    return match.end()


def _decode(
    path: Path, text: str, index: int, row: int, line: int
) -> tuple[object, int]:
    """Return the JSON value that begins at ``index``, and the index of its end.

    ``row`` and ``line`` name it in the UsageError that is raised for other text.
    """
    try:
        value, end = _DECODER.raw_decode(text, index)
        # Counting is fast, but counts brackets in texts and side by side, too.
        brackets = text.count("[", index, end) + text.count("{", index, end)
        if brackets > MAX_DEPTH and _height(value) > MAX_DEPTH + 1:
            raise ValueError(TOO_DEEP)
    except json.JSONDecodeError as error:
        fault = error.msg
        is_at_end = not text[error.pos :].strip()
        if is_at_end or error.msg.startswith("Unterminated"):
            fault += "; is the file cut?"
        line_of_error = line + text.count("\n", index, error.pos)
        raise _not_json(path, row, line_of_error, fault) from None
    except RecursionError:
        raise _not_json(path, row, line, TOO_DEEP) from None
    except ValueError as error:
        raise _not_json(path, row, line, str(error)) from None
    return value, end


def _not_json(path: Path, row: int, line: int, fault: str) -> UsageError:
    return problem(path, line, f"row {row}: not valid JSON: {fault}")


def _height(value: object) -> int:
    """Return how many levels a JSON value has: 1 for a text, 2 for a list of texts."""
    if isinstance(value, dict):
        members = list(value.values())
    elif isinstance(value, list):
        members = value
    else:
        return 1
    return 1 + max(map(_height, members), default=0)


def _object_of_unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return a JSON object's members. Raises ValueError for a key that stands twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        repeated_key, _ = counts.most_common(1)[0]
        raise ValueError(
            f"key {shown(repeated_key)} stands twice in one object; keep one"
        )
    return members


def _refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN, Infinity or -Infinity, which Python's decoder would take."""
    raise ValueError(f"{name} is not a JSON value; write text in quotes")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of_unique_keys,
    parse_int=Number,
    parse_float=Number,
    parse_constant=_refuse_constant,
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
            message = f"row {row}: an object is needed, not {shown(value)}"
            raise problem(path, line, message)
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
            message = (
                f"row {row}: keys {shown(spellings[name])} and {shown(key)} "
                "name the same column; keep one"
            )
            raise problem(path, key_line, message)
        spellings[name] = key
    return spellings


def _length(value: object) -> int:
    """Return the characters of a value, those of a list's texts together."""
    if isinstance(value, list):
        return sum(map(_length, value))
    if isinstance(value, str):
        return len(value)
    return 0

"""Files of any tool as documents: what stands at the top, and rows.

A container is known by its content, not by its name: JSON (a list, an object, columns with data),
JSON Lines, CSV with any separator, each of them also as .gz, parquet, and inspect_ai's .eval. What
the rows mean is the matter of a form (``forms.yaml``).

Everything is read within one budget. A cell that no path leads to may have any length.
"""

import csv
import io
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from qagate.cases.tables import OTHER_SEPARATORS, SEPARATOR_LINE
from qagate.evaluators.bounded_reading import (
    PARQUET_MARK,
    Archive,
    ReadingBudget,
    check_regular,
    count_values,
    read_json,
    read_parquet,
)
from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import decoded, read_bytes
from qagate.evaluators.text import shown

Json = Mapping[str, Any]

GZIP_MARK = b"\x1f\x8b"
MAX_BYTES = 512 * 1024 * 1024
"""Of a file, and of what a .gz file unpacks to."""
SAMPLES = "samples/"
"""Before the name of each sample in inspect_ai's archive."""
HEADER = "header.json"
JOURNAL_START = "_journal/start.json"
"""What stands in place of the header of a run that did not end."""
SUFFIXES = (".eval", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".gz")
"""The files of a folder that are looked at."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """What a file holds."""

    path: Path
    head: Json = field(default_factory=dict)
    """The object at the top; empty for a list or a table."""
    rows: Iterable[Json] | None = None
    """The rows of a list, a table or an archive, which yields them one by one. None for an object:
    there a form says where they are."""
    first_row: Json = field(default_factory=dict)
    is_archive: bool = False


def read_document(path: Path, budget: ReadingBudget) -> ResultFile:
    """Return what a file holds, by its content. Raises UsageError."""
    check_regular(path)
    if zipfile.is_zipfile(path):
        return _archive(path, budget)
    content = read_bytes(path, MAX_BYTES)
    if content.startswith(GZIP_MARK):
        content = _unzipped(path, content, budget)
    if content.startswith(PARQUET_MARK):
        return _listed(path, read_parquet(path, content, budget))
    text = decoded(path, content)
    if text.lstrip()[:1] in ("{", "["):
        return _json_document(path, text, budget)
    return _listed(path, list(_csv_rows(path, text, budget)))


def _listed(path: Path, rows: Sequence[Json]) -> ResultFile:
    first_row: Json = rows[0] if rows else {}
    return ResultFile(path=path, rows=rows, first_row=first_row)


# JSON


def _json_document(path: Path, text: str, budget: ReadingBudget) -> ResultFile:
    is_lines = ".jsonl" in path.suffixes or ".ndjson" in path.suffixes
    if is_lines or _is_json_lines(text):
        return _listed(path, _json_lines(path, text, budget))
    budget.take_values(path, count_values(text))
    value = read_json(path, text)
    if isinstance(value, Mapping):
        rows = _rows_by_columns(value)
        if rows is None:
            return ResultFile(path=path, head=value)
        return _listed(path, rows)
    return _listed(path, [_object(path, n, row) for n, row in enumerate(value, 1)])


def _is_json_lines(text: str) -> bool:
    """Whether the first line is an object of its own, and more lines follow."""
    first, _, rest = text.strip().partition("\n")
    is_object = first.startswith("{") and first.rstrip().endswith("}")
    return is_object and rest.lstrip().startswith("{")


def _json_lines(path: Path, text: str, budget: ReadingBudget) -> list[Json]:
    rows: list[Json] = []
    # Not splitlines(): U+2028 may stand inside a JSON string.
    for line in text.split("\n"):
        if line.strip():
            budget.take_values(path, count_values(line))
            rows.append(_object(path, len(rows) + 1, read_json(path, line)))
    return rows


def _object(path: Path, number: int, value: object) -> Json:
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{path}: row {number}: an object is needed, not {shown(value)}; "
            "give a list of objects, one for each answer"
        )
    return value


def _rows_by_columns(value: Json) -> list[Json] | None:
    """Return the rows of an object that has them by columns, as data frames are written.

    ``{"columns": […], "data": [[…], …]}`` or ``{column: {row: cell}}``; None for any other.
    """
    columns, data = value.get("columns"), value.get("data")
    if isinstance(columns, list) and isinstance(data, list):
        names = [str(column) for column in columns]
        return [
            dict(zip(names, cells, strict=False))
            for cells in data
            if isinstance(cells, list)
        ]
    cells_by_row = list(value.values())
    if len(value) < 2 or not all(isinstance(cells, Mapping) for cells in cells_by_row):
        return None
    labels = list(cells_by_row[0])
    if not labels or any(list(cells) != labels for cells in cells_by_row):
        return None
    if not all(label.isdecimal() for label in labels):
        return None
    return [
        {column: cells[label] for column, cells in value.items()} for label in labels
    ]


# CSV


def _csv_rows(path: Path, text: str, budget: ReadingBudget) -> Iterator[Json]:
    """Yield the rows of a table with a header. A name that stands twice keeps its first column."""
    declared = SEPARATOR_LINE.match(text)
    if declared:
        text = text[declared.end() :]
    header_line = text.lstrip("\r\n").partition("\n")[0]
    separator = declared[1] if declared else _separator_of(header_line)
    newline = "\n" if "\n" in text else "\r"
    limit_before = csv.field_size_limit(MAX_BYTES)  # of the whole process
    try:
        reader = csv.reader(
            io.StringIO(text, newline=newline), delimiter=separator, strict=True
        )
        header: list[str] = []
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not header:
                header = [name.strip() for name in cells]
                continue
            budget.take_values(path, len(cells))
            if len(cells) != len(header):
                raise UsageError(
                    f"{path}:{reader.line_num}: {len(cells)} cells for {len(header)} columns; "
                    "put cells with a separator in quotes"
                )
            yield _named_cells(header, cells)
    except csv.Error as error:
        raise UsageError(
            f"{path}:{reader.line_num}: not valid CSV: {error}; give the file as written"
        ) from None
    finally:
        csv.field_size_limit(limit_before)


def _separator_of(header_line: str) -> str:
    if "," not in header_line:
        for separator in OTHER_SEPARATORS:
            if separator in header_line:
                return separator
    if header_line.count("\t") > header_line.count(","):
        return "\t"
    return ","


def _named_cells(header: Sequence[str], cells: Sequence[str]) -> dict[str, str]:
    row: dict[str, str] = {}
    for name, cell in zip(header, cells, strict=False):
        if name:
            row.setdefault(name, cell)
    return row


# Packed


def _unzipped(path: Path, content: bytes, budget: ReadingBudget) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise UsageError(
            f"{path}: a damaged .gz file ({error}); give it whole"
        ) from None
    budget.take_bytes(path, len(unpacked))
    if not unpacker.eof:
        raise UsageError(
            f"{path}: a .gz file that is cut, in several parts or larger than {MAX_BYTES:,} bytes "
            "unpacked; unpack it, and give a part"
        )
    return unpacked


def _zip_module() -> ModuleType:
    """Return what reads archives, those by zstd too if it can: inspect_ai writes such ones."""
    try:
        from backports.zstd import zipfile as with_zstd  # noqa: PLC0415
    except ImportError:
        return zipfile
    return with_zstd


def _archive(path: Path, budget: ReadingBudget) -> ResultFile:
    """Return the log in an archive of inspect_ai, whose samples are read when they are needed."""
    archive = Archive(path, budget, _zip_module())
    names = [name for name in archive.names if name.startswith(SAMPLES)]
    if HEADER in archive.names:
        head = archive.read(HEADER)
    elif JOURNAL_START in archive.names:
        head = {**archive.read(JOURNAL_START), "status": "cut short"}
    else:
        raise UsageError(
            f"{path}: an archive that is no log of inspect_ai; unpack it, and give the result"
        )
    rows = (archive.read(name) for name in names)
    return ResultFile(path=path, head=head, rows=rows, is_archive=True)

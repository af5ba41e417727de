"""Rows of a labelled CSV or JSONL file, before anything is known about their meaning."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluators import strict_json
from evaluators.core import UsageError
from evaluators.csv_text import lines, long_cells
from evaluators.files import read_text
from evaluators.models.secrets import mask, one_line

SHOWN = 60
SUFFIXES = (".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record: ``number`` counts them from 1, ``line`` is its first line in the file.

    ``values`` maps normal column names to text, or to what the JSON line holds.
    """

    path: Path
    number: int
    line: int
    values: Mapping[str, object]

    def problem(self, what: str) -> UsageError:
        """Return the error about this row, to be raised."""
        return _problem(self.path, self.line, f"row {self.number}: {what}")


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a ``.csv``, ``.jsonl`` or ``.ndjson`` file; there is at least one.

    Raises UsageError naming file, line and row for whatever is not strictly such a file.
    """
    if path.suffix.lower() not in SUFFIXES:
        msg = f"{path}: want a labelled file that ends in {', '.join(SUFFIXES)}"
        raise UsageError(msg)
    text = read_text(path)
    rows = list(_csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text))
    if not rows:
        msg = f"{path}: no rows; a labelled answer is needed in each"
        raise UsageError(msg)
    return rows


def normal(name: str) -> str:
    """Return a column's name as it is compared: any case, ``_`` for spaces and hyphens."""
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


def shown(value: object) -> str:
    """Return a value for a message: short, on one line, without keys or control characters."""
    return repr(one_line(mask(str(value)), SHOWN))


def _problem(path: Path, line: int, what: str) -> UsageError:
    return UsageError(f"{path}:{line}: {what}")


def _json_rows(path: Path, text: str) -> Iterator[Row]:
    number = 0
    for line, part in enumerate(text.split("\n"), 1):
        if not part.strip():
            continue
        number += 1
        try:
            value = strict_json.loads(part)
        except ValueError as error:
            raise _problem(path, line, f"row {number}: {error}") from None
        if not isinstance(value, dict):
            raise _problem(path, line, f"row {number}: want a JSON object, got {shown(part)}")
        named = dict(zip(_names(path, line, value), value.values(), strict=True))
        yield Row(path=path, number=number, line=line, values=named)


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    records = _csv_records(path, text)
    start, header = next(records, (1, []))
    names = _names(path, start, header)
    for number, (line, cells) in enumerate(records, 1):
        if len(cells) != len(names):
            what = f"row {number}: {len(cells)} cells for {len(names)} columns"
            raise _problem(path, line, f"{what}; put cells with commas in quotes")
        named = dict(zip(names, cells, strict=True))
        yield Row(path=path, number=number, line=line, values=named)


def _csv_records(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line on which it begins; blank lines are none."""
    line = 1
    with long_cells(len(text)):
        reader = csv.reader(lines(text), strict=True)
        try:
            for cells in reader:
                if cells:
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error as error:
            raise _problem(path, line, f"not valid CSV: {error}") from None


def _names(path: Path, line: int, given: Iterable[str]) -> list[str]:
    names = [normal(name) for name in given]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise _problem(path, line, f"column {shown(name)} stands twice; keep one")
    return names

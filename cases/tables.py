"""A data file as rows of named values, before anything is known about their meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cases.problems import shown
from evaluators.core import UsageError


class Number(str):
    """A JSON number as the text that stands in the file: ``1e5`` stays ``1e5``."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Record:
    """One record. ``row`` counts the file's records from 1, ``line`` is its first physical line.

    ``values`` maps normal column names to text (CSV, YAML) or to JSON values, numbers as Number.
    """

    row: int
    line: int
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All records of a file. ``names`` maps normal column names to the file's own spelling.

    ``has_header`` says that one header line names the columns for every record.
    """

    path: Path
    names: Mapping[str, str]
    records: list[Record]
    has_header: bool = False

    def problem(self, record: Record, column: str, what: str) -> UsageError:
        """Return the error about one value, to be raised."""
        name = self.names.get(column, column)
        return problem(self.path, record.line, f"row {record.row}, column {shown(name)}: {what}")


def problem(path: Path, line: int, what: str) -> UsageError:
    """Return the error about one line of a file, to be raised."""
    return UsageError(f"{path}:{line}: {what}")


def normal(name: str) -> str:
    """Return a column's name as it is compared: no outer spaces, any case, ``_`` for a space."""
    return name.strip().casefold().replace(" ", "_")

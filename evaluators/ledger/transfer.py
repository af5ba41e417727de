"""A ledger's rows as JSON lines, out and in: what CI carries from one machine to another."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluators.canonical import canonical
from evaluators.core import UsageError
from evaluators.ledger.rows import COLUMNS, INSERT, SCHEMA, Stored, is_sound
from evaluators.strict_json import loads

FIELDS = frozenset(Stored._fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which rows: of one model by its SPEC, and not older than a time in seconds since 1970."""

    spec: str | None = None
    since: float | None = None
    before: float | None = None

    @property
    def where(self) -> tuple[str, Sequence[object]]:
        """The condition and its values, for SQL."""
        tests = {"spec = ?": self.spec, "at >= ?": self.since, "at < ?": self.before}
        given = {test: value for test, value in tests.items() if value is not None}
        return " AND ".join(given) or "1", tuple(given.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came of an import. ``refused`` says for each bad line where and why."""

    new: int
    known: int
    refused: tuple[str, ...] = ()


def rows(connection: sqlite3.Connection, chosen: Chosen) -> Iterator[Stored]:
    """Yield the chosen rows by key, damaged ones included."""
    condition, values = chosen.where
    query = f"SELECT {COLUMNS} FROM calls WHERE {condition} ORDER BY key"
    for found in connection.execute(query, values):
        yield Stored(*found)


def sound(found: Iterable[Stored], left_out: list[str]) -> Iterator[Stored]:
    """Yield the rows that are what was written; note the keys of the others."""
    for row in found:
        if is_sound(row):
            yield row
        else:
            left_out.append(str(row.key))


def lines(found: Iterable[Stored]) -> Iterator[str]:
    """Yield each row as one line of JSON in ASCII: the same rows always give the same lines."""
    for row in found:
        yield canonical({**row._asdict(), "reply": json.loads(row.reply)}) + "\n"


def take_in(connection: sqlite3.Connection, path: Path, *, skip_bad: bool) -> Imported:
    """Add the rows of an exported file; with a bad line none, unless it is to be skipped.

    A line is bad when it is no row, fails its checksum, or brings another reply for a key that has
    one: the first stands. Raises UsageError where the file cannot be read.
    """
    new = known = 0
    refused: list[str] = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, line in enumerate(_read(path), start=1):
            try:
                if _add(connection, _row(line)):
                    new += 1
                else:
                    known += 1
            except ValueError as error:
                refused.append(f"{path}:{number}: {error}")
        connection.execute("COMMIT" if skip_bad or not refused else "ROLLBACK")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return Imported(new=new, known=known, refused=tuple(refused))


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); give the path of an exported file"
        raise UsageError(msg) from None


def _row(line: bytes) -> Stored:
    try:
        values: Any = loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        msg = "not UTF-8; give a file that `ledger export` wrote"
        raise ValueError(msg) from None
    if not isinstance(values, dict) or values.keys() != FIELDS:
        msg = f"not a row of a ledger; needed are {', '.join(sorted(FIELDS))}"
        raise ValueError(msg)
    if values["schema"] != SCHEMA:
        msg = f"format {str(values['schema'])[:20]}, this version reads format {SCHEMA}"
        raise ValueError(msg)
    row = Stored(**{**values, "reply": canonical(values["reply"])})
    if not is_sound(row):
        msg = "the row is not what was exported: its checksum is wrong; export it again"
        raise ValueError(msg)
    return row


def _add(connection: sqlite3.Connection, row: Stored) -> bool:
    """Insert a row; return whether it is new. Raises ValueError where another reply stands."""
    standing = connection.execute("SELECT reply FROM calls WHERE key = ?", (row.key,)).fetchone()
    if standing is None:
        connection.execute(INSERT, row)
        return True
    if standing[0] != row.reply:
        msg = f"another reply stands under {row.key[:12]}…; the first is kept"
        raise ValueError(msg)
    return False

"""The ledger's file: its tables, its rows with their checksums, and how SQLite is opened."""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from evaluators.core import QAError, Reply, ToolCall
from evaluators.text import canonical, digest, flat

SCHEMA = 1

TABLES = """
CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY,
    schema INTEGER NOT NULL,
    at REAL NOT NULL,
    spec TEXT NOT NULL,
    reply TEXT NOT NULL,
    checksum TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS damaged (
    key TEXT NOT NULL, at REAL NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS imported (key TEXT PRIMARY KEY) WITHOUT ROWID;
"""
COLUMNS = "key, schema, at, spec, reply, checksum"
INSERT = f"INSERT OR IGNORE INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
IMPORTED = "INSERT OR IGNORE INTO imported VALUES (?)"
SIGNED = ":"  # between a checksum and the signature behind it
BUSY_SECONDS = 30.0
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class LedgerError(QAError):
    """The ledger cannot keep what is paid for: no further call may be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reply to be kept under the key of its request; ``spec`` names its model."""

    key: str
    spec: str
    reply: Reply


class StoredRow(NamedTuple):
    """A row as it is in the file: ``at`` in seconds since 1970, ``reply`` as canonical JSON."""

    key: str
    schema: int
    at: float
    spec: str
    reply: str
    checksum: str

    @property
    def is_sound(self) -> bool:
        """Whether every column holds what was written, or at least what may be there."""
        return self.opened() is not None

    def opened(self) -> Reply | None:
        """Return the reply, or None where the row is not what was written."""
        if not isinstance(self.key, str) or not isinstance(self.spec, str):
            return None
        if not isinstance(self.at, float):
            return None
        return _unseal(self.key, self.schema, self.reply, self.checksum)


def seal(row: Row, at: float) -> StoredRow:
    """Return a row as it is stored, with its checksum."""
    text = canonical({**flat(row.reply), "calls": [flat(call) for call in row.reply.calls]})
    return StoredRow(row.key, SCHEMA, at, row.spec, text, checksum(row.key, text))


def checksum(key: str, text: str) -> str:
    """Return what a sound row has as its checksum; it binds the reply to its key."""
    return digest([key, text])


def _unseal(key: str, schema: object, text: object, given: object) -> Reply | None:
    if schema != SCHEMA or not isinstance(text, str) or not isinstance(given, str):
        return None
    if given.partition(SIGNED)[0] != checksum(key, text):
        return None
    try:
        values = json.loads(text)
        calls = tuple(ToolCall(**call) for call in values.pop("calls"))
        return Reply(calls=calls, **values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection to a path, or to a ``file:`` URI where a text is given.

    Transactions are the caller's own, text that is not UTF-8 comes as replacement characters (so
    that its checksum fails), and nothing that the file defines is trusted.
    """
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # commits run on a pool thread, one at a time
        uri=isinstance(path, str),
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def error_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 where there is none."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF

"""What a row holds, and how it shows that it still is what was written."""

import json
from dataclasses import dataclass
from typing import NamedTuple

from evaluators.canonical import canonical, digest, flat
from evaluators.core import QAError, Reply, ToolCall

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
"""
COLUMNS = "key, schema, at, spec, reply, checksum"
INSERT = f"INSERT OR IGNORE INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"


class LedgerError(QAError):
    """The ledger cannot keep what is paid for: no further call may be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reply to be kept under the key of its request; ``spec`` names the model asked."""

    key: str
    spec: str
    reply: Reply


class Stored(NamedTuple):
    """A row as it lies in the file: ``at`` in seconds since 1970, ``reply`` as canonical JSON."""

    key: str
    schema: int
    at: float
    spec: str
    reply: str
    checksum: str


def seal(row: Row, at: float) -> Stored:
    """Return a row as it is stored, with its checksum."""
    text = canonical({**flat(row.reply), "calls": [flat(call) for call in row.reply.calls]})
    return Stored(row.key, SCHEMA, at, row.spec, text, checksum(row.key, text))


def checksum(key: str, text: str) -> str:
    """Return what a sound row has as its checksum; it binds the reply to its key."""
    return digest([key, text])


def unseal(key: str, schema: object, text: object, given: object) -> Reply | None:
    """Return the reply of a stored row, or None where the row is not what was written."""
    if schema != SCHEMA or not isinstance(text, str) or given != checksum(key, text):
        return None
    return decode(text)


def is_sound(stored: Stored) -> bool:
    """Return whether every column of a row holds what was written, or at least what may stand."""
    texts = isinstance(stored.key, str) and isinstance(stored.spec, str)
    if not texts or not isinstance(stored.at, float):
        return False
    return unseal(stored.key, stored.schema, stored.reply, stored.checksum) is not None


def decode(text: str) -> Reply | None:
    """Return the reply that a JSON text holds, or None where it holds none."""
    try:
        values = json.loads(text)
        calls = tuple(ToolCall(**call) for call in values.pop("calls"))
        return Reply(calls=calls, **values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None

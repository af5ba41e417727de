"""One ledger file: its tables, connections to it, and whether a file is a ledger at all."""

import os
import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.rows import SCHEMA, StoreError

TABLES = {
    "calls": """(
        key TEXT, run TEXT, schema INTEGER NOT NULL, at REAL NOT NULL, spec TEXT NOT NULL,
        reply TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (key, run)
    ) WITHOUT ROWID""",
    "damaged": "(key TEXT NOT NULL, at REAL NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL)",
    "imported": "(key TEXT, run TEXT, PRIMARY KEY (key, run)) WITHOUT ROWID",
    "documents": "(kind TEXT, key TEXT, text TEXT NOT NULL, PRIMARY KEY (kind, key))",
}

BUSY_TIMEOUT_SECONDS = 30.0
"""For so long a commit waits for another run's."""

DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""The result codes of a file that is not what was written."""

LOGS = ("-wal", "-shm")
"""How the names of SQLite's own files beside a ledger end."""

HEAD = b"SQLite format 3\0"
"""How every database of SQLite begins."""


@contextmanager
def as_store_error() -> Iterator[None]:
    """Raise errors of SQLite as StoreErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            str(error),
            is_damage=has_code(error, *DAMAGE),
            is_full=has_code(error, sqlite3.SQLITE_FULL),
        ) from None


def has_code(error: sqlite3.Error, *codes: int) -> bool:
    """Return whether the primary result code of an error is one of these."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in codes


def state_of(path: Path) -> tuple[int, ...]:
    """Return what changes when a ledger is written; empty if a run may be writing it now."""
    if Path(f"{path}-wal").exists() or not path.exists():
        return ()
    file = path.stat()
    return file.st_ino, file.st_mtime_ns, file.st_size


def connect(path: Path, state: tuple[int, ...] | None = None) -> sqlite3.Connection:
    """Return a connection with explicit transactions; to read only, if the ``state`` is given.

    Nothing that the file defines is trusted; text that is not UTF-8 fails its checksum.
    """
    database = str(path)
    if state is not None:
        # A file without a log can be read without making one, until a run begins.
        mode = "immutable=1" if state else "mode=ro"
        database = f"{path.resolve().as_uri()}?{mode}"
    connection = sqlite3.connect(
        database,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # commits run on a pool thread, one at a time
        uri=state is not None,
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def creation(
    names: Collection[str] = TABLES.keys(),
    kind: Literal["TABLE", "TEMP TABLE"] = "TABLE",
) -> str:
    """Return the statements that make these tables."""
    return " ".join(
        f"CREATE {kind} IF NOT EXISTS {name} {TABLES[name]};" for name in names
    )


def is_foreign(file: os.stat_result) -> bool:
    """Return whether a file belongs to another user than the one who runs this."""
    return hasattr(os, "geteuid") and file.st_uid != os.geteuid()


# What a file is: a ledger, a damaged one, or something else.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How the tables of a file differ from a ledger's."""

    missing: set[str]
    """Those that are not there; all of them in a new file."""
    odd: set[str]
    """Those that are damaged, and tables that no ledger has."""


def inspect(path: Path, connection: sqlite3.Connection) -> Shape:
    """Return how a file differs from a ledger. Raises UsageError if it never was one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    query = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    objects = set(connection.execute(query))
    odd = set()
    for name, definition in TABLES.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        if columns and columns != _columns_of(definition):
            odd.add(name)
    others = objects - {("table", name) for name in TABLES}
    has_calls = ("table", "calls") in objects
    has_other_tables_only = all(kind == "table" for kind, _ in others)
    is_foreign_database = bool(others) and not (has_calls and has_other_tables_only)
    if is_foreign_database or ("calls" in odd and not 0 < version < SCHEMA):
        raise UsageError(
            f"{path}: cannot be opened as a ledger (a database of something else); "
            "give another --ledger path"
        )
    if version > SCHEMA or "calls" in odd:
        which = "newer" if version > SCHEMA else "older"
        raise UsageError(
            f"{path}: a ledger of format {version}, this version reads format {SCHEMA}; "
            f"use the {which} version, or give another --ledger path"
        )
    missing = TABLES.keys() - {name for _, name in objects}
    odd.update(name for _, name in others)
    if missing != TABLES.keys():
        odd |= missing  # all are made at once: one that is not there was lost
    return Shape(missing=missing, odd=odd)


def refuse_odd(shape: Shape) -> None:
    """Raise sqlite3.DatabaseError if a table of a ledger was lost, or is not as it was made."""
    if shape.odd:
        error = sqlite3.DatabaseError("its tables are not those of a ledger")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def _columns_of(definition: str) -> list[str]:
    """Return the names of the columns in a definition of TABLES."""
    return re.findall(r"(\w+) (?:TEXT|INTEGER|REAL)\b", definition)

"""A ledger in one SQLite file: how it is opened, read and changed."""

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from evaluators.ledger.claims import Claims
from evaluators.ledger.database import StoreError, Transaction

T = TypeVar("T")

TABLES = {
    "calls": """(
        key TEXT PRIMARY KEY,
        schema INTEGER NOT NULL,
        at REAL NOT NULL,
        spec TEXT NOT NULL,
        reply TEXT NOT NULL,
        checksum TEXT NOT NULL
    ) WITHOUT ROWID""",
    "damaged": "(key TEXT NOT NULL, at REAL NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL)",
    "imported": "(key TEXT PRIMARY KEY) WITHOUT ROWID",
    "documents": "(kind TEXT, key TEXT, text TEXT NOT NULL, PRIMARY KEY (kind, key))",
}
BUSY_SECONDS = 30.0
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class SqliteStore:
    """An open file. Without ``claims`` it is only read; ``reader`` never waits for a commit."""

    near = True

    def __init__(
        self,
        path: Path,
        writer: sqlite3.Connection,
        notes: Sequence[str] = (),
        claims: Claims | None = None,
    ) -> None:
        self.notes = tuple(notes)
        self._path = path
        self._writer = writer
        self._reader = writer if claims is None else connect(path)
        self._claims = claims
        self._writing = threading.Lock()  # damaged rows are set aside while a group is committed

    @property
    def size(self) -> int:
        """How many bytes the file and its log take."""
        files = (self._path, self._path.with_name(f"{self._path.name}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with _as_store_error():
            return self._reader.execute(sql, values).fetchall()

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query."""
        with _as_store_error():
            yield from self._reader.execute(sql, values)

    def change(self, work: Callable[[Transaction], T]) -> T:
        """Return what ``work`` returns once what it did is on the disk."""
        with _as_store_error(), self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            return work(_Statements(self._writer))

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other run is making."""
        return {key for key in keys if self._claims is None or self._claims.take(key)}

    def give_back(self, key: str) -> None:
        """Let others make the call."""
        if self._claims is not None:
            self._claims.give_back(key)

    def alone(self) -> bool:
        """Return whether no other run has the file open; then none can open it until it is closed.

        A file that is only read has no say in that.
        """
        return self._claims is None or self._claims.alone()

    def shrink(self) -> None:
        """Give the space of removed rows back to the system."""
        with _as_store_error(), self._writing:
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the files."""
        self._reader.close()
        self._writer.close()
        if self._claims is not None:
            self._claims.close()


class _Statements:
    """What may be done within a transaction that is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        self._connection.executemany(sql, rows)


@contextmanager
def _as_store_error() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        code = error_code(error)
        full = code == sqlite3.SQLITE_FULL
        raise StoreError(str(error), is_damage=code in DAMAGE, is_full=full) from None


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


def tables(missing: Collection[str] = TABLES.keys(), kind: str = "TABLE") -> str:
    """Return the statements that make these tables, by default all that are not there."""
    made = (f"CREATE {kind} IF NOT EXISTS {name} {TABLES[name]};" for name in missing)
    return " ".join(made)


def error_code(error: BaseException) -> int:
    """Return SQLite's primary result code of an error; 0 where there is none."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF

"""Every reply that was paid for, kept: SQLite in WAL mode, one row a request, committed first.

A row is found by the hash of its whole request and is never changed: the first reply stands.
Values are JSON text with a checksum; nothing is unpickled or evaluated.
"""

import asyncio
import json
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from evaluators.core import QAError, Reply, ToolCall, UsageProblem, canonical, digest

SCHEMA = 1
GROUP_SECONDS = 0.01  # how long a reply may wait for others to share its commit
BUSY_SECONDS = 30.0

_TABLES = """
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


class LedgerError(QAError):
    """The ledger cannot keep what is paid for: no further call may be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One reply to be kept under the key of its request; ``spec`` names the model asked."""

    key: str
    spec: str
    reply: Reply


class Ledger:
    """The store of replies at one path. Used from one event loop; many processes may share it."""

    def __init__(
        self, path: Path, *, read_only: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self.damaged = 0
        self._read_only = read_only
        self._clock = clock
        self._writer = _open(path, read_only=read_only)
        # A second connection, so that a look-up never waits for a commit to reach the disk.
        self._reader = self._writer if read_only else _connect(path)
        self._writing = threading.Lock()  # damaged rows are set aside while a group is committed
        self._pending: list[tuple[Row, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. What ``put`` returned from is on the disk already."""
        self._reader.close()
        self._writer.close()

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under this key, or None. A damaged row is set aside, not used."""
        try:
            row = self._reader.execute(
                "SELECT schema, reply, checksum FROM calls WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.Error as error:
            raise self._failure(error) from None
        if row is None:
            return None
        schema, text, checksum = row
        reply = _decode(text) if schema == SCHEMA and checksum == digest([key, text]) else None
        if reply is None:
            self._set_aside(key)
        return reply

    async def put(self, row: Row) -> None:
        """Return once the reply is on the disk. Raises LedgerError where it cannot be kept."""
        future = asyncio.get_running_loop().create_future()
        self._pending.append((row, future))
        if self._committer is None or self._committer.done():
            self._committer = asyncio.create_task(self._commit_groups())
        await future

    async def flush(self) -> None:
        """Return once everything given to ``put`` so far is on the disk or has failed."""
        if self._committer is not None:
            await asyncio.wait([self._committer])

    async def _commit_groups(self) -> None:
        while self._pending:
            await asyncio.sleep(GROUP_SECONDS)
            group, self._pending = self._pending, []
            failure: LedgerError | None = None
            try:
                await asyncio.to_thread(self._insert, [row for row, _ in group])
            except Exception as error:  # noqa: BLE001  # whoever waits must hear of any failure
                failure = self._failure(error)
            for _, future in group:
                if future.cancelled():
                    continue
                if failure is None:
                    future.set_result(None)
                else:
                    future.set_exception(failure)

    def _insert(self, rows: Sequence[Row]) -> None:
        at = self._clock()
        values = []
        for row in rows:
            text = canonical(asdict(row.reply))
            values.append((row.key, SCHEMA, at, row.spec, text, digest([row.key, text])))
        with self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany(
                "INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?, ?)", values
            )

    def _set_aside(self, key: str) -> None:
        self.damaged += 1
        if self._read_only:
            return
        try:
            with self._writing, self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.execute(
                    "INSERT INTO damaged SELECT key, at, reply, checksum FROM calls WHERE key = ?",
                    (key,),
                )
                self._writer.execute("DELETE FROM calls WHERE key = ?", (key,))
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> LedgerError:
        return LedgerError(f"{self.path}: the ledger cannot be used: {error}; no more calls made")


def _open(path: Path, *, read_only: bool) -> sqlite3.Connection:
    try:
        if read_only:
            return _open_to_read(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        connection = _connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_TABLES)
    except (OSError, sqlite3.Error) as error:
        msg = f"{path}: cannot be opened as a ledger ({error}); give another --ledger path"
        raise UsageProblem(msg) from None
    return connection


def _open_to_read(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        msg = f"{path}: no ledger to replay from; run once without --replay or give --ledger"
        raise UsageProblem(msg)
    # A file that no run is writing is read as it lies: nothing is created beside it.
    alone = not path.with_name(f"{path.name}-wal").exists()
    mode = "immutable=1" if alone else "mode=ro"
    connection = _connect(f"{path.resolve().as_uri()}?{mode}")
    try:
        connection.execute("SELECT key FROM calls LIMIT 1").fetchone()
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _connect(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # commits run on a pool thread, one at a time
        uri=isinstance(path, str),
    )


def _decode(text: str) -> Reply | None:
    try:
        values = json.loads(text)
        calls = tuple(ToolCall(**call) for call in values.pop("calls"))
        return Reply(calls=calls, **values)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None

"""The store of replies: looked up by key, committed in groups, shared by runs at the same time."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from evaluators.core import Reply
from evaluators.ledger.database import (
    COLUMNS,
    DAMAGE,
    INSERT,
    LedgerError,
    Row,
    StoredRow,
    connect,
    error_code,
    seal,
)
from evaluators.ledger.opening import open_to_read, open_to_write
from evaluators.ledger.signing import Signer
from evaluators.output import plural

GROUP_SECONDS = 0.01  # how long a reply may wait for others to share its commit
POLL_SECONDS = 0.05
CLAIM_SECONDS = 300.0  # longer than any call: a run that holds one this long has been frozen


class Ledger:
    """The store at one path. Used from one event loop; many processes may share it.

    Where the environment has a secret for it, rows without its signature are not used. ``trusted``
    says that what other users could have changed is. Raises UsageError where the path is no ledger
    that may be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        trusted: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._clock = clock
        self._signer = Signer.of_environment()
        self._opened = (
            open_to_read(path, trusted=trusted)
            if read_only
            else open_to_write(path, clock, trusted=trusted)
        )
        self._writer = self._opened.connection
        # A second connection, so that a look-up never waits for a commit to reach the disk.
        self._reader = self._writer if read_only else connect(path)
        self._read_only = read_only
        self._bad: set[str] = set()
        self._unsigned: set[str] = set()
        self._own: set[str] = set()
        self._failed: LedgerError | None = None
        self._writing = threading.Lock()  # damaged rows are set aside while a group is committed
        self._pending: list[tuple[Row, asyncio.Future[None]]] = []
        self._committer: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. What ``put`` returned from is on the disk already."""
        self._reader.close()
        self._opened.close()

    @property
    def damaged(self) -> int:
        """How many damaged rows were looked up; a run sets them aside, a replay does not."""
        return len(self._bad)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report should say of the ledger: damage, and who could have changed it."""
        done = "not used" if self._read_only else "set aside and asked again"
        found = {"damaged": len(self._bad), "unsigned": len(self._unsigned)}
        said = [
            f"{plural(count, f'{what} row')} of the ledger {done}"
            for what, count in found.items()
            if count
        ]
        return (*self._opened.notes, *said)

    def is_earlier(self, key: str) -> bool:
        """Return whether another run than this one paid for the reply under this key."""
        return key not in self._own

    def is_imported(self, key: str) -> bool:
        """Return whether ``ledger import`` brought the reply under this key."""
        try:
            query = "SELECT 1 FROM imported WHERE key = ?"
            return self._reader.execute(query, (key,)).fetchone() is not None
        except sqlite3.Error:  # a replay from a ledger older than the table, or from a damaged one
            return False

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under this key, or None.

        A row that is damaged, or lacks the signature that it should have, is set aside, not used.
        """
        try:
            found = self._reader.execute(
                f"SELECT {COLUMNS} FROM calls WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.Error as error:
            if self._read_only and error_code(error) in DAMAGE:
                self._bad.add(key)
                return None
            raise self._failure(error) from None
        if found is None:
            return None
        row = StoredRow._make(found)
        reply = row.opened()
        if reply is not None and self._signer.accepts(row):
            return reply
        (self._bad if reply is None else self._unsigned).add(key)
        self._set_aside(key)
        return None

    @asynccontextmanager
    async def claim(self, key: str) -> AsyncIterator[Reply | None]:
        """Hold the right to make this call while the block runs; yield its reply if there is one.

        Where another run is making the call its end is waited for, so that both use one reply. A
        run that died holds no claim; one that is frozen is waited for at most five minutes. Raises
        LedgerError once a reply could not be kept: nothing more may be paid for.
        """
        if self._failed is not None:
            raise self._failed
        claims = self._opened.claims
        if claims is None:
            yield self.get(key)
            return
        now = asyncio.get_running_loop().time
        end = now() + CLAIM_SECONDS
        while not (mine := claims.take(key)) and now() < end:
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield self.get(key)
        finally:
            if mine:
                claims.give_back(key)

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
            except Exception as error:  # noqa: BLE001  # every waiting call must learn of it
                failure = self._failure(error, group)
            for future in (future for _, future in group if not future.cancelled()):
                if failure is None:
                    future.set_result(None)
                else:
                    future.set_exception(failure)

    def _insert(self, rows: Sequence[Row]) -> None:
        at = self._clock()
        values = [self._signer.signed(seal(row, at)) for row in rows]
        with self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany(INSERT, values)
        self._own.update(row.key for row in rows)

    def _set_aside(self, key: str) -> None:
        if self._read_only:
            return
        try:
            with self._writing, self._writer:
                self._writer.execute("BEGIN IMMEDIATE")
                # Any column may be what is damaged, so that none can be relied on to be there.
                self._writer.execute(
                    "INSERT INTO damaged SELECT key, coalesce(at, 0), coalesce(reply, ''), "
                    "coalesce(checksum, '') FROM calls WHERE key = ?",
                    (key,),
                )
                for table in ("calls", "imported"):
                    self._writer.execute(f"DELETE FROM {table} WHERE key = ?", (key,))
        except sqlite3.Error as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception, group: Sequence[tuple[Row, object]] = ()) -> LedgerError:
        text = f"{self.path}: the ledger cannot be used: {error}; no more calls made"
        if error_code(error) == sqlite3.SQLITE_FULL:
            need = sum(len(seal(row, 0.0).reply) for row, _ in group)
            text = (
                f"{self.path}: the disk is full, {need:,} bytes and more are needed; no more calls "
                "made: free some space and run the same command again"
            )
        self._failed = LedgerError(text)
        return self._failed

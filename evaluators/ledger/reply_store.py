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
    DAMAGE,
    INSERT,
    LedgerError,
    Row,
    connect,
    error_code,
    seal,
    unseal,
)
from evaluators.ledger.opening import open_to_read, open_to_write
from evaluators.output import plural

GROUP_SECONDS = 0.01  # how long a reply may wait for others to share its commit
POLL_SECONDS = 0.05
CLAIM_SECONDS = 300.0  # longer than any call: a run that holds one this long has been frozen


class Ledger:
    """The store at one path. Used from one event loop; many processes may share it.

    Raises UsageError where the path is no ledger that may be used.
    """

    def __init__(
        self, path: Path, *, read_only: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self._clock = clock
        self._opened = open_to_read(path) if read_only else open_to_write(path, clock)
        self._writer = self._opened.connection
        # A second connection, so that a look-up never waits for a commit to reach the disk.
        self._reader = self._writer if read_only else connect(path)
        self._read_only = read_only
        self._bad: set[str] = set()
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
        if not self._bad:
            return self._opened.notes
        done = "not used" if self._read_only else "set aside and asked again"
        return (*self._opened.notes, f"{plural(self.damaged, 'damaged row')} of the ledger {done}")

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under this key, or None. A damaged row is set aside, not used."""
        try:
            row = self._reader.execute(
                "SELECT schema, reply, checksum FROM calls WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.Error as error:
            if self._read_only and error_code(error) in DAMAGE:
                self._bad.add(key)
                return None
            raise self._failure(error) from None
        if row is None:
            return None
        reply = unseal(key, *row)
        if reply is None:
            self._set_aside(key)
        return reply

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
        values = [seal(row, at) for row in rows]
        with self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.executemany(INSERT, values)

    def _set_aside(self, key: str) -> None:
        self._bad.add(key)
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
                self._writer.execute("DELETE FROM calls WHERE key = ?", (key,))
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

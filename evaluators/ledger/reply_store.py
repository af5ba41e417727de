"""The store of replies: looked up by key, committed in groups, shared by runs at the same time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Self

from evaluators.core import Reply
from evaluators.ledger import documents
from evaluators.ledger.database import (
    COLUMNS,
    INSERT,
    LedgerError,
    PaidReply,
    Store,
    StoredRow,
    StoreError,
    Transaction,
    marks,
    seal,
)
from evaluators.ledger.documents import StoredDocument, seal_document
from evaluators.ledger.grouping import Grouped
from evaluators.ledger.signing import Signer
from evaluators.ledger.stores import open_store
from evaluators.ledger.unkept import Unkept
from evaluators.ledger_place import Place
from evaluators.output import plural
from evaluators.sent import TEXT

GROUP_SECONDS = 0.01  # how long a reply may wait for others to share its commit
LOOK_SECONDS = 0.001  # how long a look-up may wait for others to share its round trip
POLL_SECONDS = 0.05
CLAIM_SECONDS = 300.0  # longer than any call: a run that holds one this long has been frozen
IS_IMPORTED = "EXISTS (SELECT 1 FROM imported WHERE imported.key = calls.key)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A statement with its values, and the key of the reply that it keeps, if it keeps one.

    ``documents`` are kept with it.
    """

    sql: str
    values: Sequence[object]
    key: str | None = None
    documents: tuple[StoredDocument, ...] = ()


class Ledger:
    """The store at one path. Used from one event loop; many processes may share it.

    Where the environment has a secret for it, rows without its signature are not used. Raises
    UsageError where the path is no ledger that may be used.
    """

    def __init__(
        self,
        path: Place,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._clock = clock
        self._signer = Signer.of_environment()
        self.store: Store = open_store(path, read_only=read_only, now=clock)
        self._read_only = read_only
        self._bad: set[str] = set()
        self._unsigned: set[str] = set()
        self._own: set[str] = set()
        self._imported: set[str] = set()
        self._texts: set[str] = set()  # kept already: a rubric comes with every request
        self._failed: LedgerError | None = None
        self._unkept = Unkept()
        self._commit = Grouped(self._commit_group, GROUP_SECONDS)
        self._look = Grouped(self._look_up, LOOK_SECONDS)
        self._claim = Grouped(self._take_group, LOOK_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files. What ``put`` returned from is on the disk already."""
        self.store.close()

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
        return (*self.store.notes, *said)

    def is_earlier(self, key: str) -> bool:
        """Return whether another run than this one paid for the reply under this key."""
        return key not in self._own

    def is_imported(self, key: str) -> bool:
        """Return whether ``ledger import`` brought the reply that was found under this key."""
        return key in self._imported

    async def find(self, key: str) -> Reply | None:
        """Return what ``get`` does; many that look at once share a round trip to the database."""
        if self.store.near:
            return self.get(key)
        return self._usable(await self._look(key))

    def get(self, key: str) -> Reply | None:
        """Return the reply kept under this key, or None.

        A row that is damaged, or lacks the signature that it should have, is set aside, not used.
        """
        return self._usable(self._look_up([key])[0])

    def _look_up(self, keys: Sequence[str]) -> Sequence[StoredRow | None]:
        query = f"SELECT {COLUMNS}, {IS_IMPORTED} FROM calls WHERE key IN ({marks(keys)})"
        try:
            found = self.store.read(query, keys)
        except StoreError as error:
            if self._read_only and error.is_damage:
                self._bad.update(keys)
                return [None] * len(keys)
            raise self._failure(error) from None
        self._imported.update(key for key, *_, is_imported in found if is_imported)
        rows = {row[0]: StoredRow._make(row[:-1]) for row in found}
        return [rows.get(key) for key in keys]

    def _usable(self, row: StoredRow | None) -> Reply | None:
        if row is None:
            return None
        reply, key = row.opened(), row.key
        if reply is not None and self._signer.accepts(row):
            return reply
        (self._bad if reply is None else self._unsigned).add(key)
        self._imported.discard(key)
        self._set_aside(key)
        return None

    @asynccontextmanager
    async def claim(self, key: str) -> AsyncIterator[Reply | None]:
        """Hold the right to make one call, and give what the ledger has for it by then.

        While another run holds it that run is waited for, so that both use one reply. A
        run that died holds no claim; one that is frozen is waited for at most five minutes. Raises
        LedgerError once a reply could not be kept: nothing more may be paid for.
        """
        if self._failed is not None:
            raise self._failed
        now = asyncio.get_running_loop().time
        end = now() + CLAIM_SECONDS
        while not (mine := await self._take(key)) and now() < end:
            if not self.store.near and (kept := await self.find(key)) is not None:
                yield kept
                return
            await asyncio.sleep(POLL_SECONDS)
        try:
            yield await self.find(key)
        finally:
            if mine:
                self.store.give_back(key)

    async def _take(self, key: str) -> bool:
        if self.store.near:
            return bool(self.store.take([key]))
        taking = asyncio.ensure_future(self._claim(key))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # It may be granted all the same, and nobody would use it.
            taking.add_done_callback(lambda _: self.store.give_back(key))
            raise

    def _take_group(self, keys: Sequence[str]) -> Sequence[bool]:
        try:
            mine = self.store.take(keys)
        except StoreError as error:
            raise self._failure(error) from None
        return [key in mine for key in keys]

    async def put(self, row: PaidReply) -> None:
        """Return once the reply is on the disk. Raises LedgerError where it cannot be kept."""
        values = self._signer.signed(seal(row, self._clock()))
        sealed = tuple(
            seal_document(*one, self._signer) for one in row.documents if one.key not in self._texts
        )
        await self._commit(_Change(sql=INSERT, values=values, key=row.key, documents=sealed))
        self._texts.update(one.key for one in row.documents if one.kind == TEXT)

    async def keep(self, kind: str, key: str, text: str) -> None:
        """Return once a document is on the disk, in the place of an earlier one of its key.

        Raises LedgerError where it cannot be kept.
        """
        values = seal_document(kind, key, text, self._signer)
        await self._commit(_Change(sql=documents.KEEP, values=values))

    async def forget(self, kind: str, key: str) -> None:
        """Return once a document is gone. Raises LedgerError as ``keep`` does."""
        await self._commit(_Change(sql=documents.FORGET, values=(kind, key)))

    def document(self, kind: str, key: str) -> str | None:
        """Return the text kept under this key; None also where it is damaged or not signed."""
        return self._documents(documents.FIND, kind, key).get(key)

    def documents(self, kind: str) -> dict[str, str]:
        """Return all sound documents of a kind by their keys, in the keys' order."""
        return self._documents(documents.ALL_OF_KIND, kind)

    def some(self, kind: str, keys: Sequence[str]) -> dict[str, str]:
        """Return the sound documents of a kind with these keys, by key."""
        sql = f"{documents.SOME} ({marks(keys)})"
        return self._documents(sql, kind, *keys) if keys else {}

    def replies(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the replies that ``get`` would, by key."""
        found = zip(keys, map(self._usable, self._look_up(keys)), strict=True)
        return {key: reply for key, reply in found if reply is not None}

    def _documents(self, sql: str, *values: str) -> dict[str, str]:
        try:
            found = map(StoredDocument._make, self.store.read(sql, values))
        except StoreError as error:
            raise self._failure(error) from None
        opened = {one.key: one.opened(self._signer) for one in found}
        return {key: text for key, text in opened.items() if text is not None}

    async def flush(self) -> None:
        """Return once everything given to ``put`` so far is on the disk or has failed."""
        await self._commit.flush()

    def _commit_group(self, group: Sequence[_Change]) -> Sequence[None]:
        def work(transaction: Transaction) -> None:
            for sql, part in groupby(group, key=attrgetter("sql")):
                transaction.run(sql, [one.values for one in part])
            # In one order in all runs, so that no two wait for each other.
            transaction.run(documents.ADD, sorted(said))

        said = {document for one in group for document in one.documents}

        try:
            self.store.change(work)
        except Exception as error:  # noqa: BLE001  # nothing more may be paid for
            rows = [*(one.values for one in group), *said]
            with suppress(OSError):  # the working folder's disk may be full as well
                self._unkept.add(row for row in rows if isinstance(row, StoredRow))
            need = sum(len(str(value)) for row in rows for value in row)
            raise self._failure(error, need) from None
        self._own.update(one.key for one in group if one.key is not None)
        return [None] * len(group)

    def _set_aside(self, key: str) -> None:
        if self._read_only:
            return

        def work(transaction: Transaction) -> None:
            # Any column may be what is damaged, so that none can be relied on to be there.
            transaction.run(
                "INSERT INTO damaged SELECT key, coalesce(at, 0), coalesce(reply, ''), "
                "coalesce(checksum, '') FROM calls WHERE key = ?",
                [(key,)],
            )
            for table in ("calls", "imported"):
                transaction.run(f"DELETE FROM {table} WHERE key = ?", [(key,)])

        try:
            self.store.change(work)
        except StoreError as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception, need: int = 0) -> LedgerError:
        text = f"{self.path}: the ledger cannot be used: {error}; no more calls made{self._unkept}"
        if isinstance(error, StoreError) and error.is_full:
            text = (
                f"{self.path}: the disk is full, {need:,} bytes and more are needed; no more calls "
                f"made: free some space and run the same command again{self._unkept}"
            )
        self._failed = LedgerError(text)
        return self._failed

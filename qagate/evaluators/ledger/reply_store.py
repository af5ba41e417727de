"""The store of replies: found by key, committed in groups, shared by runs at the same time."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Generic, TypeVar

from qagate.evaluators.core import LedgerPlace, Reply
from qagate.evaluators.ledger import rows
from qagate.evaluators.ledger.rows import LedgerError, Sql, StoredRow, StoreError
from qagate.evaluators.ledger.sqlite import open_store
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.ledger.upkeep import save_unkept, take_unkept
from qagate.evaluators.output import plural
from qagate.evaluators.text import (
    REQUEST,
    TEXT,
    Document,
    key_of,
    parse_sent,
    texts_named,
)

T = TypeVar("T")
R = TypeVar("R")

COMMIT_WAIT_S = 0.01  # how long a reply may wait for others to share its commit
LOOKUP_WAIT_S = 0.001  # how long a look-up may wait for others to share its round trip
CLAIM_POLL_S = 0.05
CLAIM_TIMEOUT_S = 300.0  # a run that keeps no reply for so long may be frozen
_FIND = f"SELECT {Sql.COLUMNS}, EXISTS (SELECT 1 FROM imported WHERE imported.key = calls.key)"
_SET_ASIDE = (
    # Any column may be the damaged one.
    "INSERT INTO damaged SELECT key, coalesce(at, 0), coalesce(reply, ''), "
    "coalesce(checksum, '') FROM calls WHERE key = ?",
    "DELETE FROM calls WHERE key = ?",
    "DELETE FROM imported WHERE key = ?",
)
_Change = tuple[str, StoredRow | rows.StoredDocument, Sequence[rows.StoredDocument]]
"""A statement to commit with its values, and the documents to keep with it."""


class Ledger(AbstractContextManager["Ledger"]):
    """The store at one place, for one event loop; other processes may share the place."""

    def __init__(
        self,
        path: LedgerPlace,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = path
        self._clock = clock
        self._signer = rows.Signer()
        self.store: Store = open_store(path, read_only=read_only)
        self._read_only = read_only
        self._bad: set[str] = set()
        self._unsigned: set[str] = set()
        self.own: set[str] = set()  # the keys of replies that this run paid for
        self.imported: set[str] = set()  # of those found that ``ledger import`` added
        self.account: Callable[[], Document] | None = (
            None  # notes the money spent with replies
        )
        self._heard_at = float(
            "-inf"
        )  # when another run's reply, waited for, was last found
        self._texts: set[str] = set()  # kept already: a rubric comes with every request
        self._failed: LedgerError | None = None
        self._unkept: list[Path] = []
        self._commit = Grouped(self._commit_group, COMMIT_WAIT_S)
        self._look = Grouped(self._look_up, LOOKUP_WAIT_S)
        self._claim = Grouped(self._take, LOOKUP_WAIT_S)
        self._taken = () if read_only else tuple(take_unkept(self.store, path))

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says about the ledger: damage, and who could have changed it."""
        done = "not used" if self._read_only else "set aside and asked again"
        found = {"damaged": self._bad, "unsigned": self._unsigned}
        counts = (
            plural(len(keys), f"{what} row") for what, keys in found.items() if keys
        )
        said = (f"{count} of the ledger {done}" for count in counts)
        return (*self.store.notes, *self._taken, *said)

    @property
    def unkept(self) -> str:
        """Where replies are that the database did not take, and what takes them in, or nothing."""
        more = f" and {len(self._unkept) - 1} more" if self._unkept[1:] else ""
        first = f"{self._unkept[0]}{more}" if self._unkept else ""
        return (
            f"replies that the ledger did not take are in {first}: run again"
            if first
            else ""
        )

    async def find(self, key: str) -> Reply | None:
        """Return what ``get`` does; concurrent look-ups share a round trip to a database."""
        return self.get(key) if self.store.near else self._usable(await self._look(key))

    def get(self, key: str) -> Reply | None:
        """Return the reply under this key, or None; a damaged or unsigned row is set aside."""
        return self._usable(self._look_up([key])[0])

    def replies(self, keys: Sequence[str]) -> dict[str, Reply]:
        """Return the replies that ``get`` would, by key."""
        found = zip(keys, map(self._usable, self._look_up(keys)), strict=True)
        return {key: reply for key, reply in found if reply is not None}

    def reply_texts(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what ``replies`` does, each reply as its JSON."""
        found = (
            (row, self._checked(row, row.text())) for row in self._look_up(keys) if row
        )
        return {row.key: text for row, text in found if text is not None}

    def _look_up(self, keys: Sequence[str]) -> Sequence[StoredRow | None]:
        try:
            marks = ", ".join("?" * len(keys))
            found = self.store.read(f"{_FIND} FROM calls WHERE key IN ({marks})", keys)
        except StoreError as error:
            if self._read_only and error.is_damage:
                self._bad.update(keys)
                return [None] * len(keys)
            raise self._failure(error) from None
        self.imported.update(key for key, *_, is_imported in found if is_imported)
        stored = {row[0]: StoredRow._make(row[:-1]) for row in found}
        return [stored.get(key) for key in keys]

    def _usable(self, row: StoredRow | None) -> Reply | None:
        return None if row is None else self._checked(row, row.opened())

    def _checked(self, row: StoredRow, content: T | None) -> T | None:
        """Return what a row holds if it is sound and signed; set any other row aside."""
        if content is not None and self._signer.accepts(row):
            return content
        (self._bad if content is None else self._unsigned).add(row.key)
        self.imported.discard(row.key)
        if not self._read_only:
            try:
                self.store.change([(sql, [(row.key,)]) for sql in _SET_ASIDE])
            except StoreError as error:
                raise self._failure(error) from None
        return None

    @asynccontextmanager
    async def claim(
        self, key: str, seconds: float = 0.0
    ) -> AsyncIterator[Reply | None]:
        """Hold the right to make one call, and give the reply if the ledger has it by then.

        A live run that makes the call is waited for until it has kept nothing for five minutes, or
        for the ``seconds`` that an item may take. Raises LedgerError once a reply could not be
        kept: nothing more may be paid for.
        """
        if self._failed is not None:
            raise self._failed
        now = asyncio.get_running_loop().time
        begun, patience = now(), max(CLAIM_TIMEOUT_S, seconds)
        kept = None
        while not (mine := await self._take_soon(key)):
            kept = None if self.store.near else await self.find(key)
            if kept or now() > max(begun, self._heard_at) + patience:
                break
            await asyncio.sleep(CLAIM_POLL_S)
        try:
            kept = kept or await self.find(key)
            self._heard_at = now() if kept else self._heard_at
            yield kept
        finally:
            if mine:
                self.store.give_back(key)

    async def _take_soon(self, key: str) -> bool:
        if self.store.near:
            return self._take([key])[0]
        taking = asyncio.ensure_future(self._claim(key))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            # It may still be granted, and nobody would use it.
            taking.add_done_callback(lambda _: self.store.give_back(key))
            raise

    def _take(self, keys: Sequence[str]) -> Sequence[bool]:
        try:
            mine = self.store.take(keys)
        except StoreError as error:
            raise self._failure(error) from None
        return [key in mine for key in keys]

    async def put(self, row: rows.PaidReply) -> None:
        """Return once the reply is on the disk. Raises LedgerError if it cannot be kept."""
        new = (one for one in row.documents if one.key not in self._texts)
        said = [rows.seal_document(one, self._signer) for one in new]
        await self._commit(
            (Sql.INSERT, self._signer.signed(rows.seal(row, self._clock())), said)
        )
        self._texts.update(one.key for one in row.documents if one.kind == TEXT)

    async def keep(self, kind: str, key: str, text: str) -> None:
        """Return once a document is on the disk, in place of an earlier one. Raises LedgerError."""
        document = rows.seal_document(Document(kind, key, text), self._signer)
        await self._commit((Sql.REPLACE_DOCUMENT, document, ()))

    def documents(
        self, kind: str, keys: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the sound documents of a kind by key, in order: all, or those with these keys."""
        found = (
            (one.key, one.opened(self._signer)) for one in self._documents(kind, keys)
        )
        return {key: text for key, text in found if text is not None}

    def _documents(
        self, kind: str, keys: Collection[str] | None
    ) -> list[rows.StoredDocument]:
        among = "" if keys is None else f" AND key IN ({', '.join('?' * len(keys))})"
        query = (
            f"SELECT kind, key, text FROM documents WHERE kind = ?{among} ORDER BY key"
        )
        try:
            found = (
                self.store.read(query, (kind, *(keys or ())))
                if keys is None or keys
                else []
            )
        except StoreError as error:
            if not (self._read_only and error.is_damage):
                raise self._failure(error) from None
            found = [(kind, key, "") for key in keys or ()]
        return [rows.StoredDocument._make(one) for one in found]

    def requests(
        self, keys: Collection[str]
    ) -> tuple[dict[str, str], dict[str, str], set[str]]:
        """Return the sound requests by key, the texts that they name, and the damaged keys."""
        stored = {one.key: one for one in self._documents(REQUEST, keys)}
        opened = {key: one.opened(self._signer) for key, one in stored.items()}
        sent = {
            key: parse_sent(text) for key, text in opened.items() if text is not None
        }
        named = {name for one in sent.values() if one for name in texts_named(one)}
        texts = self.documents(TEXT, named)
        sound = {
            key: opened[key] or ""
            for key, one in sent.items()
            if one is not None
            and texts.keys() >= {*texts_named(one)}
            and not (stored[key].is_unsealed and key_of(one, texts) != key)
        }
        return sound, texts, {*stored} - {*sound}

    async def flush(self) -> None:
        """Return once everything given to ``put`` so far is on the disk or has failed."""
        await self._commit.flush()

    def _commit_group(self, group: Sequence[_Change]) -> Sequence[None]:
        replies = [values for _, values, _ in group if isinstance(values, StoredRow)]
        said = sorted({document for *_, documents in group for document in documents})
        if replies and self.account is not None:
            said.append(rows.seal_document(self.account(), self._signer))
        parts = groupby(group, key=itemgetter(0))
        statements = [(sql, [values for _, values, _ in part]) for sql, part in parts]
        try:
            self.store.change([*statements, (Sql.REPLACE_DOCUMENT, said)])
        except Exception as error:  # noqa: BLE001  # nothing more may be paid for
            if replies:
                with suppress(OSError):  # the working folder's disk may be full as well
                    self._unkept.append(save_unkept(self.path, (*replies, *said)))
            need = sum(len(str(value)) for _, one, _ in group for value in one)
            need += sum(len(value) for one in said for value in one)
            raise self._failure(error, need) from None
        self.own.update(row.key for row in replies)
        return [None] * len(group)

    def _failure(self, error: Exception, need: int = 0) -> LedgerError:
        """Return the error that ends all calls; ``need`` is the bytes that found no room."""
        text = f"the ledger cannot be used: {error}; no more calls made"
        if isinstance(error, StoreError) and error.is_full:
            text = (
                f"the disk is full, {need:,} bytes and more are needed; no more calls made: free "
                "some space and run the same command again"
            )
        self._failed = LedgerError(f"{self.path}: {text}")
        return self._failed


class Grouped(Generic[T, R]):
    """Calls ``work`` in a thread with all items that came within ``seconds``, one group at a time.

    Each item gets its own result; an error is raised for every item. Used from one event loop.
    """

    def __init__(
        self, work: Callable[[Sequence[T]], Sequence[R]], seconds: float
    ) -> None:
        self._work = work
        self._seconds = seconds
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        """Return the item's result."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await future

    async def flush(self) -> None:
        """Return once every item given so far has its result."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._seconds)
            group, self._waiting = self._waiting, []
            working = asyncio.to_thread(self._work, [item for item, _ in group])
            (results,) = await asyncio.gather(working, return_exceptions=True)
            for number, (_, future) in enumerate(group):
                if future.cancelled():
                    continue
                if isinstance(results, BaseException):  # every item must learn of it
                    future.set_exception(results)
                else:
                    future.set_result(results[number])

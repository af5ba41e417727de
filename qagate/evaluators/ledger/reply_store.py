"""The store of replies: found by key, committed in groups, shared by runs at the same time.

A call goes like this. ``find`` looks its key up. If there is no reply that counts, ``claim``
holds the right to make the call, so that no other run on this ledger pays for it as well.
``put`` returns once the reply is on the disk; before that nobody may use it. Once a reply
could not be kept, every claim fails: nothing more may be paid for. What could not be kept is
saved in the working folder, and taken in by the next run (``upkeep``).

A run keeps one reply to a request, beside those of other runs. Whoever looks one up says by
a ``Kept`` which of them count, and gets the newest of these.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from secrets import token_hex
from typing import Any, Generic, NamedTuple, TypeVar

from qagate.evaluators.core import Reply, UsageError
from qagate.evaluators.kept_requests import (
    REQUEST,
    TEXT,
    Document,
    parse_sent,
    texts_named,
)
from qagate.evaluators.ledger import rows
from qagate.evaluators.ledger.beside import RowsBeside
from qagate.evaluators.ledger.kept import ANY, Kept
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.rows import (
    KeptReply,
    LedgerError,
    RowId,
    Sql,
    StoredRow,
    StoreError,
)
from qagate.evaluators.ledger.sqlite import open_store
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.ledger.upkeep import UNKEPT_FOLDER, save_unkept, take_unkept
from qagate.evaluators.output import UnwrittenError, plural
from qagate.evaluators.text import one_line
from qagate.evaluators.typed_data import decode_text

T = TypeVar("T")
R = TypeVar("R")

COMMIT_WAIT_SECONDS = 0.01
"""For so long a reply waits for others to share its commit."""

LOOKUP_WAIT_SECONDS = 0.001
"""For so long a look-up waits for others to share its round trip to a database."""

CLAIM_POLL_SECONDS = 0.05
"""Between two attempts to claim a call that another run is making."""

CLAIM_TIMEOUT_SECONDS = 300.0
"""A run that keeps no reply for so long may be frozen: its calls are made here too."""

_IS_IMPORTED = (
    "EXISTS (SELECT 1 FROM imported "
    "WHERE imported.key = calls.key AND imported.run = calls.run)"
)

_FIND_NEWEST = f"""
WITH wanted (number, key, run, since, excluded_run) AS (VALUES {{values}}),
newest (number, key, run) AS (
    SELECT number, key, (
        SELECT calls.run FROM calls
        WHERE calls.key = wanted.key
            AND (calls.run = wanted.run OR calls.at >= wanted.since)
            AND calls.run <> wanted.excluded_run
        ORDER BY calls.at DESC, calls.run DESC LIMIT 1
    )
    FROM wanted
)
SELECT newest.number, {", ".join(f"calls.{name}" for name in Sql.COLUMNS.split(", "))},
    {_IS_IMPORTED}
FROM newest JOIN calls ON calls.key = newest.key AND calls.run = newest.run
"""
"""The newest row that counts of each wanted one, by its number."""

_FIND_ALL = f"""
SELECT {Sql.COLUMNS}, {_IS_IMPORTED} FROM calls
WHERE key = ? AND (run = ? OR at >= ?) AND run <> ? ORDER BY at DESC, run DESC
"""
"""All rows that count under one key, the newest first."""

_NO_RUNS_ID = "-"
"""No run has this id."""

MAX_NAME_CHARACTERS = 60
MAX_REASON_CHARACTERS = 80
"""Of a document that is not used, in the notes."""
_TRIAL = "trial"
"""The kind of the documents by which ``Ledger.try_writing`` tries the store; none stays."""

_SET_ASIDE = (
    # Any column may be the damaged one.
    "INSERT INTO damaged SELECT key, coalesce(at, 0), coalesce(reply, ''), "
    "coalesce(checksum, '') FROM calls WHERE key = ? AND run = ?",
    "DELETE FROM calls WHERE key = ? AND run = ?",
    "DELETE FROM imported WHERE key = ? AND run = ?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """Something to commit."""

    sql: str
    values: StoredRow | rows.StoredDocument
    """What the statement is given."""
    documents: Sequence[rows.StoredDocument] = ()
    """What is kept with it."""


class _Wanted(NamedTuple):
    """A reply that is looked up."""

    key: str
    kept: Kept

    @property
    def values(self) -> tuple[str, str | None, float, str]:
        """What a query is given; in place of an empty id NULL, which equals no run's."""
        kept = self.kept
        return self.key, kept.run or None, kept.since, kept.without or _NO_RUNS_ID


class _Found(NamedTuple):
    """A row that was looked up. It may be damaged."""

    row: StoredRow
    is_imported: bool


class KeptRequests(NamedTuple):
    """What a ledger has of the requests with some keys."""

    sound: dict[str, str]
    """The requests as JSON, by key."""
    texts: dict[str, str]
    """The long texts that they name, by key."""
    damaged: set[str]
    """The keys of requests that are not what was written, or lack a text."""


class Ledger(AbstractContextManager["Ledger"]):
    """The store at one place, for one event loop; other processes may share the place.

    Rows of earlier reports may lie ``beside`` the store: they are looked up where it has none
    that counts, and never written to it.

    A row that is damaged, or not signed with the secret, is never used. A run sets it aside
    and asks again; a replay (``read_only``) changes nothing and does without it.

    Where the store is a database, look-ups, claims and commits that come at the same time
    share a round trip. A file is ``near``: it is read on the event loop, at once.

    Attributes::

    :own: The replies that this process paid for.

    :account: Returns a note on the money spent, which is kept with each reply; None if none.

    :_damaged: The rows that are not what was written; ``_unsigned`` those without the
       signature.

    :_kept_texts: The keys of texts that are kept already: a rubric comes with every request.

    :_heard_at: When a reply of another run, for which a claim had waited, was last found.

    :_failed: Why nothing more may be paid for.

    :_unkept_files: Files in the working folder with replies that the store did not take.

    :_lost: The number of paid replies that could be kept nowhere.

    :_taken_in: Notes for the report on what was taken in from such files of earlier runs.

    :_odd_documents: Why documents are not used that are sound, but not what a run writes.
    """

    def __init__(
        self,
        path: LedgerPlace,
        *,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
        beside: RowsBeside | None = None,
    ) -> None:
        """Open the store; unless ``read_only``, take in what earlier runs could not keep.

        Raises UsageError if there is none that can be used, if what lies unkept cannot be
        taken in, or if the secret is easy to guess; UnwrittenError if the disk is full.
        """
        self.path = path
        self.own: set[RowId] = set()
        self.account: Callable[[], Document] | None = None
        self._clock = clock
        self._read_only = read_only
        self._beside = beside or RowsBeside()
        self._signer = rows.Signer()
        self.store: Store = open_store(path, read_only=read_only)
        self._damaged: set[RowId] = set()
        self._unsigned: set[RowId] = set()
        self._kept_texts: set[str] = set()
        self._times_mended = 0
        self._heard_at = float("-inf")
        self._failed: LedgerError | None = None
        self._unkept_files: list[Path] = []
        self._lost = 0
        self._why_lost = ""
        self._commit = Grouped(self._commit_group, COMMIT_WAIT_SECONDS)
        self._look_up_soon = Grouped(self._look_up, LOOKUP_WAIT_SECONDS)
        self._claim_soon = Grouped(self._claim_group, LOOKUP_WAIT_SECONDS)
        self._taken_in: tuple[str, ...] = ()
        self._odd_documents: dict[str, str] = {}
        if not read_only:
            try:
                self._taken_in = tuple(take_unkept(self.store, path))
            except (UsageError, UnwrittenError):
                self.store.close()
                raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.store.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says about the ledger: damage, and who could have changed it."""
        fate = "not used" if self._read_only else "set aside and asked again"
        notes = [*self.store.notes, *self._taken_in, *self._beside.notes]
        if self._damaged:
            count = plural(len(self._damaged), "damaged row")
            notes.append(f"{count} of the ledger {fate}")
        if self._unsigned:
            count = plural(len(self._unsigned), "unsigned row")
            notes.append(f"{count} of the ledger {fate}")
        if self._odd_documents:
            count = plural(len(self._odd_documents), "document")
            name, reason = min(self._odd_documents.items())
            notes.append(
                f"{count} of the ledger not used, as no run writes such: {name} ({reason})"
            )
        return tuple(notes)

    @property
    def unkept(self) -> str:
        """What became of replies that the database did not take; empty if it took all."""
        clauses = []
        if self._unkept_files:
            places = str(self._unkept_files[0])
            if len(self._unkept_files) > 1:
                places += f" and {len(self._unkept_files) - 1} more"
            clauses.append(
                f"replies that the ledger did not take are in {places}: run again"
            )
        if self._lost:
            paid = "paid reply is" if self._lost == 1 else "paid replies are"
            clauses.append(
                f"{self._lost:,} {paid} lost, as they could not be saved either ({self._why_lost})"
            )
        return "; ".join(clauses)

    def try_writing(self, size: int) -> None:
        """Write so many bytes and remove them: better now than with the first paid replies.

        Raises UsageError if the ledger takes no changes, UnwrittenError if the disk is full.
        """
        text = token_hex(size // 2)  # nothing that could be compressed
        try:
            self.store.change([(Sql.ADD_DOCUMENT, [(_TRIAL, token_hex(8), text)])])
            self.store.change([("DELETE FROM documents WHERE kind = ?", [(_TRIAL,)])])
        except StoreError as error:
            if error.is_full:
                raise UnwrittenError(
                    f"{self.path}: the disk is full, and a ledger needs {size:,} bytes and more "
                    "to begin; nothing was asked: free some space and run the same command again"
                ) from None
            raise UsageError(
                f"{self.path}: the ledger cannot be written ({error}); nothing was asked: make "
                "it writable, or give another --ledger"
            ) from None

    def begin_search(self) -> None:
        """Look for damage while replies are awaited; nothing reads a large ledger to open it."""
        self.store.begin_search()

    # Look-ups.

    async def find(self, key: str, kept: Kept = ANY) -> KeptReply | None:
        """Return the newest reply that counts, with where it comes from, or None.

        Concurrent look-ups share a round trip to a database. Rows that are damaged or not
        signed are set aside.
        """
        if self.store.near:
            return self.look_up(key, kept)
        wanted = _Wanted(key, kept)
        return self._accept_reply(wanted, await self._look_up_soon(wanted))

    def look_up(self, key: str, kept: Kept = ANY) -> KeptReply | None:
        """Return what ``find`` does, at once."""
        wanted = _Wanted(key, kept)
        (found,) = self._look_up([wanted])
        return self._accept_reply(wanted, found)

    def get(self, key: str, kept: Kept = ANY) -> Reply | None:
        """Return the reply of ``look_up`` alone."""
        kept_reply = self.look_up(key, kept)
        return None if kept_reply is None else kept_reply.reply

    def kept_replies(
        self, keys: Sequence[str], kept: Kept = ANY
    ) -> dict[str, KeptReply]:
        """Return what ``look_up`` would of each key, by key; one query takes all."""
        all_wanted = [_Wanted(key, kept) for key in keys]
        replies = {}
        for wanted, found in zip(all_wanted, self._look_up(all_wanted), strict=True):
            kept_reply = self._accept_reply(wanted, found)
            if kept_reply is not None:
                replies[wanted.key] = kept_reply
        return replies

    def replies(self, keys: Sequence[str], kept: Kept = ANY) -> dict[str, Reply]:
        """Return the replies of ``kept_replies`` alone."""
        return {
            key: found.reply for key, found in self.kept_replies(keys, kept).items()
        }

    def reply_texts(self, keys: Sequence[str], kept: Kept = ANY) -> dict[str, str]:
        """Return what ``replies`` does, each reply as its JSON."""
        all_wanted = [_Wanted(key, kept) for key in keys]
        texts = {}
        for wanted, found in zip(all_wanted, self._look_up(all_wanted), strict=True):
            sound = self._newest_sound(wanted, found, StoredRow.text)
            if sound is not None:
                _, texts[wanted.key] = sound
        return texts

    def stored_rows(self, keys: Sequence[str], kept: Kept = ANY) -> list[StoredRow]:
        """Return the rows with the replies that ``replies`` would return."""
        all_wanted = [_Wanted(key, kept) for key in keys]
        stored_rows = []
        for wanted, found in zip(all_wanted, self._look_up(all_wanted), strict=True):
            sound = self._newest_sound(wanted, found, StoredRow.text)
            if sound is not None:
                stored_rows.append(sound[0].row)
        return stored_rows

    def _look_up(self, all_wanted: Sequence[_Wanted]) -> Sequence[_Found | None]:
        """Return the newest row that counts of each wanted one, None where there is none.

        Raises LedgerError.
        """
        if not all_wanted:
            return []
        values: list[object] = []
        for number, wanted in enumerate(all_wanted):
            values += [number, *wanted.values]
        found: list[_Found | None] = [None] * len(all_wanted)
        query = _query_of_newest(len(all_wanted))
        for number, *row in self._read(query, values, all_wanted):
            found[number] = _found(row)
        return found

    def _read(
        self, query: str, values: Sequence[object], all_wanted: Sequence[_Wanted]
    ) -> list[rows.Row]:
        """Return the rows of a query; in a replay none where the store is damaged."""
        try:
            return self.store.read(query, values)
        except StoreError as error:
            if self._read_only and error.is_damage:
                self._damaged.update(RowId(wanted.key, "") for wanted in all_wanted)
                return []
            raise self._fail(error) from None

    def _accept_reply(self, wanted: _Wanted, found: _Found | None) -> KeptReply | None:
        """Return the newest reply that counts, where ``found`` is the newest row."""
        sound = self._newest_sound(wanted, found, StoredRow.opened)
        if sound is None:
            return None
        (row, is_imported), reply = sound
        return KeptReply(reply=reply, at=row.at, run=row.run, is_imported=is_imported)

    def _newest_sound(
        self,
        wanted: _Wanted,
        found: _Found | None,
        content_of: Callable[[StoredRow], T | None],
    ) -> tuple[_Found, T] | None:
        """Return the newest row that is sound and signed, with its content.

        ``found`` is the newest of the store. Where it is neither, an older one that counts
        may be.
        """
        if found is not None:
            content = self._content_if_sound(found.row, content_of)
            if content is not None:
                return found, content
            for row in self._read(_FIND_ALL, wanted.values, [wanted]):
                older = _found(row)
                content = self._content_if_sound(older.row, content_of)
                if content is not None:
                    return older, content
        row_beside = self._beside.newest(wanted.key, wanted.kept)
        if row_beside is None:
            return None
        content = content_of(row_beside)
        return None if content is None else (_Found(row_beside, False), content)

    def _content_if_sound(
        self, row: StoredRow, content_of: Callable[[StoredRow], T | None]
    ) -> T | None:
        """Return what a row holds if it is sound and signed; set any other row aside."""
        content = content_of(row)
        if content is not None and self._signer.accepts(row):
            return content
        if content is None:
            self._damaged.add(row.id)
        else:
            self._unsigned.add(row.id)
        if not self._read_only:
            try:
                self.store.change([(sql, [row.id]) for sql in _SET_ASIDE])
            except StoreError as error:
                raise self._fail(error) from None
        return None

    # Claims.

    @asynccontextmanager
    async def claim(
        self, key: str, kept: Kept = ANY, *, seconds: float = 0.0
    ) -> AsyncIterator[KeptReply | None]:
        """Hold the right to make one call, and give a reply that counts if there is one by then.

        A live run that makes the call is waited for until it has kept nothing for five
        minutes, or for the ``seconds`` that an item may take. Raises LedgerError once a reply
        could not be kept: nothing more may be paid for.
        """
        if self._failed is not None:
            raise self._failed
        now = asyncio.get_running_loop().time
        began = now()
        patience = max(CLAIM_TIMEOUT_SECONDS, seconds)
        reply: KeptReply | None = None
        while not (is_ours := await self._try_to_claim(key)):
            if not self.store.near:
                reply = await self.find(key, kept)
            last_sign_of_life = max(began, self._heard_at)
            if reply is not None or now() > last_sign_of_life + patience:
                break
            await asyncio.sleep(CLAIM_POLL_SECONDS)
        try:
            if reply is None:
                reply = await self.find(key, kept)
            if reply is not None:
                self._heard_at = now()
            yield reply
        finally:
            if is_ours:
                self.store.give_back(key)

    async def _try_to_claim(self, key: str) -> bool:
        """Claim a call; return False if another run is making it."""
        if self.store.near:
            return self._claim_group([key])[0]
        claiming = asyncio.ensure_future(self._claim_soon(key))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            # It may still be granted, and nobody would use it.
            claiming.add_done_callback(lambda _: self.store.give_back(key))
            raise

    def _claim_group(self, keys: Sequence[str]) -> Sequence[bool]:
        try:
            claimed = self.store.take(keys)
        except StoreError as error:
            raise self._fail(error) from None
        return [key in claimed for key in keys]

    # Replies and documents to keep.

    async def put(self, row: rows.PaidReply) -> KeptReply:
        """Return the reply once it is on the disk. Raises LedgerError if it cannot be kept."""
        if self._times_mended != self.store.times_mended:
            self._times_mended = self.store.times_mended
            self._kept_texts.clear()  # some may be lost
        documents = []
        for document in row.documents:
            if document.key not in self._kept_texts:
                documents.append(rows.seal_document(document, self._signer))
        stored = self._signer.signed(rows.seal(row, self._clock()))
        await self._commit(_Change(sql=Sql.INSERT, values=stored, documents=documents))
        for document in row.documents:
            if document.kind == TEXT:
                self._kept_texts.add(document.key)
        return KeptReply(reply=row.reply, at=stored.at, run=row.run)

    async def keep(self, kind: str, key: str, text: str) -> None:
        """Return once a document is on the disk, in place of an earlier one. Raises LedgerError."""
        document = rows.seal_document(Document(kind, key, text), self._signer)
        await self._commit(_Change(sql=Sql.REPLACE_DOCUMENT, values=document))

    def swap(self, document: Document, before: str | None) -> bool:
        """Keep a document in place of the text ``before``, at once; None if there was none.

        Return False, and change nothing, if another process was faster. Raises LedgerError.
        """
        sealed = rows.seal_document(document, self._signer)
        former = ""
        for stored in self._documents(document.kind, [document.key]):
            if stored.opened(self._signer) != before:
                return False
            former = stored.text
        try:
            self.store.change([(Sql.SWAP_DOCUMENT, [(*sealed, former)])])
        except StoreError as error:
            raise self._fail(error) from None
        return sealed in self._documents(document.kind, [document.key])

    async def flush(self) -> None:
        """Return once everything given to ``put`` so far is on the disk or has failed."""
        await self._commit.flush()

    def _commit_group(self, group: Sequence[_Change]) -> Sequence[None]:
        """Commit changes in one transaction, in their order, and then their documents.

        Raises LedgerError if that fails. The replies are saved in the working folder then:
        they are paid for.
        """
        replies = [
            change.values for change in group if isinstance(change.values, StoredRow)
        ]
        # In one order: two runs that write the same documents must not wait for each other.
        documents = sorted(
            {document for change in group for document in change.documents}
        )
        if replies and self.account is not None:
            documents.append(rows.seal_document(self.account(), self._signer))
        statements: list[tuple[str, list[Sequence[object]]]] = []
        for change in group:
            if not statements or statements[-1][0] != change.sql:
                statements.append((change.sql, []))
            statements[-1][1].append(change.values)
        try:
            self.store.change([*statements, (Sql.REPLACE_DOCUMENT, documents)])
        except Exception as error:  # noqa: BLE001  # nothing more may be paid for
            needed_bytes = 0
            for row in (*(change.values for change in group), *documents):
                needed_bytes += sum(len(str(value)) for value in row)
            failed = self._fail(error, needed_bytes)
            if replies:
                self._save(replies, documents)
            raise failed from None
        self.own.update(row.id for row in replies)
        return [None] * len(group)

    def _save(
        self, replies: Sequence[StoredRow], documents: Sequence[rows.StoredDocument]
    ) -> None:
        """Save paid replies that the store did not take in the working folder."""
        try:
            file = save_unkept(self.path, (*replies, *documents))
        except OSError as error:  # the working folder's disk may be full as well
            self._lost += len(replies)
            self._why_lost = f"{UNKEPT_FOLDER}: {error.strerror or error}"
        else:
            self._unkept_files.append(file)

    def _fail(self, error: Exception, needed_bytes: int = 0) -> LedgerError:
        """End all calls; return the error to raise. ``needed_bytes`` found no room."""
        message = f"the ledger cannot be used: {error}; no more calls made"
        if isinstance(error, StoreError) and error.is_full:
            message = (
                f"the disk is full, {needed_bytes:,} bytes and more are needed; no more calls "
                "made: free some space and run the same command again"
            )
        self._failed = LedgerError(f"{self.path}: {message}")
        return self._failed

    # Documents.

    def documents(
        self, kind: str, keys: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the sound documents of a kind by key, in order: all, or those with these keys."""
        texts = {}
        for document in self._documents(kind, keys):
            text = document.opened(self._signer)
            if text is not None:
                texts[document.key] = text
        return texts

    def documents_as(
        self, kind: str, form: Any, keys: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Return the sound documents of a kind by key, as values of a type, the ``form``.

        One of another form is set aside, and named in the notes: a seal without a secret says
        only that nothing was changed since, not that a run wrote it.
        """
        values = {}
        for key, text in self.documents(kind, keys).items():
            try:
                values[key] = decode_text(form, text)
            except ValueError as error:
                name = one_line(f"{kind} {key}", MAX_NAME_CHARACTERS)
                self._odd_documents[name] = one_line(str(error), MAX_REASON_CHARACTERS)
        return values

    def requests(self, keys: Collection[str]) -> KeptRequests:
        """Return the requests with these keys, and the texts that they name."""
        opened: dict[str, str] = {}
        named: dict[str, set[str]] = {}
        damaged: set[str] = set()
        for document in self._documents(REQUEST, keys):
            text = document.opened(self._signer)
            sent = None if text is None else parse_sent(text)
            if text is None or sent is None:
                damaged.add(document.key)
            else:
                opened[document.key] = text
                named[document.key] = set(texts_named(sent))
        texts = self.documents(TEXT, set().union(*named.values()))
        sound: dict[str, str] = {}
        for key, text in opened.items():
            if named[key] <= texts.keys():
                sound[key] = text
            else:
                damaged.add(key)
        return KeptRequests(sound=sound, texts=texts, damaged=damaged)

    def _documents(
        self, kind: str, keys: Collection[str] | None
    ) -> list[rows.StoredDocument]:
        """Return documents of a kind as they are stored. Raises LedgerError.

        In a replay of a damaged ledger each has an empty text, which no seal fits.
        """
        if keys is not None and not keys:
            return []
        query = "SELECT kind, key, text FROM documents WHERE kind = ?"
        values = [kind]
        if keys is not None:
            query += f" AND key IN ({', '.join('?' * len(keys))})"
            values += keys
        try:
            stored = self.store.read(f"{query} ORDER BY key", values)
        except StoreError as error:
            if not (self._read_only and error.is_damage):
                raise self._fail(error) from None
            stored = [(kind, key, "") for key in keys or ()]
        return [rows.StoredDocument._make(row) for row in stored]


@lru_cache
def _query_of_newest(count: int) -> str:
    """Return the query of the newest row that counts, of so many wanted ones."""
    return _FIND_NEWEST.format(values=", ".join(["(?, ?, ?, ?, ?)"] * count))


def _found(values: Sequence[Any]) -> _Found:
    """Return the row of a query that says last whether it was imported."""
    *row, is_imported = values
    return _Found(row=StoredRow._make(row), is_imported=bool(is_imported))


class Grouped(Generic[T, R]):
    """Calls ``work`` in a thread with all items that came within ``seconds``, a group at a time.

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
        """Work on one group after the other until nobody waits."""
        while self._waiting:
            await asyncio.sleep(self._seconds)
            group = self._waiting
            self._waiting = []
            items = [item for item, _ in group]
            futures = [future for _, future in group]
            working = asyncio.to_thread(self._work, items)
            # Gathered: an error of the work is returned, and only a cancellation ends this task.
            (results,) = await asyncio.gather(working, return_exceptions=True)
            for number, future in enumerate(futures):
                if future.cancelled():
                    continue
                if isinstance(results, BaseException):  # every item must learn of it
                    future.set_exception(results)
                else:
                    future.set_result(results[number])

"""The rows of a ledger: replies and documents, sealed and signed.

A *seal* is a checksum that binds what a row holds to its key, its run and its time, so that
damage is noticed. With a secret in QA_LEDGER_KEY a *signature* follows it after a colon: an
HMAC-SHA-256 (RFC 2104) over everything in the row, so that nobody without the secret can
write a row, and no part of a row fits another one.

A PaidReply becomes a StoredRow by ``seal``, then ``Signer.signed``. It comes back by
``StoredRow.opened``, if its seal holds, and ``Signer.accepts``. Documents go the same way:
``seal_document`` and ``StoredDocument.opened``.
"""

import hmac
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from qagate.evaluators.core import QAError, Reply, UsageError
from qagate.evaluators.kept_requests import REQUEST, TEXT, Document
from qagate.evaluators.reading import parse_json
from qagate.evaluators.reply_fields import read_reply
from qagate.evaluators.text import Key, canonical, digest, flat, one_line

SCHEMA = 2
"""The format of a ledger and of its rows."""

LATEST = 10.0**11
"""Seconds since 1970. A later time is damage, and no calendar has it."""

VARIABLE = "QA_LEDGER_KEY"
"""The environment variable with the secret that signs rows."""

MIN_SECRET_LENGTH = 32
"""Characters. A shorter secret can be guessed from a row that it signed."""

Row = tuple[Any, ...]
"""A row of any query."""

Statements = Sequence[tuple[str, Sequence[Sequence[object]]]]
"""SQL statements with question marks for values; each runs once for each of its rows of values."""


class Sql:
    """The statements that every kind of database is given."""

    COLUMNS = "key, run, schema, at, spec, reply, checksum"
    ROWS = f"SELECT {COLUMNS} FROM calls"
    INSERT = f"INSERT INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    MARK_IMPORTED = (
        "INSERT INTO imported (key, run) VALUES (?, ?) ON CONFLICT DO NOTHING"
    )
    ADD_DOCUMENT = "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    SWAP_DOCUMENT = (
        "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) ON CONFLICT (kind, key) "
        "DO UPDATE SET text = excluded.text WHERE documents.text = ?"
    )
    REPLACE_DOCUMENT = (
        "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) ON CONFLICT (kind, key) "
        "DO UPDATE SET text = excluded.text WHERE documents.text <> excluded.text"
    )


class LedgerError(QAError):
    """The ledger cannot keep what is paid for, so no further call may start."""


class StoreError(Exception):
    """A failure of the ledger's database."""

    def __init__(
        self, message: str, *, is_damage: bool = False, is_full: bool = False
    ) -> None:
        super().__init__(message)
        self.is_damage = is_damage
        """Whether the file is not what was written."""
        self.is_full = is_full
        """Whether the disk has no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    """One reply to keep."""

    key: str
    """The hash of the whole request."""
    spec: str
    """The model's SPEC."""
    reply: Reply
    run: str = ""
    """The id of the run that asked; empty for a command that is no run."""
    at: float | None = None
    """When it was asked for, in seconds since 1970; None for now."""
    documents: tuple[Document, ...] = ()
    """What was sent; kept in the same transaction as the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReply:
    """A reply that is kept, and where it comes from."""

    reply: Reply
    at: float
    """When it was asked for, in seconds since 1970."""
    run: str
    """The id of the run that asked."""
    is_imported: bool = False
    """Whether it came by ``ledger import``."""


class RowId(NamedTuple):
    """What tells a reply from every other: a run has at most one to a request."""

    key: str
    run: str


class StoredRow(NamedTuple):
    """A reply as the database holds it. Any field may be damaged."""

    key: str
    run: str
    schema: int
    at: float
    """Seconds since 1970."""
    spec: str
    reply: str
    """Canonical JSON."""
    checksum: str
    """The checksum of key, run, time and reply, with the signature if there is one."""

    @property
    def id(self) -> RowId:
        """What tells this row from every other."""
        return RowId(self.key, self.run)

    @property
    def line(self) -> str:
        """A sound row as a line of ASCII JSON, for an export."""
        return canonical({**self._asdict(), "reply": json.loads(self.reply)}) + "\n"

    def text(self) -> str | None:
        """Return the reply as JSON; None where ``opened`` returns None."""
        return self.reply if self.opened() is not None else None

    def opened(self) -> Reply | None:
        """Return the reply, or None if the row is not what was written, or cannot be used."""
        texts = (self.key, self.run, self.spec, self.reply, self.checksum)
        if not all(isinstance(text, str) for text in texts):
            return None
        if not isinstance(self.at, float) or not 0 <= self.at <= LATEST:
            return None
        if self.schema != SCHEMA:
            return None
        sound = checksum(self.key, self.run, self.at, self.reply)
        if _seal_of(self.checksum) != sound:
            return None
        try:
            return read_reply(self.reply)
        except (ValueError, RecursionError):
            return None


def _seal_of(sealed: str) -> str:
    """Return a seal without the signature that may follow it."""
    return sealed.partition(":")[0]


def _signature_of(sealed: str) -> str:
    """Return the signature that follows a seal; empty if there is none."""
    return sealed.partition(":")[2]


def seal(paid: PaidReply, now: float) -> StoredRow:
    """Return a reply as it is stored: with its checksum, not yet signed."""
    at = now if paid.at is None else paid.at
    fields = flat(paid.reply)
    fields["calls"] = [flat(call) for call in paid.reply.calls]
    text = canonical(fields)
    return StoredRow(
        key=paid.key,
        run=paid.run,
        schema=SCHEMA,
        at=at,
        spec=paid.spec,
        reply=text,
        checksum=checksum(paid.key, paid.run, at, text),
    )


def checksum(key: str, run: str, at: float, text: str) -> str:
    """Return the checksum that binds a reply to its key, its run and its time."""
    return digest([key, run, at, text])


class Signer:
    """Signs rows and checks signatures; without a secret it signs nothing and accepts every row.

    No traceback can show the secret. Raises UsageError for one that could be guessed.
    """

    def __init__(self) -> None:
        self._key = Key(os.environ[VARIABLE]) if VARIABLE in os.environ else None
        if self._key is not None and len(os.environ[VARIABLE]) < MIN_SECRET_LENGTH:
            raise UsageError(
                f"{VARIABLE}: empty or too short; at least {MIN_SECRET_LENGTH} characters are "
                "needed, such as `openssl rand -hex 32` makes; unset it to use a ledger without "
                "signatures"
            )

    def signed(self, row: StoredRow) -> StoredRow:
        """Return the row with its signature; unchanged if there is no secret."""
        signature = self._signature(row)
        if not signature:
            return row
        return row._replace(checksum=f"{row.checksum}:{signature}")

    def accepts(self, row: StoredRow) -> bool:
        """Return whether this secret signed the row as it is; True if there is no secret."""
        signature = self._signature(row)
        if not signature:
            return True
        given = _signature_of(row.checksum).encode("utf-8", "replace")
        return hmac.compare_digest(given, signature.encode("ascii"))

    def _signature(self, row: StoredRow) -> str:
        """Return what a row is signed with; empty if there is no secret."""
        if self._key is None:
            return ""
        content = canonical([row.key, row.run, row.schema, row.at, row.spec, row.reply])
        secret = self._key.reveal().encode("utf-8", "surrogateescape")
        return hmac.digest(secret, content.encode("ascii"), "sha256").hex()


# Lines: rows outside of a database.


def read_line(line: bytes, signer: Signer) -> StoredRow:
    """Return the row of a line that ``StoredRow.line`` wrote.

    Raises ValueError, with what to do, if it does not verify.
    """
    return row_of(values_in(line), signer)


def values_in(line: bytes) -> dict[str, Any]:
    """Return the values of a line, none where it holds something else. Raises ValueError."""
    try:
        values = parse_json(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8; give a file that `ledger export` wrote") from None
    return values if isinstance(values, dict) else {}


def row_of(values: Mapping[str, Any], signer: Signer) -> StoredRow:
    """Return the row of a line's values. Raises ValueError if it does not verify."""
    if values.keys() != set(StoredRow._fields):
        wanted = ", ".join(sorted(StoredRow._fields))
        raise ValueError(f"not a row of a ledger; needed are {wanted}")
    if values["schema"] != SCHEMA:
        schema = one_line(str(values["schema"]), 20)
        raise ValueError(f"format {schema}, this version reads format {SCHEMA}")
    row = StoredRow(
        key=values["key"],
        run=values["run"],
        schema=values["schema"],
        at=values["at"],
        spec=values["spec"],
        reply=canonical(values["reply"]),
        checksum=values["checksum"],
    )
    if row.opened() is None:
        raise ValueError(
            "the row is not what was exported: its checksum is wrong; export it again"
        )
    if not signer.accepts(row):
        raise ValueError(f"unsigned: it was not written with this {VARIABLE}")
    return row


# Documents.


class StoredDocument(Document):
    """A document as the database holds it. Any field may be damaged.

    A text is stored as it is, because its key is its digest. Of any other document, the
    stored text is the seal, a space and the content: a request's as it is, all others as
    ASCII JSON.
    """

    @property
    def line(self) -> str:
        """A document as a line of ASCII JSON, for an export."""
        return canonical(self._asdict()) + "\n"

    def opened(self, signer: Signer) -> str | None:
        """Return the text, or None if it is damaged or lacks the signature it should have."""
        if not all(isinstance(text, str) for text in self):
            return None
        try:
            if self.kind == TEXT:
                return self.text if digest(json.loads(self.text)) == self.key else None
            return self._content_if_sound(signer)
        except (ValueError, RecursionError):
            return None

    def _content_if_sound(self, signer: Signer) -> str | None:
        """Return the content if its seal and its signature hold. Raises ValueError for no JSON."""
        sealed, _, content = self.text.partition(" ")
        row = _document_row(self.kind, self.key, content)
        if _seal_of(sealed) != row.checksum:
            return None
        if not signer.accepts(row._replace(checksum=sealed)):
            return None
        if self.kind == REQUEST:
            return content
        text: str = json.loads(content)
        return text


def seal_document(document: Document, signer: Signer) -> StoredDocument:
    """Return a document as it is stored."""
    kind, key, text = document
    if kind == TEXT:
        return StoredDocument(kind, key, text)
    content = text if kind == REQUEST else canonical(text)
    sealed = signer.signed(_document_row(kind, key, content)).checksum
    return StoredDocument(kind, key, f"{sealed} {content}")


def _document_row(kind: str, key: str, content: str) -> StoredRow:
    """Return a document as a row to be sealed and signed; it is stored nowhere.

    Its time is 0, because a document may be replaced. No reply can be made of it: what a
    reply's row holds begins with a brace. A request's content does so too and gets a word
    before it; that of any other document is a JSON text, which begins with a quote.
    """
    signed_content = f"{REQUEST} {content}" if kind == REQUEST else content
    return StoredRow(
        key=key,
        run="",
        schema=SCHEMA,
        at=0.0,
        spec=kind,
        reply=signed_content,
        checksum=digest([kind, key, content]),
    )

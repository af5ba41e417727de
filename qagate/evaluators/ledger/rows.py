"""The rows of a ledger: replies and documents, sealed and signed.

A seal is a checksum. With a secret in QA_LEDGER_KEY a signature follows it after a colon: an
HMAC-SHA-256 (RFC 2104) over everything in the row, so that no part of a row fits another one.
"""

import hmac
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from qagate.evaluators.core import QAError, Reply, ToolCall, UsageError
from qagate.evaluators.text import REQUEST, TEXT, Document, Key, canonical, digest, flat

SCHEMA = 1
VARIABLE = "QA_LEDGER_KEY"
MIN_SECRET_LENGTH = (
    32  # characters; a shorter secret can be guessed from a row that it signed
)


class Sql:
    """What both kinds of databases are asked."""

    COLUMNS = "key, schema, at, spec, reply, checksum"
    ROWS = f"SELECT {COLUMNS} FROM calls"
    INSERT = f"INSERT INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
    MARK_IMPORTED = "INSERT INTO imported (key) VALUES (?) ON CONFLICT DO NOTHING"
    ADD_DOCUMENT = "INSERT INTO documents (kind, key, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
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
        self.is_full = is_full


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    """One reply to keep."""

    key: str
    """The hash of the whole request."""
    spec: str
    """The model's SPEC."""
    reply: Reply
    documents: tuple[Document, ...] = ()
    """What was sent; kept in the same transaction as the reply."""


class StoredRow(NamedTuple):
    """A reply as the database holds it. Any field may be damaged."""

    key: str
    schema: int
    at: float
    """Seconds since 1970."""
    spec: str
    reply: str
    """Canonical JSON."""
    checksum: str
    """The checksum of key and reply, with the signature if there is one."""

    @property
    def line(self) -> str:
        """A sound row as a line of ASCII JSON, for an export."""
        return canonical({**self._asdict(), "reply": json.loads(self.reply)}) + "\n"

    def text(self) -> str | None:
        """Return the reply as JSON, or None if the row is not what was written."""
        texts = (self.key, self.spec, self.reply, self.checksum)
        if not all(isinstance(text, str) for text in texts) or not isinstance(
            self.at, float
        ):
            return None
        given = self.checksum.partition(":")[0]
        sound = self.schema == SCHEMA and given == checksum(self.key, self.reply)
        return self.reply if sound and self.reply.startswith("{") else None

    def opened(self) -> Reply | None:
        """Return the reply, or None if the row is not what was written."""
        if self.text() is None:
            return None
        with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return _read_reply(self.reply)
        return None


def _read_reply(text: str) -> Reply:
    """Return the reply that a row holds. Raises an error for fields that are not a reply's.

    A row that is older than a field has the field's default. Fields are taken out one by
    one: what is left then is not known to this version.
    """
    values: dict[str, Any] = json.loads(text)
    empty = Reply()
    reply = Reply(
        text=values.pop("text", empty.text),
        calls=tuple(_read_call(call) for call in values.pop("calls")),
        finish=values.pop("finish", empty.finish),
        model=values.pop("model", empty.model),
        input_tokens=values.pop("input_tokens", empty.input_tokens),
        output_tokens=values.pop("output_tokens", empty.output_tokens),
        seconds=values.pop("seconds", empty.seconds),
        cost=values.pop("cost", empty.cost),
        cache_read_tokens=values.pop("cache_read_tokens", empty.cache_read_tokens),
        cache_write_tokens=values.pop("cache_write_tokens", empty.cache_write_tokens),
        batch=values.pop("batch", empty.batch),
    )
    if values:
        raise ValueError(f"fields of no reply: {', '.join(values)}")
    return reply


def _read_call(values: dict[str, Any]) -> ToolCall:
    call = ToolCall(name=values.pop("name"), arguments=values.pop("arguments"))
    if values:
        raise ValueError(f"fields of no tool call: {', '.join(values)}")
    return call


def seal(row: PaidReply, at: float) -> StoredRow:
    """Return a row as it is stored, with its checksum and without a signature."""
    text = canonical(
        {**flat(row.reply), "calls": [flat(call) for call in row.reply.calls]}
    )
    return StoredRow(row.key, SCHEMA, at, row.spec, text, checksum(row.key, text))


def checksum(key: str, text: str) -> str:
    """Return the checksum that binds a reply to its key."""
    return digest([key, text])


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
        sign = self._signature(row)
        return row._replace(checksum=f"{row.checksum}:{sign}") if sign else row

    def accepts(self, row: StoredRow) -> bool:
        """Return whether this secret signed the row as it is; True if there is no secret."""
        given = row.checksum.partition(":")[2].encode("utf-8", "replace")
        sign = self._signature(row)
        return not sign or hmac.compare_digest(given, sign.encode("ascii"))

    def _signature(self, row: StoredRow) -> str:
        if self._key is None:
            return ""
        raw = canonical([row.key, row.schema, row.at, row.spec, row.reply]).encode(
            "ascii"
        )
        secret = self._key.reveal().encode("utf-8", "surrogateescape")
        return hmac.digest(secret, raw, "sha256").hex()


class StoredDocument(Document):
    """A document as the database holds it. Any field may be damaged.

    A text is stored as it is, because its key is its digest. Any other document follows its
    checksum and signature and a space: a request as it is, the rest as ASCII JSON.
    """

    @property
    def line(self) -> str:
        """A document as a line of ASCII JSON, for an export."""
        return canonical(self._asdict()) + "\n"

    @property
    def is_unsealed(self) -> bool:
        """Whether it is a request of an earlier version, which only its key can verify."""
        return self.kind == REQUEST and self.text[:1] == "{"

    def opened(self, signer: Signer) -> str | None:
        """Return the text, or None if it is damaged or lacks the signature it should have."""
        if not all(isinstance(text, str) for text in self):
            return None
        if self.is_unsealed:
            return self.text
        given, _, said = self.text.partition(" ")
        with suppress(ValueError, RecursionError):
            if self.kind == TEXT:
                return self.text if digest(json.loads(self.text)) == self.key else None
            row = _document_row(self.kind, self.key, said)
            is_sound = given.partition(":")[0] == row.checksum
            if is_sound and signer.accepts(row._replace(checksum=given)):
                text: str = said if self.kind == REQUEST else json.loads(said)
                return text
        return None


def seal_document(document: Document, signer: Signer) -> StoredDocument:
    """Return a document as it is stored."""
    kind, key, text = document
    if kind != TEXT:
        said = text if kind == REQUEST else canonical(text)
        text = f"{signer.signed(_document_row(kind, key, said)).checksum} {said}"
    return StoredDocument(kind, key, text)


def _document_row(kind: str, key: str, said: str) -> StoredRow:
    """Return what is signed of a document, never a reply; at 0, because it may be replaced."""
    text = f"{REQUEST} {said}" if kind == REQUEST else said
    return StoredRow(key, SCHEMA, 0.0, kind, text, digest([kind, key, said]))


Row = tuple[Any, ...]
"""A row of any query."""
Statements = Sequence[tuple[str, Sequence[Sequence[object]]]]
"""SQL statements with question marks for values; each runs once for each of its rows of values."""

"""A ledger's rows with their checksums, and what any database must do that keeps them."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from evaluators.core import QAError, Reply, ToolCall
from evaluators.sent import Document
from evaluators.text import canonical, digest, flat

T = TypeVar("T")

SCHEMA = 1
COLUMNS = "key, schema, at, spec, reply, checksum"
INSERT = f"INSERT INTO calls ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
IMPORTED = "INSERT INTO imported (key) VALUES (?) ON CONFLICT DO NOTHING"
SIGNED = ":"  # between a checksum and the signature behind it


class LedgerError(QAError):
    """The ledger cannot keep what is paid for: no further call may be started."""


class StoreError(Exception):
    """What a ledger's database says when it fails; ``is_damage`` where its content is malformed."""

    def __init__(self, message: str, *, is_damage: bool = False, is_full: bool = False) -> None:
        super().__init__(message)
        self.is_damage = is_damage
        self.is_full = is_full


class Transaction(Protocol):
    """Statements that hold together or not at all. Values stand for question marks."""

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""

    def run(self, sql: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        """Run a statement once for each row of values."""


class Store(Protocol):
    """An open database with the tables ``calls``, ``damaged``, ``imported`` and ``documents``.

    All methods may be called from any thread, and raise StoreError where the database fails.
    """

    @property
    def near(self) -> bool:
        """Whether a look-up takes microseconds, so that it need not leave the event loop."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the run's report."""

    @property
    def size(self) -> int:
        """How many bytes it takes."""

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query as of what is committed."""

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query that may have millions."""

    def change(self, work: Callable[[Transaction], T]) -> T:
        """Return what ``work`` returns once what it did is durable; if it raises, nothing is."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other live run is making."""

    def give_back(self, key: str) -> None:
        """Let others make a call that was claimed."""

    def alone(self) -> bool:
        """Return whether no other run has the ledger open."""

    def shrink(self) -> None:
        """Give the space of removed rows back."""

    def close(self) -> None:
        """Give everything back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidReply:
    """One reply to be kept under the key of its request; ``spec`` names its model.

    ``documents`` say what was sent, and are kept with it or not at all.
    """

    key: str
    spec: str
    reply: Reply
    documents: tuple[Document, ...] = ()


class StoredRow(NamedTuple):
    """A row as it is in the file: ``at`` in seconds since 1970, ``reply`` as canonical JSON."""

    key: str
    schema: int
    at: float
    spec: str
    reply: str
    checksum: str

    @property
    def is_sound(self) -> bool:
        """Whether every column holds what was written, or at least what may be there."""
        return self.opened() is not None

    @property
    def line(self) -> str:
        """A sound row as a line of JSON in ASCII, as it is exported."""
        return canonical({**self._asdict(), "reply": json.loads(self.reply)}) + "\n"

    def opened(self) -> Reply | None:
        """Return the reply, or None where the row is not what was written."""
        if not isinstance(self.key, str) or not isinstance(self.spec, str):
            return None
        if not isinstance(self.at, float):
            return None
        return _unseal(self.key, self.schema, self.reply, self.checksum)


def seal(row: PaidReply, at: float) -> StoredRow:
    """Return a row as it is stored, with its checksum."""
    text = canonical({**flat(row.reply), "calls": [flat(call) for call in row.reply.calls]})
    return StoredRow(row.key, SCHEMA, at, row.spec, text, checksum(row.key, text))


def checksum(key: str, text: str) -> str:
    """Return what a sound row has as its checksum; it binds the reply to its key."""
    return digest([key, text])


def _unseal(key: str, schema: object, text: object, given: object) -> Reply | None:
    if schema != SCHEMA or not isinstance(text, str) or not isinstance(given, str):
        return None
    if given.partition(SIGNED)[0] != checksum(key, text):
        return None
    try:
        values = json.loads(text)
        calls = tuple(ToolCall(**call) for call in values.pop("calls"))
        return Reply(calls=calls, **values)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def marks(values: Sequence[object]) -> str:
    """Return as many question marks as there are values, for an SQL list."""
    return ", ".join("?" * len(values))

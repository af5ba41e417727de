"""What a ledger holds and what it cost; its rows as JSON lines; taking old rows out.

The JSON lines are what CI carries from one machine to another.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from evaluators.core import Reply
from evaluators.ledger.database import COLUMNS, Store, StoredRow, Transaction
from evaluators.ledger.documents import ALL, FORGET, StoredDocument
from evaluators.ledger.signing import Signer
from evaluators.sent import REQUEST, TEXT
from evaluators.text import canonical

_KEY = re.compile(r"[0-9a-f]{64}")

Cost = Callable[[str, Reply], float | None]
"""What a reply of the model with this SPEC cost in USD, None where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows: of one model by its SPEC, and not older than a time in seconds since 1970."""

    spec: str | None = None
    since: float | None = None
    before: float | None = None

    @property
    def where(self) -> tuple[str, Sequence[object]]:
        """The condition and its values, for SQL."""
        tests = {"spec = ?": self.spec, "at >= ?": self.since, "at < ?": self.before}
        given = {test: value for test, value in tests.items() if value is not None}
        return " AND ".join(given) or "1 = 1", tuple(given.values())


def read_rows(store: Store, selection: Selection | None = None) -> Iterator[StoredRow]:
    """Yield the selected rows (all, by default) by key, damaged ones included."""
    condition, values = (selection or Selection()).where
    query = f"SELECT {COLUMNS} FROM calls WHERE {condition} ORDER BY key"
    return map(StoredRow._make, store.stream(query, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What the replies of one model add up to. ``cost`` is in USD, None for an unknown price.

    ``first`` and ``last`` are in seconds since 1970, ``seconds`` is the time of the calls.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    seconds: float = 0.0
    cost: float | None = 0.0
    first: float = float("inf")
    last: float = 0.0

    def plus(self, at: float, reply: Reply, cost: float | None) -> "Total":
        """Return the total with one reply more."""
        return replace(
            self,
            calls=self.calls + 1,
            input_tokens=self.input_tokens + reply.input_tokens,
            output_tokens=self.output_tokens + reply.output_tokens,
            cache_read_tokens=self.cache_read_tokens + reply.cache_read_tokens,
            seconds=self.seconds + reply.seconds,
            cost=None if cost is None or self.cost is None else self.cost + cost,
            first=min(self.first, at),
            last=max(self.last, at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStats:
    """What a ledger holds: totals by SPEC, damaged rows still in place, and rows set aside.

    ``unsigned`` of the rows lack the signature that the environment's secret would give them;
    ``imported`` came by an import; ``documents`` stand beside the replies.
    """

    models: dict[str, Total] = field(default_factory=dict)
    damaged: int = 0
    unsigned: int = 0
    imported: int = 0
    set_aside: int = 0
    documents: int = 0


def ledger_stats(store: Store, cost: Cost) -> LedgerStats:
    """Return what all rows add up to."""
    models: dict[str, Total] = {}
    damaged = unsigned = 0
    signer = Signer.of_environment()
    for row in read_rows(store):
        reply = row.opened()
        if reply is None:
            damaged += 1
        else:
            unsigned += not signer.accepts(row)
            total = models.get(row.spec, Total())
            models[row.spec] = total.plus(row.at, reply, cost(row.spec, reply))
    counts = {
        table: store.read(f"SELECT count(*) FROM {table}")[0][0]
        for table in ("damaged", "imported", "documents")
    }
    return LedgerStats(
        models=dict(sorted(models.items())),
        damaged=damaged,
        unsigned=unsigned,
        imported=counts["imported"],
        set_aside=counts["damaged"],
        documents=counts["documents"],
    )


def export_lines(store: Store, selection: Selection, left_out: list[str]) -> Iterator[str]:
    """Yield each sound row as one line of JSON in ASCII; the keys of the others go to ``left_out``.

    The same rows always give the same lines. Where all rows are selected the documents follow them.
    """
    for row in read_rows(store, selection):
        if row.is_sound:
            yield row.line
        else:
            left_out.append(str(row.key))
    if selection == Selection():
        for document in store.stream(ALL):
            yield canonical(StoredDocument._make(document)._asdict()) + "\n"


def count(store: Store, selection: Selection) -> tuple[int, int]:
    """Return how many rows are selected, and the bytes of their replies."""
    condition, values = selection.where
    query = f"SELECT count(*), coalesce(sum(length(reply)), 0) FROM calls WHERE {condition}"
    ((number, size),) = store.read(query, values)
    return int(number), int(size)


def prune(store: Store, selection: Selection) -> None:
    """Take the selected rows out, with what was sent for them, and give their space back."""
    condition, values = selection.where
    gone = "NOT EXISTS (SELECT 1 FROM calls WHERE calls.key = {}.key)"
    texts = "SELECT key FROM documents WHERE kind = ?"
    requests = "SELECT text FROM documents WHERE kind = ?"

    def work(transaction: Transaction) -> None:
        transaction.run(f"DELETE FROM calls WHERE {condition}", [values])
        transaction.run("DELETE FROM imported WHERE " + gone.format("imported"))
        requests_gone = f"DELETE FROM documents WHERE kind = ? AND {gone.format('documents')}"
        transaction.run(requests_gone, [(REQUEST,)])

    def tidy(transaction: Transaction) -> None:
        transaction.run(FORGET, [(TEXT, key) for key in unnamed])

    store.change(work)
    named = {key for (text,) in store.stream(requests, (REQUEST,)) for key in _KEY.findall(text)}
    unnamed = [key for (key,) in store.read(texts, (TEXT,)) if key not in named]
    store.change(tidy)
    store.shrink()

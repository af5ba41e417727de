"""What a ledger holds and what it cost; its rows as JSON lines, out and in; taking old rows out.

The JSON lines are what CI carries from one machine to another.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluators.core import Reply, UsageError
from evaluators.ledger.database import COLUMNS, IMPORTED, INSERT, SCHEMA, StoredRow
from evaluators.ledger.signing import VARIABLE, Signer
from evaluators.models.secrets import one_line
from evaluators.reading import parse_json
from evaluators.text import canonical

FIELDS = frozenset(StoredRow._fields)

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
        return " AND ".join(given) or "1", tuple(given.values())


def read_rows(
    connection: sqlite3.Connection, selection: Selection | None = None
) -> Iterator[StoredRow]:
    """Yield the selected rows (all, by default) by key, damaged ones included."""
    condition, values = (selection or Selection()).where
    query = f"SELECT {COLUMNS} FROM calls WHERE {condition} ORDER BY key"
    return map(StoredRow._make, connection.execute(query, values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What the replies of one model add up to. ``cost`` is in USD, None for an unknown price.

    ``first`` and ``last`` are in seconds since 1970, ``seconds`` is the time of the calls.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
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
            seconds=self.seconds + reply.seconds,
            cost=None if cost is None or self.cost is None else self.cost + cost,
            first=min(self.first, at),
            last=max(self.last, at),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStats:
    """What a ledger holds: totals by SPEC, damaged rows still in place, and rows set aside.

    ``unsigned`` of the rows lack the signature that the environment's secret would give them;
    ``imported`` came by an import.
    """

    models: dict[str, Total] = field(default_factory=dict)
    damaged: int = 0
    unsigned: int = 0
    imported: int = 0
    set_aside: int = 0


def ledger_stats(connection: sqlite3.Connection, cost: Cost) -> LedgerStats:
    """Return what all rows add up to."""
    models: dict[str, Total] = {}
    damaged = unsigned = 0
    signer = Signer.of_environment()
    for row in read_rows(connection):
        reply = row.opened()
        if reply is None:
            damaged += 1
        else:
            unsigned += not signer.accepts(row)
            total = models.get(row.spec, Total())
            models[row.spec] = total.plus(row.at, reply, cost(row.spec, reply))
    (set_aside,) = connection.execute("SELECT count(*) FROM damaged").fetchone()
    (known,) = connection.execute(
        "SELECT count(*) FROM sqlite_master WHERE name = 'imported'"
    ).fetchone()  # a ledger of an earlier version has no such table
    counted = known and connection.execute("SELECT count(*) FROM imported").fetchone()[0]
    return LedgerStats(
        models=dict(sorted(models.items())),
        damaged=damaged,
        unsigned=unsigned,
        imported=counted,
        set_aside=set_aside,
    )


def export_lines(
    connection: sqlite3.Connection, selection: Selection, left_out: list[str]
) -> Iterator[str]:
    """Yield each sound row as one line of JSON in ASCII; the keys of the others go to ``left_out``.

    The same rows always give the same lines.
    """
    for row in read_rows(connection, selection):
        if row.is_sound:
            yield canonical({**row._asdict(), "reply": json.loads(row.reply)}) + "\n"
        else:
            left_out.append(str(row.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How an import ended. ``refused`` says for each bad line where and why."""

    new: int
    known: int
    refused: tuple[str, ...] = ()


def import_rows(connection: sqlite3.Connection, path: Path, *, skip_bad: bool) -> Imported:
    """Add the rows of an exported file; with a bad line none, unless it is to be skipped.

    A line is bad when it is no row, fails its checksum, lacks the signature that the environment's
    secret asks for, or brings another reply for a key that has one: the first is kept. Raises
    UsageError where the file cannot be read.
    """
    signer = Signer.of_environment()
    added: list[bool] = []
    refused: list[str] = []
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, line in enumerate(_read_lines(path), start=1):
            try:
                added.append(_add(connection, _parse(line, signer)))
            except ValueError as error:
                refused.append(f"{path}:{number}: {error}")
        connection.execute("COMMIT" if skip_bad or not refused else "ROLLBACK")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return Imported(new=sum(added), known=added.count(False), refused=tuple(refused))


def _read_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror}); give the path of an exported file"
        raise UsageError(msg) from None


def _parse(line: bytes, signer: Signer) -> StoredRow:
    try:
        values: Any = parse_json(line.decode("utf-8"))
    except UnicodeDecodeError:
        msg = "not UTF-8; give a file that `ledger export` wrote"
        raise ValueError(msg) from None
    if not isinstance(values, dict) or values.keys() != FIELDS:
        msg = f"not a row of a ledger; needed are {', '.join(sorted(FIELDS))}"
        raise ValueError(msg)
    if values["schema"] != SCHEMA:
        msg = f"format {one_line(str(values['schema']), 20)}, this version reads format {SCHEMA}"
        raise ValueError(msg)
    row = StoredRow(**{**values, "reply": canonical(values["reply"])})
    if not row.is_sound:
        msg = "the row is not what was exported: its checksum is wrong; export it again"
        raise ValueError(msg)
    if not signer.accepts(row):
        msg = f"unsigned: it was not written with this {VARIABLE}"
        raise ValueError(msg)
    return row


def _add(connection: sqlite3.Connection, row: StoredRow) -> bool:
    """Insert a row; return whether it is new. Raises ValueError where another reply is kept."""
    kept = connection.execute("SELECT reply FROM calls WHERE key = ?", (row.key,)).fetchone()
    if kept is None:
        connection.execute(INSERT, row)
        connection.execute(IMPORTED, (row.key,))
    elif kept[0] != row.reply:
        msg = f"another reply stands under {row.key[:12]}…; the first is kept"
        raise ValueError(msg)
    return kept is None


def count(connection: sqlite3.Connection, selection: Selection) -> tuple[int, int]:
    """Return how many rows are selected, and the bytes of their replies."""
    condition, values = selection.where
    query = f"SELECT count(*), coalesce(sum(length(reply)), 0) FROM calls WHERE {condition}"
    number, size = connection.execute(query, values).fetchone()
    return int(number), int(size)


def prune(connection: sqlite3.Connection, selection: Selection) -> None:
    """Take the selected rows out and give their space back."""
    condition, values = selection.where
    connection.execute(f"DELETE FROM calls WHERE {condition}", values)
    connection.execute("DELETE FROM imported WHERE key NOT IN (SELECT key FROM calls)")
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

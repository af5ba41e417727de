"""What is in a ledger and what it cost; and taking old rows out."""

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from evaluators.core import Reply
from evaluators.ledger.rows import Stored, decode, is_sound
from evaluators.ledger.transfer import Chosen

Cost = Callable[[str, Reply], float | None]
"""What a reply of the model with this SPEC cost in USD, None where no price is known."""


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
    """What a ledger holds: totals by SPEC, damaged rows still in place, and those set aside."""

    models: dict[str, Total] = field(default_factory=dict)
    damaged: int = 0
    set_aside: int = 0


def ledger_stats(rows: Iterable[Stored], set_aside: int, cost: Cost) -> LedgerStats:
    """Return what these rows add up to."""
    models: dict[str, Total] = {}
    damaged = 0
    for row in rows:
        reply = decode(row.reply) if is_sound(row) else None
        if reply is None:
            damaged += 1
        else:
            so_far = models.get(row.spec, Total())
            models[row.spec] = so_far.plus(row.at, reply, cost(row.spec, reply))
    return LedgerStats(models=dict(sorted(models.items())), damaged=damaged, set_aside=set_aside)


def count(connection: sqlite3.Connection, chosen: Chosen) -> tuple[int, int]:
    """Return how many rows are chosen, and the bytes of their replies."""
    condition, values = chosen.where
    query = f"SELECT count(*), coalesce(sum(length(reply)), 0) FROM calls WHERE {condition}"
    number, size = connection.execute(query, values).fetchone()
    return int(number), int(size)


def prune(connection: sqlite3.Connection, chosen: Chosen) -> None:
    """Take the chosen rows out and give their space back."""
    condition, values = chosen.where
    connection.execute(f"DELETE FROM calls WHERE {condition}", values)
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def size_of(path: Path) -> int:
    """Return the bytes that a ledger takes on the disk."""
    files = (path.with_name(path.name + ending) for ending in ("", "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())

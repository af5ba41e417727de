"""Waves: calls that go to a provider in one batch, and what the ledger remembers of each.

A wave is in the ledger before the provider hears of it, and its batch's id before it is waited for:
so that a run which is killed at any moment is gone on with, and nothing is given away twice.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evaluators.ledger import Ledger
from evaluators.runtime.budget import money
from evaluators.text import canonical, flat

KIND = "batch"
"""The ledger's kind of document, and the kind of items whose calls are still with a provider."""
State = Literal["planned", "sending", "sent", "read", "given up"]
"""How far a wave is; while ``sending`` it cannot be told whether the provider has it."""
OPEN: frozenset[State] = frozenset({"planned", "sending", "sent"})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How batches are used. ``wait`` is the seconds that a run waits for them, None for no end.

    A batch that the provider does not know ``settle`` seconds after it was sent has not reached it.
    A wave is sent after ``quiet`` seconds without news. Pauses between looks grow from ``first`` to
    ``longest`` seconds; those before a request is tried again begin at ``pause``.
    """

    wait: float | None = None
    settle: float = 30.0
    quiet: float = 0.15
    pause: float = 1.0
    first: float = 0.25
    longest: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """The calls of one batch. ``keys`` are theirs in the ledger, dropped once it is over.

    ``at`` is when it was sent, in seconds since 1970, ``batch`` the provider's id; ``was_found``
    says that nobody heard it, and that it was looked for. ``others`` are batches that were found so
    and held other calls. ``failed`` calls came back without a reply.
    """

    id: str
    spec: str
    at: float
    calls: int
    keys: tuple[str, ...] = ()
    state: State = "planned"
    batch: str = ""
    was_found: bool = False
    others: tuple[str, ...] = ()
    done: int = 0
    failed: int = 0

    @property
    def is_open(self) -> bool:
        """Whether its calls may still be with the provider."""
        return self.state in OPEN

    @property
    def named(self) -> str:
        """What the user may call it."""
        return self.batch or self.id[:16]


async def keep_wave(ledger: Ledger, wave: Wave) -> Wave:
    """Return the wave once the ledger has it as it is now."""
    await ledger.keep(KIND, wave.id, canonical(flat(wave)))
    return wave


def waves_in(ledger: Ledger) -> dict[str, Wave]:
    """Return all waves that a ledger remembers, by their ids."""
    return {key: _read(text) for key, text in ledger.documents(KIND).items()}


def wave_in(ledger: Ledger, name: str) -> Wave | None:
    """Return a wave as the ledger has it now, None where it is not known."""
    text = ledger.document(KIND, name)
    return None if text is None else _read(text)


def _read(text: str) -> Wave:
    values = json.loads(text)
    return Wave(**{**values, "keys": tuple(values["keys"]), "others": tuple(values["others"])})


@dataclass(slots=True, kw_only=True)
class Tally:
    """What became of the calls of this run's batches; ``spent`` in USD, None for no known price.

    ``out`` holds by wave how many calls the provider has, how many of them are done, and failed.
    """

    done: int = 0
    failed: int = 0
    spent: float | None = 0.0
    out: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def add(self, cost: float | None) -> None:
        """Count what a reply cost."""
        self.spent = None if cost is None or self.spent is None else self.spent + cost

    def describe(self) -> str:
        """Return in a few words what is done, failed and queued; empty without any batch."""
        if not self.out:
            return ""
        calls, done, failed = (sum(column) for column in zip(*self.out.values(), strict=True))
        counts = f"{self.done + done:,} done, {self.failed + failed:,} failed"
        head = "a batch" if len(self.out) == 1 else f"{len(self.out):,} batches"
        queued = f"{max(0, calls - done - failed):,} queued"
        price = "price unknown" if self.spent is None else f"{money(self.spent)} so far"
        return f"{head} with the provider: {counts}, {queued}; {price}"


def still_out(count: int, names: Sequence[str], *, is_on: bool) -> str:
    """Return the line for calls whose replies the run does not wait for.

    ``is_on`` says whether the run sends batches itself.
    """
    verb, calls = ("is", "call") if count == 1 else ("are", "calls")
    if is_on:
        return f"{count:,} {calls} {verb} still with the provider; run the same command again"
    return (
        f"{count:,} {calls} {verb} with the provider in a batch ({', '.join(names[:3])}); add "
        "--batch to wait, or give it up: python -m evaluators ledger batches --cancel ID"
    )


def by_key(waves: Mapping[str, Wave]) -> dict[str, Wave]:
    """Return the open waves by the keys of their calls."""
    return {key: wave for wave in waves.values() if wave.is_open for key in wave.keys}

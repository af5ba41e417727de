"""A wave as one run sees it: who waits for its calls, and how their replies reach them."""

import asyncio
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from evaluators.core import CallError, Reply, Request, StoppedError, TransientError
from evaluators.ledger import Ledger, PaidReply
from evaluators.models import LazyModel
from evaluators.models.adapter import BatchStatus
from evaluators.runtime.admission import NEVER
from evaluators.runtime.batch_flight import Flight
from evaluators.runtime.batch_waves import KIND, BatchSettings, Tally, still_out
from evaluators.runtime.sender import Sender

GROUP = 500  # replies that are kept at a time
CLAIMED = 100  # calls at a time that are looked up as another run's
NO_RESULT = "no_result"


class Item(Protocol):
    """An item at work; ``waiting`` counts the replies that it waits for."""

    waiting: int


@dataclass(slots=True, kw_only=True, eq=False)
class Parked:
    """A call that waits for its reply; ``row`` lacks only that to be kept.

    Its ``future`` holds None where it is to be asked directly. ``reserved`` USD are set aside;
    ``rounds`` counts the waves that brought no reply.
    """

    model: LazyModel
    request: Request
    row: partial[PaidReply]
    sender: Sender
    future: asyncio.Future[Reply | None]
    reserved: float = 0.0
    rounds: int = 0

    @property
    def key(self) -> str:
        """Under which the ledger is to keep the reply."""
        return str(self.row.keywords["key"])

    def end(self, result: Reply | Exception | None) -> None:
        """Give whoever waits the reply or the error, unless it has one; settle its money."""
        if self.future.done():
            return
        reply = result if isinstance(result, Reply) else None
        self.sender.settle(self.reserved, self.model.spec, reply)
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


@dataclass(slots=True, kw_only=True, eq=False)
class Desk:
    """What all waves of a run share. ``until`` is when they are waited for no longer.

    ``landing`` are the tasks of the waves that are read now, ``left`` by batch the calls that are
    not waited for. ``is_on`` says whether the run sends batches itself.
    """

    ledger: Ledger
    sender: Sender
    settings: BatchSettings
    price: Callable[[str, Reply], float | None]
    is_on: bool
    tally: Tally = field(default_factory=Tally)
    until: float | None = None
    landing: set[asyncio.Task[Any]] = field(default_factory=set)
    left: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Start the clock, unless it goes already."""
        if self.until is None:
            wait = NEVER if self.settings.wait is None else self.settings.wait
            self.until = asyncio.get_running_loop().time() + wait

    @property
    def is_over(self) -> bool:
        """Whether the time is up in which batches are waited for."""
        return asyncio.get_running_loop().time() >= (self.until or 0.0)

    def leave(self, name: str, calls: int) -> StoppedError:
        """Return the error of calls that a provider still has; the run's last line counts all."""
        self.left[name] = calls
        line = still_out(sum(self.left.values()), list(self.left), is_on=self.is_on)
        self.sender.stops[KIND] = line
        return StoppedError(KIND, line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Calls that may be sent: those that are ``free``, ``given`` to a provider, or ``busy``."""

    free: list[Parked] = field(default_factory=list)
    given: list[Parked] = field(default_factory=list)
    busy: list[Parked] = field(default_factory=list)


async def sort_out(ledger: Ledger, calls: Sequence[Parked], given: Container[str]) -> Sorted:
    """Return the calls by what other runs do with them; end those that the ledger has by now."""
    store, found = ledger.store, Sorted()
    for start in range(0, len(calls), CLAIMED):
        group = calls[start : start + CLAIMED]
        free = store.take([call.key for call in group])
        for key in free:
            store.give_back(key)
        kept = await asyncio.gather(*(ledger.find(call.key) for call in group))
        for call, reply in zip(group, kept, strict=True):
            if reply is not None:
                call.end(reply)
            elif call.key in given:
                found.given.append(call)
            else:
                (found.free if call.key in free else found.busy).append(call)
    return found


class LiveWave:
    """A wave that this run waits for, and the calls of it that the run asked for, by key."""

    def __init__(self, desk: Desk, flight: Flight, calls: dict[str, Parked] | None = None) -> None:
        self.flight = flight
        self.calls = calls or {}
        self.task: asyncio.Task[None] | None = None
        self._desk = desk

    async def land(self, known: Callable[[], Sequence[str]]) -> Mapping[str, CallError]:
        """Wait for the wave and keep its replies; return why others of its calls have none.

        Nothing is returned of a wave that the provider never had. ``known`` gives the ids of all
        batches. Raises StoppedError where it takes longer than the run waits.
        """
        flight, tally = self.flight, self._desk.tally

        def tell(status: BatchStatus) -> None:
            tally.out[flight.wave.id] = (flight.wave.calls, status.done, status.failed)

        try:
            if flight.wave.state != "sent" and not await flight.recover(known()):
                return {}
            if not await flight.wait(self._desk.until or 0.0, tell):
                raise self._desk.leave(flight.wave.named, len(self.calls))
            task = asyncio.current_task()
            assert task is not None
            self._desk.landing.add(task)
            try:
                return await self._read()
            finally:
                self._desk.landing.discard(task)
        finally:
            tally.out.pop(flight.wave.id, None)

    async def _read(self) -> Mapping[str, CallError]:
        """Take what came back: replies into the ledger, then to whoever waits for them."""
        failures: dict[str, CallError] = {}
        group: dict[str, Reply] = {}
        done = 0
        async for key, result in self.flight.results():
            if isinstance(result, CallError):
                failures[key] = result
                continue
            group[key] = result
            done += 1
            if len(group) >= GROUP:
                await self._keep(group)
                group = {}
        await self._keep(group)
        wave = self.flight.wave
        if not await self.flight.landed(done, is_empty=not done and not failures):
            return {}
        self._desk.tally.done += done
        self._desk.tally.failed += wave.calls - done
        nothing = TransientError(NO_RESULT, f"{wave.spec}: the batch has no result of this call")
        lost = (key for key, call in self.calls.items() if not call.future.done())
        return {key: failures.get(key, nothing) for key in lost}

    async def _keep(self, replies: Mapping[str, Reply]) -> None:
        desk, spec = self._desk, self.flight.spec
        rows = [
            call.row(reply=reply)
            if (call := self.calls.get(key))
            else PaidReply(key=key, spec=spec, reply=reply)
            for key, reply in replies.items()
        ]
        await asyncio.gather(*map(desk.ledger.put, rows))
        for key, reply in replies.items():
            desk.tally.add(desk.price(spec, reply))
            if call := self.calls.get(key):
                call.end(reply)
            else:
                desk.sender.settle(0.0, spec, reply)

"""One wave's way: to the provider, the wait for it, and the results; picked up wherever it stopped.

Creating the batch is the one step that costs money, and the one whose answer may be lost. Nothing
is created while it can be that the provider has it already.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from evaluators.core import (
    CallError,
    FatalError,
    RefusedError,
    Reply,
    StoppedError,
    TransientError,
)
from evaluators.ledger import Ledger
from evaluators.models.adapter import BatchStatus
from evaluators.models.batching import BatchedModel
from evaluators.runtime.batch_waves import KIND, BatchSettings, State, Wave, keep_wave, wave_in

T = TypeVar("T")

TRIES = 6  # of one request, with pauses that double
OUT_OF_REACH = 1800.0  # seconds without any word of the provider after which a run ends
CLAIM_POLL = 0.1
GIVEN_BACK_SECONDS = 1.0
NOT_KNOWN = "not_found"
RATE_LIMIT = "rate_limit"
LOST = "batch_lost"
NOT_TAKEN = "batch_refused"
FULL = frozenset({NOT_TAKEN, RATE_LIMIT})
"""Kinds of refusals that may be for lack of room."""


class Flight:
    """One wave at its provider. It raises CallErrors, and LedgerError where nothing can be kept."""

    def __init__(
        self, wave: Wave, model: BatchedModel, ledger: Ledger, settings: BatchSettings
    ) -> None:
        self.wave = wave
        self._model = model
        self._ledger = ledger
        self._settings = settings

    @property
    def spec(self) -> str:
        """The SPEC of its model, as this run names it."""
        return self._model.spec

    async def note(self, state: State, **values: Any) -> None:
        """Keep what has become of the wave; return once the ledger has it."""
        self.wave = await keep_wave(self._ledger, replace(self.wave, state=state, **values))

    async def send(self, lines: Sequence[bytes], others: Sequence[str]) -> None:
        """Give the wave to the provider; ``others`` are the ids of batches that are known.

        Raises FatalError where the provider refuses it, StoppedError where it cannot be told
        whether the provider has it: then the next run finds out.
        """
        name = self.wave.id
        try:
            file = await self._tried(lambda: self._model.upload(name, lines))
            await self.note("sending", at=time.time())
            batch, was_found = await self._created(file, lines, others)
        except (FatalError, RefusedError) as error:
            await self.give_up()
            raise refused(error.kind, str(error)) from None
        await self.note("sent", batch=batch, was_found=was_found)

    async def _created(
        self, file: str, lines: Sequence[bytes], others: Sequence[str]
    ) -> tuple[str, bool]:
        """Return the batch's id, and whether it had to be looked for."""
        for number in range(TRIES):
            try:
                return await self._model.create(self.wave.id, file, lines), False
            except TransientError as error:
                failure = error
            if failure.kind == RATE_LIMIT:  # a plain no
                await asyncio.sleep(failure.retry_after or self._settings.pause * 2.0**number)
            elif found := await self.find(others):
                return found, True
        if failure.kind == RATE_LIMIT:
            raise RefusedError(failure.kind, str(failure))
        raise StoppedError(KIND, f"{failure}; the next run finds out whether the batch was taken")

    async def find(self, others: Sequence[str]) -> str:
        """Return the id of the batch whose creation was not answered; empty if there is none.

        Raises StoppedError where that cannot be told.
        """
        wave = self.wave
        while True:
            try:
                ids = await self._tried(lambda: self._model.find(wave.id, wave.calls, wave.at))
            except (FatalError, RefusedError) as error:
                unknown = "it cannot be told whether the provider has the batch"
                msg = f"{error}; {unknown}; {give_up(wave)}"
                raise StoppedError(KIND, msg) from None
            new = [one for one in ids if one not in {*others, *wave.others}]
            left = wave.at + self._settings.settle - time.time()
            if new or left <= 0:
                return new[-1] if new else ""
            await asyncio.sleep(min(left, 1.0))

    async def recover(self, others: Sequence[str]) -> bool:
        """Go on with the wave of a run that may have died; return whether the provider has it.

        A run that lives and is sending it is waited for.
        """
        async with held(self._ledger, self.wave.id):
            self.wave = wave_in(self._ledger, self.wave.id) or self.wave
            if self.wave.state == "sending" and (found := await self.find(others)):
                await self.note("sent", batch=found, was_found=True)
            elif self.wave.is_open and self.wave.state != "sent":
                await self.give_up()
        return self.wave.state == "sent"

    async def give_up(self) -> None:
        """Note that nothing will come of the wave: its calls may be given away again."""
        await self.note("given up", keys=())

    async def wait(self, until: float, tell: Callable[[BatchStatus], None]) -> bool:
        """Return whether the batch was over by then, in the loop's time.

        Raises FatalError if the provider took none of it, StoppedError if it is out of reach.
        """
        clock = asyncio.get_running_loop().time
        heard, pause = clock(), self._settings.first
        while True:
            status = await self._heard(must_answer=clock() - heard > OUT_OF_REACH)
            if status is not None:
                heard = clock()
                tell(status)
                if status.is_over:
                    return True
            if clock() >= until:
                return False
            await asyncio.sleep(min(pause, max(0.0, until - clock())))
            pause = min(self._settings.longest, 1.5 * pause)

    async def _heard(self, *, must_answer: bool) -> BatchStatus | None:
        """Return what became of the batch so far, None if the provider cannot be reached now."""
        try:
            status = await self._model.status(self.wave.batch)
        except TransientError as error:
            if not must_answer:
                return None
            msg = f"{error}; the batch is kept, run the same command again"
            raise StoppedError(KIND, msg) from None
        except FatalError as error:
            raise self._lost(error) from None
        if status.refusal:
            await self.give_up()
            raise refused(NOT_TAKEN, f"{self.wave.spec}: {status.refusal}")
        return status

    def _lost(self, error: FatalError) -> FatalError:
        if error.kind != NOT_KNOWN:
            return error
        said = (
            f"{self.wave.spec}: the provider does not know the batch {self.wave.batch} of "
            f"{self.wave.calls:,} calls; use the key that it was sent with, or {give_up(self.wave)}"
        )
        return FatalError(LOST, said)

    async def results(self) -> AsyncIterator[tuple[str, Reply | CallError]]:
        """Yield each call of the wave that came back, once, and its reply or why there is none."""
        wanted = set(self.wave.keys)
        for number in range(TRIES):
            try:
                async for key, result in self._model.results(self.wave.batch):
                    if key in wanted:
                        wanted.discard(key)
                        yield key, result
            except TransientError as error:
                failure = error
            except FatalError as error:
                raise self._lost(error) from None
            else:
                return
            await asyncio.sleep(self._settings.pause * 2.0**number)
        msg = f"{failure}; the batch is kept, run the same command again"
        raise StoppedError(KIND, msg)

    async def landed(self, done: int, *, is_empty: bool) -> bool:
        """Note that the wave is over; False where its batch was another's.

        Such is one that was found, and that holds no call of ours.
        """
        wave = self.wave
        if is_empty and wave.was_found:
            await self.note("sending", batch="", others=(*wave.others, wave.batch))
            return False
        await self.note("read", keys=(), done=done, failed=wave.calls - done)
        return True

    async def _tried(self, ask: Callable[[], Awaitable[T]]) -> T:
        for number in range(TRIES):
            try:
                return await ask()
            except TransientError as error:
                failure = error
            await asyncio.sleep(failure.retry_after or self._settings.pause * 2.0**number)
        raise StoppedError(KIND, f"{failure}; run the same command again")


def refused(kind: str, why: str) -> FatalError:
    """Return the error of a batch that the provider did not take, with what to do."""
    advice = "leave --batch out to ask directly"
    return FatalError(kind, f"the provider took no batch: {why}; {advice}")


def give_up(wave: Wave) -> str:
    """Return how the user gives a wave up."""
    return f"give it up: python -m evaluators ledger batches --cancel {wave.named}"


@asynccontextmanager
async def held(ledger: Ledger, key: str) -> AsyncIterator[None]:
    """Hold a name that one run at a time may hold; whoever died holds it no longer."""
    while not ledger.store.take([key]):
        await asyncio.sleep(CLAIM_POLL)
    try:
        yield
    finally:
        ledger.store.give_back(key)
        if not ledger.store.near:  # which takes its time to give back, whoever holds it by then
            await asyncio.sleep(GIVEN_BACK_SECONDS)

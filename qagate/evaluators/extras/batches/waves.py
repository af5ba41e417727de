"""Waves: the calls of one batch, what the ledger remembers of them, and their way to the provider.

A wave is in the ledger before the provider hears of it, and its batch's id before anybody waits for
it, so a killed run is continued and nothing is sent twice. The answer to a batch's creation may be
lost: nothing is created while the provider may have it already.

Results are read as they come. A provider may count more results than it sends: a line may be
missing, cut or without its id. Those calls go into the next wave. Only where it sends nothing
at all does the wave stay open, for it may be out of reach. Users can end that (``--cancel``).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from qagate.evaluators.core import (
    CallError,
    FatalError,
    RefusedError,
    Reply,
    StoppedError,
    TransientError,
)
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.adapter import BatchApi, BatchStatus
from qagate.evaluators.models.batched import BatchedModel
from qagate.evaluators.runtime.caller import BATCH
from qagate.evaluators.runtime.server import LONGEST_WAIT_SECONDS
from qagate.evaluators.text import canonical, flat
from qagate.evaluators.typed_data import Count, Timestamp

T = TypeVar("T")

State = Literal["planned", "sending", "sent", "read", "given up"]
"""How far a wave is. While it is ``sending``, the provider may have it or not."""
OPEN: frozenset[State] = frozenset({"planned", "sending", "sent"})

TRIES = 6  # of one request, with pauses that double
OUT_OF_REACH_S = 1800.0  # without any word from the provider, after which a run ends
CLAIM_POLL_S = 0.1
GIVEN_BACK_S = 1.0
NOT_KNOWN = "not_found"
RATE_LIMIT = "rate_limit"
LOST = "batch_lost"
KEPT = "the batch is kept, run the same command again"
NOT_TAKEN = "batch_refused"
FULL = frozenset({NOT_TAKEN, RATE_LIMIT})
"""Kinds of refusals whose reason may be a lack of room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How batches are used; all times are in seconds."""

    wait: float | None = None
    """How long a run waits for its batches; None: to the end."""
    settle: float = 30.0
    """A batch that the provider has not listed after so long has not arrived."""
    quiet: float = 0.15
    """A wave is sent when nothing has happened for so long."""
    pause: float = 1.0
    """Before a request is tried again; it doubles with each try."""
    first: float = 0.25
    """The first pause between looks at a batch."""
    longest: float = 60.0
    """The longest of these pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """The calls of one batch."""

    id: str
    spec: str
    at: Timestamp
    """When it was sent, in seconds since 1970: then its calls are asked."""
    run: str
    """The id of the run that sent it."""
    calls: Count
    keys: tuple[str, ...] = ()
    """The ledger keys of its calls, dropped once it is over."""
    state: State = "planned"
    batch: str = ""
    """The provider's id."""
    was_found: bool = False
    """The provider's answer with the id was lost, and the batch was looked for."""
    after: str = ""
    """The provider's newest batch before this one was sent."""
    others: tuple[str, ...] = ()
    """Batches that were found like that and held other calls."""
    done: Count = 0
    failed: Count = 0
    """Calls that came back without a reply."""
    cancelled: bool = False
    """Whether the user gave it up: what it does not bring at once is asked again."""

    @property
    def is_open(self) -> bool:
        """Whether its calls may still be with the provider."""
        return self.state in OPEN

    @property
    def named(self) -> str:
        """The name that users read and give."""
        return self.batch or self.id[:16]

    @property
    def way_out(self) -> str:
        """What users do to get rid of it."""
        return f"give it up: qagate ledger batches --cancel {self.named}"


async def keep_wave(ledger: Ledger, wave: Wave) -> Wave:
    """Return the wave once the ledger has it."""
    await ledger.keep(BATCH, wave.id, canonical(flat(wave)))
    return wave


def waves_in(ledger: Ledger) -> dict[str, Wave]:
    """Return all waves that a ledger remembers, by id."""
    return ledger.documents_as(BATCH, Wave)


def open_runs(ledger: Ledger) -> frozenset[str]:
    """Return the ids of the runs of which a provider still has calls."""
    waves = waves_in(ledger).values()
    return frozenset(wave.run for wave in waves if wave.is_open)


class BatchPoller:
    """One wave at its provider: sends it, waits for it, reads it, from wherever it stopped."""

    def __init__(
        self, wave: Wave, model: BatchedModel, ledger: Ledger, settings: BatchSettings
    ) -> None:
        self.wave = wave
        self.spec = model.spec  # as this run names it
        self._model = model
        self._ledger = ledger
        self._settings = settings
        self._done = 0  # calls that have a reply, as the provider says

    async def note(self, wave: Wave) -> None:
        """Keep the wave as it is now; return once the ledger has it."""
        self.wave = await keep_wave(self._ledger, wave)

    async def give_up(self) -> None:
        """Note that nothing will come of the wave: its calls may be sent again."""
        await self.note(replace(self.wave, state="given up", keys=()))

    async def send(self, lines: Sequence[bytes], others: Sequence[str]) -> None:
        """Send the wave to the provider, which has ``others``, ids of known batches, already.

        Raises FatalError if it refuses, StoppedError if only the next run finds out what it has.
        """
        name = self.wave.id
        try:
            file = await self._tried(lambda api: api.upload(name, lines))
            newest = ""  # for a server that lists none: all are looked at then
            with suppress(FatalError, RefusedError):
                newest = await self._tried(lambda api: api.newest())
            await self.note(
                replace(self.wave, state="sending", at=time.time(), after=newest)
            )
            batch, was_found = await self._created(file, lines, others)
        except (FatalError, RefusedError) as error:
            await self.give_up()
            raise _refused(error.kind, str(error)) from None
        await self.note(
            replace(self.wave, state="sent", batch=batch, was_found=was_found)
        )

    async def _created(
        self, file: str, lines: Sequence[bytes], others: Sequence[str]
    ) -> tuple[str, bool]:
        for number in range(TRIES):
            try:
                made = await self._model.call_api(
                    lambda api: api.create(self.wave.id, file, lines)
                )
                return made, False
            except TransientError as error:
                failure = error
            if failure.kind == RATE_LIMIT:  # a plain no
                await asyncio.sleep(self._pause_after(failure, number))
            elif found := await self.find(others):
                return found, True
        if failure.kind == RATE_LIMIT:
            raise RefusedError(failure.kind, str(failure))
        raise StoppedError(
            BATCH, f"{failure}; the next run finds out whether the batch was taken"
        )

    async def find(self, others: Sequence[str]) -> str:
        """Return the batch whose creation was not answered, if any. Raises StoppedError."""
        wave, end = self.wave, time.monotonic() + self._settings.settle
        while True:
            try:
                ids = await self._tried(
                    lambda api: api.find(wave.id, wave.calls, wave.after)
                )
            except (FatalError, RefusedError) as error:
                unknown = "it cannot be told whether the provider has the batch"
                raise StoppedError(
                    BATCH, f"{error}; {unknown}; {wave.way_out}"
                ) from None
            new = [one for one in ids if one not in {*others, *wave.others}]
            left = end - time.monotonic()
            if new or left <= 0:
                return new[-1] if new else ""
            await asyncio.sleep(min(left, 1.0))

    async def recover(self, others: Sequence[str]) -> bool:
        """Continue a dead run's wave, or wait for a live one's; return whether it was sent."""
        async with held(self._ledger, self.wave.id):
            kept = self._ledger.documents_as(BATCH, Wave, [self.wave.id])
            self.wave = kept.get(self.wave.id, self.wave)
            batch = ""
            if self.wave.state == "sending":
                batch = await self.find(others)
            if batch:
                await self.note(
                    replace(self.wave, state="sent", batch=batch, was_found=True)
                )
            elif self.wave.is_open and self.wave.state != "sent":
                await self.give_up()
        return self.wave.state == "sent"

    async def wait(self, until: float, tell: Callable[[BatchStatus], None]) -> bool:
        """Return whether the batch was over by ``until``, in the loop's time."""
        clock = asyncio.get_running_loop().time
        heard, pause = clock(), self._settings.first
        while True:
            try:
                status = await self._model.call_api(
                    lambda api: api.status(self.wave.batch)
                )
            except TransientError as error:
                if clock() - heard > OUT_OF_REACH_S:
                    raise StoppedError(BATCH, f"{error}; {KEPT}") from None
            except (FatalError, RefusedError) as error:
                raise self._lost(error) from None
            else:
                if status.refusal:
                    await self.give_up()
                    raise _refused(NOT_TAKEN, f"{self.wave.spec}: {status.refusal}")
                heard, self._done = clock(), status.done
                tell(status)
                if status.is_over:
                    return True
            if clock() >= until:
                return False
            await asyncio.sleep(min(pause, max(0.0, until - clock())))
            pause = min(self._settings.longest, 1.5 * pause)

    def _lost(self, error: FatalError | RefusedError) -> FatalError:
        """Return the error that ends a run whose batch the provider does not give out."""
        wave = self.wave
        if error.kind != NOT_KNOWN:
            return FatalError(error.kind, f"{error}; mend that, or {wave.way_out}")
        what = (
            f"the provider does not know the batch {wave.batch} of {wave.calls:,} calls"
        )
        advice = f"use the key that it was sent with, or {wave.way_out}"
        return FatalError(LOST, f"{wave.spec}: {what}; {advice}")

    async def results(self) -> AsyncIterator[tuple[str, Reply | CallError]]:
        """Yield each call of the wave that came back, once: its key, and its reply or error.

        While some are missing the results are read again, until TRIES reads in a row have
        brought nothing new. What is missing then will not come. Raises StoppedError if the
        last of these reads brought no result at all: the provider may be out of reach.
        """
        all_keys = frozenset(self.wave.keys)
        missing = set(all_keys)
        reads_in_vain = 0
        while True:
            missing_before = len(missing)
            came = 0
            failure: TransientError | None = None
            try:
                async for key, result in self._model.results(self.wave.batch):
                    if key in all_keys:
                        came += 1
                    if key in missing:
                        missing.discard(key)
                        yield key, result
            except TransientError as error:
                failure = error
            except (FatalError, RefusedError) as error:
                raise self._lost(error) from None
            if failure is None and self._are_all(came, missing):
                return
            if len(missing) < missing_before:
                reads_in_vain = 0
            reads_in_vain += 1
            if reads_in_vain == TRIES:
                break
            await asyncio.sleep(self._settings.pause * 2.0 ** (reads_in_vain - 1))
        # A batch that was given up is asked again only if the provider was heard.
        if came or (self.wave.cancelled and failure is None):
            return
        why = failure or f"{len(missing):,} results did not come"
        way_out = "" if self.wave.cancelled else f", or {self.wave.way_out}"
        raise StoppedError(BATCH, f"{why}; {KEPT}{way_out}")

    def _are_all(self, came: int, missing: set[str]) -> bool:
        """Return whether a complete read brought all results that there are."""
        if self.wave.was_found and not came:
            return True  # it proved to be another wave's batch
        return self.wave.calls - len(missing) >= self._done

    async def end(self, done: int, *, is_empty: bool) -> bool:
        """Note that the wave is over; return False if its batch proved to be another wave's."""
        wave = self.wave
        if is_empty and wave.was_found:
            others = (*wave.others, wave.batch)
            await self.note(replace(wave, state="sending", batch="", others=others))
            return False
        failed = wave.calls - done
        await self.note(replace(wave, state="read", keys=(), done=done, failed=failed))
        return True

    async def _tried(self, ask: Callable[[BatchApi], Awaitable[T]]) -> T:
        for number in range(TRIES):
            try:
                return await self._model.call_api(ask)
            except TransientError as error:
                failure = error
            await asyncio.sleep(self._pause_after(failure, number))
        raise StoppedError(BATCH, f"{failure}; run the same command again")

    def _pause_after(self, failure: TransientError, number: int) -> float:
        """Return the seconds before another try; a server cannot make a run wait for a day."""
        if failure.retry_after:
            return min(failure.retry_after, LONGEST_WAIT_SECONDS)
        return self._settings.pause * 2.0**number


def _refused(kind: str, why: str) -> FatalError:
    advice = "leave --batch out to ask directly"
    return FatalError(kind, f"the provider took no batch: {why}; {advice}")


@asynccontextmanager
async def held(ledger: Ledger, key: str) -> AsyncIterator[None]:
    """Hold a name that one run at a time may hold; a run that died holds it no longer."""
    while not ledger.store.take([key]):
        await asyncio.sleep(CLAIM_POLL_S)
    try:
        yield
    finally:
        ledger.store.give_back(key)
        if not ledger.store.near:  # a database may take a moment to give it back
            await asyncio.sleep(GIVEN_BACK_S)

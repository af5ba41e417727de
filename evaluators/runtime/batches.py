"""Calls in batches: requests are parked until no item can go on without a reply, and make a wave.

All items are under way at once, so that their answers make one wave and their judgements the next.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from evaluators.core import CallError, FatalError, Model, Reply, StoppedError, TransientError
from evaluators.ledger import Ledger
from evaluators.models import LazyModel
from evaluators.models.batching import BatchedModel
from evaluators.runtime.batch_flight import FULL, Flight, held
from evaluators.runtime.batch_landing import Desk, Item, LiveWave, Parked, sort_out
from evaluators.runtime.batch_waves import KIND, BatchSettings, Wave, by_key, waves_in
from evaluators.runtime.sender import Sender
from evaluators.text import digest

ROUNDS = 3  # waves that one request may be part of
LATER_SECONDS = 1.0  # until a call that another run is making is looked at again
FRESH_SECONDS = 5.0  # for which it is taken for known what other runs have given away
GRACE_SECONDS = 2.0  # for what is being sent when a run ends
LONE = digest("batch")  # held while a wave is put together: two runs must not do so at once
COLLECT = BatchSettings(wait=0.0)
"""For a run without batches: what an earlier one gave away is fetched if it is there."""


class Batches:
    """The batches of one run, in one event loop. ``settings`` None begins none."""

    def __init__(
        self,
        ledger: Ledger,
        sender: Sender,
        settings: BatchSettings | None,
        price: Callable[[str, Reply], float | None],
    ) -> None:
        self.is_on = settings is not None
        self._ledger = ledger
        self._sender = sender
        self._settings = settings or COLLECT
        self._desk = Desk(
            ledger=ledger, sender=sender, settings=self._settings, price=price, is_on=self.is_on
        )
        self._waves: dict[str, Wave] = {}
        self._loaded_at = float("-inf")
        self._of_key: dict[str, Wave] = {}
        self._items: dict[int, Item] = {}
        self._parked: list[Parked] = []
        self._live: dict[str, LiveWave] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[None]] = set()
        self._forming: asyncio.Task[None] | None = None
        self._alone, self._loading = asyncio.Lock(), asyncio.Lock()
        self._news_at = 0.0
        self._halted: StoppedError | None = None

    @contextmanager
    def item(self, item: Item) -> Iterator[None]:
        """Count an item as at work: no wave is sent while it could still ask for something."""
        self._items[id(item)] = item
        try:
            yield
        finally:
            del self._items[id(item)]
            self._stir()

    def holds(self, key: str) -> bool:
        """Whether a call was given to a provider, by this run or another, and has not come back."""
        return key in self._of_key

    async def refresh(self) -> None:
        """Take in what other runs have given away, unless that was done a moment ago.

        In a thread: a database may take its time, and calls are in flight.
        """
        if time.monotonic() - self._loaded_at > FRESH_SECONDS:
            async with self._loading:
                before = self._loaded_at
                if time.monotonic() - before > FRESH_SECONDS:
                    waves = await asyncio.to_thread(waves_in, self._ledger)
                    if self._loaded_at == before:  # else there is later news
                        self._take_in(waves)

    def takes(self, model: Model) -> bool:
        """Whether calls to a model go in batches here."""
        return self.is_on and isinstance(model, LazyModel) and model.has_batches

    async def reply(self, parked: Parked, *, urgent: bool) -> Reply | None:
        """Return the reply, which the ledger has; None if the call is to be made directly.

        ``urgent`` calls go before others where money is short. Raises a CallError: StoppedError
        where the reply is not waited for.
        """
        self._desk.begin()
        if self._halted is not None:
            raise self._halted
        if not self.holds(parked.key):
            parked.reserved = await self._sender.reserve(
                parked.model, parked.request, urgent=urgent, batch=True
            )
        if self._halted is not None:
            raise self._halted
        self._add(parked)
        return await self._sender.before_the_end(parked.future)

    def halt(self, error: StoppedError) -> None:
        """Begin no wave and wait for none; what was sent stays with the provider."""
        self._halted = error
        parked, self._parked = self._parked, []
        calls = [call for live in self._live.values() for call in live.calls.values()]
        for call in (*parked, *calls):
            call.end(error)

    async def close(self) -> None:
        """End; what is being sent or read at the moment has a little time to be noted."""
        if busy := self._sending | self._desk.landing:
            await asyncio.wait(busy, timeout=GRACE_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def describe(self) -> str:
        """Return in a few words what is waited for; empty without any batch."""
        return self._desk.tally.describe()

    def _load(self) -> None:
        self._take_in(waves_in(self._ledger))

    def _take_in(self, waves: dict[str, Wave]) -> None:
        self._loaded_at = time.monotonic()
        self._waves, self._of_key = waves, by_key(waves)

    def _add(self, call: Parked) -> None:
        """Have a call wait for its own wave, or for the batch that it is in already."""
        wave = self._of_key.get(call.key)
        if wave is None:
            self._parked.append(call)
        else:
            self._watch(wave, call.model).calls[call.key] = call
        self._stir()

    def _stir(self) -> None:
        """Note that something has changed: a wave waits a moment for what comes of it."""
        self._news_at = time.monotonic()
        if self._parked and (self._forming is None or self._forming.done()):
            self._forming = self._begin(self._form())

    async def _form(self) -> None:
        while self._parked:
            quiet = time.monotonic() - self._news_at
            least = self._settings.quiet
            if quiet < least or self._desk.landing or not self._all_wait():
                await asyncio.sleep(max(least - quiet, least / 2))
                continue
            calls, self._parked = self._parked, []
            models = defaultdict(list)
            for call in calls:
                if not call.future.done():  # the run's time may be up
                    models[call.model.spec].append(call)
            for every in models.values():
                task = self._begin(self._send(every))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    def _all_wait(self) -> bool:
        return all(item.waiting for item in self._items.values())

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _send(self, calls: Sequence[Parked]) -> None:
        """Send calls to one model, in as many batches as its provider's limits ask for."""
        model, by_key_ = calls[0].model.batches(), {call.key: call for call in calls}
        try:
            for lines in model.parts((call.key, call.request) for call in calls):
                if self._halted is None:
                    live = await self._planned(model, [by_key_[key] for key in lines])
                    await self._sent(live, lines)
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            self._failed([call for call in calls if call.key not in self._of_key], error)

    async def _planned(self, model: BatchedModel, calls: Sequence[Parked]) -> LiveWave:
        """Return a wave of the calls that are no other run's; it is in the ledger, and held."""
        async with self._alone, held(self._ledger, LONE):
            self._load()
            sorted_ = await sort_out(self._ledger, calls, self._of_key)
            own = {call.key: call for call in sorted_.free}
            keys, now = tuple(own), time.time()
            name = digest([now, os.getpid(), *keys])
            wave = Wave(id=name, spec=model.spec, at=now, calls=len(own), keys=keys)
            live = LiveWave(self._desk, Flight(wave, model, self._ledger, self._settings), own)
            if own:
                self._ledger.store.take([wave.id])  # before any other run can see it
                await live.flight.note("planned")
                self._live[wave.id] = live
                self._load()
        for call in sorted_.given:
            self._add(call)
        for call in sorted_.busy:
            asyncio.get_running_loop().call_later(LATER_SECONDS, self._add, call)
        return live

    async def _sent(self, live: LiveWave, lines: Mapping[str, bytes]) -> None:
        name = live.flight.wave.id
        if name not in self._live:
            return
        try:
            if self._halted is not None:
                await live.flight.give_up()
                raise self._halted
            await live.flight.send([lines[key] for key in live.calls], self._batches_known())
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            del self._live[name]
            await self._refused(live, error)
            self._load()
        else:
            self._sender.requests += len(live.calls)
            live.task = self._begin(self._attend(live))
        finally:
            self._ledger.store.give_back(name)

    def _batches_known(self) -> list[str]:
        return [wave.batch for wave in self._waves.values() if wave.batch]

    def _watch(self, wave: Wave, model: LazyModel) -> LiveWave:
        """Return a wave as this run sees it; begin to wait for it unless that has been done."""
        if wave.id not in self._live:
            flight = Flight(wave, model.batches(), self._ledger, self._settings)
            live = self._live[wave.id] = LiveWave(self._desk, flight)
            live.task = self._begin(self._attend(live))
        return self._live[wave.id]

    async def _attend(self, live: LiveWave) -> None:
        name = live.flight.wave.id
        try:
            try:
                failures = await live.land(self._batches_known)
            finally:
                del self._live[name]
                self._loaded_at = float("-inf")
            self._load()
            for key, call in live.calls.items():
                self._retry(call, failures.get(key))
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            await self._refused(live, error)
        self._stir()

    async def _refused(self, live: LiveWave, error: Exception) -> None:
        """End the calls of a wave by an error; send them again where the provider is only full.

        Providers bound what is queued: there is room once another batch is over.
        """
        same = (one for one in self._live.values() if one.flight.spec == live.flight.spec)
        others = {one.task for one in same if one.task}
        if isinstance(error, FatalError) and error.kind in FULL and others:
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
            if not self._desk.is_over:
                for call in live.calls.values():
                    self._retry(call)
                return
            error = StoppedError(KIND, f"{error}; run the same command again")
        self._failed(live.calls.values(), error)

    def _retry(self, call: Parked, error: CallError | None = None) -> None:
        """Ask again what came back without a reply: in the next wave, or directly."""
        kept = None if call.future.done() or error else self._ledger.get(call.key)
        if call.future.done() or self._halted or kept:
            call.end(kept or self._halted)
        elif error is not None and not isinstance(error, TransientError):
            self._failed([call], error)
        elif not self.is_on:
            call.end(None)
        elif error is not None and call.rounds + 1 >= ROUNDS:
            call.end(error)
        else:
            call.rounds += error is not None
            self._add(call)
            if error is not None:
                self._sender.retried[error.kind] += 1

    def _failed(self, calls: Collection[Parked], error: Exception) -> None:
        """End calls by an error; one that only the user can mend ends the run."""
        if isinstance(error, StoppedError):
            self._sender.stops.setdefault(error.kind, str(error))
        if isinstance(error, FatalError):
            self._sender.stops.setdefault(error.kind, str(error))
            stop = StoppedError(error.kind, str(error))
            self._sender.halt(stop)
            self.halt(stop)
        for call in calls:
            call.end(error)

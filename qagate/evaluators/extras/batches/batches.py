"""The batches of one run: calls are parked until no item can go on without a reply, then sent."""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from qagate.evaluators import core
from qagate.evaluators.core import (
    CallError,
    FatalError,
    Reply,
    Request,
    StoppedError,
    TransientError,
)
from qagate.evaluators.extras.batches import waves
from qagate.evaluators.ledger import KeptReply, PaidReply
from qagate.evaluators.ledger.kept import Kept
from qagate.evaluators.models import LazyModel
from qagate.evaluators.models.adapter import BatchStatus
from qagate.evaluators.models.batched import BatchedModel
from qagate.evaluators.number_text import money, part_of_cost
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.caller import (
    BATCH,
    Caller,
    CallRoute,
    KeptCall,
    Meter,
    Sender,
)
from qagate.evaluators.runtime.server import NEVER
from qagate.evaluators.text import digest

ROUNDS = 3  # waves that one request may be part of
LATER_S = 1.0  # until a call that another run is making is looked at again
FRESH_S = 5.0  # for which the ledger's waves are not read again
GRACE_S = 2.0  # for what is being sent when a run ends
GROUP = 500  # replies that are kept at a time
CLAIMED = 100  # calls at a time that are claimed, to see whether another run makes them
PLANNING = digest("batch")
"""A name that is held while a wave is put together: two runs must not do so at once."""
COLLECT = waves.BatchSettings(wait=0.0)
"""For a run without --batch: replies of earlier batches are fetched if they are there."""


def find_batches(
    caller: Caller, *, begins: bool, wait: float | None = None
) -> "Batches | None":
    """Return the batches of a run; None if it begins none and the ledger has none open.

    ``wait`` is how many seconds a run that begins some waits for them; None is to the end.
    """
    if begins:
        return Batches(caller, waves.BatchSettings(wait=wait))
    known = waves.waves_in(caller.ledger).values()
    if any(wave.is_open for wave in known):
        return Batches(caller, None)
    return None


@dataclass(slots=True, kw_only=True, eq=False)
class ParkedCall:
    """A call that waits for its reply."""

    model: LazyModel
    request: Request
    kept: Kept
    """Which kept replies may stand in for it."""
    row: partial[PaidReply]
    """Lacks nothing but the reply to be kept."""
    sender: Sender
    future: asyncio.Future[KeptReply | None]
    """None means that the call is to be made directly."""
    reserved: float = 0.0
    """USD set aside."""
    rounds: int = 0
    """Waves that brought no reply."""

    @property
    def key(self) -> str:
        """The ledger key of the reply."""
        return str(self.row.keywords["key"])

    def end(self, result: KeptReply | Exception | None) -> None:
        """Pass the reply or the error on, unless that was done; settle the money."""
        if self.future.done():
            return
        reply = result.reply if isinstance(result, KeptReply) else None
        self.sender.settle(self.reserved, self.model.spec, reply)
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)


@dataclass(slots=True, kw_only=True, eq=False)
class LiveWave:
    """A wave that this run waits for, and the calls in it that the run asked for, by key."""

    poller: waves.BatchPoller
    calls: dict[str, ParkedCall] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None
    ahead: frozenset[asyncio.Task[None]] = frozenset()
    """Those of the same model's waves that were out when this one was sent."""


class Batches(CallRoute):
    """The batches of one run, in one event loop. ``settings`` None begins none."""

    def __init__(self, caller: Caller, settings: waves.BatchSettings | None) -> None:
        self.takes_all = settings is not None
        self._ledger = caller.ledger
        self._run = caller.run
        self._sender = caller.sender
        self._price = caller.price
        self._settings = settings or COLLECT
        self._done = self._failed = 0  # calls of this run's batches
        self._cost = core.Usage()  # of these
        self._out: dict[
            str, tuple[int, int, int]
        ] = {}  # by wave: calls, those done and failed
        self._until: float | None = None  # when batches are no longer waited for
        self._of_key: dict[
            str, list[waves.Wave]
        ] = {}  # open waves by the keys of their calls
        self._known: list[str] = []  # the providers' ids of all waves
        self._loaded_at = float("-inf")
        self._items: dict[int, Meter] = {}
        self._parked: list[ParkedCall] = []
        self._live: dict[str, LiveWave] = {}
        self._left: dict[str, int] = {}  # by batch, the calls that are not waited for
        self._given_up = 0  # calls that no batch answered
        self._tasks: set[asyncio.Task[None]] = set()
        self._sending: set[asyncio.Task[None]] = set()  # those that send a wave now
        self._reading: set[asyncio.Task[None]] = set()  # those that read one
        self._forming: asyncio.Task[None] | None = None
        self._planning, self._loading = asyncio.Lock(), asyncio.Lock()
        self._changed_at = 0.0
        self._halted: StoppedError | None = None

    @contextmanager
    def item(self, meter: Meter) -> Iterator[None]:
        """Count an item as at work: no wave is sent while it could still ask for something."""
        self._items[id(meter)] = meter
        try:
            yield
        finally:
            del self._items[id(meter)]
            self._stir()

    async def reply(
        self, call: KeptCall, row: partial[PaidReply], *, urgent: bool
    ) -> KeptReply | None:
        """Return the reply once kept; None to call directly. Raises a CallError for no reply."""
        async with self._loading:
            before = self._loaded_at
            if time.monotonic() - before > FRESH_S:
                # What other runs sent; a database may take its time while calls are in flight.
                known = await asyncio.to_thread(waves.waves_in, self._ledger)
                if self._loaded_at == before:  # else there is later news
                    self._load(known)
        model = call.model
        takes = self.takes_all and isinstance(model, LazyModel) and model.has_batches
        is_out = self._wave_of(call.key, call.kept) is not None
        if not (takes or is_out):
            return None
        assert isinstance(model, LazyModel)  # no other has batches
        future: asyncio.Future[KeptReply | None] = (
            asyncio.get_running_loop().create_future()
        )
        parked = ParkedCall(
            model=model,
            request=call.request,
            kept=call.kept,
            row=row,
            sender=self._sender,
            future=future,
        )
        if self._until is None:
            wait = NEVER if self._settings.wait is None else self._settings.wait
            self._until = asyncio.get_running_loop().time() + wait
        if not is_out and self._halted is None:
            parked.reserved = await self._sender.reserve(
                model, call.request, urgent=urgent, batch=True
            )
        if self._halted is not None:
            raise self._halted
        self._add(parked)
        return await self._sender.before_the_end(future)

    def _wave_of(self, key: str, kept: Kept) -> waves.Wave | None:
        """Return the open wave with a call, if the reply that it brings counts."""
        for wave in self._of_key.get(key, ()):
            if kept.counts(wave.run, wave.at):
                return wave
        return None

    def halt(self, error: StoppedError) -> None:
        """Begin no wave and wait for none; what was sent stays with the provider."""
        self._halted = error
        parked, self._parked = self._parked, []
        calls = [call for live in self._live.values() for call in live.calls.values()]
        for call in (*parked, *calls):
            call.end(error)

    async def close(self) -> None:
        """End; what is being sent or read now has a little time to be noted."""
        if busy := self._sending | self._reading:
            await asyncio.wait(busy, timeout=GRACE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def describe(self) -> str:
        """Return in a few words what is waited for; empty without any batch."""
        if not self._out:
            return ""
        calls, done, failed = (
            sum(column) for column in zip(*self._out.values(), strict=True)
        )
        head = "a batch" if len(self._out) == 1 else f"{len(self._out):,} batches"
        queued, paid = max(0, calls - done - failed), self._cost
        known = part_of_cost(paid.known) if paid.cost is None else money(paid.known)
        return (
            f"{head} with the provider: {self._done + done:,} done, {self._failed + failed:,} "
            f"failed, {queued:,} queued; cost {known} so far"
        )

    def _load(self, known: dict[str, waves.Wave] | None = None) -> None:
        every = (waves.waves_in(self._ledger) if known is None else known).values()
        self._of_key = {}
        for wave in every:
            if wave.is_open:
                for key in wave.keys:
                    self._of_key.setdefault(key, []).append(wave)
        self._known = [one.batch for one in every if one.batch]
        self._loaded_at = time.monotonic()

    def _add(self, call: ParkedCall) -> None:
        """Let a call wait for its own wave, or for the batch that it is in already."""
        wave = self._wave_of(call.key, call.kept)
        if wave is None:
            self._parked.append(call)
        else:
            if wave.id not in self._live:
                poller = waves.BatchPoller(
                    wave, call.model.batches(), self._ledger, self._settings
                )
                self._live[wave.id] = live = LiveWave(poller=poller)
                live.task = self._begin(self._attend(live))
            self._live[wave.id].calls[call.key] = call
        self._stir()

    def _stir(self) -> None:
        """Note that something has changed: a wave waits a moment for what follows from it."""
        self._changed_at = time.monotonic()
        if self._parked and (self._forming is None or self._forming.done()):
            self._forming = self._begin(self._form())

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _form(self) -> None:
        while self._parked:
            quiet = time.monotonic() - self._changed_at
            least = self._settings.quiet
            all_wait = all(item.waiting for item in self._items.values())
            if quiet < least or self._reading or not all_wait:
                await asyncio.sleep(max(least - quiet, least / 2))
                continue
            calls, self._parked = self._parked, []
            models = defaultdict(list)
            for call in calls:
                if not call.future.done():  # the run's time may be up
                    models[call.model.spec].append(call)
            for every in models.values():
                self._sending.add(task := self._begin(self._send(every)))
                task.add_done_callback(self._sending.discard)

    async def _send(self, calls: Sequence[ParkedCall]) -> None:
        """Send calls to one model, in as many batches as its provider's limits ask for."""
        model, by_key = calls[0].model.batches(), {call.key: call for call in calls}
        try:
            for lines in model.lines_by_batch(
                (call.key, call.request) for call in calls
            ):
                if self._halted is not None:
                    return
                if live := await self._plan(model, [by_key[key] for key in lines]):
                    await self._send_wave(live, lines)
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            lost = [
                call for call in calls if self._wave_of(call.key, call.kept) is None
            ]
            self._fail(lost, error)

    async def _plan(
        self, model: BatchedModel, calls: Sequence[ParkedCall]
    ) -> LiveWave | None:
        """Return a wave of the calls that no other run makes; it is in the ledger, and held."""
        async with self._planning, waves.held(self._ledger, PLANNING):
            self._load()
            free, given, busy = await self._sorted(calls)
            live = None
            if free:
                keys, now = tuple(call.key for call in free), time.time()
                name = digest([now, os.getpid(), *keys])
                wave = waves.Wave(
                    id=name,
                    spec=model.spec,
                    at=now,
                    run=self._run.id,
                    calls=len(keys),
                    keys=keys,
                )
                poller = waves.BatchPoller(wave, model, self._ledger, self._settings)
                live = LiveWave(poller=poller, calls={call.key: call for call in free})
                self._ledger.store.take([name])  # before any other run can see it
                await poller.note(wave)
                self._live[name] = live
                self._load()
        for call in given:
            self._add(call)
        for call in busy:
            asyncio.get_running_loop().call_later(LATER_S, self._add, call)
        return live

    async def _sorted(
        self, calls: Sequence[ParkedCall]
    ) -> tuple[list[ParkedCall], list[ParkedCall], list[ParkedCall]]:
        """Return calls that are free, in a wave, or another run's; end those with a reply."""
        store = self._ledger.store
        free, given, busy = list[ParkedCall](), list[ParkedCall](), list[ParkedCall]()
        for start in range(0, len(calls), CLAIMED):
            group = calls[start : start + CLAIMED]
            mine = store.take([call.key for call in group])
            for key in mine:
                store.give_back(key)
            kept = await asyncio.gather(
                *(self._ledger.find(call.key, call.kept) for call in group)
            )
            for call, reply in zip(group, kept, strict=True):
                if reply is not None:
                    call.end(reply)
                elif self._wave_of(call.key, call.kept) is not None:
                    given.append(call)
                else:
                    (free if call.key in mine else busy).append(call)
        return free, given, busy

    async def _send_wave(self, live: LiveWave, lines: Mapping[str, bytes]) -> None:
        name = live.poller.wave.id
        try:
            if self._halted is not None:
                await live.poller.give_up()
                raise self._halted
            same = (
                one
                for one in self._live.values()
                if one.poller.spec == live.poller.spec
            )
            live.ahead = frozenset(one.task for one in same if one.task)
            await live.poller.send([lines[key] for key in live.calls], self._known)
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            del self._live[name]
            await self._refused(live, error)
            self._load()
        else:
            self._sender.requests += len(live.calls)
            live.task = self._begin(self._attend(live))
        finally:
            self._ledger.store.give_back(name)

    async def _attend(self, live: LiveWave) -> None:
        """Wait for a wave, keep its replies, and ask again for those that are missing."""
        name = live.poller.wave.id
        try:
            try:
                failures = await self._land(live)
            finally:
                self._out.pop(name, None)
                del self._live[name]
                self._loaded_at = float("-inf")
            self._load()
            for key, call in live.calls.items():
                self._retry(call, failures.get(key))
        except Exception as error:  # noqa: BLE001  # the items that wait must learn of it
            await self._refused(live, error)
        self._stir()

    async def _land(self, live: LiveWave) -> Mapping[str, CallError]:
        """Keep a wave's replies once it is over; return why others of its calls have none."""
        poller = live.poller

        def tell(status: BatchStatus) -> None:
            self._out[poller.wave.id] = (poller.wave.calls, status.done, status.failed)

        if poller.wave.state != "sent" and not await poller.recover(self._known):
            return {}
        if not await poller.wait(self._until or 0.0, tell):
            self._left[poller.wave.named] = poller.wave.calls
            raise StoppedError(BATCH, self._note_left())
        assert live.task is not None
        self._reading.add(live.task)
        try:
            return await self._read(live)
        finally:
            self._reading.discard(live.task)

    async def _read(self, live: LiveWave) -> Mapping[str, CallError]:
        """Keep the replies of a wave that is over; return why other calls have none.

        Whatever ends the reading, replies that were read until then are kept.
        """
        failures: dict[str, CallError] = {}
        group: dict[str, Reply] = {}
        done = 0
        try:
            async for key, result in live.poller.results():
                if isinstance(result, CallError):
                    failures[key] = result
                    continue
                group[key] = result
                if len(group) >= GROUP:
                    full_group = group
                    group = {}
                    done += await self._keep(live, full_group)
        finally:
            done += await self._keep(live, group)
        wave = live.poller.wave
        if not await live.poller.end(done, is_empty=not done and not failures):
            return {}
        self._done += done
        self._failed += wave.calls - done
        nothing = TransientError(
            "no_result", f"{wave.spec}: the batch has no result of this call"
        )
        lost = (key for key, call in live.calls.items() if not call.future.done())
        return {key: failures.get(key, nothing) for key in lost}

    async def _keep(self, live: LiveWave, replies: Mapping[str, Reply]) -> int:
        wave = live.poller.wave
        spec = live.poller.spec
        rows = []
        for key, reply in replies.items():
            paid = partial(PaidReply, key=key, spec=spec)
            if key in live.calls:
                paid = live.calls[key].row
            rows.append(paid(reply=reply, run=wave.run, at=wave.at))
        kept_replies = await asyncio.gather(*map(self._ledger.put, rows))
        for key, kept_reply in zip(replies, kept_replies, strict=True):
            reply = kept_reply.reply
            cost = self._price(spec, reply)
            self._cost += core.Usage(cost=cost, known=cost or 0.0)
            if call := live.calls.get(key):
                call.end(kept_reply)
            else:
                self._sender.settle(0.0, spec, reply)
        return len(replies)

    async def _refused(self, live: LiveWave, error: Exception) -> None:
        """End a wave's calls with an error; send them again where the provider was only full."""
        if isinstance(error, FatalError) and error.kind in waves.FULL and live.ahead:
            await asyncio.wait(live.ahead, return_when=asyncio.FIRST_COMPLETED)
            if asyncio.get_running_loop().time() < (self._until or 0.0):
                for call in live.calls.values():
                    self._retry(call)
                return
            error = StoppedError(BATCH, f"{error}; run the same command again")
        self._fail(live.calls.values(), error)

    def _retry(self, call: ParkedCall, error: CallError | None = None) -> None:
        """Ask again for what came back without a reply: in the next wave, or directly."""
        kept_reply = None
        if error is None and not call.future.done():
            kept_reply = self._ledger.look_up(call.key, call.kept)
        if call.future.done() or self._halted or kept_reply:
            call.end(kept_reply or self._halted)
        elif error is not None and not isinstance(error, TransientError):
            self._fail([call], error)
        elif not self.takes_all:
            call.end(None)
        elif error is None:
            self._add(call)
        elif call.rounds + 1 >= ROUNDS:
            self._given_up += 1
            self._note_left()
            call.end(error)
        else:
            call.rounds += 1
            self._add(call)
            self._sender.retried[error.kind] += 1

    def _note_left(self) -> str:
        said, left, lost = list[str](), sum(self._left.values()), self._given_up
        out = f"{plural(left, 'call')} {'is' if left == 1 else 'are'}"
        if left and self.takes_all:
            said.append(f"{out} still with the provider; run the same command again")
        elif left:
            named = ", ".join([*self._left][:3])
            way = (
                "add --batch to wait, or give it up: qagate ledger batches --cancel ID"
            )
            said.append(f"{out} with the provider in a batch ({named}); {way}")
        if lost:
            what = (
                f"{plural(lost, 'call')} {'was' if lost == 1 else 'were'} not answered"
            )
            said.append(f"{what} in {ROUNDS} batches; the same command asks again")
        self._sender.stops[BATCH] = "; ".join(said)
        return self._sender.stops[BATCH]

    def _fail(self, calls: Collection[ParkedCall], error: Exception) -> None:
        """End calls with an error; an error that only the user can mend ends the run."""
        if isinstance(error, StoppedError | FatalError):
            self._sender.stops.setdefault(error.kind, str(error))
        if isinstance(error, FatalError):
            self._sender.halt(stop := StoppedError(error.kind, str(error)))
            self.halt(stop)
        for call in calls:
            call.end(error)

"""When a call may go: one place that knows every limit of the run and lets waiting calls in.

A call is let in only when all limits allow it at once, so that none holds one while it waits for
another. A call that finds everything free costs a few comparisons and no timer.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from evaluators.core import CallError, FatalError, Model, Request, StoppedError
from evaluators.runtime.bucket import Bucket, per_minute
from evaluators.runtime.limits import Limits
from evaluators.runtime.server_state import RATE_LIMIT, ServerState
from evaluators.runtime.tokens import Tokens

BURST_SECONDS = 0.05
NEVER = float("inf")


@dataclass(slots=True, kw_only=True)
class WaitingCall:
    """A call that is not let in yet; ``size`` is its estimate in tokens."""

    future: asyncio.Future[float]
    size: float


@dataclass(slots=True, kw_only=True, eq=False)
class ModelQueue:
    """The calls to one model: its own limits, its host, who waits.

    Until its first call has ended the lane is ``proven`` by nothing and lets in one at a time.
    Calls that go on with an item (``urgent``) come before those that begin one (``waiting``), so
    that a run which is cut short has judged what it asked.
    """

    spec: str
    host: ServerState
    limits: Limits
    concurrency: int
    rpm: Bucket | None
    tpm: Tokens | None
    in_flight: int = 0
    proven: bool = False
    urgent: deque[WaitingCall] = field(default_factory=deque)
    waiting: deque[WaitingCall] = field(default_factory=deque)

    def size(self, request: Request) -> float:
        """Return the estimate of a call in tokens; 0 where nothing limits them."""
        return self.tpm.estimate(request) if self.tpm else 0.0


class Admission:
    """Lets the calls of a run in. ``random`` spreads what would happen at the same moment."""

    def __init__(self, concurrency: int, rpm: int | None, random: Callable[[], float]) -> None:
        self.in_flight = 0
        self._concurrency = concurrency
        self._rpm_limit = rpm
        self._rpm: Bucket | None = None
        self._random = random
        self._hosts: dict[str, ServerState] = {}
        self._lanes: dict[str, ModelQueue] = {}
        self._turns: deque[ModelQueue] = deque()
        self._halted: StoppedError | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        widths = sum(host.window.size for host in list(self._hosts.values()))
        return min(self._concurrency, widths) if widths else self._concurrency

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty where nothing is held back."""
        return "; ".join(filter(None, (host.describe(now) for host in list(self._hosts.values()))))

    def lane(self, model: Model) -> ModelQueue:
        """Return the lane of a model."""
        lane = self._lanes.get(model.spec)
        return lane if lane is not None else self._new_lane(model)

    def _new_lane(self, model: Model) -> ModelQueue:
        limits, now = model.limits, asyncio.get_running_loop().time()
        if self._rpm_limit is not None and self._rpm is None:
            self._rpm = per_minute(self._rpm_limit, BURST_SECONDS, now)
        host = self._hosts.get(limits.host)
        if host is None:
            host = ServerState(limits.host, self._concurrency, self._random, limits.item_deadline)
            self._hosts[limits.host] = host
        lane = ModelQueue(
            spec=model.spec,
            host=host,
            limits=limits,
            concurrency=min(limits.concurrency or self._concurrency, self._concurrency),
            rpm=None if limits.rpm is None else per_minute(limits.rpm, BURST_SECONDS, now),
            tpm=None if limits.tpm is None else Tokens(limits.tpm, limits.max_tokens, now),
        )
        self._lanes[model.spec] = lane
        self._turns.append(lane)
        return lane

    async def enter(
        self, lane: ModelQueue, size: float, until: float, *, urgent: bool = False
    ) -> float:
        """Return the loop's time as soon as a call may go; it then counts as in flight.

        An ``urgent`` one goes before those that are not. Raises TimeoutError at ``until``, and the
        reason where the call may not go at all.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        barred = self._barred(lane, now)
        if barred is not None:
            raise barred
        queue = lane.urgent if urgent else lane.waiting
        if not (lane.urgent or queue) and self._delay(lane, size, now) <= 0:
            self._start(lane, size, now)
            return now
        waiting = WaitingCall(future=loop.create_future(), size=size)
        queue.append(waiting)
        self._pump()
        return await self._wait(lane, waiting, until)

    def leave(
        self, lane: ModelQueue, started: float, error: BaseException | None, *, own: bool = False
    ) -> None:
        """Count a call as ended; ``error`` None is a success, ``own`` as a host has it."""
        now = asyncio.get_running_loop().time()
        lane.proven = True
        lane.in_flight -= 1
        self.in_flight -= 1
        lane.host.end(error, started, now, own=own)
        self._pump()

    def halt(self, error: StoppedError) -> None:
        """Start no further call at all: everyone who waits is told why."""
        self._halted = self._halted or error
        self._pump()

    async def _wait(self, lane: ModelQueue, waiting: WaitingCall, until: float) -> float:
        future = waiting.future
        try:
            async with asyncio.timeout_at(None if until == NEVER else until):
                return await future
        except (TimeoutError, asyncio.CancelledError) as error:
            # It may have been let in and given up in the same turn of the loop.
            if future.done() and not future.cancelled() and future.exception() is None:
                self.leave(lane, future.result(), error)
            raise

    def _pump(self) -> None:
        """Let in whoever may go now, the models in turn; wake up again when time alone decides."""
        if not any(lane.urgent or lane.waiting for lane in self._turns):
            return
        now = asyncio.get_running_loop().time()
        self._turns.rotate(1)
        delays = [self._let_in(lane, lane.urgent, now) for lane in self._turns]
        delays += [self._let_in(lane, lane.waiting, now) for lane in self._turns if not lane.urgent]
        self._set_alarm(min(delays), now)

    def _let_in(self, lane: ModelQueue, queue: deque[WaitingCall], now: float) -> float:
        """Let in calls of a lane; returns the seconds until the next of them may go."""
        while queue:
            first = queue[0]
            if not first.future.done():
                barred = self._barred(lane, now)
                delay = self._delay(lane, first.size, now) if barred is None else 0.0
                if delay > 0:
                    return delay
                if barred is None:
                    self._start(lane, first.size, now)
                    first.future.set_result(now)
                else:
                    first.future.set_exception(barred)
            queue.popleft()
        return NEVER

    def _barred(self, lane: ModelQueue, now: float) -> CallError | None:
        if self._halted is not None:
            return StoppedError(self._halted.kind, str(self._halted))
        given_up = lane.host.given_up
        if given_up is not None:
            return FatalError(given_up.kind, str(given_up))
        too_long = lane.host.too_long(now)
        return FatalError(RATE_LIMIT, f"{lane.spec}: {too_long}") if too_long else None

    def _delay(self, lane: ModelQueue, size: float, now: float) -> float:
        """Return the seconds until a call may go; infinite until another one has ended."""
        room = lane.concurrency if lane.proven else 1
        full = self.in_flight >= self._concurrency or lane.in_flight >= room
        if full or lane.host.window.is_full:
            return NEVER
        delay = lane.host.wait(now)
        for bucket in (lane.rpm, self._rpm):
            if bucket is not None:
                delay = max(delay, bucket.wait(now))
        return delay if lane.tpm is None else max(delay, lane.tpm.wait(now, size))

    def _start(self, lane: ModelQueue, size: float, now: float) -> None:
        self.in_flight += 1
        lane.in_flight += 1
        lane.host.start(now)
        for bucket in (lane.rpm, self._rpm):
            if bucket is not None:
                bucket.take(now)
        if lane.tpm is not None:
            lane.tpm.take(now, size)

    def _set_alarm(self, delay: float, now: float) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if delay != NEVER:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_at(now + delay, self._pump)

"""When a call may go: one place that knows every limit of the run and lets waiting calls in.

A call is let in only when all limits allow it at once, so that none holds one while it waits for
another. A call that finds everything free costs a few comparisons and no timer.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from evaluators.core import CallError, FatalError, Model, StoppedError
from evaluators.runtime.model_queue import ModelQueue, WaitingCall
from evaluators.runtime.rate_limits import (
    BURST_SECONDS,
    TOKEN_BURST_SECONDS,
    TokenBucket,
    TokenLimit,
)
from evaluators.runtime.server_state import RATE_LIMIT, ServerState

NEVER = float("inf")


class Admission:
    """Lets the calls of a run in. ``random`` spreads what would happen at the same moment."""

    def __init__(self, concurrency: int, rpm: int | None, random: Callable[[], float]) -> None:
        self.in_flight = 0
        self._concurrency = concurrency
        self._rpm_limit = rpm
        self._rpm: TokenBucket | None = None
        self._random = random
        self._servers: dict[str, ServerState] = {}
        self._queues: dict[str, ModelQueue] = {}
        self._turns: deque[ModelQueue] = deque()
        self._halted: StoppedError | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        widths = sum(server.window.size for server in list(self._servers.values()))
        return min(self._concurrency, widths) if widths else self._concurrency

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty if nothing is held back."""
        return "; ".join(filter(None, (one.describe(now) for one in list(self._servers.values()))))

    def queue(self, model: Model) -> ModelQueue:
        """Return the queue of a model."""
        queue = self._queues.get(model.spec)
        return queue if queue is not None else self._new_queue(model)

    def _new_queue(self, model: Model) -> ModelQueue:
        limits, now = model.limits, asyncio.get_running_loop().time()
        if self._rpm_limit is not None and self._rpm is None:
            self._rpm = TokenBucket.per_minute(self._rpm_limit, BURST_SECONDS, now)
        server = self._servers.get(limits.host)
        if server is None:
            server = ServerState(limits.host, self._concurrency, self._random, limits.item_deadline)
            self._servers[limits.host] = server
        rpm, tpm = limits.rpm, limits.tpm
        queue = ModelQueue(
            spec=model.spec,
            server=server,
            limits=limits,
            room=min(limits.concurrency or self._concurrency, self._concurrency),
            rpm=None if rpm is None else TokenBucket.per_minute(rpm, BURST_SECONDS, now),
            tpm=None
            if tpm is None
            else TokenLimit(
                TokenBucket.per_minute(tpm, TOKEN_BURST_SECONDS, now), limits.max_tokens
            ),
        )
        self._queues[model.spec] = queue
        self._turns.append(queue)
        return queue

    async def enter(
        self,
        queue: ModelQueue,
        size: float,
        until: float,
        *,
        urgent: bool = False,
        first: bool = False,
    ) -> float:
        """Return the loop's time as soon as a call may go; it then counts as in flight.

        An ``urgent`` one goes before those that are not, and a ``first`` one before its like.
        Raises TimeoutError at ``until``, and the reason if the call may not go at all.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        barred = self._barred(queue, now)
        if barred is not None:
            raise barred
        calls = queue.urgent if urgent else queue.waiting
        if not (queue.urgent or calls) and self._delay(queue, size, now) <= 0:
            self._start(queue, size, now)
            return now
        future: asyncio.Future[float] = loop.create_future()
        (calls.appendleft if first else calls.append)(WaitingCall(future=future, size=size))
        self.pump()
        try:
            async with asyncio.timeout_at(None if until == NEVER else until):
                return await future
        except (TimeoutError, asyncio.CancelledError) as error:
            # It may have been let in and given up in the same turn of the loop.
            if future.done() and not future.cancelled() and future.exception() is None:
                self.leave(queue, future.result(), error)
            raise

    def leave(
        self,
        queue: ModelQueue,
        started: float,
        error: BaseException | None,
        *,
        own: bool = False,
        again: bool = False,
    ) -> None:
        """Count a call as ended; ``error`` None is a success, the rest as ``ServerState.end``."""
        now = asyncio.get_running_loop().time()
        queue.learn(error)
        queue.in_flight -= 1
        self.in_flight -= 1
        queue.server.end(error, started, now, own=own, again=again)
        self.pump()

    def halt(self, error: StoppedError) -> None:
        """Start no further call at all: every call that waits raises this."""
        self._halted = self._halted or error
        self.pump()

    def pump(self) -> None:
        """Let in what may go now, the models in turn; wake up again when time alone decides."""
        if not any(queue.urgent or queue.waiting for queue in self._turns):
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._turns.rotate(1)
        delays = [self._let_in(queue, queue.urgent, now) for queue in self._turns]
        delays += [self._let_in(one, one.waiting, now) for one in self._turns if not one.urgent]
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        delay = min(delays)
        if delay != NEVER:
            self._alarm = loop.call_at(now + delay, self.pump)

    def _let_in(self, queue: ModelQueue, calls: deque[WaitingCall], now: float) -> float:
        """Let in calls to a model; return the seconds until the next of them may go."""
        while calls:
            first = calls[0]
            if not first.future.done():
                barred = self._barred(queue, now)
                delay = self._delay(queue, first.size, now) if barred is None else 0.0
                if delay > 0:
                    return delay
                if barred is None:
                    self._start(queue, first.size, now)
                    first.future.set_result(now)
                else:
                    first.future.set_exception(barred)
            calls.popleft()
        return NEVER

    def _barred(self, queue: ModelQueue, now: float) -> CallError | None:
        """Return why no call to a model may go at all, None if it may go now or later."""
        if self._halted is not None:
            return StoppedError(self._halted.kind, str(self._halted))
        given_up = queue.server.given_up
        if given_up is not None:
            return FatalError(given_up.kind, str(given_up))
        too_long = queue.server.too_long(now)
        return FatalError(RATE_LIMIT, f"{queue.spec}: {too_long}") if too_long else None

    def _delay(self, queue: ModelQueue, size: float, now: float) -> float:
        """Return the seconds until a call may go; infinite until another one has ended."""
        room = queue.room if queue.proven else 1
        full = self.in_flight >= self._concurrency or queue.in_flight >= room
        if full or queue.server.window.is_full:
            return NEVER
        delay = queue.server.wait(now)
        for bucket in (queue.rpm, self._rpm):
            if bucket is not None:
                delay = max(delay, bucket.wait(now))
        return delay if queue.tpm is None else max(delay, queue.tpm.wait(now, size))

    def _start(self, queue: ModelQueue, size: float, now: float) -> None:
        self.in_flight += 1
        queue.in_flight += 1
        queue.server.start(now)
        for bucket in (queue.rpm, self._rpm):
            if bucket is not None:
                bucket.take(now)
        if queue.tpm is not None:
            queue.tpm.take(now, size)

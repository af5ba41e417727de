"""When a call may go: the one place that knows every limit and lets waiting calls in.

A call goes when all limits allow it at once, and holds none while it waits for another.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from evaluators.core import (
    CallError,
    FatalError,
    Limits,
    Model,
    RefusedError,
    Reply,
    Request,
    StoppedError,
)
from evaluators.output import plural
from evaluators.runtime.server import BURST_S, RATE_LIMIT, TOKEN_BURST_S, ServerState, TokenBucket

NEVER = float("inf")
BAD_REQUEST = frozenset({"bad_request", "target_failed"})
FEWEST_ALIKE = 3  # calls, if a run has no more, that say so much
REFUSED_ALIKE = 7  # first calls refused in the same words, after which no call would succeed
STRAYS = 3  # statuses in a row that concern all calls, after which those of a proven model end too
TOKENS_PER_CHARACTER = 0.25  # until replies teach better
USUAL_REPLY_TOKENS = 1024.0
LATEST_WEIGHT = 0.1  # of the latest reply in what is learned
_OWN_WORDS = re.compile(r"\S*\d\S*")  # of one refusal alone: its id, its time


class TokenLimit:
    """A limit in tokens a minute; a reply, at first the ``longest``, corrects a call's estimate."""

    def __init__(self, bucket: TokenBucket, longest: int | None) -> None:
        self.bucket = bucket
        self._per_character = TOKENS_PER_CHARACTER
        self._reply: float = longest or USUAL_REPLY_TOKENS
        self._has_learned = False

    def estimate(self, request: Request) -> float:
        """Return how many tokens a request and its reply will probably take."""
        longest = request.parameters.get("max_tokens")
        reply = self._reply
        if isinstance(longest, int):
            reply = min(reply, longest) if self._has_learned else longest
        return _characters(request) * self._per_character + reply

    def correct(self, estimate: float, request: Request, reply: Reply) -> None:
        """Replace the estimate of a call by what it took, and learn for the next ones."""
        if not reply.input_tokens:  # the server does not count: the estimate stays
            return
        self.bucket.give_back(estimate - reply.input_tokens - reply.output_tokens)
        weight = LATEST_WEIGHT if self._has_learned else 1.0
        ratio = reply.input_tokens / max(1, _characters(request))
        self._per_character += weight * (ratio - self._per_character)
        self._reply += weight * (reply.output_tokens - self._reply)
        self._has_learned = True


def _characters(request: Request) -> int:
    return sum(len(message.content) for message in request.messages)


@dataclass(slots=True, kw_only=True)
class WaitingCall:
    """A call that is not let in yet."""

    future: asyncio.Future[float]
    size: float
    """Its estimate in tokens."""


@dataclass(slots=True, kw_only=True, eq=False)
class ModelQueue:
    """The calls to one model. Until the first of them has ended, one at a time goes."""

    spec: str
    server: ServerState
    limits: Limits
    room: int
    """The most calls that may be in flight to this model."""
    rpm: TokenBucket | None
    tpm: TokenLimit | None
    in_flight: int = 0
    proven: bool = False
    """Whether more than one call at a time may go."""
    answered: bool = False
    refusals: list[str] = field(default_factory=list)
    """What the model said to the first calls that it refused, before it answered any."""
    hopeless: FatalError | None = None
    """Why no call will succeed, if all were refused alike so far."""
    urgent: deque[WaitingCall] = field(default_factory=deque)
    """Calls that continue an item. They go first: a run cut short has then judged its answers."""
    waiting: deque[WaitingCall] = field(default_factory=deque)

    strays: int = 0
    """Errors that concern all calls, since the latest success."""

    def judged(self, error: RefusedError | FatalError) -> CallError:
        """Return the error as a FatalError, or as one of this call alone.

        Gateways refuse all first calls in the same words where the key or the model is wrong. A
        model that has answered may send a status of that kind by mistake, as load balancers do.
        """
        if isinstance(error, FatalError):
            self.strays += 1
            if not self.answered or self.strays >= STRAYS:
                return error
            return CallError(error.kind, str(error))
        if self.answered or error.kind not in BAD_REQUEST:
            return error
        self.refusals.append(_OWN_WORDS.sub("", str(error)))
        if len(set(self.refusals)) > 1:
            self.hopeless = None
            return error
        count = len(self.refusals)
        said = f"{error}; the first {plural(count, 'call')} all failed so, and none succeeded: "
        said += f"{self.limits.advice} ({self.server.name})"
        self.hopeless = FatalError(error.kind, said)
        return error if count < REFUSED_ALIKE else self.hopeless

    def learn(self, error: BaseException | None) -> None:
        """Note how a call ended; ``error`` None is a success."""
        self.answered = self.answered or error is None
        self.hopeless = None if self.answered else self.hopeless
        self.strays = 0 if error is None else self.strays
        is_doubtful = isinstance(error, RefusedError) and 0 < len(self.refusals) < REFUSED_ALIKE
        self.proven = self.proven or not is_doubtful


class Admission:
    """Lets the calls of a run in. ``random`` draws numbers from 0 to 1 that spread pauses."""

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
    def hopeless(self) -> dict[str, str]:
        """Why no call to a model will succeed, by kind, where all that ended were refused alike."""
        found = (one for one in self._queues.values() if len(one.refusals) >= FEWEST_ALIKE)
        return {one.hopeless.kind: str(one.hopeless) for one in found if one.hopeless}

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
        if model.spec in self._queues:
            return self._queues[model.spec]
        limits, now = model.limits, asyncio.get_running_loop().time()
        if self._rpm_limit is not None and self._rpm is None:
            self._rpm = TokenBucket.per_minute(self._rpm_limit, BURST_S, now)
        if limits.host not in self._servers:
            state = limits.host, self._concurrency, self._random, limits.item_deadline
            self._servers[limits.host] = ServerState(*state)
        rpm = None if limits.rpm is None else TokenBucket.per_minute(limits.rpm, BURST_S, now)
        tpm = None
        if limits.tpm is not None:
            bucket = TokenBucket.per_minute(limits.tpm, TOKEN_BURST_S, now)
            tpm = TokenLimit(bucket, limits.max_tokens)
        self._queues[model.spec] = queue = ModelQueue(
            spec=model.spec,
            server=self._servers[limits.host],
            limits=limits,
            room=min(limits.concurrency or self._concurrency, self._concurrency),
            rpm=rpm,
            tpm=tpm,
        )
        self._turns.append(queue)
        return queue

    async def enter(
        self, queue: ModelQueue, size: float, until: float, *, urgent: bool, first: bool
    ) -> float:
        """Return the loop's time as soon as a call may go; it then counts as in flight.

        An ``urgent`` call goes before those that are not, and a ``first`` one before its like.
        Raises TimeoutError at ``until``, and the reason if the call may not go at all.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        if (barred := self._barred(queue, now)) is not None:
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
                self.leave(queue, future.result(), error, None)
            raise

    def leave(
        self, queue: ModelQueue, started: float, error: BaseException | None, failed: float | None
    ) -> bool:
        """Count a call as ended; see ``ServerState.end`` for the arguments and the result."""
        now = asyncio.get_running_loop().time()
        queue.learn(error)
        queue.in_flight -= 1
        self.in_flight -= 1
        is_to_blame = queue.server.end(error, started, now, failed)
        self.pump()
        return is_to_blame

    def halt(self, error: StoppedError) -> None:
        """Start no further call at all: every call that waits raises this."""
        self._halted = self._halted or error
        self.pump()

    def pump(self) -> None:
        """Let in what may go now, the models in turn; set a timer where only time decides."""
        if not any(queue.urgent or queue.waiting for queue in self._turns):
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._turns.rotate(1)
        delays = [self._let_in(queue, queue.urgent, now) for queue in self._turns]
        delays += [self._let_in(one, one.waiting, now) for one in self._turns if not one.urgent]
        if self._alarm is not None:
            self._alarm.cancel()
        delay = min(delays)
        self._alarm = None if delay == NEVER else loop.call_at(now + delay, self.pump)

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
        if self._halted is not None:
            return StoppedError(self._halted.kind, str(self._halted))
        if (given_up := queue.server.given_up) is not None:
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
        for bucket in filter(None, (queue.rpm, self._rpm)):
            delay = max(delay, bucket.wait(now))
        return delay if queue.tpm is None else max(delay, queue.tpm.bucket.wait(now, size))

    def _start(self, queue: ModelQueue, size: float, now: float) -> None:
        self.in_flight += 1
        queue.in_flight += 1
        queue.server.start(now)
        for bucket in filter(None, (queue.rpm, self._rpm)):
            bucket.take(now)
        if queue.tpm is not None:
            queue.tpm.bucket.take(now, size)

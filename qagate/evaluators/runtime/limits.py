"""When a call may go: the one place that knows every limit and lets waiting calls in.

A call goes when all limits allow it at once, and holds none while it waits for another.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable

from qagate.evaluators import core
from qagate.evaluators.core import CallError, FatalError, RefusedError, StoppedError
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.server import BURST_S, NEVER, ServerState, TokenBucket

UNLIMITED = 1e12  # requests or tokens a minute: more than anybody can send
TOKEN_BURST_S = 2.0  # of a tokens limit; so many seconds' worth may go at once
BAD_REQUEST = frozenset({"bad_request", "target_failed"})
FEWEST_ALIKE = 3  # calls, if a run has no more, that say so much
REFUSED_ALIKE = (
    7  # first calls refused in the same words, after which no call would succeed
)
STRAYS = 3  # statuses in a row that concern all calls, after which those of a proven model end too
TOKENS_PER_CHARACTER = 0.25  # until replies teach better
USUAL_REPLY_TOKENS = 1024.0
LATEST_WEIGHT = 0.1  # of the latest reply in what is learned
_OWN_WORDS = re.compile(r"\S*\d\S*")  # of one refusal alone: its id, its time


class TokenLimit(TokenBucket):
    """A limit in tokens a minute; a reply, at first the ``longest``, corrects a call's estimate."""

    def __init__(self, tpm: float, longest: int | None) -> None:
        super().__init__(tpm / 60, TOKEN_BURST_S)
        self._per_character = TOKENS_PER_CHARACTER
        self._reply: float = longest or USUAL_REPLY_TOKENS
        self._weight = 1.0  # of the next reply in what is learned

    def estimate(self, request: core.Request) -> float:
        """Return how many tokens a request and its reply will probably take."""
        longest = request.parameters.get("max_tokens")
        reply = min(self._reply, longest) if isinstance(longest, int) else self._reply
        return _characters(request) * self._per_character + reply

    def correct(
        self, estimate: float, request: core.Request, reply: core.Reply
    ) -> None:
        """Replace the estimate of a call by what it took, and learn for the next ones."""
        if reply.input_tokens:  # else the server does not count: the estimate stays
            unused = estimate - reply.input_tokens - reply.output_tokens
            self.empty_at -= unused / self.rate
            ratio = reply.input_tokens / max(1, _characters(request))
            self._per_character += self._weight * (ratio - self._per_character)
            self._reply += self._weight * (reply.output_tokens - self._reply)
            self._weight = LATEST_WEIGHT


def _characters(request: core.Request) -> int:
    return sum(len(message.content) for message in request.messages)


WaitingCalls = deque[tuple[asyncio.Future[float], float]]
"""Calls that are not let in yet, with their estimates in tokens."""


class ModelQueue:
    """The calls to one model. Until the first of them has ended, one at a time goes."""

    def __init__(self, spec: str, limits: core.Limits, server: ServerState) -> None:
        self.spec, self.limits, self.server = spec, limits, server
        self.in_flight = 0
        self.requests = TokenBucket((limits.rpm or UNLIMITED) / 60, BURST_S)
        self.tokens = TokenLimit(limits.tpm or UNLIMITED, limits.max_tokens)
        # Urgent calls continue an item: a run cut short has then judged its answers.
        self.urgent, self.waiting = WaitingCalls(), WaitingCalls()
        self.proven = False  # whether more than one call at a time may go
        self.answered = False
        self.refusals: list[str] = []  # the words of those before the first answer
        self.hopeless: FatalError | None = (
            None  # why no call will succeed, if all were the same
        )
        self.strays = 0  # errors that concern all calls, since the latest success

    def judged(self, error: RefusedError | FatalError) -> CallError:
        """Return the error as a FatalError, or as one of this call alone.

        Gateways refuse all first calls in the same words where the key or the model is wrong. A
        model that has answered may send a status of that kind by mistake, as load balancers do.
        """
        if isinstance(error, FatalError):
            self.strays += 1
            is_stray = self.answered and self.strays < STRAYS
            return CallError(error.kind, str(error)) if is_stray else error
        if self.answered or error.kind not in BAD_REQUEST:
            return error
        self.refusals.append(_OWN_WORDS.sub("", str(error)))
        self.hopeless, count = None, len(self.refusals)
        if count >= FEWEST_ALIKE and len(set(self.refusals)) == 1:
            said = f"{error}; the first {plural(count, 'call')} all failed so, and none succeeded: "
            said += f"{self.limits.advice} ({self.server.name})"
            self.hopeless = FatalError(error.kind, said)
        return self.hopeless if self.hopeless and count >= REFUSED_ALIKE else error

    def learn(self, error: BaseException | None) -> None:
        """Note how a call ended; ``error`` None is a success."""
        if error is None:
            self.answered, self.hopeless, self.strays = True, None, 0
        is_doubtful = (
            isinstance(error, RefusedError) and 0 < len(self.refusals) < REFUSED_ALIKE
        )
        self.proven = self.proven or not is_doubtful


class Admission:
    """Lets the calls of a run in. ``random`` draws numbers from 0 to 1 that spread pauses."""

    def __init__(
        self, concurrency: int, rpm: int | None, random: Callable[[], float]
    ) -> None:
        self.in_flight = 0
        self._concurrency = concurrency
        self._requests = TokenBucket((rpm or UNLIMITED) / 60, BURST_S)
        self._random = random
        self._servers: dict[str, ServerState] = {}
        self._turns: deque[ModelQueue] = deque()
        self._halted: StoppedError | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def hopeless(self) -> dict[str, str]:
        """Why no call to a model will succeed, by kind, where all that ended were refused alike."""
        found = (queue.hopeless for queue in list(self._turns))
        return {error.kind: str(error) for error in found if error}

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        windows = sum(int(server.window) for server in list(self._servers.values()))
        return min(self._concurrency, windows or self._concurrency)

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty if nothing is held back."""
        return "; ".join(
            filter(None, (one.describe(now) for one in list(self._servers.values())))
        )

    def queue(self, model: core.Model) -> ModelQueue:
        """Return the queue of a model."""
        for queue in self._turns:
            if queue.spec == model.spec:
                return queue
        limits = model.limits
        new = ServerState(
            limits.host, self._concurrency, self._random, limits.item_deadline
        )
        server = self._servers.setdefault(limits.host, new)
        self._turns.append(ModelQueue(model.spec, limits, server))
        return self._turns[-1]

    async def enter(
        self, queue: ModelQueue, size: float, until: float, *, urgent: bool, first: bool
    ) -> float:
        """Return the loop's time as soon as a call may go; it then counts as in flight.

        An ``urgent`` call goes before those that are not, and a ``first`` one before its like.
        Raises TimeoutError at ``until``, and the reason if the call may not go at all.
        """
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        calls = queue.urgent if urgent else queue.waiting
        (calls.appendleft if first else calls.append)((future, size))
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
        self,
        queue: ModelQueue,
        started: float,
        error: BaseException | None,
        failed: float | None,
    ) -> bool:
        """Count a call as ended; see ``ServerState.end`` for the arguments and the result."""
        queue.learn(error)
        queue.in_flight -= 1
        self.in_flight -= 1
        is_to_blame = queue.server.end(
            error, started, asyncio.get_running_loop().time(), failed
        )
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
        delays += [
            self._let_in(one, one.waiting, now) for one in self._turns if not one.urgent
        ]
        if self._alarm is not None:
            self._alarm.cancel()
        delay = min(delays)
        self._alarm = None if delay == NEVER else loop.call_at(now + delay, self.pump)

    def _let_in(self, queue: ModelQueue, calls: WaitingCalls, now: float) -> float:
        """Let in calls to a model; return the seconds until the next of them may go."""
        while calls:
            future, size = calls[0]
            if not future.done():
                if why := self._halted or queue.server.barred(queue.spec, now):
                    future.set_exception(
                        type(why)(why.kind, str(why))
                    )  # with its own traceback
                elif (delay := self._delay(queue, size, now)) > 0:
                    return delay
                else:
                    self.in_flight += 1
                    queue.in_flight += 1
                    queue.server.start(now)
                    self._requests.take(now)
                    queue.requests.take(now)
                    queue.tokens.take(now, size)
                    future.set_result(now)
            calls.popleft()
        return NEVER

    def _delay(self, queue: ModelQueue, size: float, now: float) -> float:
        """Return the seconds until a call may go; infinite until another one has ended."""
        room = (queue.limits.concurrency or self._concurrency) if queue.proven else 1
        if self.in_flight >= self._concurrency or queue.in_flight >= room:
            return NEVER
        own = max(queue.requests.wait(now), queue.tokens.wait(now, size))
        return max(own, self._requests.wait(now), queue.server.wait(now))

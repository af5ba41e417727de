"""When a call may go: the one place that knows every limit and lets waiting calls in.

A call waits in the queue of its model until all limits allow it at once: the calls in
flight of the run, of the model and of the server, and the rates of all three. While it
waits for one limit it uses up none of the others. Begin with ``Admission.enter``, which
waits, and ``Admission._let_in``, which decides.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from qagate.evaluators import core
from qagate.evaluators.core import CallError, FatalError, RefusedError, StoppedError
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.server import (
    BURST_SECONDS,
    NEVER,
    ServerState,
    TokenBucket,
)

UNLIMITED = 1e12
"""Requests or tokens a minute: more than anybody can send."""

TOKEN_BURST_SECONDS = 2.0
"""So many seconds' worth of a limit in tokens may go at once."""

TOKENS_PER_CHARACTER = 0.25
"""The estimate until replies teach better."""

USUAL_REPLY_TOKENS = 1024.0
"""The estimate of a reply that nothing limits, until replies teach better."""

LATEST_WEIGHT = 0.1
"""The weight of the latest reply in what was learned from all."""

BAD_REQUEST = frozenset({"bad_request", "target_failed"})
"""Kinds of refusals by which a server may mean the key or the model, not the request."""

REFUSED_ALIKE = 7
"""So many first calls refused in the same words show that no call would succeed."""

FEWEST_ALIKE = 2
"""A run that has fewer calls than that is told the same after so many."""

STRAYS = 3
"""So many statuses in a row that concern all calls are believed of a model that answered."""

_WORDS_WITH_DIGITS = re.compile(r"\S*\d\S*")
"""What differs between refusals of the same kind: an id, a time."""


class TokenLimit(TokenBucket):
    """A limit in tokens a minute. What a call takes is estimated, and corrected by its reply.

    ``longest`` is the most tokens that a reply may have, if that is limited. The first reply
    that counts its tokens replaces the first estimate; later ones move it a little.
    """

    def __init__(self, tpm: float, longest: int | None) -> None:
        super().__init__(tpm / 60, TOKEN_BURST_SECONDS)
        self._tokens_per_character = TOKENS_PER_CHARACTER
        self._reply_tokens: float = longest or USUAL_REPLY_TOKENS
        self._next_weight = 1.0

    def estimate(self, request: core.Request) -> float:
        """Return how many tokens a request and its reply will probably take."""
        reply_tokens = self._reply_tokens
        longest = request.parameters.get("max_tokens")
        if isinstance(longest, int):
            reply_tokens = min(reply_tokens, longest)
        return _characters(request) * self._tokens_per_character + reply_tokens

    def correct(
        self, estimate: float, request: core.Request, reply: core.Reply
    ) -> None:
        """Replace the estimate of a call by what it took, and learn for the next ones."""
        if not reply.input_tokens:  # the server does not count: the estimate stays
            return
        unused = estimate - reply.input_tokens - reply.output_tokens
        self.empty_at -= unused / self.rate
        ratio = reply.input_tokens / max(1, _characters(request))
        weight = self._next_weight
        self._tokens_per_character += weight * (ratio - self._tokens_per_character)
        self._reply_tokens += weight * (reply.output_tokens - self._reply_tokens)
        self._next_weight = LATEST_WEIGHT


def _characters(request: core.Request) -> int:
    return sum(len(message.content) for message in request.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCall:
    """A call that is not let in yet."""

    admitted: asyncio.Future[float]
    """Gets the loop's time at which the call goes, or the reason why it never will."""
    tokens: float
    """The estimate for its request and reply."""


class ModelQueue:
    """The calls to one model. Until the first of them has ended, one at a time goes.

    Attributes::

    :requests: The model's limit in requests, and ``tokens`` the one in tokens.

    :urgent: Calls that continue an item. They go before ``waiting``, those that begin one, so
       that a run cut short has judged its answers.

    :may_overlap: Whether more than one call at a time may go.

    :answered: Whether any call succeeded.

    :hopeless: Why no call will succeed, where all that ended were refused in the same words.

    :_suspicious_refusals: The words of the refusals before the first answer that may be due to
       the key or the model (kinds in BAD_REQUEST).

    :_strays: Errors that concern all calls, since the latest success.
    """

    def __init__(self, spec: str, limits: core.Limits, server: ServerState) -> None:
        self.spec = spec
        self.limits = limits
        self.server = server
        self.in_flight = 0
        self.requests = TokenBucket((limits.rpm or UNLIMITED) / 60, BURST_SECONDS)
        self.tokens = TokenLimit(limits.tpm or UNLIMITED, limits.max_tokens)
        self.urgent: deque[WaitingCall] = deque()
        self.waiting: deque[WaitingCall] = deque()
        self.may_overlap = False
        self.answered = False
        self.hopeless: FatalError | None = None
        self._suspicious_refusals: list[str] = []
        self._strays = 0

    def note_refusal(self, error: RefusedError | FatalError) -> CallError:
        """Count a refusal; return it as the error of all calls, or of this call alone.

        A FatalError concerns all calls, but one that a model sends after it has answered may
        be a mistake, as load balancers make them: not before a few in a row is it believed.

        A RefusedError concerns its call. But gateways refuse all first calls in the same
        words where the key or the model is wrong.
        """
        if isinstance(error, FatalError):
            self._strays += 1
            if self.answered and self._strays < STRAYS:
                return CallError(error.kind, str(error))
            return error
        if self.answered or error.kind not in BAD_REQUEST:
            return error
        self._suspicious_refusals.append(_WORDS_WITH_DIGITS.sub("", str(error)))
        self.hopeless = self._hopelessness(error)
        if (
            self.hopeless is not None
            and len(self._suspicious_refusals) >= REFUSED_ALIKE
        ):
            return self.hopeless
        return error

    def _hopelessness(self, error: RefusedError) -> FatalError | None:
        """Return why no call will succeed; None if the refusals differ or are too few."""
        count = len(self._suspicious_refusals)
        if count < FEWEST_ALIKE or len(set(self._suspicious_refusals)) > 1:
            return None
        message = (
            f"{error}; the first {plural(count, 'call')} all failed so, and none succeeded: "
            f"{self.limits.advice} ({self.server.name})"
        )
        return FatalError(error.kind, message)

    def note_end(self, error: BaseException | None) -> None:
        """Note how a call ended; ``error`` None is a success. ``note_refusal`` comes first.

        From now on calls may overlap, unless this call was refused and there are some suspicious
        refusals, but too few to tell whether the key or the model is wrong.
        """
        if error is None:
            self.answered = True
            self.hopeless = None
            self._strays = 0
        is_refused = isinstance(error, RefusedError)
        is_in_doubt = 0 < len(self._suspicious_refusals) < REFUSED_ALIKE
        if not (is_refused and is_in_doubt):
            self.may_overlap = True


class Admission:
    """Lets the calls of a run in.

    A call that has to wait is put into the queue of its model. Whenever something changes (a
    call comes or ends, the run is halted) ``_let_calls_in`` looks at the first call of each
    queue. Where only time decides, it sets an alarm for itself. The models have turns: each
    look begins with another one.

    ``random`` draws numbers from 0 to 1 that spread pauses.
    """

    def __init__(
        self, concurrency: int, rpm: int | None, random: Callable[[], float]
    ) -> None:
        self.in_flight = 0
        self._concurrency = concurrency
        self._requests = TokenBucket((rpm or UNLIMITED) / 60, BURST_SECONDS)
        self._random = random
        self._servers: dict[str, ServerState] = {}
        self._queues: deque[ModelQueue] = deque()
        self._halted: StoppedError | None = None
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def hopeless(self) -> dict[str, str]:
        """Why no call to a model will succeed, by kind, where all that ended were refused alike.

        Any thread may read it, as the two below: each copies before it loops.
        """
        reasons: dict[str, str] = {}
        for queue in list(self._queues):
            error = queue.hopeless
            if error is not None:
                reasons[error.kind] = str(error)
        return reasons

    @property
    def limit(self) -> int:
        """How many calls may be in flight now."""
        servers = list(self._servers.values())
        if not servers:
            return self._concurrency
        return min(self._concurrency, sum(int(server.window) for server in servers))

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty if nothing is held back."""
        servers = list(self._servers.values())
        reasons = [server.describe(now) for server in servers]
        return "; ".join(reason for reason in reasons if reason)

    def open_queue(self, model: core.Model) -> ModelQueue:
        """Return the queue of a model; the first call to it makes one."""
        for queue in self._queues:
            if queue.spec == model.spec:
                return queue
        limits = model.limits
        server = self._servers.get(limits.host)
        if server is None:
            server = ServerState(
                limits.host, self._concurrency, self._random, limits.item_deadline
            )
            self._servers[limits.host] = server
        new_queue = ModelQueue(model.spec, limits, server)
        self._queues.append(new_queue)
        return new_queue

    async def enter(
        self,
        queue: ModelQueue,
        tokens: float,
        until: float,
        *,
        urgent: bool,
        as_probe: bool,
    ) -> float:
        """Return the loop's time as soon as a call may go; it then counts as in flight.

        An ``urgent`` call goes before those that are not, and one that goes ``as_probe``
        before its like. Raises TimeoutError at ``until``, and the reason if the call may not
        go at all.
        """
        admitted: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        call = WaitingCall(admitted=admitted, tokens=tokens)
        calls = queue.urgent if urgent else queue.waiting
        if as_probe:
            calls.appendleft(call)
        else:
            calls.append(call)
        self._let_calls_in()
        try:
            async with asyncio.timeout_at(None if until == NEVER else until):
                return await admitted
        except (TimeoutError, asyncio.CancelledError) as error:
            # It may have been let in and given up in the same turn of the loop.
            if _has_result(admitted):
                self.leave(queue, admitted.result(), error, None)
            raise

    def leave(
        self,
        queue: ModelQueue,
        started: float,
        error: BaseException | None,
        failed_at: float | None,
        slice_name: str = "",
    ) -> bool:
        """Count a call as ended; see ``ServerState.note_end`` for the arguments and the result."""
        queue.note_end(error)
        queue.in_flight -= 1
        self.in_flight -= 1
        now = asyncio.get_running_loop().time()
        server_is_to_blame = queue.server.note_end(
            error, started, now, failed_at, slice_name
        )
        self._let_calls_in()
        return server_is_to_blame

    def halt(self, error: StoppedError) -> None:
        """Start no further call at all: every call that waits raises this."""
        if self._halted is None:
            self._halted = error
        self._let_calls_in()

    def _let_calls_in(self) -> None:
        """Let in what may go now, the models in turn; set an alarm where only time decides.

        ``urgent`` calls, which continue an item, go first, those of all models. A model that has
        some left lets in no others.
        """
        if not any(queue.urgent or queue.waiting for queue in self._queues):
            return
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._queues.rotate(1)
        delay = NEVER
        for queue in self._queues:
            delay = min(delay, self._let_in(queue, queue.urgent, now))
        for queue in self._queues:
            if not queue.urgent:
                delay = min(delay, self._let_in(queue, queue.waiting, now))
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if delay < NEVER:
            self._alarm = loop.call_at(now + delay, self._let_calls_in)

    def _let_in(
        self, queue: ModelQueue, calls: deque[WaitingCall], now: float
    ) -> float:
        """Let in calls to a model; return the seconds until the next of them may go.

        Infinite if none is left, or if only the end of another call decides.
        """
        while calls:
            call = calls[0]
            if call.admitted.done():  # given up while it waited
                calls.popleft()
                continue
            reason = self._halted or queue.server.reason_not_to_wait(queue.spec, now)
            if reason is not None:
                calls.popleft()
                # Each call gets an error of its own, with its own traceback.
                call.admitted.set_exception(type(reason)(reason.kind, str(reason)))
                continue
            delay = self._seconds_until_free(queue, call.tokens, now)
            if delay > 0:
                return delay
            calls.popleft()
            self._start(queue, call.tokens, now)
            call.admitted.set_result(now)
        return NEVER

    def _seconds_until_free(
        self, queue: ModelQueue, tokens: float, now: float
    ) -> float:
        """Return the seconds until a queue's first call may go; 0 if it may go now.

        NEVER: only after another call has ended. If the server's pace makes the call wait,
        the server notes it.
        """
        most_in_flight = 1
        if queue.may_overlap:
            most_in_flight = queue.limits.concurrency or self._concurrency
        if self.in_flight >= self._concurrency or queue.in_flight >= most_in_flight:
            return NEVER
        return max(
            queue.requests.wait(now),
            queue.tokens.wait(now, tokens),
            self._requests.wait(now),
            queue.server.hold_back(now),
        )

    def _start(self, queue: ModelQueue, tokens: float, now: float) -> None:
        """Count a call that goes now, in every limit."""
        self.in_flight += 1
        queue.in_flight += 1
        queue.server.note_start(now)
        self._requests.take(now)
        queue.requests.take(now)
        queue.tokens.take(now, tokens)


def _has_result(future: asyncio.Future[float]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None

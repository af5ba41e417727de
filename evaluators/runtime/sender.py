"""Puts one request to a model until it is answered or nothing more is to be hoped for."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evaluators.core import (
    CallError,
    FatalError,
    Model,
    Reply,
    Request,
    StoppedError,
    TransientError,
)
from evaluators.runtime.admission import NEVER, Admission, ModelQueue
from evaluators.runtime.budget import Budget
from evaluators.runtime.server_state import LONGEST_WAIT, OVERLOADS, RATE_LIMIT

T = TypeVar("T")

ITEM_DEADLINE = "item_deadline"
DEADLINE = "deadline"
DEADLINE_GRACE = 1.5  # seconds that a call in flight may go on after the run's time is used up
TRIES = {"bad_body": 3, "error_body": 3, RATE_LIMIT: 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a transient failure is tried again, and how long is waited in between.

    ``attempts`` counts the first one; waits grow from ``first`` to ``longest`` seconds, with
    jitter. An unreadable body has at most 3 tries. A rate limit has 20: the host's pause, and not
    the call, decides when. While a host's circuit is open its overload uses up none.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What the user allows the whole run: calls in flight, requests a minute, seconds, USD."""

    concurrency: int = 16
    rpm: int | None = None
    deadline: float | None = None
    budget: Budget | None = None


@dataclass(slots=True)
class ItemDeadline:
    """The time of one item: it begins with its first call and ends at ``until``.

    ``failed_at`` is when its call under way failed for the first time, None where it has not.
    """

    until: float = NEVER
    failed_at: float | None = None

    @property
    def begun(self) -> bool:
        """Whether a call was made for the item: what it still needs goes before other items.

        Not so what has just failed: a host that answers others must not be tried with it alone.
        """
        return self.until != NEVER and self.failed_at is None


class Sender:
    """Sends the requests of one run within all its limits. ``random`` gives numbers from 0 to 1.

    ``retried`` counts by kind the failures after which a call was tried again; ``stops`` holds, by
    kind, why calls are no longer made.
    """

    def __init__(
        self, patience: RetryPolicy, bounds: RunLimits, random: Callable[[], float]
    ) -> None:
        self.requests = 0
        self.retried: Counter[str] = Counter()
        self.stops: dict[str, str] = {}
        self.admission = Admission(bounds.concurrency, bounds.rpm, random)
        self._patience = patience
        self._bounds = bounds
        self._end = NEVER

    def begin(self) -> None:
        """Start the run's clock, unless it goes already."""
        if self._bounds.deadline is not None and self._end == NEVER:
            self._end = asyncio.get_running_loop().time() + self._bounds.deadline

    def halt(self, error: StoppedError) -> None:
        """Start no further call; what is in flight goes on."""
        self.admission.halt(error)

    async def before_the_end(self, awaited: Awaitable[T]) -> T:
        """Return what is awaited; StoppedError where the run's time is used up before it comes."""
        if self._end == NEVER:
            return await awaited
        try:
            async with asyncio.timeout_at(self._end):
                return await awaited
        except TimeoutError:
            raise self._time_is_up() from None

    async def send(self, model: Model, request: Request, span: ItemDeadline) -> Reply:
        """Return the reply. Raises a CallError, StoppedError where the call was never made."""
        lane = self.admission.lane(model)
        try:
            return await self._once(lane, model, request, span)
        except TransientError as error:
            first = error
        return await self._again(first, lane, model, request, span)

    async def _again(
        self,
        first: TransientError,
        lane: ModelQueue,
        model: Model,
        request: Request,
        span: ItemDeadline,
    ) -> Reply:
        """Try until it succeeds; what most calls never need costs them nothing."""
        from tenacity import (  # noqa: PLC0415  # only the process that calls models needs it
            AsyncRetrying,
            retry_if_exception_type,
            wait_random_exponential,
        )

        tries = _Tries(lane, self._patience, span)
        backoff = wait_random_exponential(self._patience.first, self._patience.longest)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: tries.are_used_up(_failure(state)),
            wait=lambda state: 0.0 if tries.waits_for_host(_failure(state)) else backoff(state),
            before_sleep=lambda state: self._count(span, _failure(state)),
            sleep=lambda seconds: self._sleep(seconds, span),
            reraise=True,
        )
        failed = iter([first])

        async def attempt() -> Reply:
            for error in failed:
                raise error
            return await self._once(lane, model, request, span)

        reply: Reply = await retrying(attempt)
        span.failed_at = None
        return reply

    async def _once(
        self, lane: ModelQueue, model: Model, request: Request, span: ItemDeadline
    ) -> Reply:
        budget = self._bounds.budget
        reserved = await self._reserve(budget, model, request, span) if budget else 0.0
        reply = None
        try:
            size = lane.size(request)
            started = await self._enter(lane, size, span)
            reply = await self._call(lane, model, request, (started, span))
            if lane.tpm is not None:
                lane.tpm.correct(size, request, reply)
            return reply
        except TimeoutError:
            raise self._overdue(lane) from None
        finally:
            if budget:
                budget.settle(reserved, model.spec, reply)

    async def _reserve(
        self, budget: Budget, model: Model, request: Request, span: ItemDeadline
    ) -> float:
        try:
            return await budget.reserve(model, request, urgent=span.begun)
        except StoppedError as error:
            self.stops.setdefault(error.kind, str(error))
            raise

    async def _enter(self, lane: ModelQueue, size: float, span: ItemDeadline) -> float:
        until = min(span.until, self._end)
        try:
            if until <= asyncio.get_running_loop().time():
                raise TimeoutError
            started = await self.admission.enter(lane, size, until, urgent=span.begun)
        except FatalError as error:
            self.stops.setdefault(error.kind, str(error))
            if span.failed_at is not None:
                raise
            raise StoppedError(error.kind, str(error)) from None
        span.until = min(span.until, started + lane.limits.item_deadline)
        return started

    def _cut(self, lane: ModelQueue, span: ItemDeadline, started: float) -> float | None:
        """Return when a call is to be cut, None where its own deadline does."""
        end = min(span.until, self._end + DEADLINE_GRACE)
        return None if started + lane.limits.deadline <= end else end

    async def _call(
        self, lane: ModelQueue, model: Model, request: Request, times: tuple[float, ItemDeadline]
    ) -> Reply:
        started, span = times
        end = self._cut(lane, span, started)
        self.requests += 1
        failure: BaseException | None = None
        try:
            if end is None:
                return await model.complete(request)
            async with asyncio.timeout_at(end):
                return await model.complete(request)
        except BaseException as error:
            failure = error
            if isinstance(error, FatalError):
                # Only the user can mend it, and what the others say meanwhile could not be judged.
                self.stops.setdefault(error.kind, str(error))
                self.halt(StoppedError(error.kind, str(error)))
            raise
        finally:
            own = lane.host.answered_since(span.failed_at)
            self.admission.leave(lane, started, failure, own=own)

    def _time_is_up(self) -> StoppedError:
        message = f"the run's {self._bounds.deadline:g} s are used up (--deadline)"
        self.stops.setdefault(DEADLINE, message)
        return StoppedError(DEADLINE, message)

    def _overdue(self, lane: ModelQueue) -> CallError:
        now = asyncio.get_running_loop().time()
        if now >= self._end:
            return self._time_is_up()
        waits = self.admission.describe(now)
        return CallError(
            ITEM_DEADLINE,
            f"{lane.spec}: the {lane.limits.item_deadline:g} s of this item are used up"
            + (f" ({waits})" if waits else ""),
        )

    def _count(self, span: ItemDeadline, error: TransientError) -> None:
        if span.failed_at is None:
            span.failed_at = asyncio.get_running_loop().time()
        self.retried[error.kind] += 1

    async def _sleep(self, seconds: float, span: ItemDeadline) -> None:
        left = min(span.until, self._end) - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, min(seconds, left)))


@dataclass(slots=True)
class _Tries:
    """Counts the failures of one call, each kind by its own rule.

    ``of_host`` says that the last one is an overload of the host, which uses up no try.
    """

    lane: ModelQueue
    patience: RetryPolicy
    span: ItemDeadline
    failures: Counter[str] = field(default_factory=Counter)
    of_host: bool = False

    def are_used_up(self, error: TransientError) -> bool:
        if (error.retry_after or 0.0) > LONGEST_WAIT:
            return True
        host = self.lane.host
        own = host.answered_since(self.span.failed_at)
        self.of_host = error.kind in OVERLOADS and host.is_overloaded and not own
        if not self.of_host:
            self.failures[error.kind] += 1
        most = TRIES.get(error.kind, self.patience.attempts)
        special = error.kind in TRIES
        counted = self.failures[error.kind] if special else self.failures.total()
        return counted >= most

    def waits_for_host(self, error: TransientError) -> bool:
        return error.kind == RATE_LIMIT or self.of_host


def _failure(state: Any) -> TransientError:
    error: TransientError = state.outcome.exception()
    return error

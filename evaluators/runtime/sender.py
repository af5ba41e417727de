"""Puts one request to a model until it is answered or nothing more is to be hoped for."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from evaluators.core import (
    CallError,
    FatalError,
    Model,
    RefusedError,
    Reply,
    Request,
    StoppedError,
    TransientError,
)
from evaluators.ledger_place import Place
from evaluators.runtime.admission import NEVER, Admission
from evaluators.runtime.batch_waves import BatchSettings
from evaluators.runtime.budget import Budget
from evaluators.runtime.model_queue import ModelQueue
from evaluators.runtime.retries import RetryPolicy
from evaluators.runtime.server_state import RATE_LIMIT

T = TypeVar("T")

ITEM_DEADLINE = "item_deadline"
DEADLINE = "deadline"
DEADLINE_GRACE = 1.5  # seconds that a call in flight may go on after the run's time is used up
PROBES = 4  # in a row that one call makes, before another one's turn: it may be to blame


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSettings:
    """How models are asked: the ledger that keeps every call, and what is allowed at most.

    ``concurrency`` bounds the calls in flight, ``rpm`` the requests a minute, ``deadline`` the
    seconds and ``max_cost`` the USD of all calls together; None means no bound. ``replay`` sends
    nothing. ``fresh`` names a release: all is asked anew under its name, and found again by it.
    ``transcripts`` keeps what is sent beside the replies. ``batch`` sends calls in batches, where a
    model's API has them. ``random`` gives numbers from 0 to 1, by which pauses are spread.
    """

    ledger: Place = Path(".qa/ledger.sqlite3")
    concurrency: int = 16
    rpm: int | None = None
    deadline: float | None = None
    max_cost: float | None = None
    replay: bool = False
    fresh: str = ""
    transcripts: bool = True
    batch: BatchSettings | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    random: Callable[[], float] = random.random


@dataclass(slots=True)
class ItemDeadline:
    """The time of one item: it begins with its first call and ends at ``until``.

    ``failed_at`` is when its call under way failed for the first time, None if it has not;
    ``refused`` counts the failures of that call that were the server's.
    """

    until: float = NEVER
    failed_at: float | None = None
    refused: int = 0

    @property
    def urgent(self) -> bool:
        """Whether a call was made for the item: what it still needs goes before other items.

        Not so what has just failed: a server that answers others must not be tried with it alone.
        """
        return self.until != NEVER and self.failed_at is None


class Sender:
    """Sends requests within all limits of their settings and the budget.

    ``retried`` counts by kind the failures after which a call was tried again; ``stops`` holds, by
    kind, why calls are no longer made.
    """

    def __init__(self, settings: CallSettings, budget: Budget | None = None) -> None:
        self.requests = 0
        self.retried: Counter[str] = Counter()
        self.stops: dict[str, str] = {}
        self.admission = Admission(settings.concurrency, settings.rpm, settings.random)
        self.budget = budget
        self._settings = settings
        self._end = NEVER

    def begin(self) -> None:
        """Start the run's clock, unless it goes already."""
        if self._settings.deadline is not None and self._end == NEVER:
            self._end = asyncio.get_running_loop().time() + self._settings.deadline

    def halt(self, error: StoppedError) -> None:
        """Start no further call; what is in flight goes on."""
        self.admission.halt(error)

    async def before_the_end(self, awaited: Awaitable[T]) -> T:
        """Return what is awaited; StoppedError if the run's time is used up before it comes."""
        if self._end == NEVER:
            return await awaited
        try:
            async with asyncio.timeout_at(self._end):
                return await awaited
        except TimeoutError:
            raise self._time_is_up() from None

    async def reserve(
        self, model: Model, request: Request, *, urgent: bool, batch: bool = False
    ) -> float:
        """Set aside the most that a call can cost and return it, in USD; 0 without a budget."""
        if self.budget is None:
            return 0.0
        try:
            return await self.budget.reserve(model, request, urgent=urgent, batch=batch)
        except StoppedError as error:
            self.stops.setdefault(error.kind, str(error))
            raise

    def settle(self, reserved: float, spec: str, reply: Reply | None) -> None:
        """Book what a reply cost in place of what was set aside for it."""
        if self.budget:
            self.budget.settle(reserved, spec, reply)

    async def send(self, model: Model, request: Request, item: ItemDeadline) -> Reply:
        """Return the reply. Raises a CallError, StoppedError if the call was never made."""
        queue = self.admission.queue(model)
        try:
            return await self._attempt(queue, model, request, item)
        except TransientError as error:
            failure = error
        return await self._retry(failure, queue, model, request, item)

    async def _retry(
        self,
        failure: TransientError,
        queue: ModelQueue,
        model: Model,
        request: Request,
        item: ItemDeadline,
    ) -> Reply:
        """Try until it succeeds; what most calls never need costs them nothing."""
        failures: Counter[str] = Counter()
        tried = 0
        while True:
            tried += 1
            own = queue.server.answered_since(item.failed_at)
            of_server = queue.server.is_to_blame(failure.kind, own=own)
            item.refused += of_server
            failures[failure.kind] += not of_server
            if self._settings.retry.is_last(failure, failures):
                if tried > 1:
                    failure.args = (f"{failure} (tried {tried} times)",)
                raise failure
            if item.failed_at is None:
                item.failed_at = asyncio.get_running_loop().time()
            self.retried[failure.kind] += 1
            waits_for_server = of_server or failure.kind == RATE_LIMIT  # its own pause decides
            await asyncio.sleep(0.0 if waits_for_server else self._backoff(tried, failure, item))
            try:
                reply = await self._attempt(queue, model, request, item)
            except TransientError as error:
                failure = error
            else:
                item.failed_at, item.refused = None, 0
                return reply

    def _backoff(self, tried: int, failure: TransientError, item: ItemDeadline) -> float:
        """Return the seconds to wait after so many attempts of a call and its latest failure."""
        left = min(item.until, self._end) - asyncio.get_running_loop().time()
        pause = self._settings.retry.pause(tried, failure, self._settings.random())
        return max(0.0, min(pause, left))

    async def _attempt(
        self, queue: ModelQueue, model: Model, request: Request, item: ItemDeadline
    ) -> Reply:
        """Make one call, within the limits, the budget and the time that is left."""
        reply = None
        reserved = await self.reserve(model, request, urgent=item.urgent)
        try:
            size = queue.size(request)
            started = await self._enter(queue, size, item)
            reply = await self._call(queue, model, request, (started, item))
            if queue.tpm is not None:
                queue.tpm.correct(size, request, reply)
            return reply
        except TimeoutError:
            raise self._overdue(queue) from None
        finally:
            self.settle(reserved, model.spec, reply)

    async def _enter(self, queue: ModelQueue, size: float, item: ItemDeadline) -> float:
        """Return when the call was let in. Raises TimeoutError if the time is used up before."""
        until = min(item.until, self._end)
        try:
            if until <= asyncio.get_running_loop().time():
                raise TimeoutError
            first = 0 < item.refused <= PROBES
            started = await self.admission.enter(
                queue, size, until, urgent=item.urgent, first=first
            )
        except FatalError as error:
            self.stops.setdefault(error.kind, str(error))
            if item.failed_at is not None:
                raise
            raise StoppedError(error.kind, str(error)) from None
        item.until = min(item.until, started + queue.limits.item_deadline)
        return started

    async def _call(
        self, queue: ModelQueue, model: Model, request: Request, times: tuple[float, ItemDeadline]
    ) -> Reply:
        started, item = times
        end = min(item.until, self._end + DEADLINE_GRACE)
        self.requests += 1
        failure: BaseException | None = None
        try:
            if started + queue.limits.deadline <= end:  # the model's own deadline comes first
                return await model.complete(request)
            async with asyncio.timeout_at(end):
                return await model.complete(request)
        except RefusedError as error:
            failure = queue.refused(error)
            raise failure from None
        except BaseException as error:
            failure = error
            raise
        finally:
            if isinstance(failure, FatalError):
                # Only the user can mend it, and what the others say meanwhile could not be judged.
                self.stops.setdefault(failure.kind, str(failure))
                self.halt(StoppedError(failure.kind, str(failure)))
            own = queue.server.answered_since(item.failed_at)
            again = item.failed_at is not None
            self.admission.leave(queue, started, failure, own=own, again=again)

    def _time_is_up(self) -> StoppedError:
        waits = self.admission.describe(asyncio.get_running_loop().time())
        message = f"the run's {self._settings.deadline:g} s are used up (--deadline)"
        message += f"; {waits}" if waits else ""
        self.stops.setdefault(DEADLINE, message)
        return StoppedError(DEADLINE, message)

    def _overdue(self, queue: ModelQueue) -> CallError:
        """Return the error of a call whose item, or run, has no time left."""
        now = asyncio.get_running_loop().time()
        if now >= self._end:
            return self._time_is_up()
        waits = self.admission.describe(now)
        return CallError(
            ITEM_DEADLINE,
            f"{queue.spec}: the {queue.limits.item_deadline:g} s of this item are used up"
            + (f" ({waits})" if waits else ""),
        )

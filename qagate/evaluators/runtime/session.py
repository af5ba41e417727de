"""Models with their prices, limits and ledger, and calls made outside a pytest run."""

import asyncio
import tempfile
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from qagate.evaluators.core import (
    Ask,
    CallError,
    Model,
    StoppedError,
    Usage,
    UsageError,
)
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.runtime.budget import Budget, cost_of, pricing_of
from qagate.evaluators.runtime.caller import Caller, CallRoute, CallSettings, Meter

T = TypeVar("T")

GRACE_SECONDS = 3.0  # calls in flight when the user stops a command may still arrive
CLOSING_SECONDS = 5.0


class CallSession:
    """Some models and Specs, by SPEC, with the prices, the budget and the limits of all calls.

    Raises UsageError for a cost limit (the user's ``option``) that could not be kept.
    """

    def __init__(
        self,
        models: Mapping[str, Model],
        specs: Mapping[str, Spec],
        settings: CallSettings,
        option: str = "--max-cost",
        find_route: Callable[[Caller], CallRoute | None] | None = None,
    ) -> None:
        today = datetime.now(UTC).date()
        self.models = models
        self.settings = settings
        self.pricing = {text: pricing_of(spec, today) for text, spec in specs.items()}
        self._budget = None
        if settings.max_cost is not None:
            if unknown := [
                text for text, price in self.pricing.items() if price is None
            ]:
                raise UsageError(
                    f"{option}: no price is known for {', '.join(unknown)}, so that no limit could "
                    "be kept; give prices: {input: , output: } in a models file (--models FILE) "
                    "and name that entry"
                )
            known = {
                text: (specs[text], price)
                for text, price in self.pricing.items()
                if price
            }
            self._budget = Budget(settings.max_cost, known)
        self._find_route = find_route
        self._began = time.monotonic()

    def caller(self, ledger: Ledger, settings: CallSettings | None = None) -> Caller:
        """Return a caller for the models, with this ledger."""
        settings = settings or self.settings
        price = partial(cost_of, self.pricing)
        if self._budget is not None and settings.run and not settings.replay:
            with suppress(LedgerError):  # the first call reports it
                self._budget.join(ledger, settings.run)
        return Caller(ledger, settings, price, self._budget, self._find_route)

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        """Return what ``work`` returns, in an event loop of its own, once all is in the ledger.

        All such runs share deadline and budget. Without a model the user's ledger is not opened.
        """
        settings = self.settings
        with ExitStack() as stack:
            place, read_only = settings.ledger, settings.replay
            if not self.models:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="qa-"))
                place, read_only = Path(folder, "ledger"), False
            ledger = stack.enter_context(Ledger(place, read_only=read_only))
            return asyncio.run(self._work(work, ledger))

    async def _work(self, work: Callable[[Caller], Awaitable[T]], ledger: Ledger) -> T:
        settings = self.settings
        if settings.deadline is not None:
            left = max(0.0, settings.deadline - (time.monotonic() - self._began))
            settings = replace(settings, deadline=left)
        caller = self.caller(ledger, settings)
        caller.open()
        caller.sender.begin()
        try:
            return await work(caller)
        finally:
            await caller.close()
            for model in self.models.values():
                await model.close()


async def ask_each(
    caller: Caller,
    jobs: Sequence[Callable[[Ask], Awaitable[T]]],
    ended: Callable[[Usage], None],
) -> list[T | CallError]:
    """Return each job's result, or the CallError that ended it, in order; ``ended`` gets its usage.

    A result must follow from the replies alone. If cancelled, it sends nothing more and waits a
    moment for the calls in flight: they are paid for and belong in the ledger.
    """

    async def outcome(job: Callable[[Ask], Awaitable[T]]) -> T | CallError:
        meter = Meter(price=caller.price)
        try:
            return await job(caller.metered(meter))
        except CallError as error:
            return error
        finally:
            ended(meter.usage)

    tasks = [asyncio.create_task(outcome(job)) for job in jobs]
    try:
        if tasks:
            await asyncio.wait(
                tasks
            )  # which, unlike gather, leaves them alone when cancelled
    except asyncio.CancelledError:
        caller.sender.halt(StoppedError("stopped", "stopped before this was asked"))
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return [task.result() for task in tasks]


class CallThread:
    """Makes a session's calls in a thread of its own, with or without an event loop of its caller.

    The first call starts it, also after ``close``.
    """

    def __init__(self, session: CallSession) -> None:
        self._session, self._lock = session, threading.Lock()
        self._opened: tuple[asyncio.AbstractEventLoop, Caller] | None = None
        self._end: Callable[[], object] = lambda: None

    def submit(self, work: Callable[[Caller], Coroutine[Any, Any, T]]) -> Future[T]:
        """Return the future result of this work. Raises UsageError if no ledger can be opened."""
        with self._lock:
            if self._opened is None:
                opened: Future[_Opened] = Future()
                thread = threading.Thread(
                    target=_serve, args=(self._session, opened), daemon=True
                )
                thread.start()
                loop, closing, caller = opened.result()
                self._end = weakref.finalize(self, _end, thread, loop, closing)
                self._opened = loop, caller
            loop, caller = self._opened
            return asyncio.run_coroutine_threadsafe(work(caller), loop)

    def close(self) -> None:
        """Close the connections and end the thread; calls in flight are given up."""
        with self._lock:
            self._end()
            self._opened = None


_Opened = tuple[asyncio.AbstractEventLoop, asyncio.Event, Caller]


def _serve(session: CallSession, opened: Future[_Opened]) -> None:
    async def serve(caller: Caller) -> None:
        closing = asyncio.Event()
        opened.set_result((asyncio.get_running_loop(), closing, caller))
        await closing.wait()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        session.run(serve)
    except Exception as error:  # noqa: BLE001  # a ledger that cannot be opened, for instance
        if not opened.done():
            opened.set_exception(error)


def _end(
    thread: threading.Thread, loop: asyncio.AbstractEventLoop, closing: asyncio.Event
) -> None:
    with suppress(RuntimeError):  # closed before
        loop.call_soon_threadsafe(closing.set)
    if threading.current_thread() is not thread:
        thread.join(CLOSING_SECONDS)

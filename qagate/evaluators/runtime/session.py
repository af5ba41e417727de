"""Some models with their prices, limits and ledger, and calls to them outside a pytest run.

A CallSession is what a pytest run and every command that asks models have in common. A
command makes its calls with ``CallSession.run`` and ``ask_each``; code that has no event
loop of its own, or another one, with a CallThread.
"""

import asyncio
import tempfile
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from qagate.evaluators.core import (
    Ask,
    CallError,
    Model,
    QAError,
    StoppedError,
    Usage,
    UsageError,
)
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.ledger.beside import load_beside
from qagate.evaluators.models.pricing import Pricing, cost_of, pricing_of
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import Caller, CallRoute, CallSettings, Meter

T = TypeVar("T")

GRACE_SECONDS = 3.0
"""For so long calls in flight may still arrive when the user stops a command."""

REPLY_BYTES = 4096
"""Of a reply in the ledger, with what was sent; few are longer."""

CLOSING_SECONDS = 5.0
"""For so long the end of a CallThread is waited for."""


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
        self.pricing = {name: pricing_of(spec, today) for name, spec in specs.items()}
        self._budget: Budget | None = None
        if settings.max_cost is not None:
            self._budget = _budget(settings.max_cost, specs, self.pricing, option)
        self._find_route = find_route
        self._began = time.monotonic()

    def open_ledger(self) -> Ledger:
        """Return the ledger, with the replies of earlier reports beside it.

        Raises UsageError if it cannot be used, UnwrittenError if the disk is full.
        """
        settings = self.settings
        beside = load_beside(settings.beside)
        ledger = Ledger(settings.ledger, read_only=settings.replay, beside=beside)
        self._try_writing(ledger)
        return ledger

    def _try_writing(self, ledger: Ledger) -> None:
        """See before the first call whether the ledger takes a group of replies.

        Raises UsageError, or UnwrittenError if the disk is full; the ledger is closed then.
        """
        if self.settings.replay or not self.models:
            return
        try:
            ledger.try_writing(2 * self.settings.concurrency * REPLY_BYTES)
        except QAError:
            ledger.close()
            raise

    def caller(
        self,
        ledger: Ledger,
        settings: CallSettings | None = None,
        run: RunIdentity = NO_RUN,
    ) -> Caller:
        """Return a caller for the models, with this ledger and the session's settings or others."""
        if settings is None:
            settings = self.settings
        price = partial(cost_of, self.pricing)
        if self._budget is not None and settings.spending and not settings.replay:
            with suppress(LedgerError):  # the first call reports it
                self._budget.join(ledger, settings.spending)
        return Caller(ledger, settings, price, self._budget, self._find_route, run=run)

    def run(self, work: Callable[[Caller], Awaitable[T]]) -> T:
        """Return what ``work`` returns, in an event loop of its own, once all is in the ledger.

        All such runs share deadline and budget. Without a model the user's ledger is not opened.
        """
        with ExitStack() as stack:
            place = self.settings.ledger
            read_only = self.settings.replay
            if not self.models:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="qa-"))
                place = Path(folder, "ledger")
                read_only = False
            ledger = stack.enter_context(Ledger(place, read_only=read_only))
            self._try_writing(ledger)
            return asyncio.run(self._work(work, ledger))

    async def _work(self, work: Callable[[Caller], Awaitable[T]], ledger: Ledger) -> T:
        """Do work with a caller of its own, in the time that the session has left."""
        settings = self.settings
        if settings.deadline is not None:
            seconds_used = time.monotonic() - self._began
            seconds_left = max(0.0, settings.deadline - seconds_used)
            settings = replace(settings, deadline=seconds_left)
        caller = self.caller(ledger, settings)
        caller.open()
        caller.sender.begin()
        try:
            return await work(caller)
        finally:
            await caller.close()
            for model in self.models.values():
                await model.close()


def _budget(
    limit: float,
    specs: Mapping[str, Spec],
    pricing: Mapping[str, Pricing | None],
    option: str,
) -> Budget:
    """Return the budget of a session. Raises UsageError if a model's price is unknown."""
    priced: dict[str, tuple[Spec, Pricing]] = {}
    unpriced: list[str] = []
    for name, spec in specs.items():
        price = pricing[name]
        if price is None:
            unpriced.append(name)
        else:
            priced[name] = (spec, price)
    if unpriced:
        raise UsageError(
            f"{option}: no price is known for {', '.join(unpriced)}, so that no limit could "
            "be kept; give prices: {input: , output: } in a models file (--models FILE) "
            "and name that entry"
        )
    return Budget(limit, priced)


async def ask_each(
    caller: Caller,
    jobs: Sequence[Callable[[Ask], Awaitable[T]]],
    note_usage: Callable[[Usage], None],
) -> list[T | CallError]:
    """Return each job's result, or the CallError that ended it, in order.

    ``note_usage`` is given what a job took as soon as it has ended. A result must follow from
    the replies alone. If cancelled, it sends nothing more and waits a moment for the calls in
    flight: they are paid for and belong in the ledger.
    """

    async def outcome(job: Callable[[Ask], Awaitable[T]]) -> T | CallError:
        meter = Meter(price=caller.price)
        try:
            return await job(caller.metered(meter))
        except CallError as error:
            return error
        finally:
            note_usage(meter.usage)

    tasks = [asyncio.create_task(outcome(job)) for job in jobs]
    try:
        if tasks:
            # Unlike gather it leaves the tasks alone when it is cancelled.
            await asyncio.wait(tasks)
    except asyncio.CancelledError:
        caller.sender.halt(StoppedError("stopped", "stopped before this was asked"))
        await asyncio.wait(tasks, timeout=GRACE_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    return [task.result() for task in tasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opened:
    """A session at work in its thread."""

    loop: asyncio.AbstractEventLoop
    closing: asyncio.Event
    """Set in that loop, it ends the thread."""
    caller: Caller


class CallThread:
    """Makes a session's calls in a thread of its own, with or without an event loop of its caller.

    The first call starts it, also after ``close``. Where nobody closes it, it ends with this
    object.
    """

    def __init__(self, session: CallSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._opened: _Opened | None = None
        self._end_thread: Callable[[], object] = lambda: None

    def submit(self, work: Callable[[Caller], Coroutine[Any, Any, T]]) -> Future[T]:
        """Return the future result of this work. Raises UsageError if no ledger can be opened."""
        with self._lock:
            if self._opened is None:
                self._opened = self._start()
            caller = self._opened.caller
            return asyncio.run_coroutine_threadsafe(work(caller), self._opened.loop)

    def close(self) -> None:
        """Close the connections and end the thread; calls in flight are given up."""
        with self._lock:
            self._end_thread()
            self._opened = None

    def _start(self) -> _Opened:
        """Start the thread; return what it opened, or raise what kept it from that."""
        opening: Future[_Opened] = Future()
        # The thread is not given this object: if it held it, the finalizer could never run.
        thread = threading.Thread(
            target=_serve, args=(self._session, opening), daemon=True
        )
        thread.start()
        opened = opening.result()
        self._end_thread = weakref.finalize(self, _close_thread, thread, opened)
        return opened


def _serve(session: CallSession, opening: Future[_Opened]) -> None:
    """Keep a session open until it is told to close, in the thread of a CallThread."""

    async def serve(caller: Caller) -> None:
        loop = asyncio.get_running_loop()
        closing = asyncio.Event()
        opening.set_result(_Opened(loop=loop, closing=closing, caller=caller))
        await closing.wait()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    try:
        session.run(serve)
    except Exception as error:  # noqa: BLE001  # a ledger that cannot be opened, for instance
        if not opening.done():
            opening.set_exception(error)


def _close_thread(thread: threading.Thread, opened: _Opened) -> None:
    """End the thread of a CallThread, and wait for that a moment."""
    with suppress(RuntimeError):  # closed before
        opened.loop.call_soon_threadsafe(opened.closing.set)
    if threading.current_thread() is not thread:
        thread.join(CLOSING_SECONDS)

"""Where rules judge that may take long: in a thread of their own, for a limited time.

The event loop goes on meanwhile, with all calls that are in flight. A rule that does not end keeps
its thread, which nothing can stop; its item is an ERROR, and the process waits for no such thread.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from evaluators.core import Ask, JudgeError, Model, Reply, Request

T = TypeVar("T")

RULE_SECONDS = 10.0  # for one answer; what is asked of models meanwhile does not count
SHORT = 2_000  # characters of an answer that rules read in milliseconds, without a thread


async def off_the_loop(
    spec: str, work: Callable[[Ask], T], ask: Ask, seconds: float = RULE_SECONDS
) -> T:
    """Return what ``work`` returns in another thread.

    The ``ask`` that it is given is for an event loop there. Raises JudgeError (``judge_timeout``)
    after so many seconds, and whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    pending = 0

    async def unhurried(model: Model, request: Request) -> Reply:
        nonlocal pending
        limit.reschedule(None)  # raises RuntimeError once the time is up: nothing more is paid for
        pending += 1
        try:
            return await ask(model, request)
        finally:
            pending -= 1
            limit.reschedule(None if pending else loop.time() + seconds)

    async def asked_there(model: Model, request: Request) -> Reply:
        there = asyncio.run_coroutine_threadsafe(unhurried(model, request), loop)
        return await asyncio.wrap_future(there)

    try:
        async with asyncio.timeout(seconds) as limit:
            return await asyncio.wrap_future(in_thread(lambda: work(asked_there)))
    except TimeoutError:
        if not limit.expired():
            raise
        msg = f"{spec}: no verdict within {seconds:g} s"
        raise JudgeError(msg, kind="judge_timeout") from None


def in_thread(work: Callable[[], T]) -> Future[T]:
    """Return what will hold the result of this work, which has begun in a thread."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # whoever waits is to have it
            result.set_exception(error)

    threading.Thread(target=run, name="qa-rule", daemon=True).start()
    return result

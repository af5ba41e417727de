"""The user's own code: found as MODULE:NAME, and run in a thread for a limited time.

Calls in flight go on in the event loop. Code that does not end keeps its thread, which nothing can
stop: its item is an ERROR, and the process does not wait for the thread.
"""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from evaluators.core import Ask, JudgeError, Model, Reply, Request, UsageError
from evaluators.secrets import mask, one_line


def load_named(text: str, option: str, kind: str) -> tuple[ModuleType, object]:
    """Return the module and the object of MODULE:NAME; the working folder is searched too.

    ``kind`` is what is wanted, ``class`` or ``function``. Raises UsageError, beginning with
    ``option``, if there is none or the module fails.
    """
    from evaluators.text import hint  # noqa: PLC0415  # imports the masks of keys

    name, colon, attribute = text.partition(":")
    if not (name and colon and attribute):
        raise UsageError(
            f"{option}: want python:MODULE:{kind.upper()}, for instance python:my_code:my_{kind}"
        )
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        module = import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # the user's module may raise anything
        reason = one_line(mask(f"{type(error).__name__}: {error}"))
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        close = hint(name, [path.stem for path in Path.cwd().glob("*.py")]) if missing else ""
        advice = close if close.startswith("did you mean") else "give one that can"
        raise UsageError(
            f"{option}: module {name!r} cannot be imported ({reason}); {advice}"
        ) from None
    if not hasattr(module, attribute):
        known = [one for one in vars(module) if not one.startswith("_")]
        raise UsageError(
            f"{option}: module {name!r} has no {kind} {attribute!r}; {hint(attribute, known)}"
        )
    return module, getattr(module, attribute)


T = TypeVar("T")

RULE_SECONDS = 10.0  # for one answer, without the time of calls to models
SHORT = 2_000  # characters; rules read a shorter answer in milliseconds, without a thread


async def off_the_loop(
    spec: str, work: Callable[[Ask], T], ask: Ask, seconds: float = RULE_SECONDS
) -> T:
    """Run ``work`` in another thread and return its result.

    ``work`` is given an ``ask`` for an event loop in that thread. Raises JudgeError
    (``judge_timeout``) after ``seconds``, and any error of ``work``.
    """
    import asyncio  # noqa: PLC0415  # workers find code and do not run it

    loop = asyncio.get_running_loop()
    pending = 0

    async def unhurried(model: Model, request: Request) -> Reply:
        nonlocal pending
        limit.reschedule(None)  # RuntimeError after the time-out: no further call is paid for
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
    """Start ``work`` in a thread and return its future."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # for the caller who waits
            result.set_exception(error)

    threading.Thread(target=run, name="qa-rule", daemon=True).start()
    return result

"""Code of the user's own: found as MODULE:NAME, and run in a thread for a limited time.

The event loop goes on with all calls in flight. A rule that does not end keeps its thread, which
nothing can stop; its item is an ERROR, and the process does not wait for the thread.
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
    """Return the module and what MODULE:NAME names in it; the working folder is searched too.

    Raises UsageError, beginning with ``option``, where there is none or its module fails; ``kind``
    is what is wanted: a class, a function.
    """
    from evaluators.text import hint  # noqa: PLC0415  # which needs the masks of keys

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
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the user's module raises
        reason = one_line(mask(f"{type(error).__name__}: {error}"))
        missing = isinstance(error, ModuleNotFoundError) and error.name == name
        close = hint(name, _modules()) if missing else ""
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


def _modules() -> list[str]:
    """Return the modules of the working folder, one of which may have been meant."""
    return [path.stem for path in Path.cwd().glob("*.py")]


T = TypeVar("T")

RULE_SECONDS = 10.0  # for one answer; what is asked of models meanwhile does not count
SHORT = 2_000  # characters of an answer that rules read in milliseconds, without a thread


async def off_the_loop(
    spec: str, work: Callable[[Ask], T], ask: Ask, seconds: float = RULE_SECONDS
) -> T:
    """Return what ``work`` returns in another thread.

    The ``ask`` that it is given is for an event loop there. Raises JudgeError (``judge_timeout``)
    after so many seconds, and any error of ``work``.
    """
    import asyncio  # noqa: PLC0415  # workers look code up, and run none

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

"""How a Python function of the user's is called.

It is called in the engine's process, which is forked from pytest's after the function's module
was imported. So its connections and threads must wait for the first call.
"""

from __future__ import annotations

import inspect
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING

from qagate.evaluators import core
from qagate.evaluators.core import AskedCase, RefusedError, Reply
from qagate.evaluators.finishes import finish_of
from qagate.evaluators.models.adapter import as_text, parse_body
from qagate.evaluators.models.targets import Function, FunctionTarget
from qagate.evaluators.reply_fields import checked_reply
from qagate.evaluators.text import hint, mask, one_line
from qagate.evaluators.user_code import as_failure, in_thread

if TYPE_CHECKING:
    import asyncio

FAILED = "target_failed"
REPLY_KEYS = ("text", "tool_calls", "input_tokens", "output_tokens", "cost", "model")
"""What a mapping that the function returns may have."""

EVALUATORS = Path(core.__file__).parent
"""Our own code between a call and the user's function: no line of it is shown."""


class FunctionModel:
    """The calls of one function, each with a deadline in seconds.

    A plain function gets a new thread for each call; after its deadline it goes on there, because
    nothing can stop it. Async functions share an event loop in a thread of their own.
    """

    def __init__(self, spec: str, target: FunctionTarget, deadline: float) -> None:
        self._spec = spec
        self._target = target
        self._deadline = deadline
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: core.Request) -> Reply:
        """One call. Raises only CallErrors; only the user's own TransientError is retried."""
        case = request.case or AskedCase(messages=request.messages)
        start = time.perf_counter()
        returned = await self._returned(case)
        try:
            reply = _reply(returned)
        except (core.TransientError, ValueError, TypeError) as error:
            raise RefusedError(FAILED, self._described(error)) from None
        name = reply.model or f"{self._target.name}@{self._target.release}"
        return replace(reply, model=name, seconds=time.perf_counter() - start)

    async def _returned(self, case: AskedCase) -> object:
        """Return what the function returns within the deadline. Raises only CallErrors."""
        import asyncio  # noqa: PLC0415  # workers read the SPEC, and call nothing

        limit = asyncio.timeout(self._deadline)
        try:
            function = self._target.load()
            async with limit:
                return await asyncio.wrap_future(self._start(function, case))
        except core.TransientError as error:
            from qagate.evaluators.models.waits import retry_after  # noqa: PLC0415

            headers = {"retry-after": str(error.retry_after)}  # perhaps a header's text
            raise core.TransientError(
                error.kind, self._described(error), retry_after(headers)
            ) from None
        except Exception as error:  # noqa: BLE001  # the user's code may raise anything
            if isinstance(error, TimeoutError) and limit.expired():
                message = f"{self._spec}: no answer within {self._deadline:g} s"
                raise core.CallError("timeout", message) from None
            raise RefusedError(FAILED, self._described(error)) from None

    async def close(self) -> None:
        """End the thread of async functions."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _start(self, function: Function, case: AskedCase) -> Future[object]:
        """Begin a call, in a thread or in the event loop of async functions."""
        import asyncio  # noqa: PLC0415  # workers read the SPEC, and call nothing

        if not _is_async(function):
            return in_thread(partial(function, case))
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(
                target=_serve, args=(self._loop,), name="qa-target", daemon=True
            ).start()
        return asyncio.run_coroutine_threadsafe(_awaited(function, case), self._loop)

    def _described(self, error: Exception) -> str:
        """Return the error in one line, with the last line of the user's own code."""
        place = ""
        folder = Path.cwd()
        for frame in extract_tb(error.__traceback__):
            file = Path(frame.filename)
            is_installed = "site-packages" in file.parts or EVALUATORS in file.parents
            if file.is_relative_to(folder) and not is_installed:
                place = f" ({file.relative_to(folder)}:{frame.lineno})"
        text = f"{self._spec}: {type(error).__name__}: {error}{place}"
        return one_line(mask(text))


def _is_async(function: Function) -> bool:
    """Return whether a call gives a coroutine; an object with an async ``__call__`` does too."""
    call = getattr(function, "__call__", None)  # noqa: B004  # a class's own, not any
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio  # noqa: PLC0415

    with asyncio.Runner(loop_factory=lambda: loop) as runner:  # it cancels what is left
        runner.get_loop().run_forever()


async def _awaited(function: Function, case: AskedCase) -> object:
    import asyncio  # noqa: PLC0415

    try:
        return await function(case)
    except BaseException as error:
        task = asyncio.current_task()
        if task and task.cancelling():  # by us
            raise
        raise as_failure(error) from None


def _reply(returned: object) -> Reply:
    """Return what a function returned, as a reply. Raises ValueError or TransientError."""
    if isinstance(returned, str):
        return Reply(text=returned)
    if isinstance(returned, Reply):
        reply = checked_reply(returned)
        return replace(reply, finish=finish_of(reply.finish))
    if isinstance(returned, Mapping):
        return _read_mapping(returned)
    raise ValueError(
        f"returned {type(returned).__name__}; want text, or a mapping of {', '.join(REPLY_KEYS)}"
    )


def _read_mapping(returned: Mapping[object, object]) -> Reply:
    for key in returned:
        if key not in REPLY_KEYS:
            raise ValueError(
                f"returned the key {str(key)[:40]!r}; {hint(str(key), REPLY_KEYS)}"
            )
    content = parse_body(json.dumps(dict(returned)).encode())
    calls = content.mappings("tool_calls") if content.get("tool_calls") else []
    text = content.text_or_none("text")
    if text is None and not calls:
        raise ValueError("returned neither text nor tool_calls; want one of them")
    return Reply(
        text=text or "",
        calls=tuple(
            core.ToolCall(
                name=call.text("name"), arguments=as_text(call.get("arguments", {}))
            )
            for call in calls
        ),
        finish="tool_calls" if calls else "stop",
        model=content.text_or_none("model") or "",
        input_tokens=content.count("input_tokens"),
        output_tokens=content.count("output_tokens"),
        cost=content.amount("cost"),
    )

"""Calls of a user's own function: each within its deadline, and whatever it returns or raises."""

import asyncio
import inspect
import json
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

from evaluators.core import CallError, RefusedError, Reply, Request, ToolCall, TransientError
from evaluators.messages import AskedCase
from evaluators.models.adapter import as_text, parse_body
from evaluators.models.python_function import Function, FunctionTarget
from evaluators.rule_thread import in_thread
from evaluators.secrets import mask, one_line

FAILED = "target_failed"
REPLY_KEYS = ("text", "tool_calls", "input_tokens", "output_tokens", "cost", "model")


class FunctionModel:
    """The calls of one function, each for no longer than its deadline in seconds.

    A function that is not async is called in a new thread each time, and goes on there when its
    time is up, as nothing can stop it; async ones share an event loop in a thread of their own.
    """

    def __init__(self, spec: str, target: FunctionTarget, deadline: float) -> None:
        self._spec = spec
        self._target = target
        self._deadline = deadline
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(self, request: Request) -> Reply:
        """One call. Raises only CallErrors; only a TransientError of the user's is tried again."""
        case = request.case or AskedCase(messages=request.messages)
        start = time.perf_counter()
        try:
            function = self._target.load()
            async with asyncio.timeout(self._deadline) as limit:
                said = await asyncio.wrap_future(self._start(function, case))
        except TransientError as error:
            raise TransientError(error.kind, self._said(error), error.retry_after) from None
        except TimeoutError as error:
            kind = "timeout"
            if limit.expired():
                msg = f"{self._spec}: no answer within {self._deadline:g} s"
                raise CallError(kind, msg) from None
            raise RefusedError(FAILED, self._said(error)) from None
        except Exception as error:  # noqa: BLE001  # whatever the user's code raises
            raise RefusedError(FAILED, self._said(error)) from None
        try:
            reply = _reply(said)
        except (TransientError, ValueError, TypeError) as error:
            raise RefusedError(FAILED, self._said(error)) from None
        named = reply.model or f"{self._target.name}@{self._target.release}"
        return replace(reply, model=named, seconds=time.perf_counter() - start)

    async def close(self) -> None:
        """End the thread of async functions."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _start(self, function: Function, case: AskedCase) -> Future[object]:
        if not (
            inspect.iscoroutinefunction(function)
            or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
        ):
            return in_thread(lambda: _without_exit(function, case))
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            serving = (self._loop,)
            threading.Thread(target=_serve, args=serving, name="qa-target", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(_awaited(function, case), self._loop)

    def _said(self, error: Exception) -> str:
        return one_line(mask(f"{self._spec}: {type(error).__name__}: {error}"))


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop until it is stopped; what still waits in it then is given up."""
    asyncio.set_event_loop(loop)
    loop.run_forever()
    waiting = asyncio.all_tasks(loop)
    for task in waiting:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
    loop.close()


def _without_exit(function: Function, case: AskedCase) -> object:
    try:
        return function(case)
    except SystemExit as error:
        raise _exited(error) from None


async def _awaited(function: Function, case: AskedCase) -> object:
    try:
        return await function(case)
    except SystemExit as error:
        raise _exited(error) from None


def _exited(error: SystemExit) -> RuntimeError:
    return RuntimeError(f"it called sys.exit({error.code})")


def _reply(said: object) -> Reply:
    """Return the reply in what a function returned. Raises ValueError where there is none."""
    if isinstance(said, str):
        return Reply(text=said)
    if isinstance(said, Reply):
        return said
    from evaluators.text import hint  # noqa: PLC0415

    if not isinstance(said, Mapping):
        raise ValueError(
            f"returned {type(said).__name__}; want text, or a mapping of {', '.join(REPLY_KEYS)}"
        )
    for key in said:
        if key not in REPLY_KEYS:
            raise ValueError(f"returned the key {str(key)[:40]!r}; {hint(str(key), REPLY_KEYS)}")
    content = parse_body(json.dumps(dict(said)).encode())
    calls = content.mappings("tool_calls") if content.get("tool_calls") else []
    return Reply(
        text=content.text_or_none("text") or "",
        calls=tuple(
            ToolCall(name=call.text("name"), arguments=as_text(call.get("arguments", {})))
            for call in calls
        ),
        finish="tool_calls" if calls else "stop",
        model=content.text_or_none("model") or "",
        input_tokens=content.count("input_tokens"),
        output_tokens=content.count("output_tokens"),
        cost=content.amount("cost"),
    )

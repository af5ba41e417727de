"""Models of the user's own: a service (JSON over HTTP), or a Python function, as it ships.

A function is called in the engine's process, which is forked from pytest's after its module was
imported, so its connections and threads must wait for the first call.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from qagate.evaluators import core
from qagate.evaluators.core import AskedCase, RefusedError, Reply
from qagate.evaluators.models.adapter import (
    JsonObject,
    ProviderAdapter,
    as_text,
    parse_body,
)
from qagate.evaluators.text import (
    PLACEHOLDER,
    Key,
    flat,
    hint,
    mask,
    one_line,
    sendable,
)
from qagate.evaluators.user_code import as_failure, in_thread, load_named

if TYPE_CHECKING:
    import asyncio

PYTHON, HTTP = "python", "http"
METHODS = ("POST", "PUT", "GET")
OF_CASE = ("question", "context", "language", "metadata")
PLACES = (*OF_CASE, "prompt", "messages")
"""What a body may name in braces. A place that is a whole text keeps its type, such as a list."""

TOKENS = ("input", "output")
_PLACE = re.compile(r"\{(\w+)\}")
REFUSED = (
    "bad_request"  # if the first three calls fail so, the run ends: a path is wrong
)
FAILED = "target_failed"
REPLY_KEYS = ("text", "tool_calls", "input_tokens", "output_tokens", "cost", "model")
Function = Callable[[AskedCase], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """How one service is asked and read. Each JSONPath leads to one value in its reply."""

    url: str
    method: str
    body: Mapping[str, Any]
    """The body, with places in braces; the query of a GET."""
    answer: str
    """The JSONPath of the answer."""
    tokens: Mapping[str, str] = field(default_factory=dict)
    """The JSONPaths of ``input`` and ``output`` tokens."""
    cost: str = ""
    """The JSONPath of the cost in USD."""

    @property
    def takes_case(self) -> bool:
        """Whether it asks for parts of the case, and not for the filled prompt alone."""
        return any(place in OF_CASE for place in places(self.body))

    def adapter(self, name: str) -> ProviderAdapter:
        """Return how the service is called; replies carry this name."""
        return ProviderAdapter(
            sdk="jsonpath",
            base_url=self.url,
            api_key_env="",
            address=_address,
            write=partial(_write, self),
            read=partial(_read, self, name),
            method=self.method,
        )


def places(template: object) -> Iterator[str]:
    """Yield the names in braces anywhere in a body."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, Mapping | list | tuple):
        for value in template.values() if isinstance(template, Mapping) else template:
            yield from places(value)


def check_path(path: str) -> str:
    """Return what is wrong with a JSONPath in a few words; empty if nothing is."""
    from jsonpath import JSONPathError  # noqa: PLC0415  # few have such entries

    try:
        _path(path)
    except JSONPathError as error:
        return str(error).splitlines()[0]
    return "" if path.startswith("$") else "a path starts with $, for instance $.answer"


@cache
def _path(text: str) -> Any:
    from jsonpath import compile as compiled  # noqa: PLC0415

    return compiled(text)


def _address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if key.reveal() != PLACEHOLDER:
        headers["authorization"] = f"Bearer {key.reveal()}"
    return base_url, headers


def _write(
    target: HttpTarget,
    name: str,
    request: core.Request,
    parameters: Mapping[str, object],
) -> Mapping[str, object]:
    if target.takes_case and request.case is None:
        raise RefusedError(
            REFUSED, "its body takes an item's question: it can only answer items"
        )
    case = request.case or AskedCase()
    values = {
        "question": case.question,
        "context": case.context,
        "language": case.language,
        "metadata": case.metadata,
        "prompt": "\n\n".join(message.content for message in request.messages),
        "messages": [
            {"role": message.role, "content": message.content}
            for message in request.messages
        ],
    }
    filled = {key: _filled(value, values) for key, value in target.body.items()}
    if target.method == "GET":
        return {key: as_text(value) for key, value in filled.items()}
    return filled


def _filled(template: object, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        alone = _PLACE.fullmatch(template)
        if alone:
            value = json.dumps(values[alone[1]], ensure_ascii=False, default=str)
            return json.loads(sendable(value))
        return sendable(_PLACE.sub(lambda match: as_text(values[match[1]]), template))
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(value, values) for value in template]
    return template


def _read(target: HttpTarget, name: str, content: JsonObject) -> Reply:
    paths = {**target.tokens, **({"cost": target.cost} if target.cost else {})}
    said = JsonObject({what: _one(path, content) for what, path in paths.items()})
    return Reply(
        text=as_text(_one(target.answer, content)),
        model=name,
        input_tokens=said.count("input"),
        output_tokens=said.count("output"),
        cost=said.amount("cost"),
    )


def _one(path: str, content: JsonObject) -> object:
    found = _path(path).findall(content)
    if len(found) == 1 and found[0] is not None:
        return found[0]
    what = f"leads to {len(found)} values" if len(found) > 1 else "leads to nothing"
    keys = ", ".join(list(content)[:20])
    raise RefusedError(
        REFUSED, f"{path} {what} in the reply, which has {keys or 'no keys'}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTarget:
    """A function of the user's, imported when it is first needed."""

    name: str
    """MODULE:FUNCTION."""
    version: str = ""
    """What the user calls this version; empty to read it from the code."""

    def load(self) -> Function:
        """Return the function. Raises UsageError if there is none."""
        return _load(self.name)[0]

    @property
    def is_hashed(self) -> bool:
        """Whether only a hash of its module's source tells it from other code."""
        return not self.version and _load(self.name)[2]

    @property
    def release(self) -> str:
        """The user's version, else the function's, its module's, or a hash of its source."""
        return self.version or _load(self.name)[1]


def _load(name: str) -> tuple[Function, str, bool]:
    option = f"{PYTHON}:{name}"
    module, found = load_named(name, option, "function")
    if not callable(found) or inspect.isclass(found):
        raise core.UsageError(
            f"{option}: no function, and no object that can be called; give one that takes a case"
        )
    declared = getattr(found, "version", None) or getattr(module, "__version__", None)
    if declared:
        return found, str(declared), False
    if not module.__file__:
        raise core.UsageError(
            f"{option}: its module has no file to tell versions by; say {option}@VERSION"
        )
    return found, f"sha256:{_source_hash(module)}", True


@cache
def _source_hash(
    module: ModuleType,
) -> str:  # not by path: another import may be of other code
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()[:16]


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
        import asyncio  # noqa: PLC0415  # workers read the SPEC, and call nothing

        case = request.case or AskedCase(messages=request.messages)
        start = time.perf_counter()
        limit = asyncio.timeout(self._deadline)
        try:
            function = self._target.load()
            async with limit:
                said = await asyncio.wrap_future(self._start(function, case))
        except core.TransientError as error:
            from qagate.evaluators.models.waits import retry_after  # noqa: PLC0415

            given = {"retry-after": str(error.retry_after)}  # perhaps a header's text
            raise core.TransientError(
                error.kind, self._said(error), retry_after(given)
            ) from None
        except Exception as error:  # noqa: BLE001  # the user's code may raise anything
            if isinstance(error, TimeoutError) and limit.expired():
                msg = f"{self._spec}: no answer within {self._deadline:g} s"
                raise core.CallError("timeout", msg) from None
            raise RefusedError(FAILED, self._said(error)) from None
        try:
            reply = _reply(said)
        except (core.TransientError, ValueError, TypeError) as error:
            raise RefusedError(FAILED, self._said(error)) from None
        named = reply.model or f"{self._target.name}@{self._target.release}"
        return replace(reply, model=named, seconds=time.perf_counter() - start)

    async def close(self) -> None:
        """End the thread of async functions."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _start(self, function: Function, case: AskedCase) -> Future[object]:
        import asyncio  # noqa: PLC0415  # workers read the SPEC, and call nothing

        if not (
            inspect.iscoroutinefunction(function)
            or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
        ):
            return in_thread(partial(function, case))
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            serving = (self._loop,)
            threading.Thread(
                target=_serve, args=serving, name="qa-target", daemon=True
            ).start()
        return asyncio.run_coroutine_threadsafe(_awaited(function, case), self._loop)

    def _said(self, error: Exception) -> str:
        """Return the error in one line, with the last line of the user's own code."""
        where, here, ours = "", Path.cwd(), Path(__file__).parents[1]
        for one in extract_tb(error.__traceback__):
            file = Path(one.filename)
            is_packaged = "site-packages" in file.parts or ours in file.parents
            if file.is_relative_to(here) and not is_packaged:
                where = f" ({file.relative_to(here)}:{one.lineno})"
        return one_line(mask(f"{self._spec}: {type(error).__name__}: {error}{where}"))


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


def _reply(said: object) -> Reply:
    if isinstance(said, str):
        return Reply(text=said)
    if isinstance(said, Reply):
        content = JsonObject(flat(said))
        for name in ("text", "finish", "model"):
            content.text(name)
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_read_tokens",
            "cache_write_tokens",
        ):
            content.count(name)
        content.amount("cost")
        return said
    if not isinstance(said, Mapping):
        raise ValueError(
            f"returned {type(said).__name__}; want text, or a mapping of {', '.join(REPLY_KEYS)}"
        )
    for key in said:
        if key not in REPLY_KEYS:
            raise ValueError(
                f"returned the key {str(key)[:40]!r}; {hint(str(key), REPLY_KEYS)}"
            )
    content = parse_body(json.dumps(dict(said)).encode())
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

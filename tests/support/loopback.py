"""A small model server for tests: OpenAI's two and Anthropic's wire formats on 127.0.0.1.

    with loopback() as server:
        spec = f"openai:any@{server.url}/v1"

It answers plausibly and always the same: a plain call with text, a forced tool call with arguments
filled from the tool's schema. A mark in the prompt decides a value: ``[[answer=Sofia]]``,
``[[grade=INCORRECT]]``, ``[[rating=7]]``; the last of a name counts. A test's own handler may
return any Answer instead, faults included. It runs in a thread of its own, so that child processes
of a test can call it.
"""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Action = Literal["send", "hang", "headers", "drip", "endless", "raw", "reset"]
MARK = re.compile(r"\[\[(\w+)=([^\]]*)\]\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the server does with one request.

    ``body`` is sent as it is where it is bytes or text, otherwise as JSON. ``delay`` is in seconds.
    ``hang`` sends nothing; ``headers`` only the head; ``drip`` one byte every ``delay`` seconds;
    ``endless`` a body without end; ``raw`` the body as the whole response; ``reset`` cuts the line.
    """

    status: int = 200
    body: object = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    action: Action = "send"

    @property
    def content(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        text = self.body if isinstance(self.body, str) else json.dumps(self.body)
        return text.encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One request as it came. Header names are in lower case; ``at`` is monotonic seconds.

    ``body`` is that of a JSON object, ``content`` the bytes of any.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float
    content: bytes = b""

    @property
    def prompt(self) -> str:
        asked = self.body.get("messages") or self.body.get("input") or ()
        turns = [turn.get("content") for turn in asked]
        given = self.body.get("system", ())  # Anthropic's own: a text, or blocks of it
        system = (
            [given] if isinstance(given, str) else [block["text"] for block in given]
        )
        return "\n".join(str(part) for part in (*system, *turns) if part)

    @property
    def tool(self) -> tuple[str, Mapping[str, Any]] | None:
        if not self.body.get("tools") or not self.body.get("tool_choice"):
            return None
        tool = self.body["tools"][0]
        tool = tool.get("function", tool)
        return tool["name"], tool.get("parameters") or tool["input_schema"]


Handler = Callable[[Seen], Answer]
Rule = Callable[[Seen, str, Mapping[str, Any]], object]
"""The value of one argument: the request, the argument's name and its schema."""


def marked(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
    """Return what the prompt's last mark of this name says, or the schema's first choice."""
    said = [value for key, value in MARK.findall(seen.prompt) if key == name]
    if schema.get("type") == "integer":
        return int(said[-1]) if said else schema.get("maximum", 1)
    if said:
        return said[-1]
    return schema["enum"][0] if "enum" in schema else "because the loopback says so"


def plausible(rule: Rule = marked) -> Handler:
    """Return a handler that answers every request as a well-behaved model would."""

    def handle(seen: Seen) -> Answer:
        if seen.tool is None:
            said = [
                value for key, value in MARK.findall(seen.prompt) if key == "answer"
            ]
            return reply(seen, text=said[-1] if said else "Loopback")
        properties = seen.tool[1].get("properties", {})
        return reply(
            seen,
            arguments={
                key: rule(seen, key, schema) for key, schema in properties.items()
            },
        )

    return handle


def good(seen: Seen) -> Answer:
    """Answer ``fine`` as a model, and grade every answer CORRECT as a judge."""
    return plausible(
        lambda asked, name, schema: "CORRECT" if name == "grade" else "fine"
    )(seen)


def reply(seen: Seen, text: str = "", arguments: object = None) -> Answer:
    """Return a good reply in the wire format of the request: text, or a call of the forced tool."""
    wires = {"messages": message, "responses": response}
    wire = wires.get(seen.path.rpartition("/")[2], completion)
    return Answer(body=wire(seen, text, arguments))


def completion(seen: Seen, text: str, arguments: object = None) -> dict[str, Any]:
    said: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if arguments is not None:
        function = {
            "name": (seen.tool or ("tool",))[0],
            "arguments": json.dumps(arguments),
        }
        call = {"id": "call_1", "type": "function", "function": function}
        said |= {"content": None, "tool_calls": [call]}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": seen.body.get("model"),
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": len(seen.prompt) // 4 or 1, "completion_tokens": 5},
    }


def message(seen: Seen, text: str, arguments: object = None) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": text}
    if arguments is not None:
        name = (seen.tool or ("tool",))[0]
        block = {"type": "tool_use", "id": "toolu_1", "name": name, "input": arguments}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": seen.body.get("model"),
        "content": [block],
        "stop_reason": "end_turn" if arguments is None else "tool_use",
        "usage": {"input_tokens": len(seen.prompt) // 4 or 1, "output_tokens": 5},
    }


def response(seen: Seen, text: str, arguments: object = None) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item: dict[str, Any] = {"type": "message", "role": "assistant", "content": [part]}
    if arguments is not None:
        name = (seen.tool or ("tool",))[0]
        item = {
            "type": "function_call",
            "name": name,
            "arguments": json.dumps(arguments),
        }
        item |= {"id": "fc_1", "call_id": "call_1"}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": seen.body.get("model"),
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"id": "msg_1", "status": "completed", **item},
        ],
        "usage": {
            "input_tokens": len(seen.prompt) // 4 or 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 3},
            "total_tokens": (len(seen.prompt) // 4 or 1) + 5,
        },
    }


class Loopback:
    """A running server: where it is, and what it has seen."""

    def __init__(
        self, script: tuple[Answer, ...], handler: Handler, port: int = 0
    ) -> None:
        self.requests: list[Seen] = []
        self.delivered: list[tuple[Seen, float]] = []
        """What had a whole reply, and when that had left, in monotonic seconds."""
        self.in_flight = 0
        self.peak = 0
        self.port = port
        self._script = list(script)
        self._handler = handler
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopback", daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def count(self) -> int:
        return len(self.requests)

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(10):
            raise RuntimeError("the loopback server did not start")

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.run(self._serve())  # which cancels the connections that still hang

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(
            self._connection, "127.0.0.1", self.port, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # Cancelled is how a connection ends when the server stops; streams would log an error.
        with contextlib.suppress(
            OSError, asyncio.IncompleteReadError, asyncio.CancelledError
        ):
            async for seen in _requests(reader):
                self.requests.append(seen)
                async with self._counted():
                    keep = await _perform(self._answer(seen), writer)
                if not keep:
                    break
                self.delivered.append((seen, time.monotonic()))
        writer.close()

    @contextlib.asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            yield
        finally:
            self.in_flight -= 1

    def _answer(self, seen: Seen) -> Answer:
        return self._script.pop(0) if self._script else self._handler(seen)


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[Seen]:
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        start, *lines = head.rstrip().split("\r\n")
        method, path, _ = start.split(" ")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (s.partition(":") for s in lines)
        }
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        yield Seen(
            method=method,
            path=path,
            headers=headers,
            body=json.loads(content) if content.startswith(b"{") else {},
            at=time.monotonic(),
            content=content,
        )


async def _perform(answer: Answer, writer: asyncio.StreamWriter) -> bool:
    """Carry an answer out; returns whether the connection may be used again."""
    if answer.action != "drip" and answer.delay:
        await asyncio.sleep(answer.delay)
    if answer.action == "reset":
        writer.transport.abort()
        return False
    if answer.action == "hang":
        await asyncio.Event().wait()
    endless = answer.action == "endless"
    if (
        answer.action == "send"
    ):  # at once: what a client makes of a body alone is not asked here
        writer.write(_head(answer, len(answer.content)) + answer.content)
        await writer.drain()
        return True
    if answer.action != "raw":
        writer.write(_head(answer, 10**12 if endless else len(answer.content)))
    async for part in _parts(answer):
        writer.write(part)
        await writer.drain()
    return False


def _head(answer: Answer, length: int) -> bytes:
    headers = {
        "content-type": "application/json",
        "content-length": str(length),
        **answer.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {answer.status} Reason\r\n{lines}\r\n".encode("latin-1")


async def _parts(answer: Answer) -> AsyncIterator[bytes]:
    if answer.action == "headers":
        await asyncio.Event().wait()
    elif answer.action == "endless":
        while True:
            yield b" " * 65536
    elif answer.action == "drip":
        for byte in answer.content:
            await asyncio.sleep(answer.delay)
            yield bytes([byte])
    else:
        yield answer.content


@contextlib.contextmanager
def loopback(
    *script: Answer, handler: Handler | None = None, port: int = 0
) -> Iterator[Loopback]:
    """Run a server for a block: the script's answers first, one a request, then the handler's."""
    server = Loopback(script, handler or plausible(), port)
    server.start()
    try:
        yield server
    finally:
        server.stop()

"""OpenAI's two APIs: chat completions, which every compatible server speaks, and Responses.

Each has a function that writes the body of a request and one that reads a reply. Batches
are the same for both but for the path that their calls go to.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from qagate.evaluators.core import (
    CallError,
    Message,
    Reply,
    Request,
    Tool,
    ToolCall,
    TransientError,
)
from qagate.evaluators.finishes import (
    CUT,
    INCOMPLETE,
    STOP,
    TOOL_CALLS,
    finish_of,
)
from qagate.evaluators.models import adapter
from qagate.evaluators.text import Key, sendable

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai.types import Batch

SDK = "openai:AsyncOpenAI"
CHAT = "chat/completions"
RESPONSES = "responses"
BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons by which gateways say that the model failed in mid-reply."""


def _messages(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [
        {"role": message.role, "content": sendable(message.content)}
        for message in messages
    ]


def write_chat(
    name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the body of a request for a chat completion."""
    body = {"model": name, "messages": _messages(request.messages), **parameters}
    tool = request.tool
    if tool is not None and request.as_json:
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": _schema_format(tool),
        }
    elif tool is not None:
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.schema),
        }
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": tool.name}}
    return body


def _schema_format(tool: Tool) -> dict[str, object]:
    """Return what makes a server reply with the arguments of a function as JSON."""
    return {"name": tool.name, "strict": True, "schema": dict(tool.schema)}


def read_chat(content: adapter.JsonObject) -> Reply:
    """Return the reply in a chat completion. Raises TransientError for another form of body."""
    choices = content.mappings("choices")
    if not choices:
        adapter.refuse_body("choices is an empty list")
    choice = choices[0]
    message = choice.mapping("message")
    finish = finish_of(choice.get("finish_reason"))
    if choice.get("error") or finish in BROKEN_OFF:
        adapter.refuse_body(f"the provider broke the reply off ({finish[:40]!r})")
    text, refusal, has_thoughts = _chat_text(message)
    calls = _chat_calls(message)
    is_empty = text is None and refusal is None and not calls
    if is_empty and finish not in CUT and not has_thoughts:
        adapter.refuse_body("the message holds neither content nor a tool call")
    finish = adapter.finish_of_parts(
        finish,
        has_answer=bool((text or "").strip() or calls),
        has_refusal=bool(refusal),
        has_thoughts=has_thoughts,
    )
    usage = content.details("usage")
    cached = usage.details("prompt_tokens_details")
    return Reply(
        text=text or refusal or "",
        calls=calls,
        finish=finish,
        model=content.text_if_any("model"),
        input_tokens=usage.tokens("prompt_tokens"),
        output_tokens=usage.tokens("completion_tokens"),
        cache_read_tokens=cached.tokens("cached_tokens"),
    )


def _chat_text(
    message: adapter.JsonObject,
) -> tuple[str | None, str | None, bool]:
    """Return a message's text, its refusal, and whether it holds thoughts apart from the text.

    The content is one text, or as some servers of reasoning models have it a list of parts.
    """
    refusal = message.text_or_none("refusal")
    thoughts = [message.get(name) for name in ("reasoning_content", "reasoning")]
    has_thoughts = any(thoughts)
    if not isinstance(message.get("content"), list):
        return message.text_or_none("content"), refusal, has_thoughts
    texts = []
    for part in message.mappings("content"):
        kind = part.get("type")
        if kind in ("text", "output_text"):
            texts.append(part.text("text"))
        elif kind == "refusal":
            refusal = part.text("refusal")
        elif kind in adapter.THOUGHT_PARTS:
            has_thoughts = True
    return "".join(texts) if texts else None, refusal, has_thoughts


def _chat_calls(message: adapter.JsonObject) -> tuple[ToolCall, ...]:
    if message.get("tool_calls") is None:
        return ()
    calls = []
    for entry in message.mappings("tool_calls"):
        function = entry.mapping("function")
        calls.append(_call_of(function))
    return tuple(calls)


def _call_of(function: adapter.JsonObject) -> ToolCall:
    return ToolCall(name=function.text("name"), arguments=function.text("arguments"))


def write_response(
    name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the body of a request for a response."""
    sent = dict(parameters)
    if "reasoning_effort" in sent:
        # Chat completions have it on its own; here it is a field of ``reasoning``.
        reasoning = {"effort": sent.pop("reasoning_effort")}
        given = sent.get("reasoning")
        if isinstance(given, dict):
            reasoning |= given
        sent["reasoning"] = reasoning
    body = {"model": name, "input": _messages(request.messages), **sent}
    tool = request.tool
    if tool is not None and request.as_json:
        body["text"] = {"format": {"type": "json_schema", **_schema_format(tool)}}
    elif tool is not None:
        function = {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.schema),
            "strict": False,
        }
        body["tools"] = [function]
        body["tool_choice"] = {"type": "function", "name": tool.name}
    return body


def read_response(content: adapter.JsonObject) -> Reply:
    """Return the reply in a response. Raises TransientError for another form of body."""
    items = content.mappings("output")
    texts = []
    refusals = []
    calls = []
    for item in items:
        if item.get("type") == "function_call":
            calls.append(_call_of(item))
        if item.get("type") != "message":
            continue
        for part in item.mappings("content"):
            if part.get("type") == "output_text":
                texts.append(part.text("text"))
            elif part.get("type") == "refusal":
                refusals.append(part.text("refusal"))
    finish = _response_finish(content, items, has_calls=bool(calls))
    has_thoughts = any(item.get("type") in adapter.THOUGHT_PARTS for item in items)
    is_empty = not texts and not refusals and not calls
    if is_empty and finish not in CUT and not has_thoughts:
        adapter.refuse_body("the output holds neither text nor a function call")
    finish = adapter.finish_of_parts(
        finish,
        has_answer=bool("".join(texts).strip() or calls),
        has_refusal=bool(refusals),
        has_thoughts=has_thoughts,
    )
    usage = content.details("usage")
    cached = usage.details("input_tokens_details")
    return Reply(
        text="".join(texts) or "".join(refusals),
        calls=tuple(calls),
        finish=finish,
        model=content.text_if_any("model"),
        input_tokens=usage.tokens("input_tokens"),
        # With thoughts, which are paid for too.
        output_tokens=usage.tokens("output_tokens"),
        cache_read_tokens=cached.tokens("cached_tokens"),
    )


def _response_finish(
    content: adapter.JsonObject, items: list[adapter.JsonObject], *, has_calls: bool
) -> str:
    """Return why a response ended: tool_calls, stop or content_filter, as in chat completions.

    LENGTH for the limit of tokens, INCOMPLETE for whatever else cut it. Raises TransientError for
    a response that neither completed nor was cut.
    """
    status = content.text("status")
    if status not in ("completed", INCOMPLETE):
        adapter.refuse_body(f"status is {status[:40]!r}, not completed")
    # A response may be called completed although one of its parts was cut.
    parts_are_whole = all(item.get("status") != INCOMPLETE for item in items)
    if status == "completed" and parts_are_whole:
        return TOOL_CALLS if has_calls else STOP
    reason = content.details("incomplete_details").get("reason")
    named = finish_of(reason)
    return named if named in CUT else INCOMPLETE


BATCH_IS_OVER = frozenset({"completed", "expired", "cancelled", "failed"})
"""The statuses of a batch after which nothing in it changes."""
METADATA_KEY = "qagate"
"""Under it a batch has its name."""
SHOWN_ERRORS = 3
"""Of a batch that was refused; a file of wrong calls has one error a line."""


class _Batches(adapter.BatchApi):
    """Batches by OpenAI's SDK, also at servers that speak its protocol: files of calls."""

    def __init__(
        self, path: str, key: Key, base_url: str, client: "AsyncClient"
    ) -> None:
        sdk = adapter.sdk_client(SDK, key, base_url, client)
        super().__init__(sdk, sdk.batches)
        self._endpoint: Any = f"/v1/{path}"

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return {"custom_id": key, "method": "POST", "url": self._endpoint, "body": body}

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        content = b"\n".join(lines) + b"\n"
        file = await self._sdk.files.create(
            file=(f"{name}.jsonl", content), purpose="batch"
        )
        return str(file.id)

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        batch = await self._batches.create(
            input_file_id=file,
            endpoint=self._endpoint,
            completion_window="24h",
            metadata={METADATA_KEY: name},
        )
        return str(batch.id)

    def may_be(self, batch: "Batch", name: str, calls: int) -> bool:
        metadata = batch.metadata or {}
        return metadata.get(METADATA_KEY) == name

    async def status(self, batch: str) -> adapter.BatchStatus:
        report = await self._batches.retrieve(batch)
        counts = report.request_counts
        return adapter.BatchStatus(
            is_over=report.status in BATCH_IS_OVER,
            done=counts.completed if counts else 0,
            failed=counts.failed if counts else 0,
            refusal=_refusal(report) if report.status == "failed" else "",
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        report = await self._batches.retrieve(batch)
        for file in (report.output_file_id, report.error_file_id):
            if not file:
                continue
            streamed = self._sdk.files.with_streaming_response.content(file)
            async with streamed as response:
                async for part in response.iter_bytes():
                    yield part
            yield b"\n"

    def read(
        self, line: adapter.JsonObject
    ) -> tuple[str, adapter.JsonObject | CallError]:
        from qagate.evaluators.models import failures  # noqa: PLC0415  # aiohttp

        key = line.text("custom_id")
        if line.get("response") is None:
            return key, _error_in_batch(line.mapping("error"))
        response = line.mapping("response")
        status = response.count("status_code")
        body = response.mapping("body")
        if 200 <= status < 300:
            return key, body
        return key, failures.of_response(status, {}, json.dumps(body).encode())


def _refusal(batch: "Batch") -> str:
    """Return why the provider refused a whole batch."""
    errors = []
    if batch.errors is not None:
        errors = batch.errors.data or []
    reasons = [f"{error.code}: {error.message}" for error in errors[:SHOWN_ERRORS]]
    if not reasons:
        return "it did not pass the provider's checks"
    return "; ".join(reasons)


def _error_in_batch(error: adapter.JsonObject) -> TransientError:
    """Return the error of a call that a batch did not send on to the model."""
    code = str(error.get("code") or "batch_error")
    kind = "expired" if "expired" in code else "batch_error"
    return TransientError(kind, f"{code}: {error.get('message')}")


BATCHING = adapter.Batching(
    calls=50_000, size=200_000_000, open=partial(_Batches, CHAT)
)
ADAPTER = adapter.ProviderAdapter(
    sdk="openai",
    base_url="https://api.openai.com/v1",
    api_key_env="OPENAI_API_KEY",
    families=("gpt-", "chatgpt-", "o1", "o3", "o4"),
    address=partial(adapter.sdk_address, SDK, CHAT),
    write=write_chat,
    read=read_chat,
    batching=BATCHING,
)
RESPONSES_ADAPTER = replace(
    ADAPTER,
    families=(),
    defaults={"store": False},  # the provider is asked to keep nothing
    max_tokens_as="max_output_tokens",
    address=partial(adapter.sdk_address, SDK, RESPONSES),
    write=write_response,
    read=read_response,
    batching=replace(BATCHING, open=partial(_Batches, RESPONSES)),
)

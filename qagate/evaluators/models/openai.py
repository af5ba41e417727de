"""OpenAI's two APIs: chat completions, which every compatible server speaks, and Responses."""

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
    ToolCall,
    TransientError,
)
from qagate.evaluators.models import adapter
from qagate.evaluators.text import Key, sendable

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from openai.types import Batch

SDK = "openai:AsyncOpenAI"
FINISHES: Mapping[str, str] = {"function_call": "tool_calls", "eos_token": "stop"}
FILTERED = "content_filter"
FAILED = frozenset(
    {"error", "abort", "insufficient_system_resource"}
)  # gateways' finish words


def _messages(messages: tuple[Message, ...]) -> list[dict[str, str]]:
    return [{"role": one.role, "content": sendable(one.content)} for one in messages]


def write_chat(
    name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the body of a request for a chat completion."""
    body = {"model": name, "messages": _messages(request.messages), **parameters}
    if tool := request.tool:
        schema = dict(tool.schema)
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": schema,
        }
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": tool.name}}
    return body


def read_chat(content: adapter.JsonObject) -> Reply:
    """Return the reply in a chat completion. Raises TransientError for another form of body."""
    choices = content.mappings("choices")
    if not choices:
        adapter.refuse_body("choices is an empty list")
    message = choices[0].mapping("message")
    finish = (
        choices[0].text("finish_reason").partition(":")[0]
    )  # Gemini: "content_filter: SAFETY"
    if choices[0].get("error") or finish in FAILED:
        adapter.refuse_body(f"the provider broke the reply off ({finish[:40]!r})")
    text = message.text_or_none("content")
    refusal = message.text_or_none("refusal")
    calls = () if message.get("tool_calls") is None else message.mappings("tool_calls")
    functions = [call.mapping("function") for call in calls]
    if (
        text is None
        and refusal is None
        and not functions
        and finish not in adapter.MAY_BE_EMPTY
    ):
        adapter.refuse_body("the message holds neither content nor a tool call")
    usage = content.details("usage")
    return Reply(
        text=text or refusal or "",
        calls=tuple(
            ToolCall(name=function.text("name"), arguments=function.text("arguments"))
            for function in functions
        ),
        finish=FINISHES.get(finish, finish),
        model=content.text("model"),
        input_tokens=usage.count("prompt_tokens"),
        output_tokens=usage.count("completion_tokens"),
        cache_read_tokens=usage.details("prompt_tokens_details").count("cached_tokens"),
    )


def write_response(
    name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the body of a request for a response, with ``reasoning_effort`` where it belongs."""
    sent = dict(parameters)
    if "reasoning_effort" in sent:
        own = sent.get("reasoning")
        effort = {"effort": sent.pop("reasoning_effort")}
        sent["reasoning"] = effort | (own if isinstance(own, dict) else {})
    body = {"model": name, "input": _messages(request.messages), **sent}
    if tool := request.tool:
        function = {"name": tool.name, "description": tool.description}
        schema = {"parameters": dict(tool.schema), "strict": False}
        body["tools"] = [{"type": "function", **function, **schema}]
        body["tool_choice"] = {"type": "function", "name": tool.name}
    return body


def read_response(content: adapter.JsonObject) -> Reply:
    """Return the reply in a response. Raises TransientError for another form of body."""
    items = content.mappings("output")
    messages = [item for item in items if item.get("type") == "message"]
    parts = [part for item in messages for part in item.mappings("content")]
    texts = [part.text("text") for part in parts if part.get("type") == "output_text"]
    refusals = [part.text("refusal") for part in parts if part.get("type") == "refusal"]
    calls = tuple(
        ToolCall(name=item.text("name"), arguments=item.text("arguments"))
        for item in items
        if item.get("type") == "function_call"
    )
    finish = _cut_short(content, items) or ("tool_calls" if calls else "stop")
    if not (texts or refusals or calls) and finish not in adapter.MAY_BE_EMPTY:
        adapter.refuse_body("the output holds neither text nor a function call")
    usage = content.details("usage")
    return Reply(
        text="".join(texts) or "".join(refusals),
        calls=calls,
        finish=finish,
        model=content.text("model"),
        input_tokens=usage.count("input_tokens"),
        output_tokens=usage.count(
            "output_tokens"
        ),  # with thoughts, which are paid for too
        cache_read_tokens=usage.details("input_tokens_details").count("cached_tokens"),
    )


def _cut_short(content: adapter.JsonObject, items: list[adapter.JsonObject]) -> str:
    status = content.text("status")
    if status not in ("completed", adapter.INCOMPLETE):
        adapter.refuse_body(f"status is {status[:40]!r}, not completed")
    # A response may be called completed although one of its parts was cut.
    if status == "completed" and all(
        item.get("status") != adapter.INCOMPLETE for item in items
    ):
        return ""
    reason = content.details("incomplete_details").text_or_none("reason")
    return FILTERED if reason == FILTERED else adapter.INCOMPLETE


OVER = frozenset({"completed", "expired", "cancelled", "failed"})
LABEL = "qagate"
"""The metadata key of a batch's name."""


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
            metadata={LABEL: name},
        )
        return str(batch.id)

    def may_be(self, batch: "Batch", name: str, calls: int) -> bool:
        return (batch.metadata or {}).get(LABEL) == name

    async def status(self, batch: str) -> adapter.BatchStatus:
        found = await self._batches.retrieve(batch)
        counts = found.request_counts
        problems = (found.errors.data if found.errors else None) or []
        said = [f"{one.code}: {one.message}" for one in problems[:3]]
        said = said or ["it did not pass the provider's checks"]
        return adapter.BatchStatus(
            is_over=found.status in OVER,
            done=counts.completed if counts else 0,
            failed=counts.failed if counts else 0,
            refusal="; ".join(said) if found.status == "failed" else "",
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        found = await self._batches.retrieve(batch)
        for file in filter(None, (found.output_file_id, found.error_file_id)):
            async with self._sdk.files.with_streaming_response.content(
                file
            ) as response:
                async for part in response.iter_bytes():
                    yield part
            yield b"\n"

    def read(
        self, line: adapter.JsonObject
    ) -> tuple[str, adapter.JsonObject | CallError]:
        from qagate.evaluators.models import failures  # noqa: PLC0415  # aiohttp

        key = line.text("custom_id")
        if line.get("response") is not None:
            response = line.mapping("response")
            status, body = response.count("status_code"), response.mapping("body")
            if 200 <= status < 300:
                return key, body
            return key, failures.of_response(status, {}, json.dumps(body).encode())
        problem = line.mapping("error")
        code = str(problem.get("code") or "batch_error")
        kind = "expired" if "expired" in code else "batch_error"
        return key, TransientError(kind, f"{code}: {problem.get('message')}")


CHAT, RESPONSES = "chat/completions", "responses"
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

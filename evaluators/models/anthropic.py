"""Anthropic's messages."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evaluators.core import Reply, Request, ToolCall
from evaluators.models.adapter import (
    MAY_BE_EMPTY,
    BatchApi,
    Batching,
    JsonObject,
    ProviderAdapter,
    offline_client,
    refuse_body,
    sendable,
)
from evaluators.secrets import Key

if TYPE_CHECKING:
    from httpx2 import AsyncClient

FINISHES: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
WRITTEN, READ = "cache_creation_input_tokens", "cache_read_input_tokens"
INPUT_COUNTS = ("input_tokens", WRITTEN, READ)
REQUIRED = {"max_tokens": 4096}  # by the API, even if an entry of models.yaml omits it


def address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    """Return the URL and headers that the SDK would use."""
    from anthropic import AsyncAnthropic

    sdk = AsyncAnthropic(api_key=key.reveal(), base_url=base_url, http_client=offline_client())
    url = f"{str(sdk.base_url).rstrip('/')}/v1/messages"
    return url, {**sdk.default_headers, **sdk.auth_headers}


def write(name: str, request: Request, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return the body of a request for a message."""
    system = [sendable(one.content) for one in request.messages if one.role == "system"]
    users = [sendable(one.content) for one in request.messages if one.role == "user"]
    body: dict[str, object] = {
        "model": name,
        "messages": [{"role": "user", "content": content} for content in users],
        **REQUIRED,
        **parameters,
    }
    if system:
        # Every item has the same text up to this mark: one call writes the cache, others read it.
        text = "\n\n".join(system)
        body["system"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]
    if tool := request.tool:
        schema = dict(tool.schema)
        entry = {"name": tool.name, "description": tool.description, "input_schema": schema}
        body |= {"tools": [entry], "tool_choice": {"type": "tool", "name": tool.name}}
    return body


def read(content: JsonObject) -> Reply:
    """Return the reply in a message. Raises TransientError for another form of body."""
    blocks = content.mappings("content")
    reason = content.text("stop_reason")
    finish = FINISHES.get(reason, reason)
    texts = [block.text("text") for block in blocks if block.get("type") == "text"]
    # This API sends arguments as an object; elsewhere they are JSON text.
    calls = tuple(
        ToolCall(
            arguments=json.dumps(block.mapping("input"), ensure_ascii=False),
            name=block.text("name"),
        )
        for block in blocks
        if block.get("type") == "tool_use"
    )
    if not texts and not calls and finish not in MAY_BE_EMPTY:
        refuse_body("the message holds neither text nor a tool call")
    usage = content.details("usage")
    return Reply(
        text="".join(texts),
        calls=calls,
        finish=finish,
        model=content.text("model"),
        input_tokens=sum(usage.count(key) for key in INPUT_COUNTS),
        output_tokens=usage.count("output_tokens"),
        cache_read_tokens=usage.count(READ),
        cache_write_tokens=usage.count(WRITTEN),
    )


def open_batches(key: Key, base_url: str, client: "AsyncClient") -> BatchApi:
    """Return a server's batches. The SDK sends each request once."""
    from anthropic import AsyncAnthropic

    from evaluators.models.batching import AnthropicBatches  # noqa: PLC0415  # aiohttp

    return AnthropicBatches(
        AsyncAnthropic(api_key=key.reveal(), base_url=base_url, http_client=client, max_retries=0)
    )


ADAPTER = ProviderAdapter(
    sdk="anthropic",
    base_url="https://api.anthropic.com",
    api_key_env="ANTHROPIC_API_KEY",
    defaults=REQUIRED,
    families=("claude-",),
    adds_v1=True,
    address=address,
    write=write,
    read=read,
    batching=Batching(calls=100_000, size=256_000_000, open=open_batches),
)

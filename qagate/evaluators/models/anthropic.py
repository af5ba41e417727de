"""Anthropic's API of messages.

It differs from OpenAI's in three things that are seen here: the system message stands
apart, a tool's arguments are an object, and cached tokens are counted besides the others.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

from qagate.evaluators.core import CallError, Reply, Request, ToolCall, TransientError
from qagate.evaluators.finishes import CUT, finish_of
from qagate.evaluators.models import adapter
from qagate.evaluators.text import Key, sendable

if TYPE_CHECKING:
    from anthropic.types.messages import MessageBatch
    from httpx2 import AsyncClient

SDK = "anthropic:AsyncAnthropic"
CACHE_WRITTEN = "cache_creation_input_tokens"
CACHE_READ = "cache_read_input_tokens"
DEFAULTS = {"max_tokens": 4096}
"""The API wants it in every request, even if an entry of models.yaml omits it."""


def write(
    name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    """Return the body of a request for a message.

    JSON by a schema is a forced call here too: the API enforces no other schema.
    """
    system_texts = []
    messages = []
    for message in request.messages:
        content = sendable(message.content)
        if message.role == "system":
            system_texts.append(content)
        else:
            messages.append({"role": "user", "content": content})
    body: dict[str, object] = {
        "model": name,
        "messages": messages,
        **DEFAULTS,
        **parameters,
    }
    if system_texts:
        # Every item has the same text up to this mark: one call writes the cache, others read it.
        block = {
            "type": "text",
            "text": "\n\n".join(system_texts),
            "cache_control": {"type": "ephemeral"},
        }
        body["system"] = [block]
    tool = request.tool
    if tool is not None:
        entry = {
            "name": tool.name,
            "description": tool.description,
            "input_schema": dict(tool.schema),
        }
        body["tools"] = [entry]
        body["tool_choice"] = {"type": "tool", "name": tool.name}
    return body


def read(content: adapter.JsonObject) -> Reply:
    """Return the reply in a message. Raises TransientError for another form of body."""
    blocks = content.mappings("content")
    finish = finish_of(content.get("stop_reason"))
    texts = []
    calls = []
    for block in blocks:
        if block.get("type") == "text":
            texts.append(block.text("text"))
        elif block.get("type") == "tool_use":
            calls.append(_call_of(block))
    has_thoughts = any(block.get("type") in adapter.THOUGHT_PARTS for block in blocks)
    if not texts and not calls and finish not in CUT and not has_thoughts:
        adapter.refuse_body("the message holds neither text nor a tool call")
    finish = adapter.finish_of_parts(
        finish,
        has_answer=bool("".join(texts).strip() or calls),
        has_thoughts=has_thoughts,
    )
    usage = content.details("usage")
    cache_written = usage.tokens(CACHE_WRITTEN)
    cache_read = usage.tokens(CACHE_READ)
    return Reply(
        text="".join(texts),
        calls=tuple(calls),
        finish=finish,
        model=content.text_if_any("model"),
        input_tokens=usage.tokens("input_tokens") + cache_written + cache_read,
        output_tokens=usage.tokens("output_tokens"),
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_written,
    )


def _call_of(block: adapter.JsonObject) -> ToolCall:
    # This API sends arguments as an object; elsewhere they are JSON text.
    arguments = json.dumps(block.mapping("input"), ensure_ascii=False)
    return ToolCall(name=block.text("name"), arguments=arguments)


STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status with which the API reports an error of this type to a single call."""
OTHER_STATUS = 500
"""That of an error whose type is not in the table."""


class _Batches(adapter.BatchApi):
    """Batches by Anthropic's SDK: one request holds all calls, and the results are lines.

    A batch has no name. If the answer with its id was lost, it is recognised by the number of
    its calls; only its results can tell for certain.
    """

    def __init__(self, key: Key, base_url: str, client: "AsyncClient") -> None:
        sdk = adapter.sdk_client(SDK, key, base_url, client)
        super().__init__(sdk, sdk.messages.batches)

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        return {"custom_id": key, "params": body}

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        from anthropic.types.messages import MessageBatch

        # batches.create would search each of the 100,000 entries for names to change.
        batch = await self._sdk.post(
            "/v1/messages/batches",
            cast_to=MessageBatch,
            content=b'{"requests":[' + b",".join(lines) + b"]}",
            options={"headers": {"content-type": "application/json"}},
        )
        return str(batch.id)

    def may_be(self, batch: "MessageBatch", name: str, calls: int) -> bool:
        counts = batch.request_counts
        ended = counts.succeeded + counts.errored + counts.canceled + counts.expired
        return counts.processing + ended == calls

    async def status(self, batch: str) -> adapter.BatchStatus:
        report = await self._batches.retrieve(batch)
        counts = report.request_counts
        return adapter.BatchStatus(
            is_over=report.processing_status == "ended",
            done=counts.succeeded,
            failed=counts.errored + counts.canceled + counts.expired,
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the results from the model's own server, not from where ``results_url`` leads."""
        import httpx2  # noqa: PLC0415  # a fifth of a second

        response: httpx2.Response = await self._sdk.get(
            f"/v1/messages/batches/{quote(batch, safe='')}/results",
            cast_to=httpx2.Response,
            options={"headers": {"accept": "application/binary"}},
            stream=True,
        )
        try:
            async for part in response.aiter_bytes():
                yield part
        finally:
            await response.aclose()

    def read(
        self, line: adapter.JsonObject
    ) -> tuple[str, adapter.JsonObject | CallError]:
        from qagate.evaluators.models import failures  # noqa: PLC0415  # aiohttp

        key = line.text("custom_id")
        result = line.mapping("result")
        kind = result.text("type")
        if kind == "succeeded":
            return key, result.mapping("message")
        if kind != "errored":
            return key, TransientError(kind, f"the call came back as {kind}")
        body = result.mapping("error")
        error_type = str(body.mapping("error").get("type"))
        status = STATUSES.get(error_type, OTHER_STATUS)
        return key, failures.of_response(status, {}, json.dumps(body).encode())


ADAPTER = adapter.ProviderAdapter(
    sdk="anthropic",
    base_url="https://api.anthropic.com",
    api_key_env="ANTHROPIC_API_KEY",
    defaults=DEFAULTS,
    families=("claude-",),
    adds_v1=True,
    address=partial(adapter.sdk_address, SDK, "v1/messages"),
    write=write,
    read=read,
    batching=adapter.Batching(calls=100_000, size=256_000_000, open=_Batches),
)

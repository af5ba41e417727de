"""OpenAI's chat completions, as OpenAI and every compatible server speak them."""

from collections.abc import Mapping
from functools import partial
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

FINISHES: Mapping[str, str] = {"function_call": "tool_calls"}


def address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    """Return the URL and headers that the SDK would use."""
    from openai import AsyncOpenAI

    sdk = AsyncOpenAI(api_key=key.reveal(), base_url=base_url, http_client=offline_client())
    url = f"{str(sdk.base_url).rstrip('/')}/chat/completions"
    return url, {**sdk.default_headers, **sdk.auth_headers}


def write(name: str, request: Request, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return the body of a request for a chat completion."""
    messages = [{"role": one.role, "content": sendable(one.content)} for one in request.messages]
    body: dict[str, object] = {"model": name, "messages": messages, **parameters}
    if tool := request.tool:
        schema = dict(tool.schema)
        function = {"name": tool.name, "description": tool.description, "parameters": schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": tool.name}}
    return body


def read(content: JsonObject) -> Reply:
    """Return the reply that a completion holds. Raises TransientError for another form of body."""
    choices = content.mappings("choices")
    if not choices:
        refuse_body("choices is an empty list")
    message = choices[0].mapping("message")
    finish = choices[0].text("finish_reason").partition(":")[0]  # Gemini: "content_filter: SAFETY"
    text = message.text_or_none("content")
    refusal = message.text_or_none("refusal")
    calls = () if message.get("tool_calls") is None else message.mappings("tool_calls")
    functions = [call.mapping("function") for call in calls]
    if text is None and refusal is None and not functions and finish not in MAY_BE_EMPTY:
        refuse_body("the message holds neither content nor a tool call")
    usage = content.usage()
    cached = usage.details("prompt_tokens_details").count("cached_tokens")
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
        cache_read_tokens=cached,
    )


def open_batches(key: Key, base_url: str, client: "AsyncClient", *, endpoint: str) -> BatchApi:
    """Return the batches of a server. A call is sent once: whoever asks tries again."""
    from openai import AsyncOpenAI

    from evaluators.models.openai_batches import OpenAIBatches  # noqa: PLC0415  # aiohttp

    sdk = AsyncOpenAI(api_key=key.reveal(), base_url=base_url, http_client=client, max_retries=0)
    return OpenAIBatches(sdk, endpoint)


def batching(endpoint: str) -> Batching:
    """Return OpenAI's batches of calls to this endpoint."""
    return Batching(calls=50_000, size=200_000_000, open=partial(open_batches, endpoint=endpoint))


ADAPTER = ProviderAdapter(
    sdk="openai",
    base_url="https://api.openai.com/v1",
    api_key_env="OPENAI_API_KEY",
    families=("gpt-", "chatgpt-", "o1", "o3", "o4"),
    address=address,
    write=write,
    read=read,
    batching=batching("/v1/chat/completions"),
)

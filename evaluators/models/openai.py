"""OpenAI's chat completions, as OpenAI and every compatible server speak them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import httpx2

from evaluators.core import Reply, Request, Tool, ToolCall
from evaluators.models import body
from evaluators.models.api import Dialect, sendable
from evaluators.models.failures import refuse_body
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec
from evaluators.models.transport import open_client

if TYPE_CHECKING:
    from openai import AsyncOpenAI

FINISHES: Mapping[str, str] = {"function_call": "tool_calls"}
MAY_BE_EMPTY = frozenset({"length", "content_filter"})


def open_sdk(spec: Spec, key: Key) -> "AsyncOpenAI":
    """Return the SDK's client for one model; it retries nothing."""
    from openai import AsyncOpenAI

    http = open_client(spec)
    return AsyncOpenAI(
        api_key=key.reveal(),
        base_url=spec.base_url,
        max_retries=0,
        timeout=http.timeout,
        http_client=http,
    )


async def send(client: "AsyncOpenAI", spec: Spec, request: Request) -> httpx2.Response:
    """Send one request by the SDK's ``post``: its headers and errors, without its type checks."""
    messages = [
        {"role": message.role, "content": sendable(message.content)} for message in request.messages
    ]
    fields = {**spec.merged(request.parameters), **_forced(request.tool)}
    content = {"model": spec.name, "messages": messages, **fields}
    return await client.post("/chat/completions", cast_to=httpx2.Response, body=content)


def _forced(tool: Tool | None) -> Mapping[str, object]:
    if tool is None:
        return {}
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.schema),
    }
    return {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": tool.name}},
    }


def read(content: body.Object, spec: Spec) -> Reply:
    """Return the reply that a chat completion holds; raises for a body of any other form."""
    choices = body.objects(content, "choices")
    if not choices:
        refuse_body("choices is an empty list")
    message = body.mapping(choices[0], "message")
    finish = body.text(choices[0], "finish_reason")
    text = body.text_or_none(message, "content")
    refusal = body.text_or_none(message, "refusal")
    calls = _calls(message)
    if text is None and refusal is None and not calls and finish not in MAY_BE_EMPTY:
        refuse_body("the message holds neither content nor a tool call")
    usage = body.usage(content)
    return Reply(
        text=text or refusal or "",
        calls=calls,
        finish=FINISHES.get(finish, finish),
        model=body.model(content, spec.name, spec.answers_as),
        input_tokens=body.count(usage, "prompt_tokens"),
        output_tokens=body.count(usage, "completion_tokens"),
    )


def _calls(message: body.Object) -> tuple[ToolCall, ...]:
    if message.get("tool_calls") is None:
        return ()
    functions = [body.mapping(call, "function") for call in body.objects(message, "tool_calls")]
    return tuple(
        ToolCall(name=body.text(function, "name"), arguments=body.text(function, "arguments"))
        for function in functions
    )


DIALECT = Dialect(open=open_sdk, send=send, read=read)

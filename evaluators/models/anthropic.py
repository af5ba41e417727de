"""Anthropic's messages."""

import json
from collections.abc import Mapping

from evaluators.core import Reply, Request, Tool, ToolCall
from evaluators.models import body
from evaluators.models.api import ProviderAdapter, sendable
from evaluators.models.failures import refuse_body
from evaluators.models.secrets import Key
from evaluators.models.spec import PROVIDERS, Spec
from evaluators.models.transport import Endpoint, client_of_sdk, line

FINISHES: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
MAY_BE_EMPTY = frozenset({"length", "content_filter"})
INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def open_line(spec: Spec, key: Key) -> Endpoint:
    """Return the line to one model, as the SDK would address it."""
    from anthropic import AsyncAnthropic

    sdk = AsyncAnthropic(api_key=key.reveal(), base_url=spec.base_url, http_client=client_of_sdk())
    headers = {**sdk.default_headers, **sdk.auth_headers}
    return line(spec, f"{str(sdk.base_url).rstrip('/')}/v1/messages", headers)


def write(spec: Spec, request: Request) -> Mapping[str, object]:
    """Return the body of a request for a message."""
    messages = [
        {"role": "user", "content": sendable(message.content)}
        for message in request.messages
        if message.role == "user"
    ]
    fields = {
        **PROVIDERS["anthropic"].defaults,  # the API requires them, whatever an entry omits
        **spec.merged(request.parameters),
        **_system(request),
        **_forced(request.tool),
    }
    return {"model": spec.name, "messages": messages, **fields}


def _system(request: Request) -> Mapping[str, object]:
    parts = [sendable(m.content) for m in request.messages if m.role == "system"]
    return {"system": "\n\n".join(parts)} if parts else {}


def _forced(tool: Tool | None) -> Mapping[str, object]:
    if tool is None:
        return {}
    entry = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.schema),
    }
    return {"tools": [entry], "tool_choice": {"type": "tool", "name": tool.name}}


def read(content: body.Object, spec: Spec) -> Reply:
    """Return the reply that a message holds; raises for a body of any other form."""
    blocks = body.objects(content, "content")
    reason = body.text(content, "stop_reason")
    finish = FINISHES.get(reason, reason)
    texts = [body.text(block, "text") for block in blocks if block.get("type") == "text"]
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    if not texts and not calls and finish not in MAY_BE_EMPTY:
        refuse_body("the message holds neither text nor a tool call")
    usage = body.usage(content)
    return Reply(
        text="".join(texts),
        calls=calls,
        finish=finish,
        model=body.model(content, spec.name, spec.answers_as),
        input_tokens=sum(body.count(usage, key) for key in INPUT_COUNTS),
        output_tokens=body.count(usage, "output_tokens"),
    )


def _call(block: body.Object) -> ToolCall:
    """Return a call with its arguments, which this API sends as an object, as JSON text."""
    arguments = body.mapping(block, "input")
    return ToolCall(
        name=body.text(block, "name"), arguments=json.dumps(arguments, ensure_ascii=False)
    )


DIALECT = ProviderAdapter(open=open_line, write=write, read=read)

"""OpenAI's chat completions, as OpenAI and every compatible server speak them."""

from collections.abc import Mapping

from evaluators.core import Reply, Request, Tool, ToolCall
from evaluators.models import body
from evaluators.models.api import ProviderAdapter, sendable
from evaluators.models.failures import refuse_body
from evaluators.models.secrets import Key
from evaluators.models.spec import Spec
from evaluators.models.transport import Endpoint, client_of_sdk, line

FINISHES: Mapping[str, str] = {"function_call": "tool_calls"}
MAY_BE_EMPTY = frozenset({"length", "content_filter"})


def open_line(spec: Spec, key: Key) -> Endpoint:
    """Return the line to one model, as the SDK would address it."""
    from openai import AsyncOpenAI

    sdk = AsyncOpenAI(api_key=key.reveal(), base_url=spec.base_url, http_client=client_of_sdk())
    headers = {**sdk.default_headers, **sdk.auth_headers}
    return line(spec, f"{str(sdk.base_url).rstrip('/')}/chat/completions", headers)


def write(spec: Spec, request: Request) -> Mapping[str, object]:
    """Return the body of a request for a chat completion."""
    messages = [
        {"role": message.role, "content": sendable(message.content)} for message in request.messages
    ]
    fields = {**spec.merged(request.parameters), **_forced(request.tool)}
    return {"model": spec.name, "messages": messages, **fields}


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


DIALECT = ProviderAdapter(open=open_line, write=write, read=read)

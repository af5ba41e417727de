"""OpenAI's Responses API: the same models as chat completions, and those that have nothing else."""

from collections.abc import Mapping

from evaluators.core import Reply, Request, ToolCall
from evaluators.models import openai
from evaluators.models.adapter import (
    INCOMPLETE,
    MAY_BE_EMPTY,
    JsonObject,
    ProviderAdapter,
    refuse_body,
    sendable,
)
from evaluators.secrets import Key

FILTERED = "content_filter"


def address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    """Return the URL and headers that the SDK would use."""
    url, headers = openai.address(key, base_url)
    return f"{url.removesuffix('/chat/completions')}/responses", headers


def write(name: str, request: Request, parameters: Mapping[str, object]) -> Mapping[str, object]:
    """Return the body of a request for a response; the provider is asked to keep nothing of it.

    ``reasoning_effort``, as chat completions call it, goes where this API has it.
    """
    sent = dict(parameters)
    if "reasoning_effort" in sent:
        own = sent.get("reasoning")
        effort = {"effort": sent.pop("reasoning_effort")}
        sent["reasoning"] = effort | (own if isinstance(own, dict) else {})
    messages = [{"role": one.role, "content": sendable(one.content)} for one in request.messages]
    body: dict[str, object] = {"model": name, "input": messages, **sent}
    if tool := request.tool:
        function = {"name": tool.name, "description": tool.description}
        schema = {"parameters": dict(tool.schema), "strict": False}
        body["tools"] = [{"type": "function", **function, **schema}]
        body["tool_choice"] = {"type": "function", "name": tool.name}
    return body


def read(content: JsonObject) -> Reply:
    """Return the reply that a response holds. Raises TransientError for another form of body."""
    items = content.mappings("output")
    said = [item for item in items if item.get("type") == "message"]
    parts = [part for item in said for part in item.mappings("content")]
    texts = [part.text("text") for part in parts if part.get("type") == "output_text"]
    refusals = [part.text("refusal") for part in parts if part.get("type") == "refusal"]
    calls = tuple(
        ToolCall(name=item.text("name"), arguments=item.text("arguments"))
        for item in items
        if item.get("type") == "function_call"
    )
    finish = _finish(content, items) or ("tool_calls" if calls else "stop")
    if not (texts or refusals or calls) and finish not in MAY_BE_EMPTY:
        refuse_body("the output holds neither text nor a function call")
    usage = content.usage()
    return Reply(
        text="".join(texts) or "".join(refusals),
        calls=calls,
        finish=finish,
        model=content.text("model"),
        input_tokens=usage.count("input_tokens"),
        output_tokens=usage.count("output_tokens"),  # thoughts included, as they are paid for
        cache_read_tokens=usage.details("input_tokens_details").count("cached_tokens"),
    )


def _finish(content: JsonObject, items: list[JsonObject]) -> str:
    """Return why a response is no whole one; empty for one that is."""
    status = content.text("status")
    if status not in ("completed", INCOMPLETE):
        refuse_body(f"status is {status[:40]!r}, not completed")
    # A response may be called completed although one of its parts was cut.
    if status == "completed" and all(item.get("status") != INCOMPLETE for item in items):
        return ""
    known = content.get("incomplete_details") is not None
    reason = content.mapping("incomplete_details").text_or_none("reason") if known else None
    return FILTERED if reason == FILTERED else INCOMPLETE


ADAPTER = ProviderAdapter(
    sdk=openai.ADAPTER.sdk,
    base_url=openai.ADAPTER.base_url,
    api_key_env=openai.ADAPTER.api_key_env,
    defaults={"store": False},
    max_tokens_as="max_output_tokens",
    address=address,
    write=write,
    read=read,
    batching=openai.batching("/v1/responses"),
)

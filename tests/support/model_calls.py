"""Calls to a loopback server in both wire formats, as the tests of the models make them."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from qagate.evaluators.core import CallError, Message, Reply, Request, Tool
from qagate.evaluators.models import connect
from qagate.evaluators.models.adapter import parse_body
from qagate.evaluators.models.api import ApiModel
from qagate.evaluators.models.spec import Spec, build
from qagate.evaluators.text import Key
from tests.support.loopback import (
    Answer,
    Loopback,
    Seen,
    completion,
    loopback,
    message,
    response,
)

SECRET = "sk-loop-5ecret5ecret"
TOOL = Tool(
    name="grade",
    description="Grade the answer.",
    schema={
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "grade": {"type": "string", "enum": ["CORRECT", "INCORRECT"]},
        },
    },
)
PROVIDERS = ("openai", "anthropic", "openai-responses")
GONE = object()
SEEN = Seen(method="POST", path="/", headers={}, body={"model": "model-1"}, at=0.0)
WIRES = {"openai": completion, "anthropic": message, "openai-responses": response}
both = pytest.mark.parametrize("provider", PROVIDERS)
two = pytest.mark.parametrize(
    "provider", PROVIDERS[:2]
)  # the Responses API's wire is OpenAI's


def spec_of(provider: str, server: Loopback, **changes: Any) -> Spec:
    made = build(provider, "model-1", f"{server.url}/v1", f"{provider}:model-1")
    return replace(made, **{"deadline": 10.0, **changes})


def asked(text: str = "Who?", **changes: Any) -> Request:
    return Request(
        messages=(
            Message(role="system", content="Be brief."),
            Message(role="user", content=text),
        ),
        **changes,
    )


def ask(spec: Spec, request: Request, key: str = SECRET) -> Reply:
    async def run() -> Reply:
        model = connect(spec, Key(key))
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(run())


def good(provider: str) -> bytes:
    """A body that any call may be answered with; its text is ``good``."""
    return json.dumps(WIRES[provider](SEEN, "good")).encode()


def answered(provider: str, answer: Answer) -> Reply:
    with loopback(answer) as server:
        return ask(spec_of(provider, server), asked())


def failure(provider: str, answer: Answer, **changes: Any) -> CallError:
    """The error of one call that is answered so; checks what holds for every error."""
    with loopback(answer) as server:
        with pytest.raises(CallError) as caught:
            ask(spec_of(provider, server, **changes), asked())
        assert server.count == 1, "a call is one request"
    error = caught.value
    assert SECRET not in repr(error) + str(error)
    assert error.__cause__ is None
    assert error.__context__ is None, "an SDK's exception holds the key's header"
    assert str(error).startswith(f"{provider}:model-1: ")
    assert len(str(error)) <= 300
    assert str(error).isprintable()
    return error


def error_body(text: str, **fields: object) -> dict[str, object]:
    return {"type": "error", "error": {"message": text, **fields}}


def finished(provider: str, body: dict[str, Any], reason: str) -> object:
    if provider == "openai-responses":
        return body | {"status": "incomplete", "incomplete_details": {"reason": reason}}
    target = body["choices"][0] if provider == "openai" else body
    target["finish_reason" if provider == "openai" else "stop_reason"] = reason
    return body


def ask_body(
    provider: str, change: Callable[[dict[str, Any]], object], **settings: Any
) -> Reply:
    """The reply that a changed good body is read as."""
    body = change(WIRES[provider](SEEN, "good"))
    content = body if isinstance(body, str) else json.dumps(body)
    spec = build(provider, "model-1", "http://127.0.0.1:1/v1", f"{provider}:model-1")
    return ApiModel(replace(spec, **settings), Key(SECRET)).read(
        parse_body(content.encode()), {}
    )


def changed(path: str, value: object) -> Callable[[dict[str, Any]], object]:
    """Set one field of a body, named by its dotted path; ``GONE`` takes it away."""

    def change(body: dict[str, Any]) -> object:
        *parents, last = path.split(".")
        target: Any = body
        for step in parents:
            target = target[int(step) if isinstance(target, list) else step]
        if value is GONE:
            del target[last]
        else:
            target[last] = value
        return body

    return change

"""Bodies under status 200 that are no reply: none of them is ever an answer."""

from collections.abc import Mapping

import pytest

from evaluators.core import (
    CallError,
    FatalError,
    RefusedError,
    TransientError,
)
from tests.support.loopback import Answer
from tests.support.model_calls import (
    GONE,
    ask_body,
    both,
    changed,
    error_body,
    failure,
)

RAW: Mapping[str, object] = {
    "empty": b"",
    "blank": b" \n",
    "html": b"<html><body>Sign in</body></html>",
    "text": b"OK",
    "null": b"null",
    "list": b"[]",
    "number": b"1",
    "string": b'"good"',
    "object": b"{}",
    "cut": b'{"id": "x", "choices": [{"message": {"content": "trunc',
    "not utf-8": b'{"id": "\xff\xfe"}',
    "two objects": b"{}{}",
    "duplicate key": b'{"a": 1, "a": 2}',
    "nan": b'{"a": NaN}',
    "deep": b"[" * 100_000,
    "events": b'data: {"id": 1}\n\n',
}
OF_BOTH = [
    ("model", GONE),
    ("model", None),
    ("model", ""),
    ("model", 7),
    ("model", "another-model"),
    ("model", "model-1-mini"),
    ("usage", "many"),
    ("usage", [1]),
]
OF_OPENAI = [
    *OF_BOTH,
    ("choices", GONE),
    ("choices", None),
    ("choices", []),
    ("choices", {}),
    ("choices", "good"),
    ("choices", [None]),
    ("choices", ["good"]),
    ("choices.0.message", GONE),
    ("choices.0.message", None),
    ("choices.0.message", "good"),
    ("choices.0.message", {}),
    ("choices.0.message.content", None),
    ("choices.0.message.content", 5),
    ("choices.0.message.content", True),
    ("choices.0.message.content", ["good"]),
    ("choices.0.message.refusal", 5),
    ("choices.0.message.tool_calls", {}),
    ("choices.0.message.tool_calls", [None]),
    ("choices.0.message.tool_calls", [{}]),
    ("choices.0.message.tool_calls", [{"function": {"name": "f"}}]),
    ("choices.0.message.tool_calls", [{"function": {"name": "f", "arguments": {}}}]),
    ("choices.0.message.tool_calls", [{"function": {"name": None, "arguments": "{}"}}]),
    ("choices.0.finish_reason", GONE),
    ("choices.0.finish_reason", None),
    ("choices.0.finish_reason", 0),
    ("usage.prompt_tokens", "7"),
    ("usage.prompt_tokens", -1),
    ("usage.completion_tokens", 1.5),
    ("usage.completion_tokens", True),
]
OF_ANTHROPIC = [
    *OF_BOTH,
    ("content", GONE),
    ("content", None),
    ("content", []),
    ("content", "good"),
    ("content", {}),
    ("content", [None]),
    ("content", ["good"]),
    ("content", [{}]),
    ("content.0.text", GONE),
    ("content.0.text", None),
    ("content.0.text", 5),
    ("content.0.type", "else"),
    ("content", [{"type": "tool_use", "name": "f"}]),
    ("content", [{"type": "tool_use", "name": "f", "input": "{}"}]),
    ("content", [{"type": "tool_use", "name": None, "input": {}}]),
    ("stop_reason", GONE),
    ("stop_reason", None),
    ("stop_reason", 1),
    ("usage.input_tokens", "7"),
    ("usage.output_tokens", -1),
]


@both
@pytest.mark.parametrize("name", RAW)
def test_a_200_that_is_no_json_object_of_a_reply(provider: str, name: str) -> None:
    """Whatever else comes under status 200 is transient, and never an answer."""
    error = failure(provider, Answer(body=RAW[name]))
    assert isinstance(error, TransientError)
    assert error.kind == "bad_body"


@pytest.mark.parametrize(
    ("provider", "path", "value"),
    [
        *(("openai", path, value) for path, value in OF_OPENAI),
        *(("anthropic", path, value) for path, value in OF_ANTHROPIC),
    ],
)
def test_a_reply_with_one_wrong_field(provider: str, path: str, value: object) -> None:
    """A missing field, a null, a wrong type or another model makes the whole body bad."""
    with pytest.raises(TransientError) as caught:
        ask_body(provider, changed(path, value))
    assert caught.value.kind == "bad_body"


@both
@pytest.mark.parametrize(
    ("body", "sort", "kind"),
    [
        (error_body("Overloaded", type="overloaded_error"), TransientError, "overloaded"),
        (error_body("x", code="rate_limit_exceeded"), TransientError, "rate_limit"),
        (error_body("x", code="context_length_exceeded"), RefusedError, "context_length"),
        ({"error": "model crashed"}, TransientError, "error_body"),
        ({"error": {"message": None, "code": 500}, "choices": []}, TransientError, "error_body"),
        (error_body("No", code="insufficient_quota"), FatalError, "quota"),
    ],
)
def test_an_error_object_under_status_200(
    provider: str, body: object, sort: type[CallError], kind: str
) -> None:
    """An error is an error whatever its status; it may be worth another try."""
    error = failure(provider, Answer(body=body))
    assert isinstance(error, sort)
    assert error.kind == kind

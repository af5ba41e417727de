"""What good replies of both APIs are read as."""

import json
from typing import Any

import pytest

from evaluators.core import (
    ToolCall,
)
from tests.support.model_calls import (
    GONE,
    ask_body,
    both,
    changed,
    finished,
)

FINISHES = [
    ("openai", "stop", "stop"),
    ("openai", "length", "length"),
    ("openai", "tool_calls", "tool_calls"),
    ("openai", "function_call", "tool_calls"),
    ("openai", "content_filter", "content_filter"),
    ("openai", "own_word", "own_word"),
    ("openai", "content_filter: SAFETY", "content_filter"),
    ("openai-responses", "max_output_tokens", "incomplete"),
    ("openai-responses", "content_filter", "content_filter"),
    ("openai-responses", "another reason", "incomplete"),
    ("anthropic", "end_turn", "stop"),
    ("anthropic", "stop_sequence", "stop"),
    ("anthropic", "tool_use", "tool_calls"),
    ("anthropic", "max_tokens", "length"),
    ("anthropic", "model_context_window_exceeded", "length"),
    ("anthropic", "refusal", "content_filter"),
    ("anthropic", "pause_turn", "pause_turn"),
]


@pytest.mark.parametrize(("provider", "theirs", "ours"), FINISHES)
def test_finish_reasons(provider: str, theirs: str, ours: str) -> None:
    """Both providers' words for the end of a reply become ours; unknown ones stay."""
    got = ask_body(provider, lambda body: finished(provider, body, theirs))
    assert got.finish == ours


def test_openai_refusal_is_its_text() -> None:
    """A refusal stands in the reply's text, so that nobody takes it for an answer left empty."""
    said = {"role": "assistant", "content": None, "refusal": "I can't."}
    assert ask_body("openai", changed("choices.0.message", said)).text == "I can't."


@both
@pytest.mark.parametrize("finish", ["length", "filter"])
def test_a_cut_or_filtered_reply_may_be_empty(provider: str, finish: str) -> None:
    """A reply cut before its first word is a reply, marked as cut; judges and reports see that."""
    words = {
        "openai": ("length", "content_filter"),
        "openai-responses": ("max_output_tokens", "content_filter"),
        "anthropic": ("max_tokens", "refusal"),
    }
    paths = {"openai": "choices.0.message.content", "openai-responses": "output"}
    path = paths.get(provider, "content")
    nothing: object = None if provider == "openai" else []
    reason = words[provider][finish == "filter"]
    got = ask_body(
        provider,
        lambda body: finished(provider, changed(path, nothing)(body), reason),  # type: ignore[arg-type]
    )
    assert (got.text, got.calls) == ("", ())
    cut = "incomplete" if provider == "openai-responses" else "length"
    assert got.finish == (cut if finish == "length" else "content_filter")


def test_responses_refusal_is_its_text() -> None:
    """As in chat completions: nobody takes it for an answer left empty."""
    part = {"type": "refusal", "refusal": "I can't."}
    assert ask_body("openai-responses", changed("output.1.content", [part])).text == "I can't."


def test_a_part_that_was_cut_leaves_no_whole_response() -> None:
    """The response may be called completed all the same."""
    got = ask_body("openai-responses", changed("output.1.status", "incomplete"))
    assert (got.text, got.finish) == ("good", "incomplete")


@both
def test_a_server_that_counts_no_tokens(provider: str) -> None:
    """Without usage the tokens are 0."""
    for missing in (GONE, None, {}):
        got = ask_body(provider, changed("usage", missing))
        assert (got.input_tokens, got.output_tokens) == (0, 0)


def test_anthropic_counts_cached_tokens() -> None:
    """What was read from or written to the cache is input too, and known for what it is."""
    counts = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 4,
    }
    got = ask_body("anthropic", changed("usage", counts))
    assert (got.input_tokens, got.cache_read_tokens, got.cache_write_tokens) == (321, 300, 20)


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", ("prompt_tokens", "completion_tokens", "prompt_tokens_details")),
        ("openai-responses", ("input_tokens", "output_tokens", "input_tokens_details")),
    ],
)
def test_openai_counts_cached_tokens(provider: str, names: tuple[str, str, str]) -> None:
    """Cached tokens are part of the prompt's; servers that name none, or null, read none."""
    for details, cached in (({"cached_tokens": 256}, 256), (None, 0), ({}, 0)):
        usage = changed("usage", dict(zip(names, (321, 4, details), strict=True)))
        got = ask_body(provider, usage)
        assert (got.input_tokens, got.cache_read_tokens, got.cache_write_tokens) == (321, cached, 0)


def test_anthropic_joins_text_and_skips_thinking() -> None:
    """Blocks of other types than text and tool use are no part of the answer."""
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "So"},
        {"type": "text", "text": "fia"},
        {"type": "tool_use", "name": "grade", "input": {"n": 1, "г": 1e999}},
    ]
    got = ask_body(
        "anthropic",
        lambda body: json.dumps(body | {"content": blocks}).replace("Infinity", "1e999"),
    )
    assert got.text == "Sofia"
    assert got.calls == (ToolCall(name="grade", arguments='{"n": 1, "г": Infinity}'),)


def test_openai_arguments_are_kept_to_the_letter() -> None:
    """What stands in ``arguments`` is passed on unread, broken JSON included."""
    calls = [{"type": "function", "function": {"name": "grade", "arguments": '{"a":1,"a": NaN'}}]
    got = ask_body("openai", changed("choices.0.message.tool_calls", calls))
    assert got.calls == (ToolCall(name="grade", arguments='{"a":1,"a": NaN'),)


@both
@pytest.mark.parametrize(
    ("returned", "settings"),
    [
        ("model-1-2024-08-06", {}),
        ("MODEL-1@20240806", {}),
        ("vendor/model-1", {}),
        ("model-1:latest", {}),
        ("model", {"name": "model-2024-08-06"}),
        ("claude-x-20241022", {"name": "claude-x-latest"}),
        ("/weights/other.gguf", {"answers_as": ("other.gguf",)}),
        ("anything", {"answers_as": ("*",)}),
    ],
)
def test_names_of_the_same_model(provider: str, returned: str, settings: dict[str, Any]) -> None:
    """Releases, vendors' prefixes and the names an entry allows are the model that was asked."""
    assert ask_body(provider, changed("model", returned), **settings).model == returned

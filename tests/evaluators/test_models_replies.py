"""What bodies are read as: good replies, bodies that are none, packed ones, and the cap on size."""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from evaluators.core import ToolCall, TransientError
from evaluators.models.api import MAX_BODY
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import (
    GONE,
    answered,
    ask,
    ask_body,
    asked,
    both,
    changed,
    failure,
    finished,
    good,
    spec_of,
)
from tests.support.tables import grown, kept, tabled

FINISHES: Mapping[str, Mapping[str, str]] = kept(__file__, "finishes")


@both
def test_finish_reasons(provider: str) -> None:
    """All providers' words for the end of a reply become ours; unknown ones stay."""
    theirs = FINISHES[provider]
    ours = {word: ask_body(provider, partial(finished, provider, reason=word)) for word in theirs}
    assert {word: got.finish for word, got in ours.items()} == theirs


def test_a_refusal_is_its_text() -> None:
    """A refusal stands in the reply's text, so that nobody takes it for an answer left empty."""
    said = {"role": "assistant", "content": None, "refusal": "I can't."}
    assert ask_body("openai", changed("choices.0.message", said)).text == "I can't."
    part = {"type": "refusal", "refusal": "I can't."}
    assert ask_body("openai-responses", changed("output.1.content", [part])).text == "I can't."


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


@tabled("provider", "names")
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
@tabled("returned", "settings")
def test_names_of_the_same_model(provider: str, returned: str, settings: dict[str, Any]) -> None:
    """Releases, vendors' prefixes and the names an entry allows are the model that was asked."""
    assert ask_body(provider, changed("model", returned), **settings).model == returned


RAW = kept(__file__, "raw")
BAD_OF_ANY, BAD_FIELDS = kept(__file__, "bad_of_any"), kept(__file__, "bad_fields")


@both
@pytest.mark.parametrize("name", RAW)
def test_a_200_that_is_no_json_object_of_a_reply(provider: str, name: str) -> None:
    """Whatever else comes under status 200 is transient, and never an answer."""
    error = failure(provider, Answer(body=grown(RAW[name]).encode("latin-1")))
    assert (type(error), error.kind) == (TransientError, "bad_body")


@pytest.mark.parametrize("provider", BAD_FIELDS)
def test_a_reply_with_one_wrong_field(provider: str) -> None:
    """A missing field, a null, a wrong type or another model makes the whole body bad."""
    for path, values in {**BAD_OF_ANY, **BAD_FIELDS[provider]}.items():
        for value in values:
            with pytest.raises(TransientError) as caught:
                ask_body(provider, changed(path, GONE if value == "GONE" else value))
            assert caught.value.kind == "bad_body", (path, value)


@both
@tabled("body", "sort", "kind")
def test_an_error_object_under_status_200(
    provider: str, body: object, sort: str, kind: str
) -> None:
    """An error is an error whatever its status; it may be worth another try."""
    error = failure(provider, Answer(body=body))
    assert (type(error).__name__, error.kind) == (sort, kind)


def bomb() -> bytes:
    """Sixty-four kilobytes that unpack to a thousand times as much."""
    packer = zlib.compressobj(wbits=31)
    return b"".join([packer.compress(bytes(1024 * 1024)) for _ in range(64)]) + packer.flush()


def bare_deflate(content: bytes) -> bytes:
    """Deflate without zlib's head, as some servers send it."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(content) + packer.flush()


@both
@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", bare_deflate),
        ("identity", bytes),
    ],
)
def test_encodings(provider: str, name: str, pack: Callable[[bytes], bytes]) -> None:
    """A packed body is unpacked, and the request says which packings are known."""
    answer = Answer(body=pack(good(provider)), headers={"Content-Encoding": name})
    with loopback(answer) as server:
        assert ask(spec_of(provider, server), asked()).text == "good"
        accepted = server.requests[0].headers["accept-encoding"]
    assert {"gzip", "deflate"} <= set(accepted.replace(",", " ").split())


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("gzip", b"plain"),
        ("deflate", b"plain"),
        ("gzip", gzip.compress(b"{}" * 99, mtime=0)[:-8] + bytes(8)),  # wrong checksum
        ("deflate", zlib.compress(b"{}" * 99)[:-9]),  # cut
        ("br", b"\x0b\x02\x80{}"),
        ("zstd", b"(\xb5/\xfd"),
    ],
)
def test_a_body_that_cannot_be_unpacked(name: str, body: bytes) -> None:
    """A body in another encoding than its header says is a bad body."""
    error = failure("openai", Answer(body=body, headers={"content-encoding": name}))
    assert (type(error), error.kind) == (TransientError, "bad_body")


@both
@pytest.mark.parametrize("status", [200, 500])
def test_a_decompression_bomb_is_cut(provider: str, status: int) -> None:
    """The cap counts the bytes that a body unpacks to."""
    packed = Answer(status=status, body=bomb(), headers={"content-encoding": "gzip"})
    error = failure(provider, packed)
    assert error.kind == "bad_body"
    assert "larger than 5,242,880 bytes" in str(error)


@pytest.mark.parametrize(("over", "text"), [(0, "good"), (1, None)])
def test_the_cap_to_the_byte(over: int, text: str | None) -> None:
    """A body of exactly the cap is read; one byte more is a bad body."""
    body = good("openai")
    answer = Answer(body=b" " * (MAX_BODY - len(body) + over) + body)
    if text is None:
        assert failure("openai", answer).kind == "bad_body"
    else:
        assert answered("openai", answer).text == text

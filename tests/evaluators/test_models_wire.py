"""What servers send back: broken HTTP and bodies, statuses, echoed keys, services of one's own."""

import asyncio
import gzip
import json
import logging
import shutil
import ssl
import subprocess
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from qagate.evaluators import core
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.endpoint import MAX_BODY_BYTES, open_endpoint
from qagate.evaluators.models.failures import message_of
from qagate.evaluators.models.keys import require_key
from qagate.evaluators.models.spec import Spec, build, parse
from qagate.evaluators.models.targets import PLACES, check_path, places
from qagate.evaluators.models.waits import MAX_RESET_SECONDS, reset_after, retry_after
from qagate.evaluators.text import Key
from tests.support.figures import some
from tests.support.loopback import Answer, Loopback, Seen, loopback
from tests.support.model_calls import (
    GONE,
    SECRET,
    WIRES,
    answered,
    ask,
    ask_body,
    asked,
    both,
    changed,
    error_body,
    failure,
    finished,
    good,
    spec_of,
)
from tests.support.tables import grown, kept, tabled

HEAD = "HTTP/1.1 200 OK\r\n"


@tabled("head")
def test_heads_that_are_unusual(head: str) -> None:
    """A reply counts that ends with its connection, or whose head holds odd headers."""
    raw = f"{head}\r\n".encode("latin-1") + good("openai")
    assert answered("openai", Answer(action="raw", body=raw)).text == "good"


NO_HTTP = {
    **kept(__file__, "no_http"),
    "long header": f"{HEAD}x: {'y' * 100_000}\r\n\r\n{{}}",
    "many headers": HEAD + "x: y\r\n" * 5000 + "\r\n{}",
}


@both
@pytest.mark.parametrize("raw", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http(provider: str, raw: str) -> None:
    """A reply that breaks the rules of HTTP is a broken connection."""
    error = failure(provider, Answer(action="raw", body=raw.encode("latin-1")))
    assert (type(error), error.kind) == (core.TransientError, "connection")
    assert "127.0.0.1" not in str(error), "the words are those of the fault alone"


@both
@pytest.mark.parametrize("raw", ["HTTP/1.1 204 No Content\r\n\r\n", f"{HEAD}\r\n"])
def test_no_body(provider: str, raw: str) -> None:
    """A success that brings nothing is a bad body."""
    error = failure(provider, Answer(action="raw", body=raw))
    assert error.kind == "bad_body"
    assert "the body is empty" in str(error)


@both
def test_what_an_error_says_is_read_and_shown_clean(provider: str) -> None:
    """Retry-After in any case; a message of 300 characters without controls."""
    headers = {"RETRY-AFTER": "7", "x-name": "\xff\xfe"}
    error = failure(provider, Answer(status=429, headers=headers))
    assert isinstance(error, core.TransientError)
    assert error.retry_after == 7.0
    error = failure(
        provider, Answer(status=400, body=error_body("no\x1b[2J\r\nway\u202e " * 99))
    )
    assert ": no [2J way no" in str(error)
    assert str(error).endswith("…")


@both
def test_cookies_are_not_sent_back(provider: str) -> None:
    """No server can mark the calls of a run."""
    cookie = Answer(body=good(provider), headers={"set-cookie": "id=1; Path=/"})

    async def run(spec: Spec) -> None:
        model = connect(spec, Key(SECRET))
        for _ in range(2):
            await model.complete(asked())
        await model.close()

    with loopback(cookie, cookie) as server:
        asyncio.run(run(spec_of(provider, server)))
        assert server.count == 2
        assert not any("cookie" in seen.headers for seen in server.requests)


async def _closing(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes
) -> None:
    """Answer the first request of a connection, and close it without a word at the second."""
    for answer in (f"{HEAD}content-length: {len(body)}\r\n\r\n".encode() + body, b""):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
        writer.write(answer)
    writer.close()


@both
def test_connections_are_reused_until_they_close(provider: str) -> None:
    """A second call takes the first one's connection; that it closes then is transient."""
    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await _closing(reader, writer, good(provider))

    async def run() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        model = connect(
            build(provider, "model-1", f"http://127.0.0.1:{port}", "m"), Key(SECRET)
        )
        await model.complete(asked())
        with pytest.raises(core.TransientError) as caught:
            await model.complete(asked())
        assert (caught.value.kind, len(connections)) == ("connection", 1)
        await model.complete(asked())
        assert len(connections) == 2
        await model.close()
        connections[1].close()
        server.close()
        await server.wait_closed()

    asyncio.run(run())


DEADLINE = 0.2


@both
@pytest.mark.parametrize(
    "answer",
    [
        Answer(action="hang"),
        Answer(action="headers", body="{}"),
        Answer(action="drip", body=" " * 10_000, delay=0.05),
        Answer(action="drip", body=" " * 10_000, delay=0.05, status=500),
        Answer(delay=30.0),
    ],
)
def test_the_deadline_is_for_the_whole_call(provider: str, answer: Answer) -> None:
    """A server that keeps sending a byte now and then is ended like a silent one (F11)."""
    error = failure(provider, answer, deadline=DEADLINE)
    assert (type(error), error.kind) == (core.TransientError, "timeout")


@both
def test_a_call_that_cannot_be_made(provider: str) -> None:
    """A broken or refused connection is transient and named; what no JSON can hold is refused."""
    error = failure(provider, Answer(action="reset"))
    assert (type(error), error.kind) == (core.TransientError, "connection")
    with loopback() as server:
        spec = spec_of(provider, server)
    with pytest.raises(core.TransientError, match="no connection") as caught:
        ask(spec, asked())
    assert caught.value.kind == "unreachable"
    with loopback() as server:
        with pytest.raises(core.RefusedError, match="cannot be sent") as refused:
            ask(spec_of(provider, server), asked(parameters={"seed": object()}))
        assert server.count == 0
    assert refused.value.kind == "bad_request"


@pytest.fixture
def untrusted(tmp_path: Path) -> ssl.SSLContext:
    """A server's side of TLS, with a certificate that nobody has signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate, and is not here")
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1"]
    subprocess.run(["openssl", "req", *words, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    return context


def test_a_certificate_that_is_not_trusted_ends_the_run(
    untrusted: ssl.SSLContext,
) -> None:
    """Another try would end alike; the message names the variable that helps."""

    async def run() -> None:
        server = await asyncio.start_server(
            lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=untrusted
        )
        port = server.sockets[0].getsockname()[1]
        spec = build("openai", "model-1", f"https://127.0.0.1:{port}/v1", "m")
        model = connect(spec, Key(SECRET))
        try:
            with pytest.raises(core.FatalError, match="SSL_CERT_FILE") as caught:
                await model.complete(asked())
            assert caught.value.kind == "environment"
        finally:
            await model.close()
            server.close()

    asyncio.run(run())


@both
def test_cancelling_a_call_is_not_an_error_of_the_call(provider: str) -> None:
    """An engine that stops gets its own cancellation back."""

    async def run(spec: Spec) -> None:
        model = connect(spec, Key(SECRET))
        task = asyncio.create_task(model.complete(asked()))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await model.close()

    with loopback(Answer(action="hang")) as server:
        asyncio.run(run(spec_of(provider, server)))


@both
def test_many_calls_at_once(provider: str) -> None:
    """The client is no bottleneck: all calls stand at the server together."""
    calls = 48

    async def run(spec: Spec) -> list[core.Reply]:
        model = connect(spec, Key(SECRET))
        try:
            return await asyncio.gather(
                *(model.complete(asked()) for _ in range(calls))
            )
        finally:
            await model.close()

    def wait_for_all(seen: Any) -> Answer:
        return Answer(body=WIRES[provider](seen, "ok"), delay=0.5)

    with loopback(handler=wait_for_all) as server:
        replies = asyncio.run(run(spec_of(provider, server)))
        assert server.peak > calls // 2
    assert [one.text for one in replies] == ["ok"] * calls


FINISHES: Mapping[str, Mapping[str, str]] = kept(__file__, "finishes")


@both
def test_finish_reasons(provider: str) -> None:
    """All providers' words for the end of a reply become ours; unknown ones stay."""
    theirs = FINISHES[provider]
    ours = {
        word: ask_body(provider, partial(finished, provider, reason=word))
        for word in theirs
    }
    assert {word: got.finish for word, got in ours.items()} == theirs


def test_what_a_good_body_holds() -> None:
    """Refusals are text, cut parts seen, cached tokens input; no thinking; arguments as sent."""
    said = {"role": "assistant", "content": None, "refusal": "I can't."}
    assert ask_body("openai", changed("choices.0.message", said)).text == "I can't."
    part = {"type": "refusal", "refusal": "I can't."}
    assert (
        ask_body("openai-responses", changed("output.1.content", [part])).text
        == "I can't."
    )
    got = ask_body("openai-responses", changed("output.1.status", "incomplete"))
    assert (got.text, got.finish) == ("good", "incomplete")
    counts = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 4,
    }
    got = ask_body("anthropic", changed("usage", counts))
    assert (got.input_tokens, got.cache_read_tokens, got.cache_write_tokens) == (
        321,
        300,
        20,
    )
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "So"},
        {"type": "text", "text": "fia"},
        {"type": "tool_use", "name": "grade", "input": {"n": 1, "г": 1e999}},
    ]
    got = ask_body(
        "anthropic",
        lambda body: json.dumps(body | {"content": blocks}).replace(
            "Infinity", "1e999"
        ),
    )
    assert got.text == "Sofia"
    assert got.calls == (
        core.ToolCall(name="grade", arguments='{"n": 1, "г": Infinity}'),
    )
    calls = [
        {
            "type": "function",
            "function": {"name": "grade", "arguments": '{"a":1,"a": NaN'},
        }
    ]
    got = ask_body("openai", changed("choices.0.message.tool_calls", calls))
    assert got.calls == (core.ToolCall(name="grade", arguments='{"a":1,"a": NaN'),)


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
    assert got.finish == ("length" if finish == "length" else "content_filter")


@both
def test_a_server_that_counts_no_tokens(provider: str) -> None:
    """Without usage the tokens are 0."""
    for missing in (GONE, None, {}):
        got = ask_body(provider, changed("usage", missing))
        assert (got.input_tokens, got.output_tokens) == (0, 0)


WITHOUT_A_MEANING: tuple[object, ...] = (GONE, None, 7, {}, [1])
FINISH_FIELDS = {"openai": "choices.0.finish_reason", "anthropic": "stop_reason"}


@pytest.mark.parametrize("provider", FINISH_FIELDS)
def test_a_finish_that_is_no_word_is_unknown(provider: str) -> None:
    for value in WITHOUT_A_MEANING:
        reply = ask_body(provider, changed(FINISH_FIELDS[provider], value))
        assert (reply.text, reply.finish) == ("good", "")


@both
def test_a_model_name_that_is_no_text_is_unknown(provider: str) -> None:
    for value in (*WITHOUT_A_MEANING, ""):
        reply = ask_body(provider, changed("model", value))
        assert (reply.text, reply.model) == ("good", "")


COUNTS = {
    "openai": ("prompt_tokens", "completion_tokens"),
    "openai-responses": ("input_tokens", "output_tokens"),
    "anthropic": ("input_tokens", "output_tokens"),
}


@both
@pytest.mark.parametrize("count", [9, 9.0, "9"])
def test_a_count_is_read_in_any_form_of_a_number(provider: str, count: object) -> None:
    for name in COUNTS[provider]:
        reply = ask_body(provider, changed(f"usage.{name}", count))
        assert 9 in (reply.input_tokens, reply.output_tokens)


@both
@pytest.mark.parametrize("count", [-1, 1.5, True, "many", "1e3", 10**9, [1]])
def test_a_count_that_is_none_is_unknown(provider: str, count: object) -> None:
    """The answer is there and paid for: it is not thrown away for a count beside it."""
    usage = dict.fromkeys(COUNTS[provider], count)
    reply = ask_body(provider, changed("usage", usage))
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("good", 0, 0)


@both
@pytest.mark.parametrize("usage", ["many", [1], 7])
def test_a_usage_of_another_type_is_unknown(provider: str, usage: object) -> None:
    reply = ask_body(provider, changed("usage", usage))
    assert (reply.text, reply.input_tokens) == ("good", 0)


@tabled("provider", "names")
def test_openai_counts_cached_tokens(
    provider: str, names: tuple[str, str, str]
) -> None:
    """Cached tokens are part of the prompt's; servers that name none, or null, read none."""
    for details, cached in (({"cached_tokens": 256}, 256), (None, 0), ({}, 0)):
        usage = changed("usage", dict(zip(names, (321, 4, details), strict=True)))
        got = ask_body(provider, usage)
        assert (got.input_tokens, got.cache_read_tokens, got.cache_write_tokens) == (
            321,
            cached,
            0,
        )


@both
@tabled("returned", "settings")
def test_names_of_the_same_model(
    provider: str, returned: str, settings: dict[str, Any]
) -> None:
    """Releases, vendors' prefixes and the names an entry allows are the model that was asked."""
    assert ask_body(provider, changed("model", returned), **settings).model == returned


RAW = kept(__file__, "raw")
BAD_OF_ANY, BAD_FIELDS = kept(__file__, "bad_of_any"), kept(__file__, "bad_fields")


@both
@pytest.mark.parametrize("name", RAW)
def test_a_200_that_is_no_json_object_of_a_reply(provider: str, name: str) -> None:
    """All else that comes under status 200 is transient, and never an answer."""
    error = failure(provider, Answer(body=grown(RAW[name]).encode("latin-1")))
    assert (type(error), error.kind) == (core.TransientError, "bad_body")


@pytest.mark.parametrize("provider", BAD_FIELDS)
def test_a_reply_with_one_wrong_field(provider: str) -> None:
    """A missing field, a null, a wrong type or another model makes the whole body bad."""
    for path, values in {**BAD_OF_ANY, **BAD_FIELDS[provider]}.items():
        for value in values:
            with pytest.raises(core.TransientError) as caught:
                ask_body(provider, changed(path, GONE if value == "GONE" else value))
            assert caught.value.kind == "bad_body", (path, value)


@both
@tabled("body", "sort", "kind")
def test_an_error_object_with_status_200(
    provider: str, body: object, sort: str, kind: str
) -> None:
    """An error is an error, no matter its status; it may be worth another try."""
    error = failure(provider, Answer(body=body))
    assert (type(error).__name__, error.kind) == (sort, kind)


def bomb() -> bytes:
    """Sixty-four kilobytes that unpack to a thousand times as much."""
    packer = zlib.compressobj(wbits=31)
    return (
        b"".join([packer.compress(bytes(1024 * 1024)) for _ in range(64)])
        + packer.flush()
    )


def bare_deflate(content: bytes) -> bytes:
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
    assert (type(error), error.kind) == (core.TransientError, "bad_body")


ENDLESS = {
    "endless": Answer(action="endless"),
    "bomb": Answer(body=bomb(), headers={"content-encoding": "gzip"}),
}


@both
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("answer", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_body_is_cut(provider: str, status: int, answer: Answer) -> None:
    """Reading ends at the cap, which counts unpacked bytes, for any status (F11)."""
    error = failure(provider, replace(answer, status=status))
    assert (type(error), error.kind) == (core.TransientError, "bad_body")
    assert "larger than 5,242,880 bytes" in str(error)


@pytest.mark.parametrize(("over", "text"), [(0, "good"), (1, None)])
def test_the_cap_to_the_byte(over: int, text: str | None) -> None:
    """A body of exactly the cap is read; one byte more is a bad body."""
    body = good("openai")
    answer = Answer(body=b" " * (MAX_BODY_BYTES - len(body) + over) + body)
    if text is None:
        assert failure("openai", answer).kind == "bad_body"
    else:
        assert answered("openai", answer).text == text


@tabled("headers", "seconds")
def test_retry_after_headers(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read; the negative and the unreadable are None."""
    assert retry_after(CIMultiDict(headers)) == seconds


def test_a_date_without_the_server_s_clock_counts_from_ours() -> None:
    """Where the server gives no Date, our own time serves."""
    wait = some(retry_after({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}))
    assert 0 < wait < 4_100_000_000 - time.time()


REQUESTS, TOKENS = "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"
ANTHROPIC = "anthropic-ratelimit-requests-reset"


@tabled("headers", "seconds")
def test_headers_that_say_when_a_limit_ends(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Durations and time stamps; the limit that is used up counts, and none of a whole day."""
    assert reset_after(CIMultiDict(headers)) == (
        None if seconds is None else pytest.approx(seconds)
    )


MANY_DIGITS = "9" * 400
"""More than a float can hold."""


@pytest.mark.parametrize("unit", ["", "ms", "s", "m", "h"])
def test_a_wait_beyond_a_float_is_none(unit: str) -> None:
    assert retry_after({"retry-after": f"{MANY_DIGITS}{unit}"}) is None


@given(st.text(max_size=30))
def test_no_header_breaks_its_reading(value: str) -> None:
    """All that a server writes there is a bounded pause, or none."""
    for name in (REQUESTS, ANTHROPIC):
        seconds = reset_after({name: value})
        assert seconds is None or 0 <= seconds <= MAX_RESET_SECONDS


@tabled("content", "said")
def test_the_message_of_an_error_body(content: str, said: str) -> None:
    """The provider's words are found in the forms that servers use."""
    assert message_of(content.encode())[0] == said


@given(st.binary(max_size=200))
def test_any_error_body_has_a_message(content: bytes) -> None:
    """No body, however broken, stops its own reporting; both texts are bounded."""
    said, words = message_of(content)
    assert isinstance(said, str)
    assert len(words) <= 4000


@both
@tabled("status", "body", "sort", "kind")
def test_every_status(
    provider: str, status: int, body: object, sort: str, kind: str
) -> None:
    """What may pass is transient, what concerns one request is refused, the rest is fatal."""
    error = failure(provider, Answer(status=status, body=body))
    assert (type(error).__name__, error.kind) == (sort, kind)
    assert f"HTTP {status}" in str(error)


@both
@pytest.mark.parametrize(
    "echo", [SECRET, "sk-other-12345678", "Bearer abcdef0123456789"]
)
def test_an_echo_is_masked(
    provider: str, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither our key nor a word of its shape is repeated from a 401, in no debug log (F23)."""
    answer = Answer(status=401, body=error_body(f"Incorrect API key: {echo}."))
    with caplog.at_level(logging.DEBUG):
        error = failure(provider, answer)
    assert SECRET not in caplog.text
    assert echo.removeprefix("Bearer ") not in str(error)
    assert "***" in str(error)


@both
def test_neither_model_nor_endpoint_shows_a_key(provider: str) -> None:
    """Repr, SPEC, identity and headers are free of it; without one no call is made."""
    with loopback() as server:
        model = connect(spec_of(provider, server), Key(SECRET))
        with asyncio.Runner() as runner:
            runner.run(model.complete(asked()))
            runner.run(model.close())
    assert (
        SECRET not in f"{model!r} {model} {model.spec} {model.identity} {vars(model)}"
    )
    assert repr(model) == f"LazyModel('{provider}:model-1')"

    async def run() -> None:
        opened = open_endpoint(spec, Key(SECRET))
        assert opened.headers.get("x-api-key", "") + opened.headers.get(
            "authorization", ""
        )
        assert SECRET not in repr(opened)
        await opened.session.close()

    with loopback() as server:
        spec = spec_of(provider, server)
    asyncio.run(run())
    with loopback() as server:
        model = connect(spec_of(provider, server))
        with pytest.raises(core.FatalError, match="no API key") as caught:
            asyncio.run(model.complete(asked()))
        assert server.count == 0
    assert caught.value.kind == "no_key"
    asyncio.run(model.close())


@both
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(provider: str, status: int) -> None:
    """No request, and so no key, goes to where a server points (F24)."""
    with loopback() as other:
        place = {"location": f"{other.url}/v1/chat/completions"}
        error = failure(provider, Answer(status=status, headers=place))
        assert other.count == 0
    assert (type(error), error.kind) == (core.FatalError, "redirect")


ENTRY = kept(__file__, "entry")
GET = kept(__file__, "get")
CASE = core.AskedCase(
    question="Столица {context}?", context="c", language="bg", metadata={"topic": "geo"}
)
GOOD = {"out": [{"text": "Sofia"}], "usage": {"in": 7, "out": 2, "usd": 0.5}}


def entry(tmp_path: Path, text: str, url: str = "http://127.0.0.1:1/ask") -> Spec:
    path = tmp_path / "models.yaml"
    path.write_text(text.format(url=url), encoding="utf-8")
    return parse("http:rag", load_catalogue(path))


def asked_of(spec: Spec, case: core.AskedCase | None = CASE) -> core.Reply:
    return ask(spec, replace(asked(), case=case), require_key(spec).reveal())


def seen_by(server: Loopback) -> Seen:
    (seen,) = server.requests
    return seen


def test_the_template_is_filled_and_the_reply_read(tmp_path: Path) -> None:
    """In one pass: what a question holds in braces stays; a place alone keeps its type."""
    with loopback(Answer(body=GOOD)) as server:
        reply = asked_of(entry(tmp_path, ENTRY, f"{server.url}/ask"))
        seen = seen_by(server)
    assert (seen.method, seen.path) == ("POST", "/ask")
    assert "authorization" not in seen.headers
    assert seen.body == {
        "q": "Q: Столица {context}? (bg)",
        "top_k": 3,
        "of": {
            "about": {"topic": "geo"},
            "deep": [
                "c",
                [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": "Who?"},
                ],
            ],
        },
        "prompt": "Be brief.\n\nWho?",
    }
    assert (reply.text, reply.model, reply.cost) == ("Sofia", "rag@5", 0.5)
    assert (reply.input_tokens, reply.output_tokens) == (7, 2)


def test_a_get_has_its_body_as_query(tmp_path: Path) -> None:
    """In addition to the query of the entry itself."""
    with loopback(Answer(body={"answer": 42})) as server:
        reply = asked_of(
            entry(tmp_path, GET, server.url), replace(CASE, question="a&b=ж ?")
        )
        seen = seen_by(server)
    assert seen.method == "GET"
    query = dict(parse_qsl(seen.path.partition("?")[2]))
    assert query == {"v": "1", "q": "a&b=ж ?", "of": '{"topic": "geo"}'}
    assert reply.text == "42"


def test_keys_come_from_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several headers, each by its variable; a reply that echoes one does not keep it."""
    headers = "  headers: {{Authorization: RAG_TOKEN, X-Tenant: RAG_TENANT}}\n"
    monkeypatch.setenv("RAG_TOKEN", "Token 0123456789ab")
    monkeypatch.delenv("RAG_TENANT", raising=False)
    with pytest.raises(
        core.UsageError, match="set the environment variable RAG_TENANT"
    ):
        require_key(entry(tmp_path, ENTRY + headers))
    monkeypatch.setenv("RAG_TENANT", "tenant-77")

    def echo(seen: Seen) -> Answer:
        sent = f"{seen.headers['authorization']} of {seen.headers['x-tenant']}"
        return Answer(body=GOOD | {"out": [{"text": sent}]})

    with loopback(handler=echo) as server:
        reply = asked_of(entry(tmp_path, ENTRY + headers, server.url))
        assert seen_by(server).headers["authorization"] == "Token 0123456789ab"
    assert reply.text == "Token *** of ***"
    bearer = "  api_key_env: RAG_KEY\n"
    monkeypatch.setenv("RAG_KEY", "k-123456")
    with loopback(Answer(body=GOOD)) as server:
        asked_of(entry(tmp_path, ENTRY + bearer, server.url))
        assert seen_by(server).headers["authorization"] == "Bearer k-123456"


def test_what_an_entry_of_a_service_is(tmp_path: Path) -> None:
    """Its identity is version and form; its name is guessed; a provider's own key is not for it."""
    for line in (
        "api_key_env: OPENAI_API_KEY",
        "headers: {{X-Key: ANTHROPIC_API_KEY}}",
    ):
        with pytest.raises(core.UsageError, match="goes to https://api"):
            entry(tmp_path, f"{ENTRY}  {line}\n", "https://rag.example/ask")
    one = entry(tmp_path, ENTRY).identity
    assert json.dumps(one, sort_keys=True)
    for old, new in (('"5"', '"6"'), ("top_k: 3", "top_k: 4"), ("[0].text", "[0].alt")):
        assert entry(tmp_path, ENTRY.replace(old, new)).identity != one
    entry(tmp_path, ENTRY)
    catalogue = load_catalogue(tmp_path / "models.yaml")
    assert parse("rag", catalogue).identity == parse("http:rag", catalogue).identity
    with pytest.raises(core.UsageError, match=r"did you mean 'http:rag'\?"):
        parse("http:rga", catalogue)


@tabled("body", "said")
def test_another_form_is_no_answer(
    tmp_path: Path, body: dict[str, Any], said: str
) -> None:
    """It is an error that says which path led nowhere, and what there was."""
    with (
        loopback(Answer(body=GOOD | body)) as server,
        pytest.raises(core.CallError) as caught,
    ):
        asked_of(entry(tmp_path, ENTRY, server.url))
    assert said in str(caught.value)


def test_several_values_are_no_answer(tmp_path: Path) -> None:
    """The first of two would be a choice that nobody made."""
    text = ENTRY.replace("$.out[0].text", "$.out[*].text")
    body = GOOD | {"out": [{"text": "a"}, {"text": "b"}]}
    with (
        loopback(Answer(body=body)) as server,
        pytest.raises(core.RefusedError, match="to 2 values"),
    ):
        asked_of(entry(tmp_path, text, server.url))


def test_it_answers_items_alone(tmp_path: Path) -> None:
    """Without an item there is no question to send; a body of the prompt alone may be a judge."""
    with loopback() as server:
        spec = entry(tmp_path, ENTRY, server.url)
        with pytest.raises(core.RefusedError, match="only answer items"):
            asked_of(spec, None)
        assert server.count == 0
    assert spec.limits.takes_case
    plain = ENTRY.replace("{{question}} ({{language}})", "{{prompt}}")
    plain = plain.replace('"{{metadata}}"', "1").replace('"{{context}}"', "2")
    assert not entry(tmp_path, plain).limits.takes_case


@tabled("old", "new", "said")
def test_a_wrong_entry_is_said_in_one_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """File, line, key, what was got and what to do."""
    assert old in ENTRY
    with pytest.raises(core.UsageError) as caught:
        entry(tmp_path, ENTRY.replace(old, new, 1))
    assert said in str(caught.value)
    assert "models.yaml:" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_path_is_read_or_refused(path: str) -> None:
    """No text raises out of the check."""
    assert isinstance(check_path(path), str)


@given(
    st.recursive(
        st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=5
    )
)
def test_places_are_found_at_any_depth(template: object) -> None:
    """A name in braces is a place wherever it stands."""
    assert "question" in set(places({"a": [template, {"b": "x {question} y"}]}))
    assert "question" in PLACES

"""What servers do to connections and to HTTP itself: hangs, broken rules, odd heads, cookies."""

import asyncio
from typing import Any

import pytest

from evaluators.core import RefusedError, Reply, TransientError
from evaluators.models import connect
from evaluators.models.spec import Spec, build
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import (
    SECRET,
    WIRES,
    answered,
    ask,
    asked,
    both,
    failure,
    good,
    spec_of,
)
from tests.support.tables import tabled

HEAD = "HTTP/1.1 200 OK\r\n"
CHUNKED = f"{HEAD}transfer-encoding: chunked\r\n"


@tabled("head")
def test_heads_that_are_unusual(head: str) -> None:
    """A reply counts that ends with its connection, or whose head holds odd headers."""
    raw = f"{head}\r\n".encode("latin-1") + good("openai")
    assert answered("openai", Answer(action="raw", body=raw)).text == "good"


NO_HTTP = {
    "nothing": "",
    "half a head": "HTTP/1.1 200 OK\r\ncontent-le",
    "no status": "HTTP/1.1 abc OK\r\n\r\n",
    "status of four digits": "HTTP/1.1 1000 OK\r\n\r\n",
    "http 2": "HTTP/2 200\r\n\r\n",
    "tls": "\x16\x03\x01\x02\x00\x01",
    "no header": f"{HEAD}no colon\r\n\r\n{{}}",
    "zero byte": f"{HEAD}a\0b: c\r\n\r\n{{}}",
    "negative length": f"{HEAD}content-length: -5\r\n\r\n{{}}",
    "length in words": f"{HEAD}content-length: ten\r\n\r\n{{}}",
    "short body": f"{HEAD}content-length: 50\r\n\r\n{{}}",
    "two lengths": f"{HEAD}Content-Length: 1\r\nContent-Length: 9\r\n\r\n",
    "long header": f"{HEAD}x: {'y' * 100_000}\r\n\r\n{{}}",
    "many headers": HEAD + "x: y\r\n" * 5000 + "\r\n{}",
    "no chunk": f"{CHUNKED}\r\nzz\r\n{{}}",
    "half a chunk": f"{CHUNKED}\r\n9\r\n{{}}",
    "no last chunk": f"{CHUNKED}\r\n2\r\n{{}}\r\n",
    "chunks and a length": f"{CHUNKED}content-length: 2\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n",
}


@both
@pytest.mark.parametrize("raw", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http(provider: str, raw: str) -> None:
    """A reply that breaks the rules of HTTP is a broken connection."""
    error = failure(provider, Answer(action="raw", body=raw.encode("latin-1")))
    assert (type(error), error.kind) == (TransientError, "connection")
    assert "127.0.0.1" not in str(error), "the words are those of the fault alone"


@both
@pytest.mark.parametrize("raw", ["HTTP/1.1 204 No Content\r\n\r\n", f"{HEAD}\r\n"])
def test_no_body(provider: str, raw: str) -> None:
    """A success that brings nothing is a bad body."""
    error = failure(provider, Answer(action="raw", body=raw))
    assert error.kind == "bad_body"
    assert "the body is empty" in str(error)


@both
def test_retry_after_has_no_case(provider: str) -> None:
    """A server may write the names of headers as it likes, and other headers with any bytes."""
    headers = {"RETRY-AFTER": "7", "x-name": "\xff\xfe"}
    error = failure(provider, Answer(status=429, headers=headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == 7.0


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


async def _closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> None:
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
        model = connect(build(provider, "model-1", f"http://127.0.0.1:{port}", "m"), Key(SECRET))
        await model.complete(asked())
        with pytest.raises(TransientError) as caught:
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
    assert (type(error), error.kind) == (TransientError, "timeout")


@both
@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_body_is_cut(provider: str, status: int) -> None:
    """Reading ends at the cap, whatever the status (F11)."""
    error = failure(provider, Answer(action="endless", status=status))
    assert (type(error), error.kind) == (TransientError, "bad_body")
    assert "larger than 5,242,880 bytes" in str(error)


@both
def test_a_broken_connection(provider: str) -> None:
    """A connection that breaks is transient."""
    error = failure(provider, Answer(action="reset"))
    assert (type(error), error.kind) == (TransientError, "connection")


@both
def test_nobody_listens(provider: str) -> None:
    """A refused connection is transient, and named."""
    with loopback() as server:
        spec = spec_of(provider, server)
    with pytest.raises(TransientError, match="no connection") as caught:
        ask(spec, asked())
    assert caught.value.kind == "unreachable"


@both
def test_a_request_that_no_json_can_hold(provider: str) -> None:
    """What cannot be sent is refused, not retried and not raised as it is."""
    with loopback() as server:
        with pytest.raises(RefusedError, match="cannot be sent") as caught:
            ask(spec_of(provider, server), asked(parameters={"seed": object()}))
        assert server.count == 0
    assert caught.value.kind == "bad_request"


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

    async def run(spec: Spec) -> list[Reply]:
        model = connect(spec, Key(SECRET))
        try:
            return await asyncio.gather(*(model.complete(asked()) for _ in range(calls)))
        finally:
            await model.close()

    def wait_for_all(seen: Any) -> Answer:
        return Answer(body=WIRES[provider](seen, "ok"), delay=0.5)

    with loopback(handler=wait_for_all) as server:
        replies = asyncio.run(run(spec_of(provider, server)))
        assert server.peak > calls // 2
    assert [one.text for one in replies] == ["ok"] * calls

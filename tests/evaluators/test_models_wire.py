"""What servers do to HTTP itself: odd heads, broken rules, cookies, closed connections."""

import asyncio

import pytest

from evaluators.core import TransientError
from evaluators.models import connect
from evaluators.models.spec import Spec, build
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import SECRET, answered, asked, both, failure, good, spec_of

HEAD = "HTTP/1.1 200 OK\r\n"
CHUNKED = f"{HEAD}transfer-encoding: chunked\r\n"


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.0 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n",
        "HTTP/1.1 200\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",
        f"{HEAD}content-type: text/html\r\n",
        f"{HEAD}x-name: \xff\xfe\xd0\xaf\r\n",
        f"{HEAD}set-cookie: a=b; max-age=\xff\r\nset-cookie: ;;=\r\n",
    ],
    ids=["1.0", "closed", "no reason", "continue", "type", "bytes of a header", "odd cookies"],
)
def test_heads_that_are_unusual(head: str) -> None:
    """A reply counts that ends with its connection, or whose head holds odd headers."""
    raw = f"{head}\r\n".encode("latin-1") + good("openai")
    assert answered("openai", Answer(action="raw", body=raw)).text == "good"


@both
@pytest.mark.parametrize(
    "raw",
    [
        "",
        "HTTP/1.1 200 OK\r\ncontent-le",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 1000 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "\x16\x03\x01\x02\x00\x01",
        f"{HEAD}no colon\r\n\r\n{{}}",
        f"{HEAD}a\0b: c\r\n\r\n{{}}",
        f"{HEAD}content-length: -5\r\n\r\n{{}}",
        f"{HEAD}content-length: ten\r\n\r\n{{}}",
        f"{HEAD}x: {'y' * 100_000}\r\n\r\n{{}}",
        HEAD + "x: y\r\n" * 5000 + "\r\n{}",
        f"{CHUNKED}\r\nzz\r\n{{}}",
        f"{CHUNKED}\r\n9\r\n{{}}",
        f"{CHUNKED}\r\n2\r\n{{}}\r\n",
        f"{CHUNKED}content-length: 2\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n",
    ],
    ids=[
        "nothing",
        "half a head",
        "no status",
        "status of four digits",
        "http 2",
        "tls",
        "no header",
        "zero byte",
        "negative length",
        "length in words",
        "long header",
        "many headers",
        "no chunk",
        "half a chunk",
        "no last chunk",
        "chunks and a length",
    ],
)
def test_what_is_no_http(provider: str, raw: str) -> None:
    """A reply that breaks the rules of HTTP is a broken connection."""
    error = failure(provider, Answer(action="raw", body=raw.encode("latin-1")))
    assert isinstance(error, TransientError)
    assert error.kind == "connection"
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
    body = good(provider)
    cookie = Answer(body=body, headers={"set-cookie": "id=1; Path=/"})

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

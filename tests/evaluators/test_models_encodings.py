"""Packed bodies and their cap: what a body unpacks to is what counts."""

import gzip
import zlib
from collections.abc import Callable

import pytest

from evaluators.core import TransientError
from evaluators.models.api import MAX_BODY
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import answered, ask, asked, both, failure, good, spec_of


def bomb() -> bytes:
    """Sixty-four kilobytes that unpack to a thousand times as much."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(bytes(1024 * 1024)) for _ in range(64)]
    return b"".join(parts) + packer.flush()


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
    ids=["gzip", "capitals", "deflate", "bare deflate", "identity"],
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
        ("gzip", gzip.compress(b"{}" * 99)[:-8] + bytes(8)),
        ("deflate", zlib.compress(b"{}" * 99)[:-9]),
        ("br", b"\x0b\x02\x80{}"),
        ("zstd", b"(\xb5/\xfd"),
    ],
    ids=["no gzip", "no deflate", "wrong checksum", "cut", "no brotli", "no zstd"],
)
def test_a_body_that_cannot_be_unpacked(name: str, body: bytes) -> None:
    """A body in another encoding than its header says is a bad body."""
    error = failure("openai", Answer(body=body, headers={"content-encoding": name}))
    assert isinstance(error, TransientError)
    assert error.kind == "bad_body"


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

"""Hangs, drips, broken lines and many calls at once."""

import asyncio
from typing import Any

import pytest

from evaluators.core import (
    RefusedError,
    Reply,
    TransientError,
)
from evaluators.models import connect
from evaluators.models.spec import Spec
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import (
    SECRET,
    WIRES,
    ask,
    asked,
    both,
    failure,
    spec_of,
)

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
    ids=["hang", "headers only", "drip", "drip of an error", "late"],
)
def test_the_deadline_is_for_the_whole_call(provider: str, answer: Answer) -> None:
    """A server that keeps sending a byte now and then is ended like a silent one (F11)."""
    error = failure(provider, answer, deadline=DEADLINE)
    assert isinstance(error, TransientError)
    assert error.kind == "timeout"


@both
@pytest.mark.parametrize("status", [200, 500])
def test_an_endless_body_is_cut(provider: str, status: int) -> None:
    """Reading ends at the cap, whatever the status (F11)."""
    error = failure(provider, Answer(action="endless", status=status))
    assert isinstance(error, TransientError)
    assert error.kind == "bad_body"
    assert "larger than 5,242,880 bytes" in str(error)


@both
@pytest.mark.parametrize(
    "answer",
    [
        Answer(action="reset"),
        Answer(action="raw", body="hello\r\n\r\n"),
        Answer(action="raw", body="HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}"),
        Answer(
            action="raw", body="HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 9\r\n\r\n"
        ),
    ],
    ids=["reset", "not http", "short body", "two lengths"],
)
def test_a_broken_connection(provider: str, answer: Answer) -> None:
    """A line that breaks, or that does not speak HTTP, is transient."""
    error = failure(provider, answer)
    assert isinstance(error, TransientError)
    assert error.kind == "connection"


@both
def test_a_body_in_a_broken_encoding(provider: str) -> None:
    """A body that says gzip and is not is a bad body."""
    error = failure(provider, Answer(body=b"plain", headers={"content-encoding": "gzip"}))
    assert error.kind == "bad_body"


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

"""Every status, redirect and echoed key, in both wire formats."""

import asyncio
import logging

import pytest

from evaluators.core import (
    CallError,
    FatalError,
    RefusedError,
    TransientError,
)
from evaluators.models import connect
from evaluators.models.api import open_endpoint
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import (
    SECRET,
    asked,
    both,
    error_body,
    failure,
    spec_of,
)

STATUSES = [
    (400, error_body("bad temperature"), RefusedError, "bad_request"),
    (400, error_body("x", code="context_length_exceeded"), RefusedError, "context_length"),
    (400, error_body("prompt is too long: 9 tokens > 8"), RefusedError, "context_length"),
    (400, error_body("Your credit balance is too low"), FatalError, "quota"),
    (401, error_body("Incorrect API key"), FatalError, "auth"),
    (402, error_body("pay"), FatalError, "quota"),
    (403, error_body("not for you"), FatalError, "auth"),
    (404, error_body("no such model"), FatalError, "not_found"),
    (405, "", FatalError, "not_found"),
    (407, "", FatalError, "proxy"),
    (408, "", TransientError, "timeout"),
    (409, "", TransientError, "conflict"),
    (410, "", FatalError, "not_found"),
    (413, error_body("too large"), RefusedError, "too_large"),
    (418, "", RefusedError, "bad_request"),
    (422, {"detail": "wrong field"}, RefusedError, "bad_request"),
    (425, "", TransientError, "overloaded"),
    (429, error_body("slow down"), TransientError, "rate_limit"),
    (429, error_body("Request too large: limit 10000 tokens"), RefusedError, "too_large"),
    (429, error_body("x", code="insufficient_quota"), FatalError, "quota"),
    (429, error_body("You exceeded your current quota"), FatalError, "quota"),
    (500, "<html>oops</html>", TransientError, "server"),
    (502, b"\xff\x00", TransientError, "server"),
    (503, [1], TransientError, "overloaded"),
    (504, "null", TransientError, "server"),
    (529, error_body("Overloaded"), TransientError, "overloaded"),
    (300, "", FatalError, "redirect"),
    (304, "", FatalError, "redirect"),
]


@both
@pytest.mark.parametrize(("status", "body", "sort", "kind"), STATUSES)
def test_every_status_has_its_sort(
    provider: str, status: int, body: object, sort: type[CallError], kind: str
) -> None:
    """What may pass is transient, what concerns one request is refused, the rest is fatal."""
    error = failure(provider, Answer(status=status, body=body))
    assert (type(error), error.kind) == (sort, kind)
    assert f"HTTP {status}" in str(error)


@both
def test_the_provider_s_message_is_shown_clean(provider: str) -> None:
    """Control characters go, the rest is cut at 300 characters."""
    error = failure(provider, Answer(status=400, body=error_body("no\x1b[2J\r\nway\u202e " * 99)))
    assert ": no [2J way no" in str(error)
    assert str(error).endswith("…")


@both
@pytest.mark.parametrize("echo", [SECRET, "sk-other-12345678", "Bearer abcdef0123456789"])
def test_a_key_that_the_api_echoes_is_masked(provider: str, echo: str) -> None:
    """Neither our key nor another key-shaped word is repeated from a 401 (F23)."""
    error = failure(provider, Answer(status=401, body=error_body(f"Incorrect API key: {echo}.")))
    assert echo.removeprefix("Bearer ") not in str(error)
    assert "***" in str(error)


@both
def test_logs_do_not_hold_the_key(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    """Not even every library's debug log does, with an API that echoes the key (F23)."""
    with caplog.at_level(logging.DEBUG):
        failure(provider, Answer(status=401, body=error_body(f"Incorrect API key: {SECRET}")))
    assert SECRET not in caplog.text


@both
def test_the_model_shows_no_key(provider: str) -> None:
    """Its repr, SPEC and identity are free of it, before and after a call."""
    with loopback() as server:
        model = connect(spec_of(provider, server), Key(SECRET))
        with asyncio.Runner() as runner:
            runner.run(model.complete(asked()))
            runner.run(model.close())
    shown = f"{model!r} {model} {model.spec} {model.identity} {vars(model)}"
    assert SECRET not in shown
    assert repr(model) == f"LazyModel('{provider}:model-1')"


@both
def test_an_endpoint_shows_no_key(provider: str) -> None:
    """The headers that it holds are left out where it is printed."""

    async def run() -> None:
        opened = open_endpoint(spec, Key(SECRET))
        assert opened.headers.get("x-api-key", "") + opened.headers.get("authorization", "")
        assert SECRET not in repr(opened)
        await opened.session.close()

    with loopback() as server:
        spec = spec_of(provider, server)
    asyncio.run(run())


@both
def test_without_a_key_no_call_is_made(provider: str) -> None:
    """A model that was connected for a replay refuses to call."""
    with loopback() as server:
        model = connect(spec_of(provider, server))
        with pytest.raises(FatalError, match="no API key") as caught:
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
    assert isinstance(error, FatalError)
    assert error.kind == "redirect"


@both
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({}, None),
    ],
)
def test_retry_after(provider: str, headers: dict[str, str], seconds: float | None) -> None:
    """The wait that a server announces is passed on as it is, and nothing else is."""
    error = failure(provider, Answer(status=429, headers=headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == seconds

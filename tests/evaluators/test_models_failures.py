"""Failures of calls: every status, redirects, echoed keys, announced waits, messages of errors."""

import asyncio
import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evaluators.core import FatalError
from evaluators.models import connect
from evaluators.models.api import open_endpoint
from evaluators.models.failures import MAX_RESET_S, message_of, reset_after, retry_after
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import SECRET, asked, both, error_body, failure, spec_of
from tests.support.tables import tabled


@tabled("headers", "seconds")
def test_retry_after_headers(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read; the negative and the unreadable are None."""
    assert retry_after(CIMultiDict(headers)) == seconds


def test_a_date_without_the_server_s_clock_counts_from_ours() -> None:
    """Where the server gives no Date, our own time serves."""
    wait = retry_after({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"})
    assert wait is not None
    assert 0 < wait < 4_100_000_000 - time.time()


REQUESTS, TOKENS = "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"
ANTHROPIC = "anthropic-ratelimit-requests-reset"


@tabled("headers", "seconds")
def test_headers_that_say_when_a_limit_is_free_again(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Durations and time stamps; the limit that is used up counts, and none of a whole day."""
    assert reset_after(CIMultiDict(headers)) == (
        None if seconds is None else pytest.approx(seconds)
    )


@given(st.text(max_size=30))
def test_no_header_breaks_its_reading(value: str) -> None:
    """Whatever a server writes there is a bounded pause, or none."""
    assert retry_after({"retry-after": "9" * 400}) is None
    for name in (REQUESTS, ANTHROPIC):
        seconds = reset_after({name: value})
        assert seconds is None or 0 <= seconds <= MAX_RESET_S


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
def test_every_status_has_its_sort(
    provider: str, status: int, body: object, sort: str, kind: str
) -> None:
    """What may pass is transient, what concerns one request is refused, the rest is fatal."""
    error = failure(provider, Answer(status=status, body=body))
    assert (type(error).__name__, error.kind) == (sort, kind)
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
    assert (type(error), error.kind) == (FatalError, "redirect")

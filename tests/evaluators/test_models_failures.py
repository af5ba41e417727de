"""Failures of calls: every status, redirects, echoed keys, announced waits, messages of errors."""

import asyncio
import logging
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evaluators.core import CallError, FatalError, RefusedError, TransientError
from evaluators.models import connect
from evaluators.models.api import open_endpoint
from evaluators.models.failures import MAX_RESET_S, message_of, reset_after, retry_after
from evaluators.secrets import Key
from tests.support.loopback import Answer, loopback
from tests.support.model_calls import SECRET, asked, both, error_body, failure, spec_of

DATE = "Wed, 21 Oct 2026 07:28:00 GMT"
LATER = "Wed, 21 Oct 2026 07:28:30 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": " 12 "}, 12.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "99999999999"}, 99999999999.0),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "٧"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after-ms": "-1", "retry-after": "2"}, 2.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": LATER, "date": DATE}, 30.0),
        ({"retry-after": DATE, "date": DATE}, 0.0),
        ({"retry-after": DATE, "date": LATER}, None),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"llm_provider-retry-after": "7"}, 7.0),
        ({"llm_provider-retry-after-ms": "250", "llm_provider-retry-after": "7"}, 0.25),
        ({"retry-after": "3", "llm_provider-retry-after": "7"}, 3.0),
        ({"retry-after": "soon", "llm_provider-retry-after": "7"}, 7.0),
    ],
)
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


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({REQUESTS: "1s"}, 1.0),
        ({REQUESTS: "20ms"}, 0.02),
        ({REQUESTS: "1m0s"}, 60.0),
        ({REQUESTS: "1m2.5s"}, 62.5),
        ({REQUESTS: "12"}, 12.0),
        ({REQUESTS: "0s"}, 0.0),
        ({REQUESTS: ""}, None),
        ({REQUESTS: "soon"}, None),
        ({REQUESTS: "-1s"}, None),
        ({REQUESTS: "6m0s"}, None),
        ({REQUESTS: "23h59m"}, None),
        ({REQUESTS: "1s", TOKENS: "6m0s"}, 1.0),
        ({REQUESTS: "1s", TOKENS: "40s", "x-ratelimit-remaining-tokens": "0"}, 40.0),
        ({REQUESTS: "50s", TOKENS: "2s", "x-ratelimit-remaining-requests": "9"}, 2.0),
        ({f"llm_provider-{TOKENS}": "8s"}, 8.0),
        ({ANTHROPIC: "2026-10-21T07:28:30Z", "date": DATE}, 30.0),
        ({ANTHROPIC: "2026-10-21T07:28:30", "date": DATE}, 30.0),
        ({ANTHROPIC: "2026-10-21T09:28:30.500+02:00", "date": DATE}, 30.5),
        ({ANTHROPIC: "2026-10-21T07:27:00Z", "date": DATE}, None),
    ],
)
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
    for name in (REQUESTS, ANTHROPIC):
        seconds = reset_after({name: value})
        assert seconds is None or 0 <= seconds <= MAX_RESET_S


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"error": "no"}', "no"),
        (b'{"message": "no"}', "no"),
        (b'{"detail": "no"}', "no"),
        (b'{"detail": [{"loc": 1}]}', "[{'loc': 1}]"),
        (b'{"other": 1}', '{"other": 1}'),
        (b'["no"]', "['no']"),
        (b'[{"error": {"code": 400, "message": "no"}}]', "no"),
        (b" <!doctype html><p>no", "an HTML page"),
        (b"just no", "just no"),
        (b"", ""),
    ],
)
def test_the_message_of_an_error_body(content: bytes, said: str) -> None:
    """The provider's words are found in the forms that servers use."""
    assert message_of(content)[0] == said


@given(st.binary(max_size=200))
def test_any_error_body_has_a_message(content: bytes) -> None:
    """No body, however broken, stops its own reporting; both texts are bounded."""
    said, words = message_of(content)
    assert isinstance(said, str)
    assert len(words) <= 4000


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
    assert (type(error), error.kind) == (FatalError, "redirect")

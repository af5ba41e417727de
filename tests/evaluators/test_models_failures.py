"""Retry-After in all its forms, and messages dug out of any error body."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evaluators.models.failures import MAX_RESET_S, message_of, reset_after, retry_after

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

"""Retry-After in all its forms, and messages dug out of any error body."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evaluators.models.failures import message_of, retry_after

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

"""What real servers say of their limits and their overload is obeyed, in every form it has.

The clock is virtual, and the words and headers are those of real responses: F9 and F10 of the fault
matrix. A whole run is one engine, whatever the number of workers.
"""

from collections.abc import Callable, Mapping
from email.utils import formatdate

import pytest

from evaluators.core import Limits
from evaluators.models.failures import of_error_body, of_response
from evaluators.runtime.caller import CallSettings
from tests.support.simulated import GRACE, Ended, Server, call_all
from tests.support.virtual_time import run

CALLS = 1000
RATE = 5.0
BODY = b'{"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}'

Form = Callable[[float, float], Mapping[str, str]]
"""The headers of a 429 that comes at a time and is over after some seconds."""


def moment(at: float) -> str:
    return formatdate(1_800_000_000 + at, usegmt=True)


def iso(at: float) -> str:
    return f"2026-10-21T07:{int(at // 60):02}:{at % 60:06.3f}Z"


FORMS: Mapping[str, Form] = {
    "seconds": lambda at, left: {"retry-after": f"{left:.3f}"},
    "milliseconds": lambda at, left: {"retry-after-ms": f"{1000 * left:.0f}"},
    "date": lambda at, left: {"retry-after": moment(at + left + 1), "date": moment(at)},
    "passed on": lambda at, left: {"llm_provider-retry-after": f"{left:.3f}"},
    "requests": lambda at, left: {"x-ratelimit-reset-requests": f"{1000 * left:.0f}ms"},
    "tokens": lambda at, left: {
        "x-ratelimit-reset-requests": "6m0s",
        "x-ratelimit-reset-tokens": f"{left:.3f}s",
    },
    "time stamp": lambda at, left: {
        "anthropic-ratelimit-requests-reset": iso(left),
        "date": "Wed, 21 Oct 2026 07:00:00 GMT",
    },
}
SILENT: Mapping[str, Form] = {
    "absent": lambda at, left: {},
    "nothing": lambda at, left: {"retry-after": "0"},
    "garbage": lambda at, left: {"retry-after": "soon"},
    "negative": lambda at, left: {"retry-after": "-5"},
    "of a day": lambda at, left: {"x-ratelimit-reset-requests": "8m38s"},
}


class Bucket:
    """Allows ``RATE`` calls a second, as many at once; counts who comes before the announced time.

    What was under way at the refusal has a moment's grace.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.refused = self.early = 0
        self._level, self._at = RATE, 0.0
        self._said = self._until = 0.0

    def __call__(self, at: float) -> None:
        self.early += self._said + GRACE < at < self._until - GRACE
        self._level = min(RATE, self._level + (at - self._at) * RATE)
        self._at = at
        if self._level >= 1:
            self._level -= 1
            return
        self.refused += 1
        left = (1 - self._level) / RATE
        error = of_response(429, self.form(at, left), BODY)
        self._said, self._until = at, at + (getattr(error, "retry_after", None) or 0.0)
        raise error


def asked(server: Server, count: int = CALLS, concurrency: int = 16) -> Ended:
    return run(call_all(server, count, CallSettings(concurrency=concurrency)))


@pytest.mark.parametrize("concurrency", [16, 64])
@pytest.mark.parametrize("form", [*FORMS, *SILENT])
def test_a_rate_limit_is_used_up_and_hardly_bothered(form: str, concurrency: int) -> None:
    """5 calls a second: none before its time, 3 % refused, and at most 1.25 times the ideal.

    Row F9 of the fault matrix.
    """
    limit = Bucket({**FORMS, **SILENT}[form])
    ended = asked(Server(refuse=limit), concurrency=concurrency)
    assert (ended.replies, ended.errors) == (CALLS, [])
    assert limit.early == 0
    assert limit.refused <= 0.03 * CALLS
    assert ended.seconds <= 1.25 * CALLS / RATE


@pytest.mark.parametrize("used", [0, 3, 5])
@pytest.mark.parametrize("form", [*FORMS, *SILENT])
def test_few_calls_a_minute_are_used_up(form: str, used: int) -> None:
    """Five calls in each minute, some of the first one used by others: 1.3 times the ideal."""
    calls = {0: used}

    def refuse(at: float) -> None:
        minute = int(at // 60)
        if calls.setdefault(minute, 0) == 5:
            raise of_response(429, {**FORMS, **SILENT}[form](at, 60 * (minute + 1) - at), BODY)
        calls[minute] += 1

    ended = asked(Server(refuse=refuse), 15)
    assert (ended.replies, ended.errors) == (15, [])
    assert ended.seconds <= 1.3 * (180 if used else 120)


@pytest.mark.parametrize("seconds", ["121", "3600", "86400"])
def test_an_hour_is_not_waited_for(seconds: str) -> None:
    """One request; then the host is left alone, and the reason says for how long (F9)."""

    def refuse(at: float) -> None:
        raise of_response(429, {"retry-after": seconds}, BODY)

    server = Server(refuse=refuse)
    ended = asked(server, 500)
    assert (len(server.at), ended.replies, ended.seconds) == (1, 0, 0)
    assert f"{int(seconds):,} s" in ended.sender.stops["rate_limit"]


OVERLOADS: Mapping[str, Callable[[], Exception]] = {
    "503": lambda: of_response(503, {}, b"<html>busy</html>"),
    "503 with a time": lambda: of_response(503, {"retry-after": "1"}, b""),
    "529": lambda: of_response(529, {}, b'{"error": {"type": "overloaded_error"}}'),
    "200": lambda: of_error_body({"error": {"message": "Overloaded"}}, {}),
    "500": lambda: of_response(500, {}, b'{"error": {"message": "Connection error."}}'),
    "502": lambda: of_response(502, {}, b"<html>Bad Gateway</html>"),
}


@pytest.mark.parametrize("form", OVERLOADS)
def test_five_minutes_of_overload_are_waited_out(form: str) -> None:
    """One probe at a time, 60 requests in five minutes, and every item is answered (F10)."""
    refused = 0

    def refuse(at: float) -> None:
        nonlocal refused
        if 2 <= at < 302:
            refused += 1
            raise OVERLOADS[form]()

    server = Server(refuse=refuse, limits=Limits(host="host"))
    ended = asked(server)
    assert (ended.replies, ended.errors) == (CALLS, [])
    assert refused <= 60
    assert ended.seconds <= 300 + CALLS * 0.2 / 16 + 15

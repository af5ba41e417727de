"""After an outage, and at any limit that a server states, a run is soon at its former pace."""

from collections import Counter
from collections.abc import Callable, Mapping
from email.utils import formatdate
from itertools import cycle, pairwise

import pytest

from qagate.evaluators.core import CallError, Limits, Reply, Request, TransientError
from qagate.evaluators.models.failures import of_error_body, of_response
from tests.support.simulated import Server, asked, now

pytestmark = pytest.mark.untraced

LATENCY = 0.2
BEGIN = 5.0  # seconds of a run before its server goes down
KINDS = ("rate_limit", "overloaded", "unreachable", "server", "connection")


def down(
    kind: str, *times: tuple[float, float], after: float | None = None
) -> Callable[..., None]:
    def refuse(at: float) -> None:
        if any(begin <= at < end for begin, end in times):
            raise TransientError(kind, "no", after)

    return refuse


def back_at(server: Server, pace: float, since: float) -> float:
    """Return the first half of a second after ``since`` with nine tenths of the former pace."""
    halves = Counter(int(2 * at) for at in server.ended)
    return next(
        one / 2 for one in range(int(2 * since), 10**6) if halves[one] >= 0.45 * pace
    )


@pytest.mark.parametrize(
    ("seconds", "concurrency"),
    [(5.0, 64), (12.0, 16), (20.0, 64), (45.0, 16), (120.0, 16)],
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_soon_at_its_former_pace(
    kind: str, seconds: float, concurrency: int
) -> None:
    """For any kind of outage: no item is lost, few calls are wasted, the pace is back (R1)."""
    server = Server(refuse=down(kind, (BEGIN, BEGIN + seconds)), latency=LATENCY)
    ended = asked(server, 100 * concurrency, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (100 * concurrency, [])
    back = back_at(server, concurrency / LATENCY, BEGIN + seconds)
    assert back - BEGIN <= 1.25 * seconds + 5
    assert len(server.at) - ended.replies <= 0.03 * 100 * concurrency
    assert (
        max(b - a for a, b in pairwise([at for at in server.at if BEGIN < at <= back]))
        <= 10
    )


@pytest.mark.parametrize("kind", KINDS)
def test_slow_replies_are_soon_as_many_as_before(kind: str) -> None:
    """Where a reply takes two seconds the calls in flight are soon as many as before."""
    server = Server(refuse=down(kind, (20, 50)), latency=2.0)
    ended = asked(server, 2000, concurrency=64)
    assert (ended.replies, ended.errors) == (2000, [])
    twice = [at for at in server.ended if at >= 50]  # replies of two rounds
    back = next(
        at for at, later in zip(twice, twice[110:], strict=False) if later <= at + 4
    )
    assert back - 2 - 20 <= 1.25 * 30 + 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_outage_is_overcome_like_the_first(kind: str) -> None:
    """What was learnt from one outage does not slow a run down after the next."""
    server = Server(refuse=down(kind, (5, 17), (40, 52)), latency=LATENCY)
    ended = asked(server, 4000)
    assert (ended.replies, ended.errors) == (4000, [])
    assert back_at(server, 80, 52) - 40 <= 1.25 * 12 + 5


@pytest.mark.parametrize(
    ("kind", "seconds", "after"),
    [("rate_limit", 12.0, 2.0), ("overloaded", 20.0, None), ("server", 20.0, None)],
)
def test_a_server_down_at_first_is_soon_used(
    kind: str, seconds: float, after: float | None
) -> None:
    """Sixty calls to a server that refuses the first ones take no longer than the outage may."""
    server = Server(refuse=down(kind, (0, seconds), after=after), latency=0.05)
    ended = asked(server, 60)
    assert (ended.replies, ended.errors) == (60, [])
    assert ended.seconds <= 1.25 * seconds + 5


class Poisoned(Server):
    def __init__(self, kind: str, every: int) -> None:
        super().__init__()
        self.kind = kind
        self.every = every

    async def complete(self, request: Request) -> Reply:
        if int(request.messages[-1].content) % self.every == 0:
            self.at.append(now())
            raise TransientError(self.kind, "no")
        return await super().complete(request)


@pytest.mark.parametrize("kind", ["server", "connection"])
@pytest.mark.parametrize(("count", "every"), [(500, 20), (200, 199)])
def test_failures_of_single_requests_are_no_outage(
    kind: str, count: int, every: int
) -> None:
    """What fails where others succeed has five tries and is an ERROR; nobody waits for it."""
    bad = (count - 1) // every + 1
    server = Poisoned(kind, every)
    ended = asked(server, count)
    assert ended.replies == count - bad
    assert [one.kind for one in ended.errors if isinstance(one, CallError)] == [
        kind
    ] * bad
    assert len(server.at) == ended.replies + bad * 5
    assert ended.seconds <= count * LATENCY / 16 + 30


@pytest.mark.parametrize("kind", KINDS)
def test_one_call_at_a_time_waits_too(kind: str) -> None:
    """A model that is asked one call after the other loses no item to an outage."""
    limits = Limits(host="host", concurrency=1)
    ended = asked(
        Server(refuse=down(kind, (5, 65)), latency=LATENCY, limits=limits), 100
    )
    assert (ended.replies, ended.errors) == (100, [])


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "connection"])
def test_an_outage_without_end_ends_with_the_items_deadline(kind: str) -> None:
    """From the first call to the last retry; the reason says what the server does to all calls."""
    limits = Limits(host="host", item_deadline=60)
    server = Server(refuse=down(kind, (BEGIN, 1e9)), limits=limits)
    ended = asked(server, 600)
    assert ended.replies + len(ended.errors) + ended.stopped == 600
    assert ended.seconds <= BEGIN + 60 + 10
    assert len(server.at) - ended.replies <= 60
    (reason,) = ended.sender.stops.values()
    assert "host has given no reply for" in reason


def test_a_rate_limit_without_end_is_named_where_the_run_s_time_ends() -> None:
    """MISSING items say that the server refused all calls, not only that the time is up."""
    ended = asked(Server(refuse=down("rate_limit", (0, 1e9))), 20, deadline=60.0)
    assert ended.stopped == 20
    assert "host refusing calls (HTTP 429) for" in ended.sender.stops["deadline"]
    assert all("HTTP 429" in str(one) for one in ended.results)


CALLS = 1000
RATE = 5.0
BODY = b'{"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}'

Form = Callable[[float, float], Mapping[str, str]]
"""The headers of a 429 that comes at a time and is over after some seconds."""


def moment(at: float) -> str:
    return formatdate(1_800_000_000 + at, usegmt=True)


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
        "anthropic-ratelimit-requests-reset": (
            f"2026-10-21T07:{left // 60:02.0f}:{left % 60:06.3f}Z"
        ),
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


GRACE = (
    0.05  # seconds after an announcement in which what was under way may still arrive
)


class Bucket:
    """Allows ``RATE`` calls a second, as many at once; counts those before the announced time."""

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


@pytest.mark.parametrize(
    ("form", "concurrency"),
    list(zip([*FORMS, *SILENT], cycle((16, 64, 64)), strict=False)),
)
def test_a_rate_limit_is_used_up_and_hardly_bothered(
    form: str, concurrency: int
) -> None:
    """5 calls a second: none before its time, 3 % refused, at most 1.25 times the ideal (F9)."""
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
            raise of_response(
                429, {**FORMS, **SILENT}[form](at, 60 * (minute + 1) - at), BODY
            )
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

    ended = asked(Server(refuse=refuse, limits=Limits(host="host")))
    assert (ended.replies, ended.errors) == (CALLS, [])
    assert refused <= 60
    assert ended.seconds <= 300 + CALLS * 0.2 / 16 + 15

"""After an outage a run is soon at its former pace, whatever the outage looked like.

The clock is virtual. An outage of D seconds may cost 1.25 x D + 5 seconds; no probe is later than
ten seconds, or what the server asks for; 3 % of the calls of a run are wasted at most.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from evaluators.core import CallError, Limits, Reply, Request, TransientError
from evaluators.runtime.caller import CallSettings
from tests.support.simulated import Ended, Server, call_all, now
from tests.support.virtual_time import run

pytestmark = pytest.mark.untraced

LATENCY = 0.2
BEGIN = 5.0  # seconds of a run before its server goes down
KINDS = ("rate_limit", "overloaded", "unreachable", "server", "connection")


def asked(server: Server, count: int, **bounds: Any) -> Ended:
    return run(call_all(server, count, CallSettings(**bounds)))


def down(kind: str, *times: tuple[float, float], after: float | None = None) -> Callable[..., None]:
    """Refuse every call between these times, in this way."""

    def refuse(at: float) -> None:
        if any(begin <= at < end for begin, end in times):
            raise TransientError(kind, "no", after)

    return refuse


def back_at(server: Server, pace: float, since: float) -> float:
    """Return the first half of a second after ``since`` with nine tenths of the former pace."""
    halves = Counter(int(2 * at) for at in server.ended)
    return next(one / 2 for one in range(int(2 * since), 10**6) if halves[one] >= 0.45 * pace)


@pytest.mark.parametrize("concurrency", [16, 64])
@pytest.mark.parametrize("seconds", [5.0, 12.0, 20.0, 45.0, 120.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_soon_at_its_former_pace(kind: str, seconds: float, concurrency: int) -> None:
    """Whatever kind of outage: no item is lost, few calls are wasted, the pace is back (R1)."""
    server = Server(refuse=down(kind, (BEGIN, BEGIN + seconds)), latency=LATENCY)
    ended = asked(server, 100 * concurrency, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (100 * concurrency, [])
    back = back_at(server, concurrency / LATENCY, BEGIN + seconds)
    assert back - BEGIN <= 1.25 * seconds + 5
    assert len(server.at) - ended.replies <= 0.03 * 100 * concurrency
    probes = [at for at in server.at if BEGIN < at <= back]
    assert max(b - a for a, b in pairwise(probes)) <= 10


@pytest.mark.parametrize("seconds", [5.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_slow_replies_are_soon_as_many_as_before(kind: str, seconds: float) -> None:
    """Where a reply takes two seconds the calls in flight are soon as many as before."""
    server = Server(refuse=down(kind, (20, 20 + seconds)), latency=2.0)
    ended = asked(server, 2000, concurrency=64)
    assert (ended.replies, ended.errors) == (2000, [])
    twice = [at for at in server.ended if at >= 20 + seconds]  # replies of two rounds
    back = next(at for at, later in zip(twice, twice[110:], strict=False) if later <= at + 4)
    assert back - 2 - 20 <= 1.25 * seconds + 5


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
def test_a_server_that_is_down_at_first_is_soon_used(
    kind: str, seconds: float, after: float | None
) -> None:
    """Sixty calls to a server that refuses the first ones take no longer than the outage may."""
    server = Server(refuse=down(kind, (0, seconds), after=after), latency=0.05)
    ended = asked(server, 60)
    assert (ended.replies, ended.errors) == (60, [])
    assert ended.seconds <= 1.25 * seconds + 5


class Poisoned(Server):
    """A server on which some requests always fail; the others are answered."""

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
def test_failures_of_single_requests_are_no_outage(kind: str, count: int, every: int) -> None:
    """What fails where others succeed has five tries and is an ERROR; nobody else waits for it.

    So it is with the last item of a run, while nobody else asks.
    """
    bad = (count - 1) // every + 1
    server = Poisoned(kind, every)
    ended = asked(server, count)
    assert ended.replies == count - bad
    assert [one.kind for one in ended.errors if isinstance(one, CallError)] == [kind] * bad
    assert len(server.at) == ended.replies + bad * 5
    assert ended.seconds <= count * LATENCY / 16 + 30


@pytest.mark.parametrize("kind", KINDS)
def test_one_call_at_a_time_waits_too(kind: str) -> None:
    """A model that is asked one call after the other loses no item to an outage."""
    limits = Limits(host="host", concurrency=1)
    server = Server(refuse=down(kind, (5, 65)), latency=LATENCY, limits=limits)
    ended = asked(server, 100)
    assert (ended.replies, ended.errors) == (100, [])
    ended = asked(Server(refuse=down(kind, (5, 65)), latency=LATENCY), 100, concurrency=1)
    assert (ended.replies, ended.errors) == (100, [])


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "connection"])
def test_an_outage_without_end_ends_with_the_items_deadline(kind: str) -> None:
    """From the first call to the last retry; the reason says what the server does to all calls."""
    limits = Limits(host="host", item_deadline=60)
    server = Server(refuse=down(kind, (BEGIN, 1e9)), limits=limits)
    ended = asked(server, 1000)
    assert ended.replies + len(ended.errors) + ended.stopped == 1000
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

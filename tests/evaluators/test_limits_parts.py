"""The parts of the limits, each told the time by hand: bucket, window, pace, circuit, host."""

import asyncio

import pytest

from evaluators.core import Reply, TransientError
from evaluators.runtime.limits import TokenLimit
from evaluators.runtime.server import (
    FIRST_RATE,
    PAUSE_SPREAD,
    CongestionWindow,
    Pace,
    ServerState,
    TokenBucket,
)
from tests.support.scripted import ask_for


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_a_pause_is_lengthened_and_never_shortened(draw: float) -> None:
    """0 to 20 % are added to what was announced, as drawn."""
    host = ServerState("host", 16, lambda: draw, give_up_after=900)
    host.start(0)
    host.end(TransientError("rate_limit", "later", 10.0), 0, 1, None)
    assert host.wait(1) == pytest.approx(10 * (1 + PAUSE_SPREAD * draw))


def test_an_estimate_learns_from_replies() -> None:
    """First characters and the longest reply, then what replies took; a server may not count."""
    tokens = TokenLimit(TokenBucket.per_minute(6000, 2.0, 0.0), 500)
    request = ask_for("x" * 400)
    assert tokens.estimate(request) == 400 / 4 + 500
    tokens.correct(600, request, Reply(text="uncounted"))
    assert tokens.estimate(request) == 600
    tokens.correct(600, request, Reply(input_tokens=200, output_tokens=20))
    assert tokens.estimate(request) == 220
    short = ask_for("x" * 400)
    limited = type(short)(messages=short.messages, parameters={"max_tokens": 10})
    assert tokens.estimate(limited) == 210
    assert TokenLimit(TokenBucket.per_minute(6000, 2.0, 0.0), None).estimate(limited) == 110


def test_a_bucket_takes_more_than_it_holds_only_when_full() -> None:
    """What exceeds the burst goes when the bucket is full, and is paid off before the next."""
    bucket = TokenBucket(rate=10, burst=20, now=0)
    assert bucket.wait(0, 50) == 0
    bucket.take(0, 50)
    assert bucket.wait(0, 5) == pytest.approx(3.5)
    bucket.give_back(30)
    assert bucket.wait(0, 5) == pytest.approx(0.5)
    bucket.give_back(1000)
    assert bucket.wait(0, 20) == 0
    assert TokenBucket.per_minute(6, 0.05, 0).wait(0) == 0


def test_a_late_refusal_is_no_news() -> None:
    """Calls that were under way at a refusal do not slow the pace again, each by its own."""
    pace = Pace()
    for at in range(100):
        pace.take(at / 10)
        pace.grant(at / 10)
    assert pace.refuse(started=10, now=10, resume=11)
    rate = pace.rate
    assert not pace.refuse(started=9.9, now=10.1, resume=12)
    assert pace.rate == rate == pytest.approx(100 / 11)


def test_the_window_follows_what_a_server_bears() -> None:
    """Congestion narrows it once, success widens it again, and never above the user's number."""
    window = CongestionWindow(64)
    assert window.size == 16
    for _ in range(500):
        window.in_flight = window.size
        window.widen()
    assert window.size == 64
    window.cut(0.5, started=1.0, now=2.0)
    window.cut(0.5, started=1.5, now=2.1)
    assert window.size == 32
    for _ in range(2000):
        window.in_flight = window.size
        window.widen()
    assert window.size == 64
    window.in_flight = 1
    window.cut(0.5, started=3.0, now=4.0)
    window.widen()
    assert window.size == 32


def server(draw: float = 0.0) -> ServerState:
    """Return a server that has answered one call."""
    one = ServerState("host", 16, lambda: draw, give_up_after=900)
    one.start(-1)
    one.end(None, -1, -1, None)
    return one


def fail(one: ServerState, started: float, now: float, failed_at: float | None = None) -> None:
    """Let a call end with an overload."""
    one.end(TransientError("overloaded", "busy"), started, now, failed_at)


def test_an_open_circuit_lets_one_probe_through() -> None:
    """Open after five failures; one call at a time; closed by a success of its own time only."""
    one = server(draw=1.0)
    for at in range(5):
        assert one.wait(at) == 0
        one.start(at)
        fail(one, at, at)
    assert one.is_probing
    fail(one, 3, 4.5)  # it was in flight: no news
    one.end(None, 3.5, 4.5, None)
    assert one.wait(4) == pytest.approx(1.2)
    one.start(6)
    assert one.wait(99) == float("inf")
    fail(one, 6, 7)
    assert one.wait(7) == pytest.approx(1.2 * (1.25 + 3 / 4))
    one.start(10)
    one.end(asyncio.CancelledError(), 9, 11, None)
    assert one.wait(11) == float("inf")
    one.end(asyncio.CancelledError(), 10, 11, None)
    assert one.wait(11) == 1.25 + 7 / 4
    one.start(14)
    one.end(None, 14, 14, None)
    assert not one.is_probing


def test_one_call_s_failures_open_no_circuit() -> None:
    """What fails again and again may be to blame itself; three calls in a row are not."""
    one = server()
    for at in range(20):
        one.start(at)
        error = TransientError("server", "no")
        one.end(error, at, at, None if at < 2 else 0)
    assert not one.is_probing
    one.start(20)
    one.end(TransientError("server", "no"), 20, 20, None)
    assert one.is_probing


def test_a_host_says_what_it_waits_for() -> None:
    """The words are for people: paused, overloaded, slowed down, or nothing."""
    host = ServerState("api.example", 16, lambda: 0.0, give_up_after=900)
    assert host.describe(0) == ""
    host.start(0)
    host.end(TransientError("rate_limit", "later", 12.0), 0, 0, None)
    assert host.describe(0) == "api.example paused 12 s"
    assert host.describe(20) == f"api.example at {FIRST_RATE:.1f} calls/s"
    for at in range(20, 30):
        host.start(at)
        host.end(TransientError("overloaded", "busy"), at, at, None)
    assert host.describe(40) == "api.example overloaded for 40 s, probing"

"""Rate limits, kept by all calls and learnt from refusals; and the parts of the limits one by one.

The clock is virtual; servers count what reaches them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from evaluators.core import CallError, Limits, RefusedError, Reply, TransientError
from evaluators.runtime.caller import CallSettings, ItemClock, Sender
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
from tests.support.simulated import Metered, Server, asked, now
from tests.support.virtual_time import run


def test_a_pause_holds_for_every_model_of_the_host() -> None:
    """One model's 429 keeps the other models of its server waiting too; other servers go on."""
    limits = {"slow": "one", "same": "one", "other": "two"}
    refusals = [TransientError("rate_limit", "later", 30.0)]

    def refuse(at: float) -> None:
        if refusals:
            raise refusals.pop()

    servers = {name: Server(spec=name, limits=Limits(host=host)) for name, host in limits.items()}
    servers["slow"].refuse = refuse

    async def scenario() -> None:
        sender = Sender(CallSettings(random=lambda: 1.0))
        first = asyncio.create_task(sender.send(servers["slow"], ask_for("q"), ItemClock()))
        await asyncio.sleep(1)
        assert sender.admission.describe(now()) == "one paused 35 s"
        both = (sender.send(servers[name], ask_for("q"), ItemClock()) for name in ("same", "other"))
        await asyncio.gather(first, *both)

    run(scenario())
    assert servers["slow"].at[1] >= 30
    assert servers["same"].at[0] >= 30
    assert servers["other"].at[0] == 1


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("concurrency", [16, 64])
def test_a_window_of_a_minute_is_used_up(concurrency: int, retry_after: float | None) -> None:
    """300 calls in each minute, however wrong the announced pause: 5 minutes' worth takes five."""
    used: Counter[int] = Counter()

    def refuse(at: float) -> None:
        minute = int(at // 60)
        if used[minute] == 300:
            raise TransientError("rate_limit", "too many this minute", retry_after)
        used[minute] += 1

    server = Server(refuse=refuse)
    ended = asked(server, 1500, concurrency=concurrency)
    assert ended.replies == 1500
    assert ended.seconds <= 1.25 * 240
    assert len(server.at) <= 1.06 * 1500


@pytest.mark.parametrize("retry_after", [None, 1.0])
def test_refusals_that_are_over_soon_do_not_slow_the_rest(retry_after: float | None) -> None:
    """Half a minute of nothing but 429 costs little more than that half minute."""

    def refuse(at: float) -> None:
        if 5 <= at < 35:
            raise TransientError("rate_limit", "not now", retry_after)

    ended = asked(Server(refuse=refuse), 4000, concurrency=64)
    assert ended.replies == 4000
    assert ended.seconds <= 60


def at_random(share: float, retry_after: float | None, seed: int = 1) -> Callable[[float], None]:
    """Refuse this share of all calls, whatever their pace."""
    draws = Random(seed)

    def refuse(at: float) -> None:
        if draws.random() < share:
            raise TransientError("rate_limit", "not this one", retry_after)

    return refuse


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("concurrency", [16, 64])
@pytest.mark.parametrize("share", [0.005, 0.02, 0.05])
def test_single_refusals_of_any_pace_do_not_slow_a_run(
    share: float, concurrency: int, seed: int
) -> None:
    """4,000 calls of which up to 5 % are refused at random take at most half as long again."""
    ended = asked(Server(refuse=at_random(share, None, seed)), 4000, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (4000, [])
    assert ended.seconds <= 1.5 * 4000 * 0.2 / concurrency


@pytest.mark.parametrize(("share", "longest"), [(0.005, 100), (0.02, 300)])
def test_an_announced_pause_is_kept_and_no_more(share: float, longest: float) -> None:
    """Where a refusal names a second's pause every one costs that, and the pace stays."""
    ended = asked(Server(refuse=at_random(share, 1.0)), 4000)
    assert (ended.replies, ended.errors) == (4000, [])
    assert ended.seconds <= longest


@pytest.mark.parametrize("concurrency", [16, 64])
@pytest.mark.parametrize(("rate", "burst"), [(5, 1), (5, 5), (20, 1), (20, 20), (40, 40)])
def test_a_limit_without_a_word_is_found(rate: int, burst: int, concurrency: int) -> None:
    """What says neither rate nor pause is used up within 1.3 times what it allows."""
    limit = Metered(rate=rate, burst=burst, retry_after=None)
    ended = asked(Server(refuse=limit), 200 * rate, concurrency=concurrency)
    assert (ended.replies, ended.errors) == (200 * rate, [])
    assert ended.seconds <= 1.3 * 200


def test_a_limit_is_found_among_single_refusals() -> None:
    """Both together: the limit's pace is not lost to refusals that have nothing to do with it."""
    limit, single = Metered(rate=5, burst=5, retry_after=None), at_random(0.05, None)

    def refuse(at: float) -> None:
        single(at)
        limit(at)

    ended = asked(Server(refuse=refuse), 500)
    assert (ended.replies, ended.errors) == (500, [])
    assert ended.seconds <= 2 * 100


def test_a_pace_recovers() -> None:
    """When a server allows more than before, the calls become faster again by themselves."""
    limit = Metered(rate=2, burst=1)

    def refuse(at: float) -> None:
        if at > 60:
            limit.rate = 40
        limit(at)

    server = Server(refuse=refuse)
    ended = asked(server, 2000)
    assert ended.replies == 2000
    last = [at for at in server.ended if at > ended.seconds - 20]
    assert len(last) / 20 > 10


@pytest.mark.parametrize(
    ("limits", "bounds"), [(Limits(rpm=120), {}), (Limits(), {"rpm": 120})], ids=["model", "run"]
)
def test_requests_a_minute(limits: Limits, bounds: dict[str, int]) -> None:
    """No minute sees more than its number, no start is a burst, and the rate is used up."""
    server = Server(limits=limits, refuse=Metered(rate=2.0001, burst=1))
    ended = asked(server, 500, **bounds)
    assert (ended.replies, dict(ended.sender.retried)) == (500, {})
    assert max(sum(one <= at < one + 60 for at in server.at) for one in server.at) <= 121
    assert ended.seconds <= 1.02 * 500 / 2


def test_a_run_s_limit_is_shared_by_its_models() -> None:
    """The requests a minute of a run are those of all its models together."""
    servers = [Server(spec=name, limits=Limits(host=name)) for name in "ab"]

    async def both() -> None:
        sender = Sender(CallSettings(rpm=60, random=lambda: 0.0))
        asks = (sender.send(server, ask_for("q"), ItemClock()) for server in servers * 30)
        await asyncio.gather(*asks)

    run(both())
    assert max(at for server in servers for at in server.at) == pytest.approx(59, abs=1)


def test_tokens_a_minute() -> None:
    """What replies report corrects the estimate: over a minute the tokens keep to their number."""
    reply = Reply(text="ok", input_tokens=900, output_tokens=100)
    server = Server(limits=Limits(tpm=60_000, max_tokens=50), reply=reply)
    ended = asked(server, 200)
    assert ended.replies == 200
    assert max(sum(one <= at < one + 60 for at in server.at) for one in server.at) <= 66
    assert ended.seconds <= 1.1 * 200


def test_one_request_too_large_for_the_minute_is_that_item_s_error() -> None:
    """A request that a server refuses for its size is not repeated, and holds nobody up."""

    class Picky(Server):
        async def complete(self, request: object) -> Reply:
            if "7" in str(request):
                raise RefusedError("too_large", "more tokens than a minute has")
            return await super().complete(request)  # type: ignore[arg-type]

    ended = asked(Picky(), 10)
    assert (
        ended.replies,
        [error.kind for error in ended.errors if isinstance(error, CallError)],
    ) == (9, ["too_large"])


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

"""Rate limits: what a server announces is kept by all calls, and its rate is learnt from refusals.

The clock is virtual; servers count what reaches them.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest

from evaluators.core import CallError, Limits, RefusedError, Reply, TransientError
from evaluators.runtime.caller import CallSettings, ItemClock, Sender
from tests.support.scripted import ask_for
from tests.support.simulated import Metered, Server, asked, now
from tests.support.virtual_time import run

CALLS = 1000


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

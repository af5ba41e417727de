"""Limits that runs share: together they keep to them as one run would, whoever comes, goes or dies.

The clock is virtual, and so is the database.
"""

import asyncio
from typing import Any

import pytest

from evaluators.core import Limits, Reply, TransientError
from evaluators.models.spec import Prices, Spec
from evaluators.runtime.budget import Budget
from evaluators.runtime.prices import Pricing, Step
from evaluators.runtime.quota import Quota
from evaluators.runtime.sender import CallSettings
from tests.support.quotas import Run, Shared, begin, most_within
from tests.support.simulated import Down, Ended, Server, now
from tests.support.virtual_time import run


def settings(**bounds: Any) -> CallSettings:
    return CallSettings(**{"concurrency": 64, **bounds})


async def ends(*runs: Run) -> list[Ended]:
    return list(await asyncio.gather(*(one.work for one in runs)))


@pytest.mark.parametrize("runs", [1, 4, 13])
def test_runs_keep_to_one_rate_and_use_it_up(runs: int) -> None:
    """No second has more than 5 % above 50 calls; all of it takes 1.1 times the ideal at most.

    But for the first one: a run has its first call in hand until that has ended.
    """
    server, shared = Server(), Shared()

    async def scenario() -> None:
        await ends(*(begin(shared, server, 780 // runs, settings(rpm=3000)) for _ in range(runs)))
        assert now() <= 1.1 * len(server.at) / 50
        assert shared.reports <= 2.5 * now() * runs

    run(scenario())
    assert len(server.at) == 780 // runs * runs
    assert most_within(1.0, [at for at in server.at if at >= 1]) <= 52
    assert most_within(1.0, server.at) <= 50 + runs


def test_a_few_calls_a_minute_are_shared_fairly() -> None:
    """Of a rate below a call a second each run gets its part, and no minute has more."""
    server, shared = Server(), Shared()

    async def scenario() -> list[float]:
        begun = [begin(shared, server, 5, settings(rpm=6)) for _ in range(4)]
        return [one.seconds for one in await ends(*begun)]

    seconds = run(scenario())
    assert most_within(60.0, server.at) <= 6
    assert min(seconds) >= 0.75 * max(seconds)
    assert max(seconds) <= 1.1 * 200 + 10


def test_what_one_run_does_not_want_the_others_get() -> None:
    """A run that is held back by its own model leaves the rest of the rate to another."""
    few = Server(spec="openai:few", latency=1.0, limits=Limits(host="few", concurrency=5))
    many, shared = Server(), Shared()

    async def scenario() -> None:
        begin(shared, few, 10_000, settings(rpm=3000))
        await ends(begin(shared, many, 2000, settings(rpm=3000)))
        assert now() <= 1.1 * 2000 / (50 - 5)

    run(scenario())


def test_calls_in_flight_are_those_of_all_runs() -> None:
    """Runs that come and go share the room for calls evenly, and never pass it together."""
    server, shared = Server(), Shared()

    async def scenario() -> list[Ended]:
        first = begin(shared, server, 600, settings(concurrency=12))
        await asyncio.sleep(1.2)
        others = [begin(shared, server, 600, settings(concurrency=12)) for _ in range(2)]
        ended = await ends(first, *others)
        assert now() <= 1.1 * 1800 * 0.2 / 12
        return ended

    ended = run(scenario())
    assert server.most == 12
    assert [one.replies for one in ended] == [600] * 3
    assert ended[1].seconds == pytest.approx(ended[2].seconds, rel=0.1)


def test_tokens_a_minute_are_those_of_all_runs() -> None:
    """Runs keep to a model's limit in tokens together, and use it up."""
    reply = Reply(text="ok", input_tokens=400, output_tokens=100)
    server = Server(limits=Limits(host="host", tpm=60_000, max_tokens=200), reply=reply)
    shared = Shared()

    async def scenario() -> None:
        await ends(*(begin(shared, server, 100, settings()) for _ in range(4)))
        assert now() <= 1.15 * 400 * 500 / 1000

    run(scenario())
    assert most_within(60.0, server.at) * 500 <= 1.1 * 60_000


def test_what_a_dead_run_had_is_used_within_seconds() -> None:
    """After two of four runs are killed the others have the whole rate and all calls again."""
    server, shared = Server(latency=1.0), Shared()
    bounds = settings(rpm=3000, concurrency=40)

    async def scenario() -> None:
        runs = [begin(shared, server, 100_000, bounds) for _ in range(4)]
        await asyncio.sleep(10)
        for one in runs[:2]:
            one.kill()
        await asyncio.sleep(4)
        before, since = len(server.at), now()
        await asyncio.sleep(10)
        assert len(server.at) - before >= 0.9 * 40 * (now() - since)
        assert len(shared.state.runs) == 2
        for one in runs[2:]:
            one.work.cancel()

    run(scenario())
    assert server.most == 40
    assert most_within(1.0, server.at) <= 52


def test_a_run_that_gets_no_answer_stops() -> None:
    """Without the database no limit could be kept: what is left is MISSING, in one line why."""
    server, shared = Server(), Shared()

    async def scenario() -> Ended:
        one = begin(shared, server, 10_000, settings(rpm=3000))
        await asyncio.sleep(5)
        shared.down = True
        return (await ends(one))[0]

    ended = run(scenario())
    assert ended.stopped + ended.replies == 10_000
    assert ended.seconds <= 7
    why = "--quota q: the database cannot be asked: connection refused; no more calls are made, "
    assert ended.sender.stops == {"quota": why + "what is done is kept"}


def test_a_run_whose_report_hangs_waits_from_the_end_of_its_lease() -> None:
    """Three seconds after its last answer it sends nothing more: others have its part by then."""
    server, shared = Server(), Shared()

    async def scenario() -> None:
        one = begin(shared, server, 10_000, settings())
        await asyncio.sleep(5)
        shared.dead.add(one.quota.run)
        await asyncio.sleep(20)
        one.work.cancel()

    run(scenario())
    assert 5 <= max(server.at) <= 8.1


def test_a_server_s_pause_holds_for_all_runs() -> None:
    """What one run is told the others keep to as soon as they report: within half a second."""
    server, shared = Server(), Shared()
    refusals: list[float] = []

    def refuse(at: float) -> None:
        if at >= 5 and not refusals:
            refusals.append(at)
            kind = "rate_limit"
            raise TransientError(kind, "later", 20.0)

    server.refuse = refuse

    async def scenario() -> None:
        await ends(*(begin(shared, server, 250, settings(rpm=3000)) for _ in range(4)))

    run(scenario())
    later = [at for at in server.at if refusals[0] + 1.1 < at < refusals[0] + 20]
    assert later == []
    assert len(server.at) == 1001


def test_a_server_that_fails_is_probed_by_one_run_at_a_time() -> None:
    """Eight runs find an outage out together; then it sees as many probes as from one run."""
    down = Down(begin=3.0, end=123.0)
    server, shared = Server(refuse=down), Shared()

    async def scenario() -> list[Ended]:
        begun = [begin(shared, server, 200, settings(concurrency=8)) for _ in range(8)]
        await asyncio.sleep(3)
        late = down.refused
        await asyncio.sleep(10)
        first = down.refused - late
        ended = await ends(*begun)
        assert down.refused - first <= 40
        assert now() <= 123 + 20 + 1600 * 0.2 / 8
        return ended

    ended = run(scenario())
    assert [one.replies for one in ended] == [200] * 8


def test_an_outage_outlives_the_run_that_probes() -> None:
    """Where the probing run is killed another one probes, and all goes on when it is over."""
    down = Down(begin=3.0, end=63.0)
    server, shared = Server(refuse=down), Shared()

    async def scenario() -> list[Ended]:
        begun = [begin(shared, server, 200, settings(concurrency=8)) for _ in range(3)]
        await asyncio.sleep(20)
        prober = shared.state.servers["host"].prober
        (killed,) = (one for one in begun if one.quota.run == prober)
        killed.kill()
        return await ends(*(one for one in begun if one is not killed))

    assert [one.replies for one in run(scenario())] == [200] * 2


def priced(limit: float) -> Budget:
    """A budget over the simulated model: 0.10 USD set aside a call, 0.01 paid for it."""
    spec = Spec(
        text="openai:simulated",
        provider="openai",
        name="s",
        base_url="https://a.example/v1",
        api_key_env="K",
        parameters={"max_tokens": 100},
    )
    steps = (Step(above=0, prices=Prices(input=0.0, output=1000.0)),)
    return Budget(limit, {"openai:simulated": (spec, Pricing(steps=steps, source="t"))})


PAID = Reply(text="ok", input_tokens=1, output_tokens=10)


@pytest.mark.parametrize("runs", [1, 3])
def test_no_limit_of_money_is_passed_by_all_runs_together(runs: int) -> None:
    """20 USD are spent but for less than a call's most, by whomever; the rest is MISSING."""
    server, shared = Server(reply=PAID), Shared()

    async def scenario() -> list[Ended]:
        bounds = settings(concurrency=16)
        return await ends(*(begin(shared, server, 3000, bounds, priced(20.0)) for _ in range(runs)))

    ended = run(scenario())
    assert 20.0 - 0.1 - 1e-6 <= len(server.at) * 0.01 <= 20.0
    assert all("budget" in one.sender.stops for one in ended)
    assert sum(one.stopped for one in ended) + len(server.at) == 3000 * runs
    assert "of --max-cost $20.00 spent" in ended[0].sender.stops["budget"]


def test_what_runs_have_spent_stays_spent() -> None:
    """A later run goes on from the sum of those before; a dead one's lease counts as spent."""
    server, shared = Server(reply=PAID), Shared()
    bounds = settings(concurrency=8)

    async def scenario() -> float:
        await ends(begin(shared, server, 500, bounds, priced(20.0)))
        assert shared.state.spent == pytest.approx(5.0)
        killed = begin(shared, server, 10_000, bounds, priced(20.0))
        await asyncio.sleep(6)
        killed.kill()
        paid = len(server.at) * 0.01
        await asyncio.sleep(10)
        (last,) = await ends(begin(shared, server, 10_000, bounds, priced(20.0)))
        assert "budget" in last.sender.stops
        (dead,) = shared.state.dead.values()
        assert paid - 5.0 <= dead <= paid - 5.0 + 2 * 16 * 0.1
        return len(server.at) * 0.01

    assert 20.0 - 2 * 16 * 0.1 - 0.1 <= run(scenario()) <= 20.0


def test_a_limit_of_money_holds_for_all_runs_or_none() -> None:
    """A run without --max-cost beside one that has it makes no call: nothing could be kept."""
    server, shared = Server(reply=PAID, latency=1.0), Shared()

    async def scenario() -> Ended:
        begin(shared, server, 100, settings(), priced(20.0))
        await asyncio.sleep(1)
        return (await ends(begin(shared, server, 100, settings())))[0]

    ended = run(scenario())
    assert ended.stopped == 100
    assert "keep to --max-cost 20; give this one the same" in ended.sender.stops["quota"]


def test_of_limits_that_differ_the_smaller_holds() -> None:
    """A note says which one, the smallest there was; when its run has ended the larger holds."""
    server, shared = Server(), Shared()

    async def scenario() -> tuple[Quota, Quota]:
        large = begin(shared, server, 1500, settings(rpm=3000))
        none = begin(shared, server, 100, settings())
        await asyncio.sleep(2)
        small = begin(shared, server, 100, settings(rpm=600))
        await asyncio.sleep(3)
        before = len(server.at)
        await asyncio.sleep(5)
        assert len(server.at) - before <= 52
        await ends(large, none, small)
        assert now() <= 65
        return large.quota, none.quota

    large, none = run(scenario())
    held = "--quota q: another of its runs had --rpm 600, which held for all"
    assert large.notes == (f"{held} (here: 3,000)",)
    assert none.notes == (f"{held} (here: none)",)

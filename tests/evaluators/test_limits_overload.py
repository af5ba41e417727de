"""Overload, dead hosts and congestion are waited out by a few probes; and what ends calls for good.

The clock is virtual: five minutes of overload are five minutes of it.
"""

import asyncio
from collections import Counter

import pytest

from evaluators.core import (
    CallError,
    FatalError,
    Limits,
    Reply,
    Request,
    StoppedError,
    TransientError,
)
from evaluators.runtime.caller import CallSettings, ItemClock, RetryPolicy, Sender
from evaluators.runtime.server import NEVER_ANSWERED_S
from tests.support.scripted import ask_for
from tests.support.simulated import Down, Server, asked, call_all, now
from tests.support.virtual_time import run

FIVE_MINUTES = 300.0


def test_a_host_that_starts_overloaded_is_waited_for() -> None:
    """A server that says it is busy from the first call on is alive: it is waited for."""
    down = Down(begin=0, end=60)
    assert asked(Server(refuse=down), 100).replies == 100
    assert down.refused <= 20


def test_a_host_that_was_never_reached_is_given_up_soon() -> None:
    """A wrong address costs seconds and a few attempts; every item says so."""
    server = Server(refuse=Down(begin=0, end=1e9, kind="unreachable"))
    ended = asked(server, 500)
    assert ended.seconds <= 20
    assert len(server.at) <= 8
    assert ended.replies == 0
    assert "host could not be reached for" in ended.sender.stops["unreachable"]


@pytest.mark.parametrize("kind", ["server", "connection"])
def test_a_host_that_never_answered_is_given_up_sooner(kind: str) -> None:
    """One that has failed from the first call on has a minute and a half, not an item's time."""
    server = Server(refuse=Down(begin=0, end=1e9, kind=kind))
    ended = asked(server, 500)
    assert (ended.replies, len(ended.errors) + ended.stopped) == (0, 500)
    assert NEVER_ANSWERED_S <= ended.seconds <= NEVER_ANSWERED_S + 15
    assert "host has given no reply for" in ended.sender.stops[kind]


def test_a_host_that_is_silent_from_the_first_call_on_is_given_up() -> None:
    """Its calls end by their own deadline: no item is tried five times, two minutes each."""

    class Silent(Server):
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(120)
            raise TransientError("timeout", "no reply in time")

    ended = asked(Silent(), 500)
    assert (ended.replies, len(ended.errors) + ended.stopped) == (0, 500)
    assert ended.seconds <= 3 * 120


@pytest.mark.parametrize("kind", ["server", "connection"])
def test_a_host_that_has_answered_is_waited_for(kind: str) -> None:
    """An outage of five minutes in mid-run costs no item, whatever it looks like."""
    ended = asked(Server(refuse=Down(begin=2.0, end=2.0 + FIVE_MINUTES, kind=kind)))
    assert (ended.replies, ended.errors, ended.stopped) == (1000, [], 0)


def test_the_run_s_deadline_ends_the_waiting() -> None:
    """When the run's time is used up whoever waits is MISSING, and nothing more is sent."""
    down = Down(begin=10, end=1e9)
    server = Server(refuse=down)
    ended = asked(server, 1500, deadline=60.0)
    assert ended.errors == []
    assert ended.replies + ended.stopped == 1500
    assert ended.seconds <= 60
    assert set(ended.sender.stops) == {"deadline"}
    assert max(server.at) < 60


def test_calls_in_flight_at_the_deadline_are_cut() -> None:
    """A reply that comes a moment late is kept; what hangs is cut within two seconds.

    Waiting for another run's call ends with the run's time; what comes before it is used.
    """
    limits = Limits(host="host", deadline=1e9, item_deadline=1e9)
    assert asked(Server(latency=61, limits=limits), 1, deadline=60.0).replies == 1
    ended = asked(Server(latency=1e6, limits=limits), 40, deadline=60.0)
    assert (ended.replies, ended.stopped) == (0, 40)
    assert 60 <= ended.seconds <= 62

    async def scenario() -> None:
        sender = Sender(CallSettings(deadline=60, random=lambda: 0.0))
        sender.begin()
        assert await sender.before_the_end(asyncio.sleep(59, "in time")) == "in time"
        with pytest.raises(StoppedError, match="60 s are used up"):
            await sender.before_the_end(asyncio.sleep(1e6))
        assert now() == 60

    run(scenario())


def test_an_item_has_its_own_deadline() -> None:
    """Its calls, retries and waits end in time; waiting for the first slot does not count."""
    limits = Limits(host="host", deadline=1e9, item_deadline=50, concurrency=1)
    ended = asked(Server(latency=1e6, limits=limits), 3)
    kinds = [error.kind for error in ended.errors if isinstance(error, CallError)]
    assert kinds == ["item_deadline"] * 3
    assert ended.seconds == pytest.approx(150)
    limits = Limits(host="host", deadline=10, item_deadline=5)
    server = Server(refuse=Down(begin=0, end=1e9, kind="server"), limits=limits)
    patience = RetryPolicy(attempts=100, first=1.0, longest=1.0)
    ended = run(call_all(server, 1, CallSettings(retry=patience)))
    (error,) = ended.errors
    assert isinstance(error, CallError)
    assert error.kind == "item_deadline"
    assert ended.seconds == pytest.approx(5)


@pytest.mark.parametrize(("kind", "tries"), [("bad_body", 3), ("error_body", 3), ("timeout", 5)])
def test_what_cannot_be_read_is_tried_three_times(kind: str, tries: int) -> None:
    """A body that is no reply has fewer tries than a network's failure, then it is an ERROR."""
    server = Server(refuse=Down(begin=0, end=1e9, kind=kind))
    ended = asked(server, 1)
    assert len(server.at) == tries
    assert [str(error) for error in ended.errors] == [f"busy (tried {tries} times)"]


def test_a_poisoned_item_does_not_open_the_circuit() -> None:
    """One request that always overloads the server is one ERROR; the others go on."""

    class Poisoned(Server):
        async def complete(self, request: object) -> Reply:
            if "'13'" in str(request):
                raise TransientError("overloaded", "busy")
            return await super().complete(request)  # type: ignore[arg-type]

    ended = asked(Poisoned(), 200)
    assert (ended.replies, len(ended.errors)) == (199, 1)


def test_an_overloaded_server_is_asked_by_fewer_at_once() -> None:
    """A server that bears 20 at once is not asked by 64 for long, and all is answered."""
    server = Server(latency=1.0)
    refused = 0

    def refuse(at: float) -> None:
        nonlocal refused
        if server.in_flight > 20:
            refused += 1
            raise TransientError("overloaded", "busy")

    server.refuse = refuse
    ended = asked(server, 1000, concurrency=64)
    assert (ended.replies, ended.errors) == (1000, [])
    assert refused <= 250


def test_a_model_s_own_concurrency() -> None:
    """An entry's limit holds below the run's, and the run's limit below an entry's."""
    small = Server(limits=Limits(concurrency=3))
    assert asked(small, 100, concurrency=16).replies == 100
    assert small.most == 3
    large = Server(limits=Limits(concurrency=99))
    ended = asked(large, 300, concurrency=16)
    assert (ended.replies, large.most, ended.sender.admission.limit) == (300, 16, 16)


def test_a_wrong_key_of_the_judge_stops_the_answers_too() -> None:
    """Where one model can never be asked, the other is asked no more: nothing could be judged."""

    def refuse(at: float) -> None:
        raise FatalError("auth", "no")

    answers = Server(spec="openai:answers")
    judge = Server(spec="anthropic:judge", refuse=refuse, limits=Limits(host="other"))

    async def item(sender: Sender, number: int) -> str:
        try:
            await sender.send(answers, ask_for(f"question {number}"), ItemClock())
            await sender.send(judge, ask_for(f"judge {number}"), ItemClock())
        except CallError as error:
            return type(error).__name__
        return "graded"

    async def scenario() -> list[str]:
        sender = Sender(CallSettings(random=lambda: 0.0))
        return await asyncio.gather(*(item(sender, number) for number in range(500)))

    assert Counter(run(scenario())) == {"FatalError": 1, "StoppedError": 499}
    assert (len(judge.at), len(answers.at)) == (1, 9)


@pytest.mark.parametrize("same_model", [True, False])
def test_an_item_that_has_begun_goes_before_new_ones(*, same_model: bool) -> None:
    """A run that is cut short has judged what it asked, but for what was in flight."""
    answers = Server(spec="answers")
    judge = answers if same_model else Server(spec="judge")

    async def item(sender: Sender, number: int) -> None:
        span = ItemClock()
        await sender.send(answers, ask_for(f"question {number}"), span)
        await sender.send(judge, ask_for(f"judge {number}"), span)
        done.append(number)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=8, random=lambda: 0.0))
        items = asyncio.gather(*(item(sender, number) for number in range(500)))
        await asyncio.sleep(10.1)
        sender.halt(StoppedError("stopped", "enough"))
        await asyncio.gather(items, return_exceptions=True)

    done: list[int] = []
    run(scenario())
    asked_first = len(answers.at) - (len(done) if same_model else 0)
    assert len(done) > 150
    assert asked_first - len(done) <= 2 * 8


def test_a_quota_that_ends_in_mid_run_stops_the_rest() -> None:
    """Calls in flight may be refused too; nobody is asked after them."""
    server = Server()

    def refuse(at: float) -> None:
        if len(server.at) > 100:
            raise FatalError("quota", "used up")

    server.refuse = refuse
    ended = asked(server, 1000)
    assert ended.replies == 100
    assert len(server.at) <= 116
    assert len(ended.errors) + ended.stopped == 900


def test_a_halted_run_starts_nothing() -> None:
    """After a stop those who wait are told so; what is in flight still brings its reply."""
    server = Server(latency=1.0)

    async def scenario() -> list[Reply | BaseException]:
        sender = Sender(CallSettings(concurrency=2, random=lambda: 0.0))
        asks = [sender.send(server, ask_for(str(one)), ItemClock()) for one in range(10)]
        tasks = [asyncio.create_task(one) for one in asks]
        await asyncio.sleep(1.5)
        assert sender.admission.in_flight == 2
        sender.halt(StoppedError("stopped", "enough"))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        with pytest.raises(StoppedError, match="enough"):
            await sender.send(server, ask_for("late"), ItemClock())
        return list(results)

    results = run(scenario())
    assert sum(isinstance(one, Reply) for one in results) == 3
    assert sum(isinstance(one, StoppedError) for one in results) == 7
    assert len(server.at) == 3


def test_a_cancelled_call_gives_its_place_back() -> None:
    """Cancelling calls that wait or are in flight leaves room for others."""
    server = Server(latency=10.0)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=1, random=lambda: 0.0))
        tasks = [
            asyncio.create_task(sender.send(server, ask_for(str(one)), ItemClock()))
            for one in range(3)
        ]
        await asyncio.sleep(1)
        tasks[1].cancel()
        tasks[0].cancel()
        await tasks[2]
        assert sender.admission.in_flight == 0

    run(scenario())
    assert len(server.at) == 2


def test_a_call_that_is_let_in_and_cancelled_at_once_gives_its_place_back() -> None:
    """Between being let in and waking up a call may be cancelled: its place is not lost."""
    server = Server(latency=1.0)

    async def scenario() -> None:
        sender = Sender(CallSettings(concurrency=1, random=lambda: 0.0))

        async def ask_then_cancel() -> None:
            await sender.send(server, ask_for("1"), ItemClock())
            second.cancel()  # its place is given to it already, but it has not woken up

        first = asyncio.create_task(ask_then_cancel())
        second = asyncio.create_task(sender.send(server, ask_for("2"), ItemClock()))
        await asyncio.wait([first, second])
        assert second.cancelled()
        await sender.send(server, ask_for("3"), ItemClock())
        assert sender.admission.in_flight == 0

    run(scenario())

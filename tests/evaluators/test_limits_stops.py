"""What ends calls for good: a wrong key, a used-up quota, a stop, a cancelled call.

The clock is virtual.
"""

import asyncio
from collections import Counter

import pytest

from evaluators.core import CallError, FatalError, Limits, Reply, StoppedError
from evaluators.runtime.caller import CallSettings, ItemClock, Sender
from tests.support.scripted import ask_for
from tests.support.simulated import Server, asked
from tests.support.virtual_time import run


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

"""The engine brings every item to exactly one end; the schedule hands out nothing twice."""

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from qagate.evaluators import core
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import CallSettings, RetryPolicy
from qagate.evaluators.runtime.outcomes import OutcomeReader, Status
from qagate.evaluators.runtime.process import EngineThread
from qagate.evaluators.runtime.schedule import Schedule
from tests.support.engine_bench import Bench, prompted, task
from tests.support.scripted import Scripted, ask_for
from tests.support.tables import tabled


@tabled("answer", "state", "kind")
def test_each_item_ends(
    tmp_path: Path, answer: str | None, state: core.State, kind: str
) -> None:
    """A grade, an ERROR of a kind or a MISSING; a failure is never a grade."""
    outcome = Bench(tmp_path, [task(1, answer)]).run()["k1"]
    assert (outcome.state, outcome.kind) == (state, kind)
    assert (outcome.verdict is None) == (state in ("error", "missing"))
    assert outcome.answer == answer


def test_what_an_answer_took_is_apart_from_what_its_judge_took(tmp_path: Path) -> None:
    """Also from the ledger, of the first call; nothing is known where the answer's call fails."""
    said = core.Reply(text="София", input_tokens=7, output_tokens=2, seconds=0.25)
    graded = core.Reply(text="A", input_tokens=70, output_tokens=20, seconds=2.5)
    model = Scripted(lambda request: said)
    judge = AskingJudge(model=Scripted(lambda request: graded, spec="openai:judge"))
    for _ in range(2):
        both = replace(prompted(1, model), judge=judge)
        one = Bench(tmp_path, [both, replace(task(2, "CORRECT"), judge=judge)]).run()
        took = one["k1"].answering
        assert (took.input_tokens, took.output_tokens, took.seconds) == (7, 2, 0.25)
        assert one["k1"].usage.seconds == 2.75
        assert one["k2"].answering == core.Usage()
    assert len(model.requests) == 1


@dataclass(frozen=True)
class AskingJudge:
    """A judge that asks its model and ignores the reply."""

    model: Scripted
    spec: str = "openai:judge"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        await ask(self.model, ask_for(f"Is {answer} right in {case.id}?"))
        return core.Verdict(grade=core.CORRECT)


def test_a_ledger_that_fails_stops_the_run(tmp_path: Path) -> None:
    """When a reply cannot be kept no further item is started: they would be paid for and lost."""
    tasks = [task(1, "full"), *[task(number, "CORRECT") for number in range(2, 200)]]
    bench = Bench(tmp_path, tasks, CallSettings(concurrency=1))
    assert list(bench.run(window=1000)) == ["k1"]
    assert bench.engine.failure == "disk full"


def test_a_board_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    """When no test would hear of the outcomes nothing more is paid for, and models are closed."""
    model = Scripted(lambda request: core.Reply(text="CORRECT"))
    bench = Bench(tmp_path, [prompted(number, model) for number in range(500)])
    with closing(sqlite3.connect(bench.path)) as connection, connection:
        connection.execute("DROP TABLE outcomes")
    asyncio.run(bench.engine.run(Schedule(bench.keys, 1000), [model]))
    assert "cannot be posted" in bench.engine.failure
    assert len(model.requests) < 500
    assert model.closed


class Stingy(Budget):
    """A budget that is used up after some calls, and remembers what it was asked."""

    def __init__(self, calls: int) -> None:
        super().__init__(1.0, {})
        self.left = calls
        self.settled: list[tuple[float, str, core.Reply | None]] = []

    async def reserve(
        self,
        model: core.Model,
        request: core.Request,
        *,
        urgent: bool = False,
        batch: bool = False,
    ) -> float:
        if self.left == 0:
            raise core.StoppedError("budget", "the money is used up")
        self.left -= 1
        return 0.25

    def settle(self, reserved: float, spec: str, reply: core.Reply | None) -> None:
        self.settled.append((reserved, spec, reply))


def test_a_used_up_budget_leaves_the_rest_missing(tmp_path: Path) -> None:
    """Every call is reserved before and settled after it, failed ones too; then nothing is sent."""
    left = [core.TransientError("server", "oops")]

    def handler(request: core.Request) -> core.Reply:
        if left:
            raise left.pop()
        return core.Reply(text="CORRECT")

    model, budget = Scripted(handler), Stingy(calls=5)
    settings = CallSettings(concurrency=2, retry=RetryPolicy(first=0, longest=0))
    bench = Bench(
        tmp_path, [prompted(number, model) for number in range(20)], settings, budget
    )
    states = Counter((one.state, one.kind) for one in bench.run().values())
    assert states == {("passed", ""): 4, ("missing", "budget"): 16}
    assert len(model.requests) == 5
    assert [reply is None for _, _, reply in budget.settled].count(True) == 1
    assert {held for held, _, _ in budget.settled} == {0.25}
    assert bench.engine.status.stops == {"budget": "the money is used up"}
    assert bench.engine.status.retried == {"server": 1}


def test_what_is_kept_needs_no_time(tmp_path: Path) -> None:
    """When the run's time is up items in the ledger are graded, and the others are MISSING."""
    model = Scripted(lambda request: core.Reply(text="CORRECT"))
    Bench(tmp_path, [prompted(number, model) for number in range(3)]).run()
    settings = CallSettings(deadline=1e-9)
    bench = Bench(tmp_path, [prompted(number, model) for number in range(8)], settings)
    states = Counter((one.state, one.kind) for one in bench.run().values())
    assert states == {("passed", ""): 3, ("missing", "deadline"): 5}
    assert len(model.requests) == 3
    assert list(bench.engine.status.stops) == ["deadline"]


def test_the_figures_of_a_run_under_way(tmp_path: Path) -> None:
    """Another thread may read what is in flight, what may be, and what holds calls back."""
    at_work, go_on = threading.Event(), threading.Event()

    class Slow(Scripted):
        async def complete(self, request: core.Request) -> core.Reply:
            at_work.set()
            await asyncio.to_thread(go_on.wait, 10)
            raise core.TransientError("rate_limit", "too many", 3600)

    model = Slow(lambda request: core.Reply(), limits=core.Limits(host="api.example"))
    bench = Bench(tmp_path, [prompted(1, model)])
    assert bench.engine.status == Status(limit=4)
    thread = EngineThread(bench.job(9))
    thread.start()
    assert at_work.wait(10)
    assert bench.engine.status.in_flight == 1
    go_on.set()
    outcome = OutcomeReader(bench.path).wait("k1")
    assert (outcome.state, outcome.kind) == ("error", "rate_limit")
    assert bench.engine.status.held_back_by.startswith("api.example paused")
    thread.stop()


def test_a_stopped_run_starts_no_further_call(tmp_path: Path) -> None:
    """What is in flight is kept if it comes in time; calls that waited are MISSING, not asked."""
    started, go_on = threading.Event(), threading.Event()

    class Slow(Scripted):
        async def complete(self, request: core.Request) -> core.Reply:
            self.requests.append(request)
            started.set()
            await asyncio.to_thread(go_on.wait, 10)
            return self.handler(request)

    model = Slow(lambda request: core.Reply(text="CORRECT"))
    bench = Bench(tmp_path, [prompted(number, model) for number in range(50)])
    thread = EngineThread(bench.job(100))
    thread.start()
    assert started.wait(10)
    threading.Timer(0.2, go_on.set).start()
    thread.stop(grace=10)
    states = Counter((one.state, one.kind) for one in bench.posted.outcomes.values())
    assert states == {("passed", ""): 1, ("missing", "stopped"): 7}
    assert len(model.requests) == 1


def take(schedule: Schedule, count: int) -> list[str | None]:
    async def several() -> list[str | None]:
        return [await asyncio.wait_for(schedule.take(), 5) for _ in range(count)]

    return asyncio.run(several())


@pytest.mark.parametrize(
    ("wanted", "taken"), [("", "abc"), ("cc", "cab"), ("some other test", "abc")]
)
def test_items_come_in_order_and_wanted_ones_first(wanted: str, taken: str) -> None:
    """Each once, a test's own before its turn; what is no planned item changes nothing."""
    schedule = Schedule(["a", "b", "c"], 10)
    for key in wanted if wanted == "cc" else [wanted]:
        schedule.move_to_front(key)
    assert take(schedule, 4) == [*taken, None]


def test_news_after_the_loop_has_ended_are_harmless() -> None:
    """Tests may end after the engine has; a late lead changes nothing in what is selected."""
    schedule = Schedule(["a", "b", "c"], 10, head_start=0)
    schedule.select(["c", "a"])
    schedule.allow_head_start(0)
    assert take(schedule, 1) == ["c"]
    schedule.count_ended_tests()
    schedule.move_to_front("b")
    schedule.close()
    assert take(schedule, 1) == [None]


def test_items_of_no_test_are_never_ahead() -> None:
    """What is judged alongside the tests leaves the window to items whose tests will come."""
    schedule = Schedule([*"xyzab"], 1)
    schedule.select([*"xyzab"], 3)
    assert take(schedule, 4) == ["x", "y", "z", "a"]
    schedule.count_ended_tests()
    assert take(schedule, 2) == ["b", None]


def test_the_window_moves_on_as_tests_end() -> None:
    """No more than the window lies between what is taken and what is tested."""
    schedule = Schedule(["a", "b", "c"], 1)

    async def scenario() -> list[str | None]:
        first = await schedule.take()
        second = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        assert not second.done()
        schedule.count_ended_tests()
        return [first, await asyncio.wait_for(second, 5)]

    assert asyncio.run(scenario()) == ["a", "b"]


def test_few_items_are_under_way_until_one_is_done() -> None:
    """The first items show whether models can be asked; a waiting test changes nothing in that."""
    schedule = Schedule(["a", "b", "c", "d"], 10, trial=2)

    async def scenario() -> list[str | None]:
        first = [await schedule.take(), await schedule.take()]
        others = [asyncio.create_task(schedule.take()) for _ in range(3)]
        schedule.move_to_front("d")
        await asyncio.sleep(0.01)
        assert not any(other.done() for other in others)
        schedule.note_done()
        return first + list(await asyncio.wait_for(asyncio.gather(*others), 5))

    assert asyncio.run(scenario()) == ["a", "b", "d", "c", None]


@pytest.mark.parametrize(
    ("act", "taken"),
    [
        (Schedule.close, [None] * 3),
        (partial(Schedule.move_to_front, key="a"), ["a", None, None]),
    ],
)
def test_the_end_reaches_everyone(
    act: Callable[[Schedule], None], taken: list[str | None]
) -> None:
    """After close, or once the last item is taken by another, whoever waits is told so."""
    schedule = Schedule(["a"], 0)

    async def scenario() -> list[str | None]:
        waiting = [asyncio.create_task(schedule.take()) for _ in range(3)]
        await asyncio.sleep(0.01)
        act(schedule)
        return [await asyncio.wait_for(one, 5) for one in waiting]

    assert asyncio.run(scenario()) == taken


def test_a_lead_comes_before_the_selection_and_no_further() -> None:
    """Until it is known which items have a test only so many are handed out, then those alone."""
    schedule = Schedule(["a", "b", "c", "d"], 10, head_start=0)

    async def scenario() -> list[str | None]:
        waiting = asyncio.create_task(schedule.take())
        await asyncio.sleep(0)
        assert not waiting.done()
        schedule.allow_head_start(2)
        first = [
            await asyncio.wait_for(waiting, 5),
            await asyncio.wait_for(schedule.take(), 5),
        ]
        third = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        assert not third.done()
        schedule.select(["d", "b"])
        rest = [
            await asyncio.wait_for(third, 5),
            await asyncio.wait_for(schedule.take(), 5),
        ]
        return [*first, *rest]

    assert asyncio.run(scenario()) == ["a", "b", "d", None]


def test_demand_beyond_the_window_holds_no_demand_up() -> None:
    """A used-up window holds back the look-ahead, but no test that waits, however many do."""
    schedule = Schedule(["a", "b", "c", "d", "e"], 1)

    async def scenario() -> str | None:
        assert await schedule.take() == "a"
        for key in ("b", "c", "d"):
            schedule.move_to_front(key)
            assert await asyncio.wait_for(schedule.take(), 5) == key
        waiting = asyncio.create_task(schedule.take())
        await asyncio.sleep(0.01)
        schedule.move_to_front("e")
        return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(scenario()) == "e"

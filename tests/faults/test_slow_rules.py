"""Rules that take long, or never end, hold up nobody: neither other items nor the heartbeat."""

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluators.core import Ask, Case, JudgeError, Message, Outcome, Reply, Request, Verdict
from evaluators.judges.lexical.judge import LexicalJudge, grade
from evaluators.judges.offline import PythonJudge
from evaluators.ledger import Ledger
from evaluators.runtime import engine
from evaluators.runtime.caller import Caller, CallSettings
from evaluators.runtime.engine import Engine, Task
from evaluators.runtime.outcomes import OutcomeWriter
from evaluators.runtime.schedule import Schedule
from evaluators.user_code import SHORT, off_the_loop
from tests.support.projects import Project
from tests.support.scripted import make_case
from tests.support.tables import kept

REQUEST = Request(messages=(Message(role="user", content="?"),))


HELD: str = kept(__file__, "held")


async def no_ask(model: object, request: Request) -> Reply:
    raise AssertionError(request)


class Threaded:
    """A judge of somebody's own that says where it ran."""

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return a verdict whose reason is the thread's name."""
        await asyncio.sleep(0)
        return Verdict(grade="CORRECT", reason=threading.current_thread().name)


async def ticking(ticks: list[float]) -> None:
    while True:
        ticks.append(time.monotonic())
        await asyncio.sleep(0.01)


def test_the_loop_goes_on_beside_a_slow_rule() -> None:
    """A rule that computes for half a second leaves the loop free, and its verdict counts."""
    ticks: list[float] = []

    def work(ask: Ask) -> int:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        return 7

    async def run() -> int:
        beside = asyncio.create_task(ticking(ticks))
        result = await off_the_loop("python:m:C", work, no_ask)
        beside.cancel()
        return result

    assert asyncio.run(run()) == 7
    assert len(ticks) > 5


def test_a_rule_that_does_not_end_is_an_error() -> None:
    """``judge_timeout`` names the judge and its seconds (S3); nobody waits for the thread."""
    free = threading.Event()
    with pytest.raises(JudgeError, match=r"python:m:C: no verdict within 0\.1 s") as caught:
        asyncio.run(off_the_loop("python:m:C", lambda ask: free.wait(30), no_ask, 0.1))
    assert caught.value.kind == "judge_timeout"
    free.set()


def test_a_rules_own_time_out_is_not_ours() -> None:
    """What the rule raises is passed on."""

    def work(ask: Ask) -> None:
        raise TimeoutError(ask)

    with pytest.raises(TimeoutError, match="asked_there"):
        asyncio.run(off_the_loop("python:m:C", work, no_ask))


def test_asking_a_model_takes_none_of_the_rules_time() -> None:
    """A judge of one's own may ask, from its own loop; what it waits for is not its slowness."""
    loops: list[object] = []

    async def ask(model: object, request: Request) -> Reply:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.5)
        return Reply(text="fine")

    async def both(there: Ask) -> Sequence[Reply]:
        return await asyncio.gather(there(None, REQUEST), there(None, REQUEST))  # type: ignore[arg-type]

    async def run() -> str:
        loops.append(asyncio.get_running_loop())
        replies = await off_the_loop("p", lambda there: asyncio.run(both(there)), ask, 0.2)
        return " ".join(reply.text for reply in replies)

    assert asyncio.run(run()) == "fine fine"
    assert len(set(map(id, loops))) == 1


def test_a_judge_that_is_given_up_asks_nothing_more() -> None:
    """A rule whose time is up cannot spend money."""
    asked: list[Request] = []
    ends: list[BaseException] = []
    over = threading.Event()

    async def ask(model: object, request: Request) -> Reply:
        asked.append(request)
        return Reply(text="fine")

    async def late(there: Ask) -> None:
        time.sleep(0.3)  # what it does wrong
        try:
            await there(None, REQUEST)  # type: ignore[arg-type]
        except RuntimeError as error:
            ends.append(error)
        over.set()

    async def run() -> None:
        with pytest.raises(JudgeError):
            await off_the_loop("p", lambda there: asyncio.run(late(there)), ask, 0.1)
        await asyncio.to_thread(over.wait, 10)

    asyncio.run(run())
    assert len(ends) == 1
    assert asked == []


def test_a_judge_of_ones_own_has_a_thread_of_its_own() -> None:
    """And an event loop, which it may hold up."""
    judge = PythonJudge(spec=f"python:{__name__}:Threaded", style="graded", labels=("CORRECT",))
    verdict = asyncio.run(judge.judge(make_case(1), "x", no_ask))
    assert verdict.reason == "qa-rule"


@pytest.mark.parametrize("length", [SHORT, SHORT + 1])
def test_a_long_answer_gets_the_same_verdict(length: int) -> None:
    """The lexical judge says the same with a thread and without one."""
    case, answer = make_case(1), "Sofia. ".ljust(length, "-")
    assert asyncio.run(LexicalJudge().judge(case, answer, no_ask)) == grade(case, answer)


class Beats(OutcomeWriter):
    """Notes when the engine's heart beats."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.posted: list[Outcome] = []

    def beat(self) -> None:
        self.times.append(time.monotonic())

    def post(self, outcomes: Sequence[Outcome]) -> None:
        self.posted.extend(outcomes)

    def end(self, message: str) -> None:
        pass


class Blocking:
    """A judge that holds the engine's own loop."""

    spec = "rule:blocking"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return a verdict after a second without an await."""
        time.sleep(1.0)
        return Verdict(grade="CORRECT")


class Said:
    """The answer is always the same."""

    spec = "recorded"

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return it."""
        return "fine"


@pytest.mark.parametrize(("stuck", "beats"), [(300.0, True), (0.05, False)])
def test_the_heart_beats_while_the_loop_is_held_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stuck: float, beats: bool
) -> None:
    """A loop held up for a moment is not a lost engine; one held up for minutes is (S3)."""
    monkeypatch.setattr(engine, "STUCK_SECONDS", stuck)
    monkeypatch.setattr(engine, "BEAT_SECONDS", 0.1)
    writer = Beats()
    task = Task(
        key="k", case=make_case(1), repeat=1, answerer=Said(), judge=Blocking(),
        passes=lambda case, verdict: True,
    )  # fmt: skip
    with Ledger(tmp_path / "ledger") as ledger:
        caller = Caller(ledger, CallSettings(ledger=tmp_path / "ledger"), lambda *_: None)
        schedule = Schedule(["k"], 2)
        schedule.select(["k"])
        began = time.monotonic()
        asyncio.run(Engine({"k": task}, caller, writer, 1).run(schedule))
    assert [one.state for one in writer.posted] == ["passed"]
    assert any(0.3 < when - began < 0.9 for when in writer.times) is beats


@pytest.mark.untraced
def test_an_engine_that_is_held_up_is_ended_and_names_the_item(project: Project) -> None:
    """``--deadline`` holds, and the line says which item and what to do, on every run (S3)."""
    project.dataset("capital", {"en": ["Sofia"] * 3})
    project.write("held.py", HELD)
    words = ("--judge", "python:held:Held", "--calibration", "off", "--deadline", "1", "qa")
    for _ in range(2):
        done = project.run(*words)
        assert done.ret == 6
        said = " ".join(done.stdout.str().split())
        assert "was held up and ended" in said
        assert "while code of yours judged or answered capital-en-q" in said


def test_a_judge_ends_with_the_run(project: Project) -> None:
    """Whatever a judge does after the run's time is up, its item is MISSING, not an ERROR."""
    project.dataset("capital", {"en": ["Sofia"]})
    project.write("held.py", HELD.replace("re.match", "__import__('time').sleep(60); str"))
    words = ("--judge", "python:held:Held", "--calibration", "off", "--deadline", "0.5", "qa")
    done = project.run_in_process(*words)
    assert done.ret == 6
    assert [record["outcome"] for record in project.records()] == ["missing"]
    assert "(--deadline)" in str(project.records()[0]["error"])

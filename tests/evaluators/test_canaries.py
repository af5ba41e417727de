"""Before kept grades count, some are asked anew; counted at the judge's model."""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import pytest

from qagate.cases.tasks import RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.answers.state_rules import StateRules
from qagate.evaluators.core import Outcome, Reply, Request
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.judges.drift import CanaryResult
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.ledger import KeptReply, Ledger, PaidReply
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import CallRoute, CallSettings, KeptCall, Meter
from qagate.evaluators.runtime.canaries import CANARIES
from qagate.evaluators.runtime.outcomes import Status
from qagate.evaluators.runtime.schedule import Schedule
from qagate.evaluators.runtime.task import ReadingTask, Task
from tests.support.engine_bench import Bench, SomeCalls, correct
from tests.support.scripted import Scripted, make_case, make_rubric

WRONG, SILENT, RIGHT = 45, 15, 30
LETTERS = {"right": "A", "wrong": "B", "silent": "C"}

Grader = Callable[[str], str]
"""Returns the letter for an answer."""


def honest(answer: str) -> str:
    """Grade an answer by its first word."""
    return LETTERS[answer.split(maxsplit=1)[0]]


def lenient(answer: str) -> str:
    return "A"


def lenient_in_bg(answer: str) -> str:
    return "A" if " bg " in answer else honest(answer)


@dataclass
class World:
    """A judge's model, a baseline with its answers, and runs that read them on one ledger."""

    folder: Path
    grade: Grader = honest
    version: str = ""
    items: int = 50
    """Of each grade and language."""
    languages: tuple[str, ...] = ("bg", "en")
    sides: tuple[str, ...] = ("right", "wrong", "silent")
    members: int = 1
    labelled: bool = False
    """Whether the known answers are labelled ones and no baseline's."""
    models: list[Scripted] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(self.members):
            model = Scripted(self._reply, spec=f"openai:judge{number}")
            self.models.append(model)

    def _reply(self, request: Request) -> Reply:
        (answer,) = re.findall(
            r"(?:right|wrong|silent) \w+ \w+ \d+", request.messages[-1].content
        )
        return Reply(text=self.grade(answer), model=self.version)

    def judge(self) -> core.Judge:
        members = tuple(
            RubricJudge(model=model, rubric=make_rubric("letter"))
            for model in self.models
        )
        return members[0] if self.members == 1 else PanelJudge(judges=members)

    def tasks(self, run: str) -> list[Task]:
        """Return items whose own answers no other run has; one of them is new to the judge."""
        judge = self.judge()
        tasks = []
        for language in self.languages:
            for side in self.sides:
                for number in range(self.items):
                    old = f"{side} {language} old {number}"
                    tasks.append(self._task(language, old, judge))
        new = self._task(self.languages[0], f"right new {run} 0", judge)
        return [*tasks, replace(new, key="new", readings={}, is_labelled=False)]

    def _task(self, language: str, answer: str, judge: core.Judge) -> Task:
        case = make_case(1, language=language, recorded=answer)
        reading = ReadingTask(
            case=case, judge=judge, passes=correct, answer=read_text(answer)
        )
        return Task(
            key=answer,
            case=case,
            repeat=1,
            answerer=RecordedAnswer(),
            judge=judge,
            passes=correct,
            readings={} if self.labelled else {"baseline": reading},
            is_labelled=self.labelled,
        )

    def run(
        self,
        run: str,
        *,
        replay: bool = False,
        budget: Budget | None = None,
        asks_something: bool = True,
    ) -> "Ran":
        tasks = self.tasks(run)
        if not asks_something:
            tasks.pop()
        before = len(self.requests)
        bench = Bench(
            self.folder,
            tasks,
            CallSettings(concurrency=64, replay=replay),
            budget,
            RunIdentity(id=run, started=0.0),
        )
        outcomes = dict(bench.run(window=10_000))
        bench.engine.close()
        return Ran(
            outcomes=outcomes,
            status=bench.engine.status,
            calls=len(self.requests) - before,
        )

    @property
    def requests(self) -> list[Request]:
        return [request for model in self.models for request in model.requests]


@dataclass
class Ran:
    """How a run ended."""

    outcomes: dict[str, Outcome]
    status: Status
    calls: int
    """Requests that the judge's models got."""

    def result(self, language: str, judge: str = "openai:judge0") -> CanaryResult:
        (result,) = (
            result
            for result in self.status.canaries
            if (result.judge, result.language) == (judge, language)
        )
        return result


ALL_CANARIES = 2 * (WRONG + SILENT) + RIGHT
ALL_KEPT = 2 * 3 * 50


def test_where_nothing_is_kept_there_are_no_canaries(tmp_path: Path) -> None:
    first = World(tmp_path).run("first")
    assert first.calls == ALL_KEPT + 1
    assert first.status.canaries == ()


def test_canaries_are_really_asked(tmp_path: Path) -> None:
    """The toy to avoid: a canary under the ledger's own key that sends nothing."""
    world = World(tmp_path)
    world.run("first")
    second = world.run("second")
    assert second.calls == ALL_CANARIES + 1
    assert second.result("bg").asked == WRONG + SILENT
    assert second.result("").asked == RIGHT
    assert second.result("bg").void == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "document", ["[]", '{"at": 1.0, "results": [{"judge": 5}]}', "{", "null"]
)
def test_results_that_are_damaged_are_found_out_anew(
    tmp_path: Path, document: str
) -> None:
    """As a damaged reply is asked for anew: it is no result, and ends no run."""
    world = World(tmp_path)
    world.run("first")
    world.run("second")
    with Ledger(tmp_path / "ledger") as ledger:
        assert json.loads(ledger.documents(CANARIES)["second"])["results"]
        asyncio.run(ledger.keep(CANARIES, "second", document))
    again = world.run("second", asks_something=False)
    assert again.calls == 0
    assert again.status.canaries == ()


def test_canaries_are_paid_by_the_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    usage = world.run("second").status.judges_usage
    assert (usage.requests, usage.spent) == (ALL_CANARIES, ALL_CANARIES * 0.5)


def test_a_judge_that_drifted_grades_everything_anew(tmp_path: Path) -> None:
    """A3: its kept grades say nothing of what it says today."""
    world = World(tmp_path)
    world.run("first")
    world.grade = lenient
    second = world.run("second")
    # What passes was asked anew as a canary or is asked after; each answer once.
    assert second.calls == ALL_KEPT + 1
    assert second.outcomes["wrong bg old 0"].readings["baseline"].state == "passed"


def test_a_drift_in_one_language_leaves_the_others_alone(tmp_path: Path) -> None:
    """Five of the new grades differ there, and so few all over."""
    world = World(tmp_path, items=5, sides=("wrong",))
    world.run("first")
    world.grade = lenient_in_bg
    second = world.run("second")
    assert second.result("bg").void
    assert second.result("en").void == ""
    assert second.calls == 10 + 1


def refusing_in_bg(answer: str) -> str:
    """Grade as before, but for what a content filter refuses by now."""
    if " bg " in answer:
        raise core.RefusedError("refused", "content filter")
    return honest(answer)


def test_a_canary_that_is_refused_for_good_differs(tmp_path: Path) -> None:
    """It lacks nothing that another attempt would bring, so no run waits for it for ever."""
    world = World(tmp_path, items=5, sides=("wrong",))
    world.run("first")
    world.grade = refusing_in_bg
    second = world.run("second")
    assert (second.result("bg").differ, second.result("bg").lacking) == (5, 0)
    assert second.result("bg").void
    assert second.result("en").void == ""


@pytest.mark.slow
def test_void_grades_stay_void_for_later_runs(tmp_path: Path) -> None:
    """Also where the next run finds the judge as the one before left it."""
    world = World(tmp_path)
    world.run("first")
    world.grade = lenient
    world.run("second")
    third = world.run("third")
    assert third.outcomes["wrong en old 49"].readings["baseline"].state == "passed"
    assert third.calls == RIGHT + 1  # all grades pass now


def test_another_version_grades_everything_anew(tmp_path: Path) -> None:
    world = World(tmp_path, version="judge-2026-01-01")
    world.run("first")
    world.version = "judge-2026-02-02"
    second = world.run("second")
    assert second.calls == ALL_KEPT + 1
    assert "judge-2026-02-02" in second.result("en").void


@pytest.mark.slow
def test_an_attempt_more_asks_no_canary_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    before = world.run("second").status.canaries
    again = world.run("second")
    assert again.calls == 0
    assert again.status.canaries == before


@pytest.mark.slow
def test_an_interrupted_attempt_compares_with_what_was_kept_before(
    tmp_path: Path,
) -> None:
    """Its own new grades are no kept ones: they would never differ from themselves."""
    world = World(tmp_path)
    world.run("first")
    world.grade = lenient
    world.run("second", budget=SomeCalls(40))
    again = world.run("second")
    assert again.result("bg").differ > 6
    assert again.calls == ALL_KEPT + 1 - 40


def test_a_canary_for_which_no_money_is_left_is_lacking(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    second = world.run("second", budget=SomeCalls(40))
    lacking = sum(result.lacking for result in second.status.canaries)
    assert lacking == ALL_CANARIES - 40


@pytest.mark.slow
def test_a_replay_takes_the_canaries_of_its_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    before = world.run("second")
    replayed = world.run("second", replay=True)
    assert replayed.calls == 0
    assert replayed.status.canaries == before.status.canaries
    assert replayed.outcomes.keys() == before.outcomes.keys()


@pytest.mark.slow
def test_a_replay_heeds_no_drift_that_a_later_run_found(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    before = world.run("second")
    world.grade = lenient
    world.run("third")
    replayed = world.run("second", replay=True)
    assert replayed.status.canaries == before.status.canaries


def test_canaries_that_a_replay_may_not_ask_are_lacking(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("first")
    replayed = world.run("never made", replay=True)
    assert replayed.calls == 0
    assert replayed.result("bg").lacking == WRONG + SILENT


def test_a_run_that_asks_the_judge_nothing_takes_the_latest_result(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.run("first")
    before = world.run("second")
    third = world.run("third", asks_something=False)
    assert third.calls == 0
    assert third.status.canaries == before.status.canaries


def test_labelled_answers_are_asked_where_no_baseline_is(tmp_path: Path) -> None:
    world = World(tmp_path, labelled=True)
    world.run("first")
    assert world.run("second").calls == ALL_CANARIES + 1


@pytest.mark.slow
def test_each_member_of_a_panel_is_asked(tmp_path: Path) -> None:
    world = World(tmp_path, members=3)
    world.run("first")
    assert world.run("second").calls == 3 * (ALL_CANARIES + 1)


def test_an_answer_for_which_no_model_was_asked_is_no_canary(tmp_path: Path) -> None:
    """An empty answer gets its verdict without a call."""
    world = World(tmp_path, items=3, sides=("wrong",), languages=("bg",))
    rules = StateRules(silent=core.NOT_ATTEMPTED)
    silent = world._task("bg", "", world.judge())
    readings = {
        name: replace(reading, state_rules=rules)
        for name, reading in silent.readings.items()
    }
    silent = replace(silent, state_rules=rules, readings=readings)
    world.tasks = lambda run: [  # type: ignore[method-assign]
        silent,
        world._task("bg", f"wrong new {run} 0", world.judge()),
    ]
    world.run("first")
    second = world.run("second")
    assert (second.calls, second.status.canaries) == (1, ())


def test_judges_wait_for_the_canaries_and_models_do_not(tmp_path: Path) -> None:
    """While it is not known which items have a test, answers come and no kept grade counts."""
    world = World(tmp_path)
    world.run("first")
    model = Scripted(lambda request: Reply(text="right new late 0"))
    (new,) = world.tasks("second")[-1:]
    task = replace(new, answerer=Asking(model))
    bench = Bench(tmp_path, [task], run=RunIdentity(id="second", started=0.0))
    schedule = Schedule(bench.keys, 10, head_start=1)

    async def scenario() -> tuple[int, int]:
        working = asyncio.create_task(bench.engine.run(schedule))
        while not model.requests:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        asked_before = len(world.requests)
        schedule.select(bench.keys)
        await working
        return asked_before, len(world.requests)

    before, after = asyncio.run(scenario())
    assert (before, after) == (ALL_KEPT + 1, ALL_KEPT + 2)


@dataclass(frozen=True)
class Asking:
    """Answers with what a model says."""

    model: Scripted
    spec: str = "openai:scripted"

    async def answer(
        self, case: core.Case, repeat: int, ask: core.Ask
    ) -> core.ReadAnswer:
        reply = await ask(self.model, Request(messages=()))
        return core.ReadAnswer(text=reply.text)


def test_a_run_that_ends_before_its_tests_are_known_lets_no_judge_wait(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    bench = Bench(tmp_path, world.tasks("first")[-1:])
    schedule = Schedule(bench.keys, 10, head_start=1)

    async def scenario() -> None:
        working = asyncio.create_task(bench.engine.run(schedule))
        await asyncio.sleep(0.05)
        bench.engine.halt()
        schedule.close()
        await asyncio.wait_for(working, 5)

    asyncio.run(scenario())
    assert bench.posted.outcomes["new"].kind == "stopped"


Row = partial[PaidReply]
"""Lacks nothing but the reply."""


class Waves(CallRoute):
    """Batches in small: calls are parked until every item waits, and then go together."""

    takes_all = True

    def __init__(self, ledger: Ledger) -> None:
        self.waves: list[list[str]] = []
        """The SPECs of the models that were asked, by wave."""
        self._ledger = ledger
        self._meters: dict[int, Meter] = {}
        self._parked: list[tuple[KeptCall, Row, asyncio.Future[KeptReply]]] = []
        self._sending: asyncio.Task[None] | None = None

    @contextmanager
    def item(self, meter: Meter) -> Iterator[None]:
        self._meters[id(meter)] = meter
        try:
            yield
        finally:
            del self._meters[id(meter)]

    async def reply(
        self, call: KeptCall, row: Row, *, urgent: bool
    ) -> KeptReply | None:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[KeptReply] = loop.create_future()
        self._parked.append((call, row, answered))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send())
        return await answered

    async def _send(self) -> None:
        while self._parked:
            await asyncio.sleep(0.2)
            if not all(meter.waiting for meter in self._meters.values()):
                continue
            wave = self._parked
            self._parked = []
            self.waves.append([call.model.spec for call, _, _ in wave])
            for call, row, answered in wave:
                reply = await call.model.complete(call.request)
                answered.set_result(await self._ledger.put(row(reply=reply)))


def test_in_batches_canaries_go_with_the_answers(tmp_path: Path) -> None:
    """A wave may take a day: a wave for canaries alone would cost one more."""
    world = World(tmp_path, items=20)
    world.run("first")
    *old, new = world.tasks("second")
    model = Scripted(lambda request: Reply(text="right new late 0"))
    asked = replace(new, answerer=Asking(model))
    bench = Bench(tmp_path, [*old, asked], run=RunIdentity(id="second", started=0.0))
    route = Waves(bench.ledger)
    bench.engine._caller.route = route
    bench.run(window=1000)
    first, second = route.waves
    assert first.count("openai:scripted") == 1
    assert first.count("openai:judge0") == 2 * (20 + 15) + 30
    assert second == ["openai:judge0"]


def test_in_batches_earlier_answers_are_read_in_the_wave_of_the_new_ones(
    tmp_path: Path,
) -> None:
    """Where no grade is kept: both sides of a pair are judged together."""
    world = World(tmp_path, items=1, languages=("bg",), sides=("wrong",))
    old, _ = world.tasks("first")
    model = Scripted(lambda request: Reply(text="right new late 0"))
    bench = Bench(tmp_path, [replace(old, answerer=Asking(model))])
    route = Waves(bench.ledger)
    bench.engine._caller.route = route
    bench.run()
    assert route.waves == [["openai:scripted"], ["openai:judge0"] * 2]

"""An engine with its ledger and board, or as a job for a process; items that judge themselves."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from qagate.cases.tasks import PromptedAnswer, RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.judges.rule_checks import CHECKED_ANSWERS
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.models import connect
from qagate.evaluators.models.spec import parse
from qagate.evaluators.run_identity import NO_RUN, RunIdentity
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import Caller, CallSettings, RetryPolicy
from qagate.evaluators.runtime.engine import Engine, Job
from qagate.evaluators.runtime.outcomes import (
    InMemoryOutcomes,
    OutcomeStore,
    OutcomeWriter,
)
from qagate.evaluators.runtime.process import EngineProcess
from qagate.evaluators.runtime.schedule import UNLIMITED, Schedule
from qagate.evaluators.runtime.task import Task
from qagate.evaluators.text import Key
from tests.support.figures import some
from tests.support.scripted import PROMPT, Scripted, make_case

SECRET = "sk-test-0123456789abcdef"


def hanging() -> Scripted:
    class Hanging(Scripted):
        async def complete(self, request: core.Request) -> core.Reply:
            self.requests.append(request)
            await asyncio.sleep(3600)
            raise core.CallError("never", "never")

    return Hanging(lambda request: core.Reply())


class SomeCalls(Budget):
    """A budget for a number of calls, whatever they cost."""

    def __init__(self, calls: int) -> None:
        super().__init__(1.0, {})
        self.left = calls

    async def reserve(
        self,
        model: core.Model,
        request: core.Request,
        *,
        urgent: bool = False,
        batch: bool = False,
    ) -> float:
        if not self.left:
            raise core.StoppedError("budget", "the money is used up")
        self.left -= 1
        return 0.0

    def settle(self, reserved: float, spec: str, reply: core.Reply | None) -> None:
        """Nothing was set aside."""


@dataclass
class Made:
    """A job of a few items, and how to make its engine."""

    folder: Path
    model: Scripted
    count: int = 5
    board: bool = True
    lead: float = 0
    error: Exception | None = None

    @property
    def keys(self) -> list[str]:
        return [f"k{number}" for number in range(self.count)]

    def packable(self) -> Job:
        """Return a job of parts that can be packed, with a model that needs a key."""
        tasks = {key: task(number, "CORRECT") for number, key in enumerate(self.keys)}
        return Job(
            make=partial(recorded, self.folder / "ledger", tasks),
            schedule=Schedule(self.keys, self.count, head_start=0),
            models=[connect(parse("openai:m@http://127.0.0.1:9/v1", {}), Key(SECRET))],
            store=self.folder / "board",
        )

    def job(self) -> Job:
        return Job(
            make=self.make,
            schedule=Schedule(self.keys, 2, head_start=self.lead),
            models=[self.model],
            store=self.folder / "board" if self.board else None,
        )

    def make(self, sink: OutcomeWriter) -> Engine:
        if self.error is not None:
            raise self.error
        tasks = {
            f"k{number}": prompted(number, self.model) for number in range(self.count)
        }
        ledger = Ledger(self.folder / "ledger")
        caller = Caller(ledger, CallSettings(concurrency=2), lambda spec, reply: 0.5)
        return Engine(tasks, caller, sink, 2)


def recorded(ledger: Path, tasks: Mapping[str, Task], sink: OutcomeWriter) -> Engine:
    return Engine(
        tasks,
        Caller(Ledger(ledger), CallSettings(), lambda spec, reply: None),
        sink,
        16,
    )


def good() -> Scripted:
    return Scripted(lambda request: core.Reply(text="CORRECT"))


def pid_of(running: EngineProcess) -> int:
    return some(running._process.pid)


@dataclass(frozen=True)
class Echo:
    """A judge by the answer's own text: it is the grade, or the error to raise."""

    spec: str = "echo"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        errors: dict[str, Callable[[], Exception]] = {
            "unreadable": lambda: core.JudgeError("three replies could not be read"),
            "refused": lambda: core.RefusedError("too_long", "the judge refused"),
            "full": lambda: LedgerError("disk full"),
            "bug": lambda: KeyError("surprise"),
        }
        if answer in errors:
            raise errors[answer]()
        return core.Verdict(grade=answer)


def correct(case: core.Case, verdict: core.Verdict) -> bool:
    return verdict.grade == "CORRECT"


def task(number: int, answer: str | None) -> Task:
    return Task(
        key=f"k{number}",
        case=make_case(number, recorded=answer),
        repeat=1,
        answerer=RecordedAnswer(),
        judge=Echo(),
        passes=correct,
    )


def prompted(number: int, model: core.Model) -> Task:
    return Task(
        key=f"k{number}",
        case=make_case(number),
        repeat=1,
        answerer=PromptedAnswer(model=model, prompt=PROMPT),
        judge=Echo(),
        passes=correct,
    )


class Bench:
    def __init__(
        self,
        folder: Path,
        tasks: list[Task],
        settings: CallSettings | None = None,
        budget: Budget | None = None,
        run: RunIdentity = NO_RUN,
        *,
        checked_answers: int = CHECKED_ANSWERS,
    ) -> None:
        self.keys = [one.key for one in tasks]
        is_replay = settings is not None and settings.replay
        self.ledger = Ledger(folder / "ledger", read_only=is_replay)
        self.path = folder / "board"
        quick = RetryPolicy(attempts=2, first=0, longest=0)
        settings = settings or CallSettings(concurrency=4, retry=quick)
        caller = Caller(self.ledger, settings, lambda spec, reply: 0.5, budget, run=run)
        by_key = {one.key: one for one in tasks}
        self.posted = InMemoryOutcomes()
        self.board = OutcomeStore(self.path, self.posted)
        self.engine = Engine(
            by_key,
            caller,
            self.board,
            settings.concurrency,
            checked_answers=checked_answers,
        )

    def job(self, window: int) -> Job:
        return Job(
            make=lambda writer: self.engine, schedule=Schedule(self.keys, window)
        )

    def run(
        self,
        window: int = 100,
        models: Sequence[core.Model] = (),
        first: float = UNLIMITED,
    ) -> dict[str, core.Outcome]:
        asyncio.run(self.engine.run(Schedule(self.keys, window, trial=first), models))
        return self.posted.outcomes

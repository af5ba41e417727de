"""An engine with its ledger and board, and items whose answers decide their own verdict."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import Ask, Case, JudgeError, Model, Outcome, RefusedError, Verdict
from evaluators.ledger import Ledger, LedgerError
from evaluators.rubric import Prompt
from evaluators.runtime.budget import Budget
from evaluators.runtime.caller import Caller, CallSettings, RetryPolicy
from evaluators.runtime.engine import Engine, Job, Task
from evaluators.runtime.outcomes import InMemoryOutcomes, OutcomeStore
from evaluators.runtime.schedule import UNLIMITED, Schedule
from tests.support.scripted import make_case

PROMPT = Prompt(name="answer", language="bg", system="", user="{question}", version="answer.bg@1")


@dataclass(frozen=True)
class Echo:
    """A judge by the answer's own text: it is the grade, or the error to raise."""

    spec: str = "echo"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        errors: dict[str, Callable[[], Exception]] = {
            "unreadable": lambda: JudgeError("three replies could not be read"),
            "refused": lambda: RefusedError("too_long", "the judge refused"),
            "full": lambda: LedgerError("disk full"),
            "bug": lambda: KeyError("surprise"),
        }
        if answer in errors:
            raise errors[answer]()
        return Verdict(grade=answer)


def correct(case: Case, verdict: Verdict) -> bool:
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


def prompted(number: int, model: Model) -> Task:
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
    ) -> None:
        self.keys = [one.key for one in tasks]
        self.ledger = Ledger(folder / "ledger")
        self.path = folder / "board"
        quick = RetryPolicy(attempts=2, first=0, longest=0)
        settings = settings or CallSettings(concurrency=4, retry=quick)
        caller = Caller(self.ledger, settings, lambda spec, reply: 0.5, budget)
        by_key = {one.key: one for one in tasks}
        self.posted = InMemoryOutcomes()
        self.board = OutcomeStore(self.path, self.posted)
        self.engine = Engine(by_key, caller, self.board, settings.concurrency)

    def job(self, window: int) -> Job:
        return Job(make=lambda writer: self.engine, schedule=Schedule(self.keys, window))

    def run(
        self, window: int = 100, models: Sequence[Model] = (), first: float = UNLIMITED
    ) -> dict[str, Outcome]:
        asyncio.run(self.engine.run(Schedule(self.keys, window, first=first), models))
        return self.posted.outcomes

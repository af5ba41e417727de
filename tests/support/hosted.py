"""Jobs for an engine, wherever it runs: a few items, asked of a scripted model or recorded."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from evaluators.core import CallError, Reply, Request
from evaluators.ledger import Ledger
from evaluators.models import connect
from evaluators.models.spec import Spec
from evaluators.runtime.caller import Caller, CallSettings
from evaluators.runtime.engine import Engine, Job, Task
from evaluators.runtime.outcomes import OutcomeWriter
from evaluators.runtime.process import EngineProcess
from evaluators.runtime.schedule import Schedule
from evaluators.text import Key
from tests.support.engine_bench import prompted, task
from tests.support.scripted import Scripted

SECRET = "sk-test-0123456789abcdef"


def hanging() -> Scripted:
    class Hanging(Scripted):
        async def complete(self, request: Request) -> Reply:
            self.requests.append(request)
            await asyncio.sleep(3600)
            raise CallError("never", "never")

    return Hanging(lambda request: Reply())


@dataclass
class Made:
    """A job of a few items, and how to make its engine."""

    folder: Path
    model: Scripted
    count: int = 5
    board: bool = True
    lead: float = 0
    error: Exception | None = None
    prepared: list[str] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        return [f"k{number}" for number in range(self.count)]

    def packable(self) -> Job:
        """Return a job of parts that can be packed, with a model that needs a key."""
        spec = Spec(
            text="openai:m",
            provider="openai",
            name="m",
            base_url="http://127.0.0.1:9/v1",
            api_key_env="OPENAI_API_KEY",
        )
        models = [connect(spec, Key(SECRET))]
        tasks = {key: task(number, "CORRECT") for number, key in enumerate(self.keys)}
        return Job(
            make=partial(recorded, self.folder / "ledger", tasks),
            schedule=Schedule(self.keys, self.count, lead=0),
            models=models,
            store=self.folder / "board",
        )

    def job(self) -> Job:
        return Job(
            make=self.make,
            schedule=Schedule(self.keys, 2, lead=self.lead),
            models=[self.model],
            prepare=lambda: self.prepared.append("loaded"),
            store=self.folder / "board" if self.board else None,
        )

    def make(self, sink: OutcomeWriter) -> Engine:
        if self.error is not None:
            raise self.error
        tasks = {f"k{number}": prompted(number, self.model) for number in range(self.count)}
        ledger = Ledger(self.folder / "ledger")
        caller = Caller(ledger, CallSettings(concurrency=2), lambda spec, reply: 0.5)
        return Engine(tasks, caller, sink, 2)


def recorded(ledger: Path, tasks: Mapping[str, Task], sink: OutcomeWriter) -> Engine:
    return Engine(tasks, Caller(Ledger(ledger), CallSettings(), no_price), sink, 16)


def no_price(spec: str, reply: Reply) -> float | None:
    """Know no price."""


def good() -> Scripted:
    return Scripted(lambda request: Reply(text="CORRECT"))


def pid_of(running: EngineProcess) -> int:
    pid = running._process.pid
    assert pid is not None
    return pid

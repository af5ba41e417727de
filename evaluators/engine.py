"""Works through the items of a run: answer, then judge, many calls in flight, one event loop.

It runs as a thread of the process that the user started. Tests, in whatever process, only wait
for what it posts on the board.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.calls import Caller, Meter, Patience, Price
from evaluators.core import (
    Answerer,
    CallError,
    Case,
    Judge,
    JudgeError,
    Model,
    Outcome,
    State,
    Verdict,
)
from evaluators.ledger import Ledger, LedgerError
from evaluators.outcomes import BEAT_SECONDS, Board
from evaluators.schedule import Schedule

GRACE_SECONDS = 3.0  # what is in flight when a run is stopped may still arrive
BATCH_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One planned item: what is asked, by whom it is answered and judged, and what passes."""

    key: str
    case: Case
    repeat: int
    answerer: Answerer
    judge: Judge
    passes: Callable[[Case, Verdict], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine works with. ``concurrency`` bounds the calls in flight, for the whole run."""

    concurrency: int = 16
    window: int = 128
    replay: bool = False
    patience: Patience = field(default_factory=Patience)


class Engine:
    """Fills the ledger and the board for the tasks of one run."""

    def __init__(
        self,
        tasks: Mapping[str, Task],
        ledger: Ledger,
        board: Board,
        price: Price,
        settings: Settings,
    ) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.failure = ""
        self._tasks = tasks
        self._ledger = ledger
        self._board = board
        self._price = price
        self._settings = settings
        self._caller = Caller(
            ledger,
            settings.patience,
            concurrency=settings.concurrency,
            replay=settings.replay,
        )
        self._unposted: list[Outcome] = []

    @property
    def requests(self) -> int:
        """How many requests were sent to models so far."""
        return self._caller.requests

    async def run(self, schedule: Schedule, models: Sequence[Model] = ()) -> None:
        """Work until the schedule hands out nothing more; then close the models."""
        posting = asyncio.create_task(self._keep_posting(schedule))
        # Twice as many items as calls: some always wait for their reply to reach the disk.
        count = 2 * self._settings.concurrency
        workers = [asyncio.create_task(self._work(schedule)) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            posting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await posting
            await self._ledger.flush()
            for model in models:
                await model.close()
            with contextlib.suppress(sqlite3.Error):
                self._post()
                self._board.end(self.failure or "the engine has stopped")

    async def _work(self, schedule: Schedule) -> None:
        while (key := await schedule.take()) is not None:
            outcome = await self._outcome(self._tasks[key])
            self.outcomes[key] = outcome
            self._unposted.append(outcome)
            if self.failure:
                schedule.close()
            # Items that need no call never wait: give the others their turn.
            await asyncio.sleep(0)

    async def _outcome(self, task: Task) -> Outcome:
        meter = Meter(price=self._price)
        ask = self._caller.metered(meter)
        answer: str | None = None
        verdict: Verdict | None = None
        state: State = "error"
        kind = message = ""
        try:
            answer = await task.answerer.answer(task.case, task.repeat, ask)
            verdict = await task.judge.judge(task.case, answer, ask)
            state = "passed" if task.passes(task.case, verdict) else "failed"
        except CallError as error:
            kind, message = error.kind, str(error)
        except JudgeError as error:
            kind, message = "judge_unreadable", str(error)
        except LedgerError as error:
            state, kind, message = "missing", "ledger", str(error)
            self.failure = message
        except Exception as error:  # noqa: BLE001  # one item's surprise must not end the run
            kind, message = "internal", f"{type(error).__name__}: {error}"
        return Outcome(
            key=task.key,
            state=state,
            answer=answer,
            verdict=verdict,
            kind=kind,
            message=message,
            model=meter.models.get(task.answerer.spec, task.answerer.spec),
            judge=meter.models.get(task.judge.spec, task.judge.spec),
            usage=meter.usage,
        )

    async def _keep_posting(self, schedule: Schedule) -> None:
        loop = asyncio.get_running_loop()
        last_beat = -BEAT_SECONDS
        try:
            while True:
                self._post()
                if loop.time() - last_beat >= BEAT_SECONDS:
                    self._board.beat()
                    last_beat = loop.time()
                await asyncio.sleep(BATCH_SECONDS)
        except sqlite3.Error as error:
            # No test would hear of a further outcome: nothing more is to be paid for.
            self.failure = f"the outcomes cannot be posted: {error}; free space in the temp folder"
            schedule.close()

    def _post(self) -> None:
        batch, self._unposted = self._unposted, []
        if batch:
            self._board.post(batch)


class EngineThread:
    """Runs an engine beside pytest and passes on what pytest knows."""

    def __init__(self, engine: Engine, schedule: Schedule, models: Sequence[Model]) -> None:
        self._engine = engine
        self._schedule = schedule
        self._models = models
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="qa-engine", daemon=True)

    def start(self) -> None:
        """Begin to work through the schedule."""
        self._thread.start()

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start nothing more, wait ``grace`` seconds for what is in flight, then give it up."""
        self._schedule.close()
        self._thread.join(grace)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(grace)

    def _run(self) -> None:
        try:
            self._main = self._loop.create_task(self._engine.run(self._schedule, self._models))
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        except Exception as error:  # noqa: BLE001  # said in the report; the tests must not hang
            self._engine.failure = f"the engine failed: {type(error).__name__}: {error}"
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()

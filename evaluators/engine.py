"""Works through the items of a run: answer, then judge, many calls in flight, one event loop.

It runs as a thread of the process that the user started. Tests, in whatever process, only wait
for what it posts on the board.
"""

import asyncio
import contextlib
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.budget import Budget
from evaluators.calls import Caller, Meter, Price
from evaluators.core import (
    Answerer,
    Ask,
    CallError,
    Case,
    Judge,
    JudgeError,
    Model,
    Outcome,
    State,
    StoppedError,
    Verdict,
)
from evaluators.extras import Measurer, Taken, take
from evaluators.judges.naming import returned_names
from evaluators.ledger import Ledger, LedgerError
from evaluators.limits.sender import Bounds, Patience, Sender
from evaluators.outcomes import BEAT_SECONDS, Board
from evaluators.schedule import Schedule

GRACE_SECONDS = 3.0  # what is in flight when a run is stopped may still arrive
BATCH_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One planned item: what is asked, by whom it is answered and judged, and what passes.

    ``measurers`` give the answer numbers of their own once it has a verdict.
    """

    key: str
    case: Case
    repeat: int
    answerer: Answerer
    judge: Judge
    passes: Callable[[Case, Verdict], bool]
    measurers: tuple[Measurer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the engine works with.

    ``concurrency`` bounds the calls in flight, ``rpm`` the requests a minute, ``deadline`` the
    seconds and ``budget`` the USD of the whole run; None means no bound. With ``reask_invalid`` a
    judge whose replies in the ledger are all unreadable is asked anew. ``random`` gives numbers
    from 0 to 1, by which pauses are spread.
    """

    concurrency: int = 16
    window: int = 128
    replay: bool = False
    reask_invalid: bool = False
    rpm: int | None = None
    deadline: float | None = None
    budget: Budget | None = None
    patience: Patience = field(default_factory=Patience)
    random: Callable[[], float] = random.random

    @property
    def bounds(self) -> Bounds:
        """What the user allows the run."""
        return Bounds(
            concurrency=self.concurrency, rpm=self.rpm, deadline=self.deadline, budget=self.budget
        )


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
        self.errors: Counter[str] = Counter()  # items that ended as ERROR, by kind
        self._tasks = tasks
        self._ledger = ledger
        self._board = board
        self._price = price
        self._settings = settings
        self._sender = Sender(settings.patience, settings.bounds, settings.random)
        self._caller = Caller(
            ledger, self._sender, replay=settings.replay, reask=settings.reask_invalid
        )
        self._unposted: list[Outcome] = []
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def requests(self) -> int:
        """How many requests were sent to models so far."""
        return self._sender.requests

    @property
    def in_flight(self) -> int:
        """How many calls are at the models now."""
        return self._sender.admission.in_flight

    @property
    def limit(self) -> int:
        """How many may be, as the servers bear it; never more than ``concurrency``."""
        return self._sender.admission.limit

    @property
    def retried(self) -> Mapping[str, int]:
        """How many calls failed and were tried again, by kind."""
        return dict(self._sender.retried)

    @property
    def waiting(self) -> str:
        """What holds calls back now, in a few words; empty where nothing does."""
        loop = self._loop
        return "" if loop is None else self._sender.admission.describe(loop.time())

    @property
    def stops(self) -> Mapping[str, str]:
        """Why calls were no longer made, one line by kind: a wrong key, the deadline, the budget.

        Items that needed none of them have ended as usual, the others are MISSING.
        """
        return dict(self._sender.stops)

    def halt(self) -> None:
        """Start no further call; to be called from the engine's own loop."""
        kind = "stopped"
        self._sender.halt(StoppedError(kind, "the run was stopped before this was asked"))

    async def run(self, schedule: Schedule, models: Sequence[Model] = ()) -> None:
        """Work until the schedule hands out nothing more; then close the models."""
        self._loop = asyncio.get_running_loop()
        self._sender.begin()
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
            if outcome.state == "error":
                self.errors[outcome.kind] += 1
            self._unposted.append(outcome)
            self._news.set()
            schedule.done()
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
        except StoppedError as error:
            state, kind, message = "missing", error.kind, str(error)
        except CallError as error:
            kind, message = error.kind, str(error)
        except JudgeError as error:
            kind, message = error.kind, str(error)
            verdict = Verdict(votes=error.votes) if error.votes else None
        except LedgerError as error:
            state, kind, message = "missing", "ledger", str(error)
            self.failure = message
        except Exception as error:  # noqa: BLE001  # one item's surprise must not end the run
            kind, message = "internal", f"{type(error).__name__}: {error}"
        extra = await self._measured(task, None if kind else answer, ask)
        return Outcome(
            key=task.key,
            state=state,
            answer=answer,
            verdict=verdict,
            kind=kind,
            message=message,
            model=meter.models.get(task.answerer.spec, task.answerer.spec),
            judge=returned_names(task.judge.spec, meter.models),
            usage=meter.usage,
            measures=extra.values,
            unmeasured=extra.unmeasured,
        )

    async def _measured(self, task: Task, answer: str | None, ask: Ask) -> Taken:
        if answer is None or not task.measurers:
            return Taken()
        extra = await take(task.measurers, task.case, answer, ask)
        self.failure = self.failure or extra.failure
        return extra

    async def _keep_posting(self, schedule: Schedule) -> None:
        loop = asyncio.get_running_loop()
        last_beat = -BEAT_SECONDS
        try:
            while True:
                self._post()
                if loop.time() - last_beat >= BEAT_SECONDS:
                    self._board.beat()
                    last_beat = loop.time()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._news.wait()
                self._news.clear()
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

    @property
    def is_alive(self) -> bool:
        """Whether it is still at work."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Begin to work through the schedule."""
        self._thread.start()

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""
        self._schedule.close()
        with contextlib.suppress(RuntimeError):  # the loop is closed: all is done
            self._loop.call_soon_threadsafe(self._engine.halt)
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

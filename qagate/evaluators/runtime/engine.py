"""Works through the items of a run: answers, then judges, with many calls in one event loop."""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, assert_never

from qagate.evaluators import core
from qagate.evaluators.core import CallError, Outcome, StoppedError, Verdict
from qagate.evaluators.ledger import LedgerError
from qagate.evaluators.metric_specs import MetricSpec
from qagate.evaluators.runtime.caller import Caller, Meter
from qagate.evaluators.runtime.limits import BAD_REQUEST
from qagate.evaluators.runtime.outcomes import (
    BEAT_SECONDS,
    Ended,
    Instruction,
    Lead,
    OutcomeStore,
    OutcomeWriter,
    Refuse,
    Select,
    Status,
    Want,
)
from qagate.evaluators.runtime.schedule import Schedule
from qagate.evaluators.text import mask, one_line, travelling
from qagate.evaluators.user_code import NOTE_WORK, in_thread

POST_SECONDS = 0.02  # for which outcomes are collected before they are posted together
JUDGING_GRACE_S = (
    1.75  # for judges after the run's time is used up; their calls end before
)
STUCK_SECONDS = 300.0  # a loop that has not turned for so long never will


class Stopping(Protocol):
    """Says when enough was asked. Its methods return at once and have no other effect.

    The engine knows no gates: it tells how each item ended, and learns which are needed no more.
    """

    def select(self, keys: Collection[str]) -> None:
        """Note which of the planned items are asked at all."""

    def is_due(self, key: str) -> bool:
        """Return whether an item may be asked now; others would run far ahead of a slow call."""

    def note(self, outcome: Outcome) -> Collection[str]:
        """Note how an item ended; return the keys of those that need no longer be asked."""


def returned_names(spec: str, models: Mapping[str, str]) -> str:
    """Return a judge's SPEC with its models' names by their providers, by SPEC where asked."""
    return " ".join(
        replace(one, model=models[one.model]).name if one.model in models else one.name
        for one in core.parse_judges(spec.split(" ")).members
    )


def stopped(key: str) -> Outcome:
    """Return the outcome of an item that is not asked."""
    message = "not asked: no further item could change the gates of its slice"
    return Outcome(key=key, state="stopped", kind="decided", message=message)


class MetricRunner(Protocol):
    """Gives an answer a number from 0 to 1 in addition to its verdict."""

    @property
    def spec(self) -> MetricSpec:
        """The metric."""

    async def measure(self, case: core.Case, answer: str, ask: core.Ask) -> float:
        """Return the number. Raises CallError or JudgeError if there is none."""


MetricResults = tuple[Mapping[str, float | None], Mapping[str, str], str]
"""The metrics of one answer, None for those that failed, and their errors, both by the metric's
name; and why the ledger keeps no further reply, else empty."""


async def measure_all(
    metric_runners: Sequence[MetricRunner], case: core.Case, answer: str, ask: core.Ask
) -> MetricResults:
    """Return every metric of an answer; one that fails does not affect the others."""
    asked = (runner.measure(case, answer, ask) for runner in metric_runners)
    found = await asyncio.gather(*asked, return_exceptions=True)
    values, unmeasured, failure = dict[str, float | None](), dict[str, str](), ""
    for runner, result in zip(metric_runners, found, strict=True):
        name = runner.spec.name
        values[name] = None if isinstance(result, BaseException) else result
        if isinstance(result, CallError | core.JudgeError):
            unmeasured[name] = f"{result.kind}: {result}"
        elif isinstance(result, Exception):
            kind = "internal"
            if isinstance(result, LedgerError):
                kind, failure = "ledger", str(result)
            unmeasured[name] = (
                f"{kind}: {one_line(mask(f'{type(result).__name__}: {result}'))}"
            )
        elif isinstance(result, BaseException):
            raise result
    return values, unmeasured, failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One planned item: its case, who answers and who judges it, and what passes."""

    key: str
    case: core.Case
    repeat: int
    answerer: core.Answerer
    judge: core.Judge
    passes: Callable[[core.Case, Verdict], bool]
    metric_runners: tuple[MetricRunner, ...] = ()
    """Extra metrics, computed once the answer has a verdict."""


def nothing() -> None:
    """Do nothing."""


class Engine:
    """Answers and judges the items of one run, up to ``concurrency`` calls at once.

    ``failure`` says why it had to stop, if it had. ``stopping`` None: every item is asked.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        caller: Caller,
        writer: OutcomeWriter,
        concurrency: int,
        stopping: Stopping | None = None,
    ) -> None:
        self.failure = ""
        self._tasks = tasks
        self._caller = caller
        self._sender = caller.sender
        self._writer = writer
        self._concurrency = concurrency
        self.stopping = stopping
        self._unneeded: set[str] = set()
        self._ended = asyncio.Condition()
        self._unposted: list[Outcome] = []
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turned_at = 0.0

    @property
    def status(self) -> Status:
        """The engine's status; any thread may read it."""
        loop, sender, budget = self._loop, self._sender, self._sender.budget
        return Status(
            requests=sender.requests,
            in_flight=sender.admission.in_flight,
            limit=sender.admission.limit,
            retried=dict(sender.retried),
            waiting="" if loop is None else self._caller.describe(loop.time()),
            stops={**sender.admission.hopeless, **sender.stops},
            failure=self.failure,
            spent=None if budget is None else budget.spent,
            notes=self._caller.ledger.notes,
            unkept=self._caller.ledger.unkept,
            left=float("inf") if loop is None else sender.end - loop.time(),
        )

    def fail(self, error: Exception) -> None:
        """Note that the engine broke down, and let no test wait for it."""
        self.failure = f"the engine failed: {type(error).__name__}: {error}"
        with contextlib.suppress(sqlite3.Error):
            self._post()
            self._writer.end(self.failure)

    def close(self) -> None:
        """Close the ledger and the writer; the status can still be read."""
        self._caller.ledger.close()
        self._writer.close()

    def halt(self) -> None:
        """Start no further call. Call it from the engine's own loop."""
        self._caller.halt(
            StoppedError("stopped", "the run was stopped before this was asked")
        )

    async def run(
        self,
        schedule: Schedule,
        models: Sequence[core.Model] = (),
        load: Callable[[], None] = nothing,
    ) -> None:
        """Do ``load``, work until the schedule hands out no more items; then close the models."""
        self._loop = asyncio.get_running_loop()
        posting = asyncio.create_task(self._keep_posting(schedule))
        over = threading.Event()
        self._turned_at = self._loop.time()
        beating = in_thread(partial(self._keep_beating, self._loop, over))
        try:
            await asyncio.to_thread(load)  # on a busy machine it may take long
            self._caller.open()
            # Twice as many items as calls: some always wait until their reply is on the disk. A
            # batch takes all items at once.
            count = (
                len(self._tasks)
                if self._caller.detour.takes_all
                else 2 * self._concurrency
            )
            await asyncio.gather(*(self._work(schedule) for _ in range(count)))
        except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
            self.fail(error)
        finally:
            over.set()
            beating.exception()
            posting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await posting
            await self._caller.close()
            for model in models:
                await model.close()
            with contextlib.suppress(sqlite3.Error):
                self._post()
                self._writer.end(self.failure or "the engine has stopped")

    async def _work(self, schedule: Schedule) -> None:
        while (key := await schedule.take()) is not None:
            if self.stopping and not await self._is_needed(key, self.stopping):
                continue
            self._sender.begin()
            NOTE_WORK.set(partial(self._note_work, key))
            meter = Meter(price=self._caller.price)
            with self._caller.detour.item(meter):
                outcome = await self._answered_and_judged(self._tasks[key], meter)
            self._add(outcome)
            schedule.done(refused=outcome.kind in BAD_REQUEST and self.stopping is None)
            if self.stopping:
                await self._stop_asking(self.stopping.note(outcome), schedule)
            if self.failure:
                schedule.close()
            # Items that need no call never wait: let the others have their turn.
            await asyncio.sleep(0)

    def _note_work(self, key: str, began: bool) -> None:
        """Note in any thread whether the user's code is at work on an item."""
        self._writer.note_work(key, self.status.left if began else None)

    def _add(self, outcome: Outcome) -> None:
        self._unposted.append(outcome)
        self._news.set()

    async def _is_needed(self, key: str, stopping: Stopping) -> bool:
        async with self._ended:
            await self._ended.wait_for(
                lambda: key in self._unneeded or stopping.is_due(key)
            )
        if key in self._unneeded:
            await self._leave(key)
        return key not in self._unneeded

    async def _leave(self, key: str) -> bool:
        """Post an item that is not asked, with its result if the ledger has it; return whether.

        So a run counts all that was paid for, even if a repeated one is decided with less in hand.
        """
        meter = Meter(price=self._caller.price, kept_only=True)
        outcome = await self._answered_and_judged(self._tasks[key], meter)
        is_kept = bool(outcome.calls) and not meter.missed
        self._add(outcome if is_kept else stopped(key))
        return is_kept

    async def _stop_asking(self, keys: Collection[str], schedule: Schedule) -> None:
        """Post the items that need not be asked, and wake those that wait for their turn."""
        self._unneeded.update(keys)
        misses, most = (
            0,
            2 * self._concurrency,
        )  # no run has more in hand when it is decided
        for key in schedule.discard(keys):
            if misses > most:
                self._add(stopped(key))
            else:
                misses = 0 if await self._leave(key) else misses + 1
        async with self._ended:
            self._ended.notify_all()

    async def _answered_and_judged(self, task: Task, meter: Meter) -> Outcome:
        ask = self._caller.metered(meter)
        answer: str | None = None
        verdict: Verdict | None = None
        state: core.State = "error"
        kind = message = ""
        try:
            answer = travelling(await task.answerer.answer(task.case, task.repeat, ask))
            meter.end_answer()
            judging = task.judge.judge(task.case, answer, ask)
            verdict = await self._sender.before_the_end(judging, JUDGING_GRACE_S)
            state = "passed" if task.passes(task.case, verdict) else "failed"
        except CallError as error:
            kind, message = error.kind, str(error)
            state = "missing" if isinstance(error, StoppedError) else state
        except core.JudgeError as error:
            kind, message = error.kind, str(error)
            verdict = Verdict(votes=error.votes) if error.votes else None
        except LedgerError as error:
            state, kind, message = "missing", "ledger", str(error)
            self.failure = message
        except Exception as error:  # noqa: BLE001  # one item's failure must not end the run
            kind, message = "internal", f"{type(error).__name__}: {error}"
        values, unmeasured, failure = await self._measured(
            task, None if kind else answer, ask
        )
        self.failure = self.failure or failure
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
            answering=meter.answering,
            measures={**(verdict.scores if verdict else {}), **values},
            unmeasured=unmeasured,
            calls=meter.calls,
        )

    async def _measured(
        self, task: Task, answer: str | None, ask: core.Ask
    ) -> MetricResults:
        if answer is None or not task.metric_runners:
            return {}, {}, ""
        try:
            measuring = measure_all(task.metric_runners, task.case, answer, ask)
            return await self._sender.before_the_end(measuring, JUDGING_GRACE_S)
        except StoppedError as error:
            names = dict.fromkeys(runner.spec.name for runner in task.metric_runners)
            return names, dict.fromkeys(names, str(error)), ""

    async def _keep_posting(self, schedule: Schedule) -> None:
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._post()
                self._turned_at = loop.time()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._news.wait()
                self._news.clear()
                await asyncio.sleep(POST_SECONDS)
        except Exception as error:  # noqa: BLE001
            # No test would learn of further outcomes: nothing more may be paid for.
            self.failure = (
                f"the outcomes cannot be posted: {error}; free space in the temp folder"
            )
            schedule.close()

    def _keep_beating(
        self, loop: asyncio.AbstractEventLoop, over: threading.Event
    ) -> None:
        """Show from a thread that the engine is alive: a loop that is held up is not lost."""
        while loop.time() - self._turned_at < STUCK_SECONDS:
            with contextlib.suppress(sqlite3.Error):  # posting reports a full disk
                self._writer.beat()
            if over.wait(BEAT_SECONDS):
                return

    def _post(self) -> None:
        batch, self._unposted = self._unposted, []
        if batch:
            self._writer.post(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an engine is to do. It can be pickled, as it may go to a process that is running."""

    make: Callable[[OutcomeWriter], Engine]
    """Makes the engine, and is called where it runs: no open file can move there."""
    schedule: Schedule
    models: Sequence[core.Model] = ()
    prepare: Callable[[], None] = nothing
    """Loads what the first call will need."""
    store: Path | None = None
    """The file in which other processes look for outcomes; None if there are none."""

    def engine(self, first: OutcomeWriter) -> Engine:
        """Return the engine, which tells ``first`` first. Raises UsageError for any failure."""
        try:
            return self.make(
                first if self.store is None else OutcomeStore(self.store, first)
            )
        except core.UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # a traceback would help nobody
            raise core.UsageError(
                f"the engine failed: {type(error).__name__}: {error}"
            ) from None

    def obey(self, engine: Engine, instruction: Instruction) -> None:
        """Do what the running engine is told. Call it from the engine's own loop."""
        match instruction:
            case Lead():
                self.schedule.lead(instruction.count)
            case Select():
                if engine.stopping:
                    engine.stopping.select(instruction.keys)
                self.schedule.select(instruction.keys, instruction.untested)
            case Want():
                self.schedule.want(instruction.key)
            case Ended():
                self.schedule.ended(instruction.count)
            case Refuse():
                engine.failure = engine.failure or instruction.why
                self.schedule.close()
            case _:
                assert_never(instruction)

"""The engine: works through the items of a run, many at a time, in one event loop.

Begin with ``Engine._work``, which takes items from the schedule; an ItemWorker brings each to
its end. The schedule says which item is next, and the caller puts each request to its model
within all limits. The engine posts how each item ended; tests wait for that elsewhere. It knows
neither pytest nor gates.

What fails for one item is that item's outcome. What concerns all items, such as a ledger
that cannot be written, ends the run: ``Engine.failure`` says why, and no test waits.
"""

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, assert_never

from qagate.evaluators import core
from qagate.evaluators.core import Outcome, StoppedError
from qagate.evaluators.crash import Crash, crash_of
from qagate.evaluators.judges.rule_checks import CHECKED_ANSWERS
from qagate.evaluators.ledger import LedgerError
from qagate.evaluators.negotiation import described
from qagate.evaluators.output import UnwrittenError
from qagate.evaluators.runtime.caller import Caller, ItemClock, Meter
from qagate.evaluators.runtime.canaries import Canaries
from qagate.evaluators.runtime.item_worker import ItemWorker
from qagate.evaluators.runtime.limits import BAD_REQUEST
from qagate.evaluators.runtime.outcomes import (
    BEAT_SECONDS,
    AllowHeadStart,
    CountEndedTests,
    Instruction,
    MoveToFront,
    OutcomeStore,
    OutcomeWriter,
    Refuse,
    Select,
    Status,
)
from qagate.evaluators.runtime.rule_checks import RuleChecks
from qagate.evaluators.runtime.schedule import Schedule
from qagate.evaluators.runtime.slice_stops import (
    SLICE_STOPPED,
    SliceStop,
    SliceStops,
    slice_name_of,
    unasked_outcome,
)
from qagate.evaluators.runtime.task import Task
from qagate.evaluators.user_code import NOTE_WORK, in_thread

POST_SECONDS = 0.02
"""For so long outcomes are collected before they are posted together."""

STUCK_SECONDS = 300.0
"""A loop that has not turned for so long never will."""


class Stopping(Protocol):
    """Says when enough was asked. Its methods return at once.

    The engine knows no gates. It reports how each item ended, and learns which items no
    gate needs any more.
    """

    def select(self, keys: Collection[str]) -> None:
        """Note which of the planned items are asked at all."""

    def is_due(self, key: str) -> bool:
        """Return whether an item may be asked now.

        Items wait for slow ones before them: otherwise a run would be far ahead when it is
        decided, and would have paid for that.
        """

    def note_rule_check(self, key: str, label: str) -> None:
        """Note what the model says of an answer that rules before it settled."""

    def note(self, outcome: Outcome) -> Collection[str]:
        """Note how an item ended; return the keys of the items that nobody needs now."""


def stopped_outcome(key: str) -> Outcome:
    """Return the outcome of an item that is not asked, as its gates are decided."""
    message = "not asked: no further item could change the gates of its slice"
    return Outcome(key=key, state="stopped", kind="decided", message=message)


def do_nothing() -> None:
    """Do nothing."""


class Engine:
    """Answers and judges the items of one run, up to ``concurrency`` calls at once.

    Three things run side by side while ``run`` does: workers, each with one item at a time;
    a task that posts outcomes in groups; and a thread with the heartbeat, by which others
    see that the engine lives even while the user's code holds up the event loop.

    With a ``stopping`` the run may end early: each outcome is reported to it, and items
    that no gate needs any more are not asked. They get an outcome all the same.

    Attributes::

    :failure: Why the engine had to stop; empty if it had not.

    :crash: What nobody foresaw, if it stopped for that.

    :stopping: Says which items are needed no more; None if all are asked.

    :_unneeded: The keys of items that ``stopping`` has named so far.

    :_item_ended: Notified whenever an item has ended, for those that wait until they are
       due. Used with ``stopping`` only.

    :_unposted: Outcomes that wait for the next post.

    :_turned_at: When the event loop last had time to post, by its own clock.
    """

    def __init__(
        self,
        tasks: Mapping[str, Task],
        caller: Caller,
        writer: OutcomeWriter,
        concurrency: int,
        stopping: Stopping | None = None,
        *,
        checked_answers: int = CHECKED_ANSWERS,
    ) -> None:
        self.failure = ""
        self.crash: Crash | None = None
        self.stopping = stopping
        self._tasks = tasks
        self._caller = caller
        self._sender = caller.sender
        self._slice_stops = SliceStops()
        self._canaries = Canaries(tasks, caller, 2 * concurrency)
        self._worker = ItemWorker(caller, ask_judge=self._canaries.asking)
        self._rule_checks = RuleChecks(
            tasks,
            caller,
            self._canaries.asking,
            most=checked_answers,
            stopping=stopping,
        )
        self._writer = writer
        self._concurrency = concurrency
        self._unneeded: set[str] = set()
        self._item_ended = asyncio.Condition()
        self._unposted: list[Outcome] = []
        self._has_unposted = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turned_at = 0.0

    @property
    def status(self) -> Status:
        """The engine's status; any thread may read it."""
        sender = self._sender
        negotiated = dict(
            self._caller.negotiations.by_spec
        )  # another thread may add one
        held_back_by = ""
        seconds_left = float("inf")
        if self._loop is not None:
            now = self._loop.time()
            held_back_by = self._caller.describe(now)
            seconds_left = sender.end - now
        return Status(
            requests=sender.requests,
            in_flight=sender.admission.in_flight,
            limit=sender.admission.limit,
            retried=dict(sender.retried),
            held_back_by=held_back_by,
            stops={**sender.admission.hopeless, **sender.stops},
            failure=self.failure,
            crash=self.crash,
            spent=None if sender.budget is None else sender.budget.spent,
            notes=(*self._caller.ledger.notes, *described(negotiated)),
            negotiated=negotiated,
            kept=len(self._caller.ledger.own),
            unkept=self._caller.ledger.unkept,
            run=self._caller.run,
            left=seconds_left,
            canaries=self._canaries.results,
            rule_checks=dict(self._rule_checks.labels),
            judges_usage=self._canaries.usage + self._rule_checks.usage,
        )

    def fail(self, error: Exception) -> None:
        """Note that the engine broke down, and let no test wait for it."""
        self.failure = f"the engine failed: {type(error).__name__}: {error}"
        if not isinstance(error, core.QAError):
            self.crash = crash_of(error)
        with contextlib.suppress(sqlite3.Error):
            self._post()
            self._writer.end(self.failure)

    def close(self) -> None:
        """Close the ledger and the writer; the status can still be read."""
        self._caller.ledger.close()
        self._writer.close()

    def halt(self) -> None:
        """Start no further call. Call it from the engine's own loop."""
        error = StoppedError("stopped", "the run was stopped before this was asked")
        self._caller.halt(error)

    async def run(
        self,
        schedule: Schedule,
        models: Sequence[core.Model] = (),
        load: Callable[[], None] = do_nothing,
    ) -> None:
        """Do ``load``, work until the schedule hands out no more items; then close the models."""
        self._loop = asyncio.get_running_loop()
        self._turned_at = self._loop.time()
        if self.stopping is None:  # which fixes the order of items
            self._sender.note_timeout = partial(self._try_others_first, schedule)
        posting = asyncio.create_task(self._keep_posting(schedule))
        watching: asyncio.Task[None] | None = None
        is_over = threading.Event()
        heartbeat = in_thread(partial(self._keep_beating, self._loop, is_over))
        try:
            await asyncio.to_thread(load)  # on a busy machine it may take long
            self._caller.open()
            watching = asyncio.create_task(self._watch_judges(schedule))
            workers = [self._work(schedule) for _ in range(self._worker_count())]
            await asyncio.gather(*workers)
            await self._rule_checks.finish()
        except LedgerError as error:
            self.failure = str(error)
        except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
            self.fail(error)
        finally:
            is_over.set()
            heartbeat.exception()  # returns once the thread has ended
            for task in (posting, watching):
                if task is not None:
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
            self._rule_checks.abandon()
            await self._caller.close()
            for model in models:
                await model.close()
            with contextlib.suppress(sqlite3.Error):
                self._post()
                self._writer.end(self.failure or "the engine has stopped")

    async def _watch_judges(self, schedule: Schedule) -> None:
        """See before a kept grade counts whether the judges are still the same."""
        try:
            await self._canaries.run(schedule.selected)
        except LedgerError as error:
            self.failure = str(error)
            schedule.close()
        except Exception as error:  # noqa: BLE001  # as in run
            self.fail(error)
            schedule.close()

    def _worker_count(self) -> int:
        """Return how many items are at work at once.

        They are twice as many as calls, as some always wait until their reply is on the
        disk. A batch takes all items at once.
        """
        if self._caller.route.takes_all:
            return len(self._tasks)
        return 2 * self._concurrency

    async def _work(self, schedule: Schedule) -> None:
        """Take one item after the other from the schedule, and post how it ended."""
        while (key := await schedule.take()) is not None:
            if self.stopping is not None:
                await self._wait_until_due(key, self.stopping)
                if key in self._unneeded:
                    await self._post_unasked(key)
                    continue
            self._sender.begin()
            NOTE_WORK.set(partial(self._note_work, key))
            outcome = await self._outcome(key)
            self._add(outcome)
            # With early stopping, an item from elsewhere in the plan would not be due yet.
            was_refused = outcome.kind in BAD_REQUEST and self.stopping is None
            schedule.note_done(was_refused=was_refused)
            if self.stopping is not None:
                await self._stop_asking(self.stopping.note(outcome), schedule)
            if self.failure:
                schedule.close()
            # Items that need no call never wait: let the others have their turn.
            await asyncio.sleep(0)

    async def _outcome(self, key: str) -> Outcome:
        """Return how an item ended; nothing is sent if nobody can read its judge."""
        task = self._tasks[key]
        slice_name = slice_name_of(task.case)
        stop = self._slice_stops.stopped.get(slice_name)
        if stop is not None:
            kept_outcome = await self._kept_outcome(key)
            return kept_outcome or unasked_outcome(key, stop)
        clock = ItemClock(slice_name=slice_name)
        meter = Meter(price=self._caller.price, clock=clock)
        outcome = await self._answer_and_judge(task, meter)
        if self._slice_stops.note(task.case, outcome):
            self._note_stop(self._slice_stops.stopped[slice_name])
        return outcome

    def _note_stop(self, stop: SliceStop) -> None:
        """Say why a slice is stopped, and end all calls if no judge can be read."""
        others = list(self._slice_stops.stopped)[1:]
        if others:
            self._sender.stops[SLICE_STOPPED] += f"; likewise {others[-1]}"
        else:
            self._sender.stops[SLICE_STOPPED] = stop.reason
        if self._slice_stops.ends_run:
            self._caller.halt(StoppedError(stop.kind, stop.reason))

    def _try_others_first(self, schedule: Schedule, slice_name: str) -> None:
        """Have the items of a slice wait for those of others: its replies may have no end."""
        keys = [
            key
            for key, task in self._tasks.items()
            if slice_name_of(task.case) == slice_name
        ]
        schedule.defer(keys)

    async def _wait_until_due(self, key: str, stopping: Stopping) -> None:
        """Return once an item may be asked, or need not be asked any more."""

        def is_settled() -> bool:
            return key in self._unneeded or stopping.is_due(key)

        async with self._item_ended:
            await self._item_ended.wait_for(is_settled)

    async def _stop_asking(self, keys: Collection[str], schedule: Schedule) -> None:
        """Post the items that need not be asked, and wake those that wait until they are due.

        What an earlier run has paid for is looked up in the ledger. No run has more items in
        hand than it has workers. So after that many in a row that the ledger lacks, it lacks
        all the others too.
        """
        self._unneeded.update(keys)
        most_misses = 2 * self._concurrency
        misses = 0
        for key in schedule.discard(keys):
            if misses > most_misses:
                self._add(stopped_outcome(key))
            elif await self._post_unasked(key):
                misses = 0
            else:
                misses += 1
        async with self._item_ended:
            self._item_ended.notify_all()

    async def _post_unasked(self, key: str) -> bool:
        """Post an item without a call, and return whether the ledger has its result.

        So a run counts all that was paid for, even if a repeated run is decided with fewer
        items in hand.
        """
        kept_outcome = await self._kept_outcome(key)
        self._add(kept_outcome or stopped_outcome(key))
        return kept_outcome is not None

    async def _kept_outcome(self, key: str) -> Outcome | None:
        """Return how an item ends by kept replies alone; None if one is missing."""
        meter = Meter(price=self._caller.price, kept_only=True)
        outcome = await self._answer_and_judge(self._tasks[key], meter)
        if not outcome.calls or meter.missed:
            return None
        return outcome

    async def _answer_and_judge(self, task: Task, meter: Meter) -> Outcome:
        """Return how an item ended. Sets ``failure`` where the ledger keeps nothing more."""
        outcome = await self._worker.outcome(task, meter)
        if self._worker.ledger_failure:
            self.failure = self._worker.ledger_failure
        return outcome

    def _note_work(self, key: str, began: bool) -> None:
        """Note, in any thread, that the user's code began its work on an item, or ended it."""
        self._writer.note_work(key, self.status.left if began else None)

    def _add(self, outcome: Outcome) -> None:
        """Have an outcome posted with the next group."""
        self._rule_checks.note(outcome)
        self._unposted.append(outcome)
        self._has_unposted.set()

    def _post(self) -> None:
        """Post all outcomes that wait for it. Raises sqlite3.Error if that is impossible."""
        outcomes = self._unposted
        self._unposted = []
        if outcomes:
            self._writer.post(outcomes)

    async def _keep_posting(self, schedule: Schedule) -> None:
        """Post outcomes in groups, and show at least twice a second that the loop turns."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                self._post()
                self._turned_at = loop.time()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BEAT_SECONDS):
                        await self._has_unposted.wait()
                self._has_unposted.clear()
                await asyncio.sleep(POST_SECONDS)
        except Exception as error:  # noqa: BLE001
            # No test would learn of further outcomes: nothing more may be paid for.
            self.failure = (
                f"the outcomes cannot be posted: {error}; free space in the temp folder"
            )
            schedule.close()

    def _keep_beating(
        self, loop: asyncio.AbstractEventLoop, is_over: threading.Event
    ) -> None:
        """Show from a thread that the engine is alive, until it is over or stuck."""
        while loop.time() - self._turned_at < STUCK_SECONDS:
            with contextlib.suppress(sqlite3.Error):  # posting reports a full disk
                self._writer.beat()
            if is_over.wait(BEAT_SECONDS):
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an engine is to do. It can be pickled, as it may go to a process that is running."""

    make: Callable[[OutcomeWriter], Engine]
    """Makes the engine. It is called where the engine runs: no open file can move there."""
    schedule: Schedule
    models: Sequence[core.Model] = ()
    prepare: Callable[[], None] = do_nothing
    """Loads what the first call will need."""
    store: Path | None = None
    """The file in which other processes look for outcomes; None if there are none."""

    def make_engine(self, writer: OutcomeWriter) -> Engine:
        """Return the engine, which tells ``writer`` of everything before the ``store``.

        Raises UnwrittenError for a full disk, and UsageError for what the user can mend.
        """
        try:
            if self.store is not None:
                writer = OutcomeStore(self.store, writer)
            return self.make(writer)
        except (core.UsageError, UnwrittenError):
            raise
        except (core.QAError, OSError, sqlite3.Error) as error:
            raise core.UsageError(
                f"the engine failed: {type(error).__name__}: {error}"
            ) from None

    def obey(self, engine: Engine, instruction: Instruction) -> None:
        """Do what the running engine is told. Call it from the engine's own loop."""
        match instruction:
            case AllowHeadStart():
                self.schedule.allow_head_start(instruction.count)
            case Select():
                if engine.stopping is not None:
                    engine.stopping.select(instruction.keys)
                self.schedule.select(instruction.keys, instruction.untested)
            case MoveToFront():
                self.schedule.move_to_front(instruction.key)
            case CountEndedTests():
                self.schedule.count_ended_tests(instruction.count)
            case Refuse():
                if not engine.failure:
                    engine.failure = instruction.why
                self.schedule.close()
            case _:
                assert_never(instruction)

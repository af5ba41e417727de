"""One shard at work, in this process or elsewhere: its items in, a file of records out."""

import asyncio
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from uuid import uuid4

from cases.dataset import PlannedItem
from cases.tasks import SliceTraits, make_tasks
from evaluators.core import Outcome
from evaluators.judges.adjudicated import Adjudications
from evaluators.output import PRIVATE
from evaluators.runtime.calls import Caller
from evaluators.runtime.engine import Engine, Status, Task
from evaluators.runtime.outcomes import OutcomeWriter
from evaluators.runtime.schedule import UNLIMITED, Schedule
from evaluators.runtime.sender import CallSettings
from evaluators.runtime.session import CallSession, finish
from reports.plugin.options import Options
from reports.plugin.run import FIRST_ITEMS, call_settings, stopped_by
from reports.plugin.run_models import connect_models
from reports.run.outcome_facts import OutcomeFacts
from reports.run.record import make_record
from reports.run.run_json import line

Show = Callable[[int], None]
"""Told how many items more have ended."""


def nobody(count: int) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Part:
    """The items of one shard: the file that has them, beside which its records go; and how many.

    Labelled items that measure the judge are ``beside`` the run: no records, and no model answers.
    """

    path: Path
    count: int
    beside: bool = False

    def items(self) -> list[PlannedItem]:
        """Return the items."""
        items: list[PlannedItem] = pickle.loads(self.path.read_bytes())
        return items

    def missing(self, kind: str, message: str) -> "ShardEnd":
        """Return the end of a shard that never came to one: all of its items are MISSING."""
        writer = self.writer(nobody)
        writer.conclude(kind, message)
        return writer.ended(Status(failure=message))

    def writer(self, show: Show) -> "ShardWriter":
        """Return what takes its outcomes in."""
        items = self.items()
        return BesideWriter(items, show) if self.beside else RecordWriter(items, self.path, show)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardJob:
    """What a shard is to do; it can be pickled, and holds no key.

    ``traits`` are those of all items of the run. ``concurrency``, ``rpm`` and ``max_cost`` are its
    share of the run's; ``until`` is when the run has to end, in seconds of the epoch.
    """

    part: Part
    options: Options
    traits: SliceTraits | None
    adjudications: Adjudications
    concurrency: int
    rpm: int | None
    max_cost: float | None
    until: float | None

    @property
    def settings(self) -> CallSettings:
        """How its models are asked."""
        return replace(
            call_settings(self.options),
            concurrency=self.concurrency,
            rpm=self.rpm,
            max_cost=self.max_cost,
            deadline=None if self.until is None else max(0.0, self.until - time.time()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardEnd:
    """What came of a shard: the file of its records, or its ``outcomes`` where it was beside."""

    found: OutcomeFacts
    status: Status
    records: Path | None = None
    outcomes: tuple[Outcome, ...] = ()
    interrupted: bool = False


Ends = Iterator[tuple[ShardJob, ShardEnd | None]]
"""Shards with what came of them, None where one was lost."""


def work(job: ShardJob, show: Show = nobody) -> ShardEnd:
    """Answer and judge the items of a shard; what the ledger has is not asked again.

    Its records are written as they come; another attempt begins a file of its own. Raises
    UsageError where the models cannot be asked from here (a key is not set), OSError where the
    records cannot be written.
    """
    models = connect_models(job.options, needs_key=not job.options.replay)
    model = None if job.part.beside else models.model
    tasks = make_tasks(job.part.items(), model, models.judges, job.adjudications, job.traits)
    session = CallSession(models.models, models.specs, job.settings)
    writer = job.part.writer(show)
    last: list[Status] = []
    interrupted = False
    try:
        session.run(partial(_ask, tasks, writer, last, job.concurrency))
    except KeyboardInterrupt:
        interrupted = True
    status = last[-1] if last else Status()
    why = "engine" if status.failure else stopped_by(status)
    writer.conclude(why or ("interrupted" if interrupted else "stopped"))
    return replace(writer.ended(status), interrupted=interrupted)


async def _ask(
    tasks: Mapping[str, Task],
    writer: OutcomeWriter,
    last: list[Status],
    concurrency: int,
    caller: Caller,
) -> None:
    """Let an engine work on all tasks; ``last`` is given what it came to, however it ends."""
    engine = Engine(tasks, caller, writer, concurrency)
    first = UNLIMITED if caller.batches.is_on else FIRST_ITEMS
    schedule = Schedule(list(tasks), len(tasks) + 1, first=first)

    def halt() -> None:
        schedule.close()
        engine.halt()

    working = asyncio.create_task(engine.run(schedule))
    try:
        await finish([working], halt)
    finally:
        last.append(engine.status)
    working.result()


class ShardWriter(OutcomeWriter):
    """Counts outcomes as they come; of an item that has one nothing is held any longer."""

    def __init__(self, items: Sequence[PlannedItem], show: Show) -> None:
        self._left = {item.key: item for item in items}
        self._show: Show = show
        self.found = OutcomeFacts()

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Take these outcomes in."""
        for outcome in outcomes:
            item = self._left.pop(outcome.key)
            self.take(item, outcome)
            self.found.add(item, outcome)
        self._show(len(outcomes))

    def take(self, item: PlannedItem, outcome: Outcome) -> None:
        """Keep one outcome."""
        raise NotImplementedError

    def end(self, message: str) -> None:
        """Do nothing: ``conclude`` comes once it is known why."""

    def conclude(self, kind: str, message: str = "") -> None:
        """Let every item that has no outcome be MISSING, of this kind."""
        message = message or "the engine had stopped before it came to this item"
        self.post([Outcome(key=key, state="missing", kind=kind, message=message)
                   for key in list(self._left)])  # fmt: skip

    def ended(self, status: Status) -> ShardEnd:
        """Return what came of the shard."""
        raise NotImplementedError


class RecordWriter(ShardWriter):
    """Writes each outcome as a line of records, in a file that only its owner may read."""

    def __init__(self, items: Sequence[PlannedItem], beside: Path, show: Show) -> None:
        super().__init__(items, show)
        self.path = beside.with_name(f"{beside.stem}-{uuid4().hex}.jsonl")
        self._file = open(  # noqa: SIM115  # closed by ``ended``
            self.path, "x", encoding="utf-8", newline="",
            opener=lambda name, flags: os.open(name, flags, PRIVATE),
        )  # fmt: skip

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Write these outcomes, for good as far as this process is concerned."""
        super().post(outcomes)
        self._file.flush()

    def take(self, item: PlannedItem, outcome: Outcome) -> None:
        """Write one record."""
        self._file.write(line(make_record(item, outcome)))

    def ended(self, status: Status) -> ShardEnd:
        """Return the file of the records."""
        self._file.close()
        return ShardEnd(records=self.path, found=self.found, status=status)


class BesideWriter(ShardWriter):
    """Holds the outcomes of labelled items, of which there are some hundreds."""

    def __init__(self, items: Sequence[PlannedItem], show: Show) -> None:
        super().__init__(items, show)
        self._outcomes: list[Outcome] = []

    def take(self, item: PlannedItem, outcome: Outcome) -> None:
        """Hold one outcome."""
        self._outcomes.append(outcome)

    def ended(self, status: Status) -> ShardEnd:
        """Return the outcomes: they are counted with the judge, and not among the items."""
        spent = OutcomeFacts(spent=self.found.spent)
        return ShardEnd(found=spent, status=status, outcomes=tuple(self._outcomes))


def combined(one: Status, other: Status) -> Status:
    """Return two engines' statuses as that of one engine that had made the calls of both."""
    retried: Mapping[str, int] = {
        kind: one.retried.get(kind, 0) + other.retried.get(kind, 0)
        for kind in {*one.retried, *other.retried}
    }
    return Status(
        requests=one.requests + other.requests,
        retried=retried,
        stops={**other.stops, **one.stops},
        failure=one.failure or other.failure,
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
    )

"""A run without tests: its items in shards, here or in tasks elsewhere, and one report at the end.

What is planned goes to files, a shard's items in each, and comes back as files of records: this
process holds what gates count, not the texts.
"""

import pickle
import shutil
import signal
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cases.dataset import Plan, PlannedItem, Slice
from cases.plan import make_plan
from cases.tasks import SliceTraits, traits_of
from evaluators.core import UsageError
from evaluators.output import PRIVATE_FOLDER, write_whole
from evaluators.runtime.engine import Status
from evaluators.runtime.engine_thread import EngineHandle
from reports.gates.decide import FAILED, INTERRUPTED, OK
from reports.plugin.calibrator import find_labelled
from reports.plugin.finish import Ending, facts_of, publish
from reports.plugin.options import Options
from reports.plugin.run import Run
from reports.plugin.run_models import earlier_runs
from reports.plugin.shard_limits import Shares
from reports.plugin.shard_work import Ends, Part, ShardEnd, ShardJob, Show, combined, work
from reports.plugin.worker_setup import gc_paused
from reports.run.baseline import Baseline
from reports.run.outcome_facts import OutcomeFacts
from reports.run.report import Report
from reports.run.stored_records import RecordFile, StoredRecord
from reports.verdict.assemble import account
from reports.verdict.counted_run import Material

PREFIX = ".shards-"
LOST = "its shard was lost: the processes that worked on it died; run again to go on"


class Executor(Protocol):
    """Where shards are worked on, at most so many of them at a time."""

    slots: int

    def run(self, jobs: Iterator[ShardJob], slots: int, show: Show) -> Ends:
        """Yield each job with what came of it, None where it was lost; take one as a slot is free.

        After an interrupt no more jobs are taken.
        """


class InThisProcess:
    """Works on one shard after another."""

    slots = 1

    def run(self, jobs: Iterator[ShardJob], slots: int, show: Show) -> Ends:
        """Yield each job with what came of it."""
        for job in jobs:
            end = work(job, show)
            yield job, end
            if end.interrupted:
                return


class ShardHost(EngineHandle):
    """The engines of all shards as one: what they were at when they ended."""

    def __init__(self) -> None:
        super().__init__()
        self.found = OutcomeFacts()
        self.interrupted = False
        self._status = Status()

    def note(self, end: ShardEnd) -> None:
        """Add what came of a shard."""
        self.found.include(end.found)
        self._status = combined(self._status, end.status)
        self.arrivals.post(end.outcomes)
        self.interrupted |= end.interrupted

    @property
    def status(self) -> Status:
        """What the engines came to."""
        return replace(self._status, spent=self.found.spent)

    @property
    def is_alive(self) -> bool:
        """Whether more may come; it is asked once all is over."""
        return False

    def start(self) -> None:
        """Do nothing: an executor starts shards."""

    def stop(self, grace: float = 0.0) -> None:
        """Do nothing: an executor stops shards."""

    def tell(self, word: str, *values: object) -> None:
        """Tell nobody: a shard knows everything as it starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A run that was planned and checked, and whose items are in files.

    ``plan`` has no item any more, ``whole`` is how many each slice has; ``parts`` are the shards.
    """

    plan: Plan
    whole: Mapping[str, int]
    traits: SliceTraits
    parts: Sequence[Part]
    run: Run
    host: ShardHost
    earlier: tuple[Baseline | None, Baseline | None]

    @property
    def slices(self) -> Mapping[str, Slice]:
        """Every slice that was declared, by name."""
        return {one.name: one for part in self.plan.datasets for one in part.slices.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedRun:
    """A run whose items are worked on in ``count`` shards; ``root`` is as pytest's rootdir.

    ``executor`` is made once all is checked: a cluster takes seconds to start. ``say`` hears how
    far it is: in a line, and as the number of items of how many.
    """

    options: Options
    files: Sequence[Path]
    root: Path
    count: int
    executor: Callable[[], Executor]
    command: str
    say: Callable[[str, int, int], object]

    def report(self) -> tuple[Report, str]:
        """Make the run; return its report, which is written, and a warning or nothing.

        Raises UsageError before any call for what the user got wrong, WriteError or OSError where
        the report folder cannot take what it is to hold.
        """
        began, home = datetime.now(UTC), self.options.report_dir
        home.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=home))
        try:
            planned = self._plan(folder)
            records = self._records(planned)
            host, code = planned.host, FAILED if planned.host.found.failed else OK
            ending = Ending(
                pytest_code=INTERRUPTED if host.interrupted else code,
                interrupted=host.interrupted,
                baseline=planned.earlier[0],
                anchor=planned.earlier[1],
                notes=(),
                about={
                    "id": folder.name.removeprefix(PREFIX),
                    "started": began.isoformat(timespec="seconds"),
                    "seconds": round((datetime.now(UTC) - began).total_seconds(), 1),
                    "command": self.command,
                    "workers": 0,
                },
            )
            with gc_paused(), _undisturbed():
                report = self._report(planned, records, ending)
                return publish(report, self.options)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _plan(self, folder: Path) -> Planned:
        """Check everything, and write the items of each shard to a file in this folder."""
        options, host = self.options, ShardHost()
        with gc_paused():
            plan = make_plan(self.files, options.choice)
            labelled = find_labelled(options, plan, self.root)
            earlier = earlier_runs(options)
            run = Run(options, plan, labelled, calling=True, earlier=earlier)
            return Planned(  # the plan itself ends here: the files have its items
                plan=replace(plan, items={}),
                whole=Counter(item.slice.name for item in plan.items.values()),
                traits=traits_of(plan.items.values()),
                parts=_parts(plan, run, host, self.count, folder),
                run=run,
                host=host,
                earlier=earlier,
            )

    def _records(self, planned: Planned) -> list[StoredRecord]:
        """Work on all shards; return the records of every item."""
        parts, host, slices = planned.parts, planned.host, planned.slices
        total, done = sum(part.count for part in parts), 0

        def show(more: int) -> None:
            nonlocal done
            done += more
            self.say(f"{done:,} of {total:,} items", done, total)

        executor, left = self.executor(), dict.fromkeys(parts)
        slots = max(1, min(executor.slots, len(parts), self.options.concurrency))
        shares = Shares(options=self.options, slots=slots, left=total)
        people = planned.run.adjudications
        jobs = (shares.job(part, planned.traits, people) for part in parts)
        records: list[StoredRecord] = []
        for job, end in executor.run(jobs, slots, show):
            del left[job.part]
            found = end or job.part.missing("shard_lost", LOST)
            shares.settle(job.part, found.found.spent)
            host.note(found)
            records += _scan(job.part, found, slices)
        for part in left:
            found = part.missing("interrupted", "the run was interrupted before this was asked")
            host.note(replace(found, status=Status(), interrupted=True))
            records += _scan(part, found, slices)
        return records

    def _report(self, planned: Planned, records: Sequence[StoredRecord], ending: Ending) -> Report:
        """Return the report over these records."""
        plan, run = planned.plan, planned.run
        facts = facts_of(self.options, plan, run, ending, planned.host.found)
        material = Material(
            datasets=plan.datasets,
            records=tuple(records),
            whole=planned.whole,
            samples=plan.samples,
            outside=facts.calibrations,
            shards=plan.shard,
        )
        return account(material, facts, *ending.beside(run))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let no signal take the report away: what follows ends within seconds."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM) if is_main else ()
    former = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _parts(plan: Plan, run: Run, host: ShardHost, count: int, folder: Path) -> list[Part]:
    """Write the items of each shard to a file; those that measure the judge come first."""
    items = [item for dataset in plan.datasets for item in plan.tests(dataset)]
    beside = run.hand_over([item.key for item in items], host)
    count = min(count, len(items))
    shards = [beside, *(items[place::count] for place in range(count))]
    return [
        Part(_written(folder / f"{number}.items", some), len(some), beside=number == 0)
        for number, some in enumerate(shards)
        if some
    ]


def _written(path: Path, items: Sequence[PlannedItem]) -> Path:
    write_whole(path, [pickle.dumps(items, pickle.HIGHEST_PROTOCOL)])
    return path


def _scan(part: Part, end: ShardEnd, slices: Mapping[str, Slice]) -> list[StoredRecord]:
    """Return the records of a shard. Raises UsageError where its file is not whole, or not here."""
    if end.records is None:
        return []
    try:
        found = list(RecordFile(end.records).scan(slices))
    except OSError as error:
        raise UsageError(
            f"{end.records}: cannot be read ({error.strerror}); --report-dir must be a folder that "
            "all machines share"
        ) from None
    if len(found) != part.count:
        raise UsageError(
            f"{end.records}: {len(found):,} records of {part.count:,}; run again to go on"
        )
    return found

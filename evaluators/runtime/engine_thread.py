"""An engine as pytest's side sees it, wherever it runs; and one in a thread of pytest's process."""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import Model, UsageError
from evaluators.runtime.engine import Engine, Status
from evaluators.runtime.outcomes import (
    InMemoryOutcomes,
    OutcomeStore,
    OutcomeWriter,
    OutcomeWriters,
)
from evaluators.runtime.schedule import Schedule

GRACE_SECONDS = 3.0  # what is in flight when a run is stopped may still arrive
ENDED_AT_ONCE = 8  # tests whose end is told in one word


def nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an engine is to do. ``make`` is called where it runs, as no open file can move there.

    All of it can be pickled, as it may have to get to a process that is there already.
    ``prepare`` loads what the first call will need; ``store`` is the file in which processes that
    were started apart look for outcomes, None if there are none.
    """

    make: Callable[[OutcomeWriter], Engine]
    schedule: Schedule
    models: Sequence[Model] = ()
    prepare: Callable[[], None] = nothing
    store: Path | None = None

    def engine(self, first: OutcomeWriter) -> Engine:
        """Return the engine; ``first`` hears of each outcome before any test of another process.

        Raises UsageError, whatever went wrong.
        """
        try:
            return self.make(
                first if self.store is None else OutcomeWriters(first, OutcomeStore(self.store))
            )
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # no traceback, of another process even
            raise UsageError(f"the engine failed: {type(error).__name__}: {error}") from None

    def words(self, engine: Engine) -> Mapping[str, Callable[..., None]]:
        """Return what may be told to an engine at work, by the names of EngineHandle's methods."""

        def refuse(why: str) -> None:
            engine.failure = engine.failure or why
            self.schedule.close()

        def select(keys: Sequence[str], beside: int) -> None:
            engine.select(keys)
            self.schedule.select(keys, beside)

        return {
            "lead": self.schedule.lead,
            "select": select,
            "want": self.schedule.want,
            "ended": self.schedule.ended,
            "refuse": refuse,
        }


class EngineHandle(ABC):
    """The engine as pytest's side sees it, wherever it runs."""

    def __init__(self) -> None:
        self.arrivals = InMemoryOutcomes()
        self._ended = 0

    @property
    @abstractmethod
    def status(self) -> Status:
        """What the engine is at, or came to."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether it is still at work."""

    @abstractmethod
    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that cannot be done."""

    @abstractmethod
    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""

    @abstractmethod
    def tell(self, word: str, *values: object) -> None:
        """Pass a word on to the engine; one that has not begun, or is over, hears nothing."""

    def wait_until_ready(self) -> None:  # noqa: B027  # a thread would only be held up by others
        """Return once everything is loaded, if that can go on undisturbed meanwhile."""

    def lead(self, count: int) -> None:
        """Work on so many items before it is known which ones have a test."""
        self.tell("lead", count)

    def select(self, keys: Sequence[str], beside: int = 0) -> None:
        """Work on these items, the first ``beside`` of them for no test."""
        self.tell("select", keys, beside)

    def want(self, key: str) -> None:
        """Put an item first: its test is waiting."""
        if key not in self.arrivals.outcomes:
            self.tell("want", key)

    def ended(self) -> None:
        """Count one more test as over."""
        self._ended += 1
        if self._ended >= ENDED_AT_ONCE:
            self.tell("ended", self._ended)
            self._ended = 0

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""
        self.tell("refuse", why)


class EngineThread(EngineHandle):
    """An engine in a thread of this process."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job
        self._engine: Engine | None = None
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="qa-engine", daemon=True)

    @property
    def status(self) -> Status:
        """What the engine is at, or came to."""
        return Status() if self._engine is None else self._engine.status

    @property
    def is_alive(self) -> bool:
        """Whether it is still at work."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that cannot be done."""
        self._engine = self._job.engine(self.arrivals)
        self._thread.start()

    def tell(self, word: str, *values: object) -> None:
        """Pass a word on to the engine."""
        if self._engine is not None:
            self._job.words(self._engine)[word](*values)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""
        if self._engine is None or not self._is_open:
            return
        self._is_open = False
        self._job.schedule.close()
        with contextlib.suppress(RuntimeError):  # the loop is closed: all is done
            self._loop.call_soon_threadsafe(self._engine.halt)
        self._thread.join(grace)
        if self._thread.is_alive() and self._main is not None:
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join(grace)
        self._engine.close()

    def _run(self) -> None:
        assert self._engine is not None
        try:
            self._job.prepare()
            work = self._engine.run(self._job.schedule, self._job.models)
            self._main = self._loop.create_task(work)
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        except Exception as error:  # noqa: BLE001  # said in the report; the tests must not hang
            self._engine.fail(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

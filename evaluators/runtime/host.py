"""An engine as pytest's side sees it, and an engine in a thread of pytest's own process."""

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

GRACE_SECONDS = 3.0  # calls in flight when a run is stopped may still arrive
ENDED_AT_ONCE = 8  # tests whose end is told in one message


def nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an engine is to do. It can be pickled, as it may go to a process that is running."""

    make: Callable[[OutcomeWriter], Engine]
    """Makes the engine, and is called where it runs: no open file can move there."""
    schedule: Schedule
    models: Sequence[Model] = ()
    prepare: Callable[[], None] = nothing
    """Loads what the first call will need."""
    store: Path | None = None
    """The file in which other processes look for outcomes; None if there are none."""

    def engine(self, first: OutcomeWriter) -> Engine:
        """Return the engine; ``first`` learns of each outcome before any test in another process.

        Raises UsageError for every kind of failure.
        """
        try:
            return self.make(
                first if self.store is None else OutcomeWriters(first, OutcomeStore(self.store))
            )
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # a traceback would help nobody
            raise UsageError(f"the engine failed: {type(error).__name__}: {error}") from None

    def messages(self, engine: Engine) -> Mapping[str, Callable[..., None]]:
        """Return what a running engine may be told, by the names of EngineHandle's methods."""

        def refuse(why: str) -> None:
            engine.failure = engine.failure or why
            self.schedule.close()

        def select(keys: Sequence[str], untested: int) -> None:
            engine.select(keys)
            self.schedule.select(keys, untested)

        return {
            "lead": self.schedule.lead,
            "select": select,
            "want": self.schedule.want,
            "ended": self.schedule.ended,
            "refuse": refuse,
        }


class EngineHandle(ABC):
    """The engine as pytest's side sees it, in a thread or in a process."""

    def __init__(self) -> None:
        self.arrivals = InMemoryOutcomes()
        self._ended = 0

    @property
    @abstractmethod
    def status(self) -> Status:
        """The engine's latest status; after the end the final one."""

    @property
    @abstractmethod
    def is_alive(self) -> bool:
        """Whether more may come from it."""

    @abstractmethod
    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that is impossible."""

    @abstractmethod
    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for calls in flight, then give up."""

    @abstractmethod
    def tell(self, message: str, *values: object) -> None:
        """Pass a message on; an engine that has not begun, or is over, ignores it."""

    def wait_until_ready(self) -> None:  # noqa: B027  # only a process loads undisturbed
        """Return once everything is loaded, if that can go on undisturbed meanwhile."""

    def lead(self, count: int) -> None:
        """Work on up to ``count`` items before it is known which items have a test."""
        self.tell("lead", count)

    def select(self, keys: Sequence[str], untested: int = 0) -> None:
        """Work on these items; the first ``untested`` of them have no test."""
        self.tell("select", keys, untested)

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
        """The engine's latest status; after the end the final one."""
        return Status() if self._engine is None else self._engine.status

    @property
    def is_alive(self) -> bool:
        """Whether more may come from it."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that is impossible."""
        self._engine = self._job.engine(self.arrivals)
        self._thread.start()

    def tell(self, message: str, *values: object) -> None:
        """Pass a message on to the engine."""
        if self._engine is not None:
            self._job.messages(self._engine)[message](*values)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for calls in flight, then give up."""
        if self._engine is None or not self._is_open:
            return
        self._is_open = False
        self._job.schedule.close()
        with contextlib.suppress(RuntimeError):  # the loop is closed: everything is done
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
        except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
            self._engine.fail(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

"""An engine in a thread of pytest's own process."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence

from evaluators.core import Model
from evaluators.runtime.engine import Engine, Status
from evaluators.runtime.engine_job import GRACE_SECONDS, Job, nothing, refuse
from evaluators.runtime.outcomes import InMemoryOutcomes
from evaluators.runtime.schedule import Schedule


class EngineThread:
    """Runs an engine in a thread of this process."""

    def __init__(
        self,
        engine: Engine,
        schedule: Schedule,
        models: Sequence[Model],
        prepare: Callable[[], None] = nothing,
    ) -> None:
        self.engine = engine
        self._schedule = schedule
        self._models = models
        self._prepare = prepare
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
            self._loop.call_soon_threadsafe(self.engine.halt)
        self._thread.join(grace)
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._cancel)
            self._thread.join(grace)

    def _run(self) -> None:
        try:
            self._prepare()
            self._main = self._loop.create_task(self.engine.run(self._schedule, self._models))
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        except Exception as error:  # noqa: BLE001  # said in the report; the tests must not hang
            self.engine.fail(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _cancel(self) -> None:
        if self._main is not None:
            self._main.cancel()


class ThreadHandle:
    """An engine in a thread of pytest's own process."""

    def __init__(self, job: Job) -> None:
        self.arrivals = InMemoryOutcomes()
        self._job = job
        self._thread: EngineThread | None = None
        self._open: Engine | None = None

    @property
    def status(self) -> Status:
        """What the engine is at, or came to."""
        return Status() if self._thread is None else self._thread.engine.status

    @property
    def is_alive(self) -> bool:
        """Whether it is still at work."""
        return self._thread is not None and self._thread.is_alive

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError where that cannot be done."""
        job = self._job
        engine = self._open = job.engine(self.arrivals)
        self._thread = EngineThread(engine, job.schedule, job.models, job.prepare)
        self._thread.start()

    def lead(self, count: int) -> None:
        """Work on so many items before it is known which ones have a test."""
        self._job.schedule.lead(count)

    def wait_until_ready(self) -> None:
        """Return at once: a thread of this process would only be held up by others of it."""

    def select(self, keys: Sequence[str]) -> None:
        """Work on these items."""
        self._job.schedule.select(keys)

    def want(self, key: str) -> None:
        """Put an item first: its test is waiting."""
        self._job.schedule.want(key)

    def ended(self) -> None:
        """Count one more test as over."""
        self._job.schedule.ended()

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""
        if self._thread is not None:
            refuse(self._thread.engine, self._job.schedule, why)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""
        if self._thread is not None:
            self._thread.stop(grace)
        if self._open is not None:
            self._open.close()
            self._open = None

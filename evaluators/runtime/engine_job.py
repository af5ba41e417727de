"""What an engine is to do, and what pytest's side may say to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from evaluators.core import Model, UsageError
from evaluators.runtime.engine import Engine, Status
from evaluators.runtime.outcomes import InMemoryOutcomes, OutcomeStore, OutcomeWriter, Sinks
from evaluators.runtime.schedule import Schedule

GRACE_SECONDS = 3.0  # what is in flight when a run is stopped may still arrive
TAIL_SECONDS = 2.0  # to write what has arrived, once nothing more is waited for


def nothing() -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What an engine is to do. ``make`` is called where it runs, as no open file can move there.

    All of it can be pickled, as it may have to get to a process that is there already.
    ``prepare`` loads what the first call will need; ``board`` is the file on which processes that
    were started apart look for outcomes, None where there are none.
    """

    make: Callable[[OutcomeWriter], Engine]
    schedule: Schedule
    models: Sequence[Model] = ()
    prepare: Callable[[], None] = nothing
    board: Path | None = None

    def engine(self, first: OutcomeWriter) -> Engine:
        """Return the engine, which tells this sink. Raises UsageError, whatever went wrong."""
        try:
            return self.make(self._sink(first))
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001  # no traceback, of another process even
            msg = f"the engine failed: {type(error).__name__}: {error}"
            raise UsageError(msg) from None

    def _sink(self, first: OutcomeWriter) -> OutcomeWriter:
        """Return what tells this sink first, so that who counts knows of it before any test."""
        return first if self.board is None else Sinks(first, OutcomeStore(self.board))


class EngineHandle(Protocol):
    """The engine as pytest's side sees it, wherever it runs."""

    arrivals: InMemoryOutcomes

    @property
    def status(self) -> Status:
        """What the engine is at, or came to."""

    @property
    def is_alive(self) -> bool:
        """Whether it is still at work."""

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError where that cannot be done."""

    def lead(self, count: int) -> None:
        """Work on so many items before it is known which ones have a test."""

    def wait_until_ready(self) -> None:
        """Return once everything is loaded, so that nobody takes the processor from that."""

    def select(self, keys: Sequence[str]) -> None:
        """Work on these items."""

    def want(self, key: str) -> None:
        """Put an item first: its test is waiting."""

    def ended(self) -> None:
        """Count one more test as over."""

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""


def refuse(engine: Engine, schedule: Schedule, why: str) -> None:
    """Let an engine end for this reason as soon as what it works on has ended."""
    engine.failure = engine.failure or why
    schedule.close()

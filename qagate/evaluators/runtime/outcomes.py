"""Between the engine and the tests: outcomes one way, instructions the other.

The engine posts how each item ended to an OutcomeWriter. A test waits for its item: in the
engine's own process at InMemoryOutcomes, in other processes (workers of pytest-xdist) at an
OutcomeReader, which watches the file that an OutcomeStore writes. The engine also sends a
heartbeat. Where it stops, a test raises EngineLostError in place of waiting for ever.

The other way goes an EngineHandle: through it pytest tells the engine which items to work
on, in the words of ``Instruction``.
"""

import pickle
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qagate.evaluators.core import Outcome, QAError, Usage
from qagate.evaluators.crash import Crash
from qagate.evaluators.judges.drift import CanaryResult
from qagate.evaluators.negotiation import Negotiated
from qagate.evaluators.run_identity import NO_RUN, RunIdentity

BEAT_SECONDS = 0.5
"""Between two heartbeats of an engine."""

SILENCE_SECONDS = 30.0
"""After so long without a heartbeat an engine is taken for lost."""

LOST = f"the engine has been silent for {SILENCE_SECONDS:g} s; run again to resume"

POLL_SECONDS = 0.03
"""Between two looks at the file. With eight workers, more of them cost more than they gain."""

GRACE_SECONDS = 3.0
"""For so long calls in flight may still arrive when a run is stopped."""

ENDED_TESTS_AT_ONCE = 8
"""The end of so many tests is told in one message."""

_TABLES = """
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pulse (beat INTEGER NOT NULL, ended TEXT);
INSERT INTO pulse SELECT 0, NULL WHERE NOT EXISTS (SELECT * FROM pulse);
"""
_NEWS = "SELECT (SELECT body FROM outcomes WHERE key = ?), beat, ended FROM pulse"
"""One statement sees the file at one moment: no outcome comes after the end."""


class EngineLostError(QAError):
    """The engine's heartbeat stopped, so no outcome will come."""


class OutcomeWriter:
    """Where an engine posts outcomes. This one posts them nowhere."""

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes to every waiting test."""

    def beat(self) -> None:
        """Show that the engine is alive."""

    def note_work(self, key: str, left: float | None) -> None:
        """Note that the user's code begins its work on an item, or has ended it.

        ``left`` is how many seconds the run has left where it begins, None where it has ended.
        """

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why: no test waits any longer."""

    def close(self) -> None:
        """Close files."""


class InMemoryOutcomes(OutcomeWriter):
    """The outcomes so far, for tests in the same process."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        """By the key of the item."""
        self.ended: str | None = None
        """Why nothing more will come; None while more may."""
        self._has_changed = threading.Condition()
        # Waits are counted, not the clock: while this process is stopped, none pass.
        self._silent_seconds = 0.0

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Wake the tests that wait for these outcomes."""
        with self._has_changed:
            for outcome in outcomes:
                self.outcomes[outcome.key] = outcome
            self._has_changed.notify_all()

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._silent_seconds = 0.0

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        with self._has_changed:
            self.ended = message
            self._has_changed.notify_all()

    def wait(self, key: str) -> Outcome:
        """Return an item's outcome once it has come, or a missing one if none will come.

        Raises EngineLostError once the engine has been silent for SILENCE_SECONDS.
        """
        with self._has_changed:
            while key not in self.outcomes:
                if self.ended is not None:
                    return _missing(key, self.ended)
                if self._silent_seconds >= SILENCE_SECONDS:
                    raise EngineLostError(LOST)
                if not self._has_changed.wait(BEAT_SECONDS):
                    self._silent_seconds += BEAT_SECONDS
            return self.outcomes[key]


class OutcomeStore(OutcomeWriter):
    """The file that other processes watch.

    ``told_first`` learns of everything before them.
    """

    def __init__(self, path: Path, told_first: OutcomeWriter | None = None) -> None:
        self._told_first = told_first or OutcomeWriter()
        self._connection = _connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes, in the file in one transaction."""
        self._told_first.post(outcomes)
        rows = [(outcome.key, pickle.dumps(outcome)) for outcome in outcomes]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT OR REPLACE INTO outcomes VALUES (?, ?)", rows
            )

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._told_first.beat()
        self._connection.execute("UPDATE pulse SET beat = beat + 1")

    def note_work(self, key: str, left: float | None) -> None:
        """Pass it on: no test asks the file."""
        self._told_first.note_work(key, left)

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        self._told_first.end(message)
        self._connection.execute("UPDATE pulse SET ended = ?", (message,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class OutcomeReader:
    """A test's side of the file: waits for the outcome of one item at a time."""

    def __init__(self, path: Path, sleep: Callable[[float], None] = time.sleep) -> None:
        self._connection = _connect(path)
        self._sleep = sleep
        # Kept from wait to wait: the silence of a dead engine is waited for once, not in each test.
        self._last_beat: object = None
        self._silent_seconds = 0.0

    def wait(self, key: str) -> Outcome:
        """Return the outcome as InMemoryOutcomes.wait does."""
        while True:
            row = self._connection.execute(_NEWS, (key,)).fetchone()
            body, beat, ended = row or (None, None, None)
            if body is not None:
                # It is our engine's own, from this run's own folder: safe to unpickle.
                outcome: Outcome = pickle.loads(body)
                return outcome
            if ended is not None:
                return _missing(key, str(ended))
            if beat != self._last_beat:
                self._last_beat = beat
                self._silent_seconds = 0.0
            elif self._silent_seconds >= SILENCE_SECONDS:
                raise EngineLostError(LOST)
            self._sleep(POLL_SECONDS)
            self._silent_seconds += POLL_SECONDS

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _missing(key: str, message: str) -> Outcome:
    """Return the outcome of an item for which none will come."""
    return Outcome(key=key, state="missing", kind="stopped", message=message)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, timeout=30.0, isolation_level=None, check_same_thread=False
    )


OutcomeSource = InMemoryOutcomes | OutcomeReader
"""Where a test waits for its outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What an engine is doing; after the end, how its run ended."""

    requests: int = 0
    """Requests sent."""
    in_flight: int = 0
    """Requests without a reply yet."""
    limit: int = 0
    """How many may be in flight, as far as the servers bear it."""
    retried: Mapping[str, int] = field(default_factory=dict)
    """Failures after which a call was tried again, by kind."""
    held_back_by: str = ""
    """What holds calls back now, in a few words; empty if nothing does."""
    stops: Mapping[str, str] = field(default_factory=dict)
    """Why calls were no longer made, a line by kind: a wrong key, the deadline, the budget."""
    failure: str = ""
    """Why the engine had to stop."""
    crash: Crash | None = None
    """What nobody foresaw, if the engine stopped for that."""
    spent: float | None = None
    """USD; None without a budget."""
    notes: tuple[str, ...] = ()
    """What the report should say about the ledger, and how models had to be written to."""
    negotiated: Mapping[str, Negotiated] = field(default_factory=dict)
    """How the models that were asked are written to, by SPEC."""
    kept: int = 0
    """Replies that this process paid for, and that are in the ledger."""
    unkept: str = ""
    """Where replies are that the ledger did not take."""
    run: RunIdentity = NO_RUN
    """The run that the engine works for."""
    left: float = float("inf")
    """Seconds until the run's time is used up."""
    canaries: tuple[CanaryResult, ...] = ()
    """Whether the judges are still those that gave the kept grades; empty until that is known."""
    rule_checks: Mapping[str, str] = field(default_factory=dict)
    """What the model says of answers that rules before it settled, by item."""
    judges_usage: Usage = field(default_factory=Usage)
    """What canaries and checks of rules took."""


@dataclass(frozen=True, slots=True)
class AllowHeadStart:
    """Work on up to ``count`` items before it is known which items have a test."""

    count: int


@dataclass(frozen=True, slots=True)
class Select:
    """Work on these items; the first ``untested`` of them have no test."""

    keys: Sequence[str]
    untested: int


@dataclass(frozen=True, slots=True)
class MoveToFront:
    """Put an item first: its test is waiting."""

    key: str


@dataclass(frozen=True, slots=True)
class CountEndedTests:
    """Count ``count`` more tests as ended."""

    count: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Ask nothing more and let no test wait; ``why`` is the engine's failure."""

    why: str


Instruction = AllowHeadStart | Select | MoveToFront | CountEndedTests | Refuse
"""What a running engine may be told. ``Job.obey`` does it."""


class EngineHandle(ABC):
    """The engine as pytest's side sees it, in a thread or in a process.

    ``arrivals`` holds the outcomes so far. The handle has one thread of this process, which
    does ``work``: it runs the engine, or listens to its process.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.arrivals = InMemoryOutcomes()
        self._ended_tests = 0
        self._thread = threading.Thread(target=work, name=name, daemon=True)

    @property
    @abstractmethod
    def status(self) -> Status:
        """The engine's latest status; after the end the final one."""

    @property
    def is_alive(self) -> bool:
        """Whether more may come from it."""
        return self._thread.is_alive()

    @abstractmethod
    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that is impossible."""

    @abstractmethod
    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for calls in flight, then give up."""

    @abstractmethod
    def tell(self, instruction: Instruction) -> None:
        """Pass an instruction on; an engine that is over ignores it."""

    def wait_until_ready(self) -> None:  # noqa: B027  # only a process loads undisturbed
        """Return once everything is loaded, if the engine can load beside what goes on here."""

    def allow_head_start(self, count: int) -> None:
        """Work on up to ``count`` items before it is known which items have a test."""
        self.tell(AllowHeadStart(count))

    def select(self, keys: Sequence[str], untested: int = 0) -> None:
        """Work on these items; the first ``untested`` of them have no test."""
        self.tell(Select(keys, untested))

    def move_to_front(self, key: str) -> None:
        """Put an item first: its test is waiting."""
        if key not in self.arrivals.outcomes:
            self.tell(MoveToFront(key))

    def count_ended_test(self) -> None:
        """Count one more test as ended."""
        self._ended_tests += 1
        if self._ended_tests >= ENDED_TESTS_AT_ONCE:
            self.tell(CountEndedTests(self._ended_tests))
            self._ended_tests = 0

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""
        self.tell(Refuse(why))

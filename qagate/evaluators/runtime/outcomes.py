"""Where the engine posts how each item ended, where tests wait for it, and what pytest tells it."""

import pickle
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qagate.evaluators.core import Outcome, QAError

BEAT_SECONDS = 0.5
SILENCE_SECONDS = 30.0
LOST = f"the engine has been silent for {SILENCE_SECONDS:g} s; run again to resume"
POLL_SECONDS = 0.03  # with eight workers, polling more often costs more than it gains
GRACE_SECONDS = 3.0  # calls in flight when a run is stopped may still arrive
ENDED_AT_ONCE = 8  # tests whose end is told in one message

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
    """Where an engine posts outcomes; by itself nowhere."""

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes to every waiting test."""

    def beat(self) -> None:
        """Show that the engine is alive."""

    def note_work(self, key: str, left: float | None) -> None:
        """Note that the user's code begins on an item, with the run's seconds, or ended (None)."""

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why: no test waits any longer."""

    def close(self) -> None:
        """Close files."""


class InMemoryOutcomes(OutcomeWriter):
    """The outcomes so far, for tests in the same process."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._silence = (
            0.0  # seconds waited without a beat, none while this process was stopped
        )
        self.ended: str | None = None  # why nothing more will come
        self._news = threading.Condition()

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Wake the tests that wait for these outcomes."""
        with self._news:
            self.outcomes.update((one.key, one) for one in outcomes)
            self._news.notify_all()

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._silence = 0.0

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        with self._news:
            self.ended = message
            self._news.notify_all()

    def wait(self, key: str) -> Outcome:
        """Return an item's outcome once it came; MISSING if none will, EngineLostError if lost."""
        with self._news:
            while key not in self.outcomes:
                if self.ended is not None:
                    return _missing(key, self.ended)
                if self._silence >= SILENCE_SECONDS:
                    raise EngineLostError(LOST)
                if not self._news.wait(BEAT_SECONDS):
                    self._silence += BEAT_SECONDS
            return self.outcomes[key]


class OutcomeStore(OutcomeWriter):
    """The file that other processes watch; ``first`` learns of everything before them."""

    def __init__(self, path: Path, first: OutcomeWriter | None = None) -> None:
        self._first = first or OutcomeWriter()
        self._connection = _connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes, in the file in one transaction."""
        self._first.post(outcomes)
        rows = [(one.key, pickle.dumps(one)) for one in outcomes]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT OR REPLACE INTO outcomes VALUES (?, ?)", rows
            )

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._first.beat()
        self._connection.execute("UPDATE pulse SET beat = beat + 1")

    def note_work(self, key: str, left: float | None) -> None:
        """Pass it on: no test asks the file."""
        self._first.note_work(key, left)

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        self._first.end(message)
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
        self._beat: object = None
        self._silence = 0.0  # seconds waited since the last beat

    def wait(self, key: str) -> Outcome:
        """Return the outcome as InMemoryOutcomes.wait does."""
        while True:
            news = self._connection.execute(_NEWS, (key,)).fetchone()
            body, beat, ended = news or (None, None, None)
            if body is not None:
                found: Outcome = pickle.loads(
                    body
                )  # of our engine, in this run's own folder
                return found
            if ended is not None:
                return _missing(key, str(ended))
            if beat != self._beat:
                self._beat, self._silence = beat, 0.0
            elif self._silence >= SILENCE_SECONDS:
                raise EngineLostError(LOST)
            self._sleep(POLL_SECONDS)
            self._silence += POLL_SECONDS

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _missing(key: str, message: str) -> Outcome:
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
    waiting: str = ""
    """What holds calls back now, in a few words."""
    stops: Mapping[str, str] = field(default_factory=dict)
    """Why calls were no longer made, a line by kind: a wrong key, the deadline, the budget."""
    failure: str = ""
    """Why the engine had to stop."""
    spent: float | None = None
    """USD; None without a budget."""
    notes: tuple[str, ...] = ()
    """What the report should say about the ledger."""
    unkept: str = ""
    """Where replies are that the ledger did not take."""
    left: float = float("inf")
    """Seconds until the run's time is used up."""


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
    """Count so many more tests as over."""

    count: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Ask nothing more and let no test wait; ``why`` is the engine's failure."""

    why: str


Instruction = AllowHeadStart | Select | MoveToFront | CountEndedTests | Refuse
"""What a running engine may be told. ``Job.obey`` does it."""


class EngineHandle(ABC):
    """The engine as pytest's side sees it, in a thread or in a process."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.arrivals = InMemoryOutcomes()
        self._ended = 0
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
        """Return once everything is loaded, if that can go on undisturbed meanwhile."""

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
        """Count one more test as over."""
        self._ended += 1
        if self._ended >= ENDED_AT_ONCE:
            self.tell(CountEndedTests(self._ended))
            self._ended = 0

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""
        self.tell(Refuse(why))

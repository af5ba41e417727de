"""Where the engine posts how each item ended, and where tests wait for their own outcome.

The file is not part of the ledger: it lives only as long as the run, needs no durable commit, and
lets ``--replay`` read a ledger that cannot be written.
"""

import pickle
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from evaluators.core import Outcome, QAError

BEAT_SECONDS = 0.5
SILENCE_SECONDS = 30.0
POLL_SECONDS = 0.03  # with eight workers, polling more often costs more than it gains

_TABLES = """
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pulse (beat INTEGER NOT NULL, ended TEXT);
INSERT INTO pulse SELECT 0, NULL WHERE NOT EXISTS (SELECT * FROM pulse);
"""


_NEWS = "SELECT (SELECT body FROM outcomes WHERE key = ?), beat, ended FROM pulse"
"""One statement sees the file at one moment: no outcome comes after the end."""


class EngineLostError(QAError):
    """The engine's heartbeat stopped, so no outcome will come."""


class OutcomeWriter(ABC):
    """Where an engine posts outcomes."""

    @abstractmethod
    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes."""

    @abstractmethod
    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""

    def beat(self) -> None:  # noqa: B027  # not every writer has readers that watch for it
        """Show that the engine is alive."""

    def note_work(self, key: str, left: float | None) -> None:  # noqa: B027  # see PipeWriter
        """Note that the user's code begins its work on an item; None: it has ended.

        ``left`` are the seconds that the run still has.
        """

    def close(self) -> None:  # noqa: B027  # not every writer has a file
        """Close files."""


class OutcomeSource(Protocol):
    """Where a test waits for its outcome."""

    def wait(self, key: str) -> Outcome:
        """Return the outcome of this item once it has come; MISSING if none will come."""

    def close(self) -> None:
        """Close files."""


class OutcomeWriters(OutcomeWriter):
    """Several writers, called in order."""

    def __init__(self, *writers: OutcomeWriter) -> None:
        self._writers = writers

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes in every one."""
        for writer in self._writers:
            writer.post(outcomes)

    def beat(self) -> None:
        """Show in every one that the engine is alive."""
        for writer in self._writers:
            writer.beat()

    def note_work(self, key: str, left: float | None) -> None:
        """Note it in every one."""
        for writer in self._writers:
            writer.note_work(key, left)

    def end(self, message: str) -> None:
        """Say in every one that nothing more will come."""
        for writer in self._writers:
            writer.end(message)

    def close(self) -> None:
        """Close files."""
        for writer in self._writers:
            writer.close()


class InMemoryOutcomes(OutcomeWriter):
    """The outcomes so far, for tests in the same process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._clock = clock
        self._since = clock()
        self._ended: str | None = None
        self._news = threading.Condition()

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Wake the tests that wait for these outcomes."""
        with self._news:
            self.outcomes.update((one.key, one) for one in outcomes)
            self._news.notify_all()

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._since = self._clock()

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        with self._news:
            self._ended = message
            self._news.notify_all()

    def wait(self, key: str) -> Outcome:
        """Return the outcome of this item once it has come; MISSING if none will come.

        Raises EngineLostError when the engine has shown no sign of life for 30 seconds.
        """
        with self._news:
            while key not in self.outcomes:
                if self._ended is not None:
                    return _missing(key, self._ended)
                if self._clock() - self._since > SILENCE_SECONDS:
                    raise _lost()
                self._news.wait(BEAT_SECONDS)
            return self.outcomes[key]


class OutcomeStore(OutcomeWriter):
    """The engine's side of the file that other processes watch: one writer."""

    def __init__(self, path: Path) -> None:
        self._connection = _connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Publish these outcomes to every waiting test, in one transaction."""
        rows = [(one.key, pickle.dumps(one)) for one in outcomes]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?)", rows)

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._connection.execute("UPDATE pulse SET beat = beat + 1")

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why: no test waits any longer."""
        self._connection.execute("UPDATE pulse SET ended = ?", (message,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class OutcomeReader:
    """A test's side of the file: waits for the outcome of one item at a time."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = _connect(path)
        self._clock = clock
        self._sleep = sleep
        # Kept from wait to wait: the silence of a dead engine is waited for once, not in each test.
        self._beat: object = None
        self._since = clock()

    def wait(self, key: str) -> Outcome:
        """Return the outcome of this item once it has come; MISSING if none will come.

        Raises EngineLostError when the engine has shown no sign of life for 30 seconds.
        """
        while True:
            news = self._connection.execute(_NEWS, (key,)).fetchone()
            body, beat, ended = news or (None, None, None)
            if body is not None:
                found: Outcome = pickle.loads(body)  # of our engine, in this run's own folder
                return found
            if ended is not None:
                return _missing(key, str(ended))
            if beat != self._beat:
                self._beat, self._since = beat, self._clock()
            elif self._clock() - self._since > SILENCE_SECONDS:
                raise _lost()
            self._sleep(POLL_SECONDS)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _missing(key: str, message: str) -> Outcome:
    return Outcome(key=key, state="missing", kind="stopped", message=message)


def _lost() -> EngineLostError:
    msg = f"the engine has been silent for {SILENCE_SECONDS:g} s; run again to resume"
    return EngineLostError(msg)


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)

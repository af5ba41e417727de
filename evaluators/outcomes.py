"""The board on which the engine posts how each item ended, and where tests wait for their own.

It is a file of its own and not part of the ledger: it lives as long as the run, needs no durable
commit, and lets ``--replay`` read a ledger that cannot be written.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

from evaluators.core import Outcome, QAError, Usage, Verdict, Vote

BEAT_SECONDS = 0.5
SILENCE_SECONDS = 30.0
POLL_SECONDS = 0.01

_TABLES = """
CREATE TABLE IF NOT EXISTS outcomes (key TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pulse (beat INTEGER NOT NULL, ended TEXT);
INSERT INTO pulse VALUES (0, NULL);
"""


class EngineLostError(QAError):
    """The engine's heartbeat stopped, so no outcome will come."""


class Board:
    """The engine's side: one writer."""

    def __init__(self, path: Path) -> None:
        self._connection = _connect(path)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_TABLES)

    def post(self, outcomes: Iterable[Outcome]) -> None:
        """Make these outcomes visible to every waiting test, in one transaction."""
        rows = [(one.key, encode(one)) for one in outcomes]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR REPLACE INTO outcomes VALUES (?, ?)", rows)

    def beat(self) -> None:
        """Show that the engine is alive."""
        self._connection.execute("UPDATE pulse SET beat = beat + 1")

    def end(self, message: str) -> None:
        """Say that nothing more will be posted, and why: tests that wait need wait no longer."""
        self._connection.execute("UPDATE pulse SET ended = ?", (message,))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class Watcher:
    """A test's side: waits for the outcome of one item at a time."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = _connect(path)
        self._clock = clock
        self._sleep = sleep
        # Kept from wait to wait: a dead engine costs the silence once, not once a test.
        self._beat: object = None
        self._since = clock()

    def wait(self, key: str) -> Outcome:
        """Return the outcome of this item once it is posted; MISSING where none will be.

        Raises EngineLostError when the engine has shown no sign of life for 30 seconds.
        """
        while True:
            # The pulse is read first: whatever was posted before the end is then found.
            latest, ended = self._row("SELECT beat, ended FROM pulse") or (None, None)
            row = self._row("SELECT body FROM outcomes WHERE key = ?", key)
            if row is not None:
                return decode(str(row[0]))
            if ended is not None:
                return Outcome(key=key, state="missing", kind="stopped", message=str(ended))
            if latest != self._beat:
                self._beat, self._since = latest, self._clock()
            elif self._clock() - self._since > SILENCE_SECONDS:
                msg = f"the engine has been silent for {SILENCE_SECONDS:g} s; run again to resume"
                raise EngineLostError(msg)
            self._sleep(POLL_SECONDS)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _row(self, query: str, *values: str) -> tuple[object, ...] | None:
        row: tuple[object, ...] | None = self._connection.execute(query, values).fetchone()
        return row


def encode(outcome: Outcome) -> str:
    """Return an outcome as ASCII JSON; any text survives, lone surrogates included."""
    return json.dumps(asdict(outcome))


def decode(text: str) -> Outcome:
    """Return the outcome that ``encode`` wrote."""
    values = json.loads(text)
    verdict = values.pop("verdict")
    if verdict is not None:
        votes = tuple(Vote(**vote) for vote in verdict.pop("votes"))
        verdict = Verdict(votes=votes, **verdict)
    return Outcome(
        verdict=verdict,
        usage=Usage(**values.pop("usage")),
        **values,
    )


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)

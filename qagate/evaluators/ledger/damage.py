"""Damage to a ledger file: how it is looked for, and what becomes of the file.

A ledger may be large, so that nobody reads it whole to open it. Whatever is read or written
is checked by SQLite on the way, and each row by its checksum. The rest is looked through in
stretches while a run waits for replies (``DamageSearch``), and whole by ``qagate ledger check``.

A file that proves to be damaged is set aside. The rows in it that can be read and verify go on
in a new file.
"""

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import randrange
from time import monotonic, time_ns
from typing import TypeVar

from qagate.evaluators.ledger.rows import SCHEMA, Row, Sql, StoredRow
from qagate.evaluators.ledger.sqlite_file import (
    DAMAGE,
    LOGS,
    connect,
    creation,
    has_code,
    is_foreign,
    state_of,
)
from qagate.evaluators.output import plural

T = TypeVar("T")

READY = "-ready"
"""Ends the name of a complete new file until it has the name of the damaged one."""

STRETCHES = 256
"""A table is read in so many parts, by key: a bad page costs rows of one part only."""

PAUSE_SECONDS = 0.02
"""At least, between two stretches of a search."""

PAUSE_SHARE = 4.0
"""A search pauses so many times as long as its last stretch took: replies go first."""

_SEARCHES = {
    "calls": (
        "SELECT count(*) FROM (SELECT length(reply) AS size, key, lag(key) "
        "OVER (ORDER BY key, run) AS former FROM calls WHERE key >= ? AND key < ?) "
        "WHERE size < 0 OR former > key"
    ),
    "imported": "SELECT count(run) - count(*) FROM imported WHERE key >= ? AND key < ?",
    "documents": (
        "SELECT count(length(text)) - count(*) FROM documents "
        "WHERE kind = ? AND key >= ? AND key < ?"
    ),
}
"""By table what reads a stretch of it, and answers with 0 where the stretch is sound."""

_SEARCH_ASIDE = "SELECT count(reply) - count(*) FROM damaged"
"""The same for all rows that were set aside: there are few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a table that is read at once."""

    query: str
    values: tuple[str, ...]


def stretches_of(connection: sqlite3.Connection) -> list[Stretch]:
    """Return the stretches that all of a ledger's large tables consist of.

    Raises sqlite3.DatabaseError where the file is damaged.
    """
    stretches = [Stretch(query=_SEARCH_ASIDE, values=())]
    for start, end in _ranges():
        for table in ("calls", "imported"):
            stretches.append(Stretch(query=_SEARCHES[table], values=(start, end)))
    for kind in _kinds(connection):
        for start, end in _ranges():
            values = (kind, start, end)
            stretches.append(Stretch(query=_SEARCHES["documents"], values=values))
    return stretches


def _kinds(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield the kinds of documents; each is one step in the index, however many there are."""
    kind = ""
    while True:
        query = "SELECT min(kind) FROM documents WHERE kind > ?"
        (next_kind,) = connection.execute(query, (kind,)).fetchone()
        if next_kind is None:
            return
        kind = next_kind
        yield kind


def _ranges() -> Iterator[tuple[str, str]]:
    """Yield the ranges of keys that a stretch spans: from a key on, and before another."""
    for number in range(STRETCHES):
        start = f"{number:02x}"
        end = f"{number + 1:02x}" if number + 1 < STRETCHES else "g"
        yield start, end


def check_stretch(connection: sqlite3.Connection, part: Stretch) -> None:
    """Read a stretch. Raises sqlite3.DatabaseError where the file is damaged."""
    (bad_rows,) = connection.execute(part.query, part.values).fetchone()
    if bad_rows:
        error = sqlite3.DatabaseError("its pages contradict each other")
        error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise error


def problems_of(path: Path) -> list[str]:
    """Return what SQLite finds wrong with a whole ledger file; it reads all of it."""
    try:
        with closing(connect(path, state_of(path))) as connection:
            rows = connection.execute("PRAGMA integrity_check(10)").fetchall()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    return [str(text) for (text,) in rows if text != "ok"]


class DamageSearch:
    """Looks through a ledger file stretch by stretch, in a thread, until it is closed.

    It begins anywhere, so that the stretches that a short run leaves out are others each time.
    ``tell`` is called with what is wrong, once; the search has no file open then.
    """

    def __init__(self, path: Path, tell: Callable[[str], object]) -> None:
        self._path = path
        self._tell = tell
        self._is_over = threading.Event()
        self._reading = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._thread = threading.Thread(
            target=self._run, name="qa-ledger-check", daemon=True
        )

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, at once, and return when no file is open any more."""
        self.interrupt()
        if (
            self._thread.ident is not None
            and self._thread is not threading.current_thread()
        ):
            self._thread.join()

    def interrupt(self) -> None:
        """Read nothing more; return when no file is open any more."""
        self._is_over.set()
        connection = self._connection
        if connection is not None:
            with suppress(sqlite3.ProgrammingError):  # closed meanwhile
                connection.interrupt()
        with self._reading:
            return

    def _run(self) -> None:
        problem = ""
        try:
            self._search()
        except sqlite3.DatabaseError as error:
            if has_code(error, *DAMAGE):
                problem = str(error)
        if problem and not self._is_over.is_set():
            self._tell(problem)

    def _search(self) -> None:
        """Look through all stretches. Raises sqlite3.DatabaseError at the first damage."""
        stretches = self._read(stretches_of)
        if stretches is None:
            return
        first = randrange(len(stretches))
        for part in [*stretches[first:], *stretches[:first]]:
            began = monotonic()
            self._read(partial(check_stretch, part=part))
            self._is_over.wait(max(PAUSE_SECONDS, PAUSE_SHARE * (monotonic() - began)))
            if self._is_over.is_set():
                return

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Return what ``work`` returns; None, and no file is opened, where the search is over."""
        with self._reading:
            if self._is_over.is_set():
                return None
            with closing(connect(self._path)) as connection:
                self._connection = connection
                result = work(connection)
            self._connection = None
            return result


def set_aside(path: Path, why: str) -> str:
    """Put a new ledger with the rows that verify in a damaged one's place; return a note on it.

    Nothing is renamed before the new file is complete: a full disk leaves everything as it was.
    The caller alone uses the ledger.
    """
    if not is_being_replaced(path):
        _prepare(path)
    return finish_replacement(path, why)


def is_being_replaced(path: Path) -> bool:
    """Return whether a complete new file waits to take a damaged ledger's place.

    Raises OSError if it is another user's.
    """
    ready = _ready(path)
    try:
        status = ready.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode) or is_foreign(status):
        raise OSError(f"{ready.name} is not a file of this user; remove it")
    return True


def _ready(path: Path) -> Path:
    return Path(f"{path}{READY}")


def _prepare(path: Path) -> None:
    """Make the new file of a damaged ledger; it has its name once it is complete."""
    fresh = Path(f"{path}-new")
    # What a killed process left may be half a file, and what another user did is not ours.
    fresh.unlink(missing_ok=True)
    Path(f"{fresh}-journal").unlink(missing_ok=True)
    with ExitStack() as at_end:
        # It goes if anything fails; once it is renamed there is nothing left to remove.
        at_end.callback(fresh.unlink, missing_ok=True)
        fresh.touch(mode=0o600, exist_ok=False)
        with (
            closing(connect(fresh)) as new,
            closing(connect(path, state_of(path))) as old,
        ):
            _carry_over(old, new)
        # By this time the damaged file is named; some systems' own clocks are too coarse for that.
        now = time_ns()
        os.utime(fresh, ns=(now, now))
        fresh.rename(_ready(path))


def finish_replacement(path: Path, why: str) -> str:
    """Rename the new file to a damaged ledger's name, and that to another; return a note on it.

    Where a process is killed in between, the next one that calls this goes on.
    The caller alone uses the ledger.
    """
    ready = _ready(path)
    with closing(connect(ready, state_of(ready))) as new:
        (rows,) = new.execute("SELECT count(*) FROM calls").fetchone()
        (documents,) = new.execute("SELECT count(*) FROM documents").fetchone()
    at = datetime.fromtimestamp(ready.stat().st_mtime, UTC)
    aside = f"{path}.damaged-{at:%Y%m%dT%H%M%S.%fZ}"
    # The logs go first: next to a new file they would be taken for that file's own.
    for ending in LOGS:
        log = Path(f"{path}{ending}")
        if log.exists():
            log.rename(f"{aside}{ending}")
    # An empty file was made by the opening after a kill: the damaged one is aside already.
    if path.exists() and path.stat().st_size:
        path.rename(aside)
    ready.rename(path)
    return (
        f"the ledger {path} was damaged ({why}): it is kept as {Path(aside).name}; "
        f"{rows:,} of its rows verify and are used, with {plural(documents, 'document')}; "
        "the others are asked again"
    )


def _carry_over(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy what verifies in a damaged ledger to a new file."""
    new.executescript(f"{creation()} PRAGMA user_version = {SCHEMA}; BEGIN")
    sound = (row for row in _rows(old) if row.opened() is not None)
    new.executemany(Sql.INSERT, sound)
    new.executemany(Sql.MARK_IMPORTED, _import_marks(old))
    # Documents have seals of their own, which are checked when they are used.
    new.executemany(Sql.ADD_DOCUMENT, _documents(old))
    new.execute("COMMIT")


def _rows(old: sqlite3.Connection) -> Iterator[StoredRow]:
    """Yield rows up to each damaged page from both sides, in stretches of the key."""
    for stretch in _ranges():
        query = f"{Sql.ROWS} WHERE key >= ? AND key < ?"
        for values in _from_both_ends(old, query, "key", stretch):
            yield StoredRow._make(values)


def _import_marks(old: sqlite3.Connection) -> Iterator[Row]:
    """Yield which rows were imported, as ``_rows`` yields rows."""
    for stretch in _ranges():
        query = "SELECT key, run FROM imported WHERE key >= ? AND key < ?"
        yield from _from_both_ends(old, query, "key", stretch)


def _documents(old: sqlite3.Connection) -> Iterator[Row]:
    """Yield documents, many of them twice.

    They lie in the order in which they came: a pass from either end finds all but those
    between two damaged pages. The index finds these too, in stretches of the key.
    """
    query = "SELECT kind, key, text FROM documents"
    yield from _from_both_ends(old, f"{query} NOT INDEXED", "rowid")
    with suppress(sqlite3.Error):  # where the index is damaged
        for kind in _kinds(old):
            for start, end in _ranges():
                part = f"{query} WHERE kind = ? AND key >= ? AND key < ?"
                yield from _from_both_ends(old, part, "key", (kind, start, end))


def _from_both_ends(
    old: sqlite3.Connection, query: str, column: str, values: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield the rows of a query up to the first damage, then up to it from the other end."""
    for order in ("ASC", "DESC"):
        with suppress(sqlite3.Error):
            for row in old.execute(f"{query} ORDER BY {column} {order}", values):
                if None not in row:
                    yield row
            return

"""Opening a ledger: private, sound and ours; a damaged one is repaired, anything else refused."""

import mmap
import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from evaluators.core import UsageError
from evaluators.ledger.claims import Claims
from evaluators.ledger.database import COLUMNS, IMPORTED, INSERT, SCHEMA, StoredRow
from evaluators.ledger.documents import ADD
from evaluators.ledger.signing import VARIABLE
from evaluators.ledger.sqlite_store import DAMAGE, TABLES, SqliteStore, connect, error_code, tables

OTHERS_SECONDS = 30.0  # another run may be mending the file
POLL_SECONDS = 0.05
_OURS = {("table", name) for name in TABLES}
LOGS = ("-wal", "-shm")
TRACES = (b"CREATE TABLE calls", b'"input_tokens":')


class _DamagedError(sqlite3.DatabaseError):
    """SQLite finds the file malformed."""


def open_to_write(path: Path, now: Callable[[], float] = time.time) -> SqliteStore:
    """Return the ledger at a path, made or mended where needed.

    A damaged file is kept under another name; the rows that can be read go on. Raises UsageError
    for what cannot be opened, is no ledger, was written by a newer version, or could have been
    changed by others unnoticed.
    """
    with _refusing(path), ExitStack() as on_error:
        notes = _notes_on_others(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        claims = Claims(path.with_name(f"{path.name}-claims"))
        on_error.callback(claims.close)
        alone = claims.alone()
        if not alone:
            _join(path, claims)
        try:
            connection = _open(path)
        except _DamagedError as error:
            if not looks_like_ledger(path):
                raise
            if not alone:
                what = f"the ledger is damaged ({error}); it is mended once no other run uses it"
                raise UsageError(f"{path}: {what}") from None
            notes.append(repair(path, str(error), now()))
            connection = _open(path)
        claims.join()
        on_error.pop_all()
    return SqliteStore(path, connection, notes, claims)


def open_to_read(path: Path) -> SqliteStore:
    """Return the ledger at a path as it is, without changing or making any file.

    Raises UsageError where there is none, it cannot be read at all, or others could have changed
    it unnoticed.
    """
    if not path.is_file():
        raise UsageError(
            f"{path}: no ledger to replay from; run once without --replay or give --ledger"
        )
    # A file that no run is writing can be read without making a log beside it.
    written = path.with_name(f"{path.name}-wal").exists()
    with _refusing(path), ExitStack() as on_error:
        notes = _notes_on_others(path)
        mode = "mode=ro" if written else "immutable=1"
        connection = connect(f"{path.resolve().as_uri()}?{mode}")
        on_error.callback(connection.close)
        # What a ledger of an earlier version lacks is empty; its file stays as it is.
        missing = tables(_missing(path, connection), "TEMP TABLE")
        connection.executescript(f"PRAGMA temp_store = MEMORY; {missing}")
        if not _is_sound(connection):
            notes.append(f"{path} is damaged: replayed as far as it can be read")
        on_error.pop_all()
    return SqliteStore(path, connection, notes)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn an error of the system or of SQLite into a UsageError that names the file."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{path}: cannot be opened as a ledger ({reason}); give another --ledger path"
        ) from None


def _join(path: Path, claims: Claims) -> None:
    """Share the ledger with other runs; wait while one of them must be alone with the file."""
    end = time.monotonic() + OTHERS_SECONDS
    while not claims.join():
        if time.monotonic() > end:
            raise UsageError(
                f"{path}: another process keeps this ledger to itself; wait until it has ended"
            )
        time.sleep(POLL_SECONDS)


def _open(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    try:
        missing = _missing(path, connection)
        if not _is_sound(connection):
            raise _DamagedError("its pages contradict each other")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if missing:
            made = f"BEGIN IMMEDIATE; {tables()} PRAGMA user_version = {SCHEMA}; COMMIT"
            connection.executescript(made)
    except BaseException as error:
        connection.close()
        if error_code(error) in DAMAGE:
            raise _DamagedError(str(error)) from None
        raise
    return connection


def _missing(path: Path, connection: sqlite3.Connection) -> set[str]:
    """Return the tables still to be made; refuse what a newer version or another program made."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    own = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    found = set(connection.execute(own))
    columns = [row[1] for row in connection.execute("PRAGMA table_info(calls)")]
    if found - _OURS or (columns and columns != COLUMNS.split(", ")):
        msg = f"{path}: cannot be opened as a ledger (a database of something else); give another "
        raise UsageError(msg + "--ledger path")
    if version > SCHEMA:
        raise UsageError(
            f"{path}: a ledger of format {version}, this version reads format {SCHEMA}; "
            "use the newer version, or give another --ledger path"
        )
    return TABLES.keys() - {name for _, name in found}


def _is_sound(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if error_code(error) in DAMAGE:
            return False
        raise


def _notes_on_others(path: Path) -> list[str]:
    """Return how other users could change the ledger.

    Raises UsageError where they could change it unnoticed: without QA_LEDGER_KEY rows are unsigned.
    """
    notes = []
    with suppress(FileNotFoundError):
        file = path.stat()
        if not stat.S_ISREG(file.st_mode):
            raise OSError("not a regular file")
        if is_foreign(file):
            notes.append(f"{path} belongs to another user, who could change its replies")
        elif file.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            who = "every user" if file.st_mode & stat.S_IWOTH else "its group"
            notes.append(f"{path} can be changed by {who}; chmod 600 makes it private")
        if notes and VARIABLE not in os.environ:
            raise UsageError(
                f"{notes[0]}; use a ledger of your own, or sign its rows with {VARIABLE}"
            )
    mode = path.parent.stat().st_mode if path.parent.is_dir() else 0
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        own = "keep the ledger in one of your own"
        notes.append(f"{path.parent} can be changed by every user; {own}")
    return notes


def is_foreign(file: os.stat_result) -> bool:
    """Return whether a file belongs to another user than the one who runs this."""
    return hasattr(os, "geteuid") and file.st_uid != os.geteuid()


def looks_like_ledger(path: Path) -> bool:
    """Return whether a file that is no sound database was once a ledger, or is nothing but zeros.

    Anything else is a file of the user's that was named by mistake.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if any(content.find(trace) >= 0 for trace in TRACES):
            return True
        return all(not any(content[at : at + 2**16]) for at in range(0, len(content), 2**16))


def repair(path: Path, reason: str, now: float) -> str:
    """Put a new ledger with all readable rows in a damaged one's place; return what was done.

    The damaged file stays, whole, under a name with the time. Nothing is renamed before the new
    file is complete, so a full disk leaves everything as it was. Raises OSError, sqlite3.Error.
    """
    # Reading can change a database file, so that a copy is read.
    with tempfile.TemporaryDirectory(prefix=".mending-", dir=path.parent) as folder:
        copy, fresh = Path(folder) / "copy", Path(folder) / "fresh"
        for ending in ("", *LOGS):
            if (file := Path(f"{path}{ending}")).exists():
                shutil.copyfile(file, f"{copy}{ending}")
        fresh.touch(mode=0o600)
        with closing(connect(fresh)) as connection:
            connection.executescript(tables())
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, (row for row in _readable_rows(copy) if row.is_sound))
            connection.executemany(IMPORTED, _readable(copy, "SELECT key FROM imported"))
            every = "SELECT kind, key, text FROM documents"
            connection.executemany(ADD, _readable(copy, every))
            connection.execute("COMMIT")
            (rows,) = connection.execute("SELECT count(*) FROM calls").fetchone()
        kept = _free_name(path, now)
        # The log goes first: beside a new file it would be taken for that file's own.
        for ending in (*LOGS, ""):
            if (file := Path(f"{path}{ending}")).exists():
                file.rename(f"{kept}{ending}")
        fresh.rename(path)
    return (
        f"the ledger {path} was damaged ({reason}): {rows:,} of its rows could be read and are "
        f"used, the others are asked again; the damaged file is kept as {kept.name}"
    )


def _readable_rows(copy: Path) -> Iterator[StoredRow]:
    """Yield rows up to each damaged page from both sides, in 256 stretches of the key."""
    with suppress(sqlite3.Error), closing(connect(copy)) as connection:
        for first in range(256):
            stretch = (f"{first:02x}", f"{first + 1:02x}" if first < 255 else "g")
            for order in ("", " DESC"):
                # Where a page cannot be read the stretch ends; the other direction is left.
                with suppress(sqlite3.Error):
                    query = f"SELECT {COLUMNS} FROM calls WHERE key >= ? AND key < ? ORDER BY key"
                    yield from map(StoredRow._make, connection.execute(query + order, stretch))
                    break


def _readable(copy: Path, query: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a query as far as they can be read."""
    with suppress(sqlite3.Error), closing(connect(copy)) as connection:
        yield from connection.execute(query)


def _free_name(path: Path, now: float) -> Path:
    """Return the name of a damaged file: with the time, and a number where that is taken."""
    when = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    numbered = (f"-{number}" if number > 1 else "" for number in count(1))
    names = (path.with_name(f"{path.name}.damaged-{when}{number}") for number in numbered)
    return next(name for name in names if not name.exists())

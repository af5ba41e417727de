"""Opening a ledger: private, sound, and ours; anything else is said or refused."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import UsageError
from evaluators.ledger.claims import Claims
from evaluators.ledger.repair import looks_like_ledger, repair
from evaluators.ledger.rows import COLUMNS, SCHEMA, TABLES
from evaluators.ledger.sqlite import DAMAGE, connect, error_code

OTHERS_SECONDS = 30.0  # another run may be mending the file
POLL_SECONDS = 0.05
_OURS = {("table", "calls"), ("table", "damaged")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open ledger. ``notes`` are sentences for the run's report; ``claims`` only in writing."""

    connection: sqlite3.Connection
    notes: tuple[str, ...] = ()
    claims: Claims | None = None

    def close(self) -> None:
        """Close the files."""
        self.connection.close()
        if self.claims is not None:
            self.claims.close()


class _DamagedError(Exception):
    """SQLite finds the file malformed."""


def open_to_write(path: Path, now: Callable[[], float] = time.time) -> Opened:
    """Return the ledger at a path, made or mended where needed.

    A damaged file is kept under another name; the rows that can be read go on. Raises UsageError
    for what cannot be opened, is no ledger, was written by a newer version, or is another's.
    """
    try:
        notes = _look_around(path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        claims = Claims(path.with_name(f"{path.name}-claims"))
    except OSError as error:
        raise _refusal(path, error) from None
    try:
        connection, mended = _open_shared(path, claims, now)
    except (OSError, sqlite3.Error) as error:
        claims.close()
        raise _refusal(path, error) from None
    except UsageError:
        claims.close()
        raise
    return Opened(connection=connection, notes=(*notes, *mended), claims=claims)


def open_to_read(path: Path) -> Opened:
    """Return the ledger at a path as it lies: nothing is changed, nothing is made beside it.

    Raises UsageError where there is none or it cannot be read at all.
    """
    if not path.is_file():
        msg = f"{path}: no ledger to replay from; run once without --replay or give --ledger"
        raise UsageError(msg)
    # A file that no run is writing is read as it lies: nothing is created beside it.
    alone = not path.with_name(f"{path.name}-wal").exists()
    mode = "immutable=1" if alone else "mode=ro"
    connection = None
    try:
        notes = _look_around(path)
        connection = connect(f"{path.resolve().as_uri()}?{mode}")
        _check_ours(path, connection)
        sound = _is_sound(connection)
    except (OSError, sqlite3.Error, UsageError) as error:
        if connection is not None:
            connection.close()
        raise error if isinstance(error, UsageError) else _refusal(path, error) from None
    said = () if sound else (f"{path} is damaged: replayed as far as it can be read",)
    return Opened(connection=connection, notes=(*notes, *said))


def _open_shared(
    path: Path, claims: Claims, now: Callable[[], float]
) -> tuple[sqlite3.Connection, tuple[str, ...]]:
    alone = claims.alone() or not _joined(path, claims)
    notes: tuple[str, ...] = ()
    try:
        connection = _open(path)
    except _DamagedError as error:
        if not looks_like_ledger(path):
            raise _refusal(path, error) from None
        if not alone:
            msg = f"{path}: the ledger is damaged ({error}); it is mended once no other run uses it"
            raise UsageError(msg) from None
        notes = (repair(path, str(error), now()),)
        connection = _open(path)
    claims.join()
    return connection, notes


def _joined(path: Path, claims: Claims) -> bool:
    """Wait while another run is alone with the file; return True once this one shares it."""
    end = time.monotonic() + OTHERS_SECONDS
    while not claims.join():
        if time.monotonic() > end:
            msg = f"{path}: another process keeps this ledger to itself; wait until it has ended"
            raise UsageError(msg)
        time.sleep(POLL_SECONDS)
    return True


def _open(path: Path) -> sqlite3.Connection:
    connection = connect(path)
    try:
        version = _check_ours(path, connection)
        if not _is_sound(connection):
            msg = "its pages contradict each other"
            raise _DamagedError(msg)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if version != SCHEMA:
            made = f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA}; COMMIT"
            connection.executescript(made)
    except sqlite3.Error as error:
        connection.close()
        if error_code(error) in DAMAGE:
            raise _DamagedError(str(error)) from None
        raise
    except (UsageError, _DamagedError):
        connection.close()
        raise
    return connection


def _check_ours(path: Path, connection: sqlite3.Connection) -> int:
    """Return the file's format; refuse what a newer version or another program made."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    found = set(connection.execute("SELECT type, name FROM sqlite_master"))
    columns = [row[1] for row in connection.execute("PRAGMA table_info(calls)")]
    if found - _OURS or (columns and columns != COLUMNS.split(", ")):
        msg = f"{path}: cannot be opened as a ledger (a database of something else); give another "
        raise UsageError(msg + "--ledger path")
    if version > SCHEMA:
        msg = (
            f"{path}: a ledger of format {version}, this version reads format {SCHEMA}; "
            "use the newer version, or give another --ledger path"
        )
        raise UsageError(msg)
    return int(version)


def _is_sound(connection: sqlite3.Connection) -> bool:
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError as error:
        if error_code(error) in DAMAGE:
            return False
        raise


def _look_around(path: Path) -> tuple[str, ...]:
    """Return what others could do to the ledger; refuse a link to what is not the user's."""
    try:
        file = path.stat()
    except FileNotFoundError:
        file = None
    if file is not None and not stat.S_ISREG(file.st_mode):
        msg = "not a regular file"
        raise OSError(msg)
    foreign = file is not None and _is_foreign(file)
    if foreign and path.is_symlink():
        msg = f"{path}: a link to a file of another user; give the path of a ledger of your own"
        raise UsageError(msg)
    notes = [f"{path} belongs to another user, who could change the replies in it"] * foreign
    if file is not None and file.st_mode & stat.S_IWOTH:
        notes.append(f"{path} can be changed by every user; chmod 600 makes it private")
    folder = path.parent
    if folder.is_dir() and _is_open_to_all(folder.stat()):
        notes.append(f"{folder} can be changed by every user; keep the ledger in one of your own")
    return tuple(notes)


def _is_foreign(file: os.stat_result) -> bool:
    return hasattr(os, "geteuid") and file.st_uid != os.geteuid()


def _is_open_to_all(folder: os.stat_result) -> bool:
    return bool(folder.st_mode & stat.S_IWOTH) and not folder.st_mode & stat.S_ISVTX


def _refusal(path: Path, error: Exception) -> UsageError:
    reason = getattr(error, "strerror", None) or error
    return UsageError(
        f"{path}: cannot be opened as a ledger ({reason}); give another --ledger path"
    )

"""Opening a ledger: private, sound, and ours; anything else is said or refused."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import UsageError
from evaluators.ledger.claims import Claims
from evaluators.ledger.database import COLUMNS, DAMAGE, SCHEMA, TABLES, connect, error_code
from evaluators.ledger.repair import looks_like_ledger, repair

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


class _DamagedError(sqlite3.DatabaseError):
    """SQLite finds the file malformed."""


def open_to_write(path: Path, now: Callable[[], float] = time.time) -> Opened:
    """Return the ledger at a path, made or mended where needed.

    A damaged file is kept under another name; the rows that can be read go on. Raises UsageError
    for what cannot be opened, is no ledger, was written by a newer version, or is another's.
    """
    with _refusing(path), ExitStack() as on_error:
        notes = _warnings(path)
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
                msg = f"{path}: {what}"
                raise UsageError(msg) from None
            notes.append(repair(path, str(error), now()))
            connection = _open(path)
        claims.join()
        on_error.pop_all()
    return Opened(connection=connection, notes=tuple(notes), claims=claims)


def open_to_read(path: Path) -> Opened:
    """Return the ledger at a path as it is: nothing is changed, nothing is made beside it.

    Raises UsageError where there is none or it cannot be read at all.
    """
    if not path.is_file():
        msg = f"{path}: no ledger to replay from; run once without --replay or give --ledger"
        raise UsageError(msg)
    # A file that no run is writing can be read without making a log beside it.
    written = path.with_name(f"{path.name}-wal").exists()
    with _refusing(path), ExitStack() as on_error:
        notes = _warnings(path)
        mode = "mode=ro" if written else "immutable=1"
        connection = connect(f"{path.resolve().as_uri()}?{mode}")
        on_error.callback(connection.close)
        _check_ours(path, connection)
        if not _is_sound(connection):
            notes.append(f"{path} is damaged: replayed as far as it can be read")
        on_error.pop_all()
    return Opened(connection=connection, notes=tuple(notes))


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn an error of the system or of SQLite into a UsageError that names the file."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{path}: cannot be opened as a ledger ({reason}); give another --ledger path"
        raise UsageError(msg) from None


def _join(path: Path, claims: Claims) -> None:
    """Share the ledger with other runs; wait while one of them must be alone with the file."""
    end = time.monotonic() + OTHERS_SECONDS
    while not claims.join():
        if time.monotonic() > end:
            msg = f"{path}: another process keeps this ledger to itself; wait until it has ended"
            raise UsageError(msg)
        time.sleep(POLL_SECONDS)


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
    except BaseException as error:
        connection.close()
        if error_code(error) in DAMAGE:
            raise _DamagedError(str(error)) from None
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


def _warnings(path: Path) -> list[str]:
    """Return what others could do to the ledger; refuse a link to what is not the user's."""
    warnings = []
    try:
        file = path.stat()
    except FileNotFoundError:
        file = None
    if file is not None and not stat.S_ISREG(file.st_mode):
        msg = "not a regular file"
        raise OSError(msg)
    if file is not None and is_foreign(file):
        if path.is_symlink():
            msg = f"{path}: a link to a file of another user; give the path of a ledger of your own"
            raise UsageError(msg)
        warnings.append(f"{path} belongs to another user, who could change the replies in it")
    if file is not None and file.st_mode & stat.S_IWOTH:
        warnings.append(f"{path} can be changed by every user; chmod 600 makes it private")
    mode = path.parent.stat().st_mode if path.parent.is_dir() else 0
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        own = "keep the ledger in one of your own"
        warnings.append(f"{path.parent} can be changed by every user; {own}")
    return warnings


def is_foreign(file: os.stat_result) -> bool:
    """Return whether a file belongs to another user than the one who runs this."""
    return hasattr(os, "geteuid") and file.st_uid != os.geteuid()

"""Opens ledgers. One in an SQLite file is private to its user, in WAL mode, and shared by runs.

Next to the ledger ``l`` lies the file ``l-claims``, which stays empty: runs lock single bytes
of it. The first byte says that a run uses the ledger; each of the others stands for the key
of a call that a run is making. The kernel frees them when the run ends, however it ends.

A file that proves to be damaged, when it is opened or used, is set aside, and the rows in it
that verify go on in a new one (``damage``). A file that never was a ledger is refused and not
touched; one that SQLite cannot read is a ledger if its ``-claims`` lie next to it.
"""

import os
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Literal, TypeVar

from qagate.evaluators import doors
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.damage import (
    READY,
    DamageSearch,
    finish_replacement,
    is_being_replaced,
    set_aside,
)
from qagate.evaluators.ledger.place import LedgerPlace, PostgresUrl
from qagate.evaluators.ledger.rows import (
    SCHEMA,
    VARIABLE,
    Row,
    Statements,
    StoreError,
)
from qagate.evaluators.ledger.sqlite_file import (
    DAMAGE,
    HEAD,
    LOGS,
    TABLES,
    as_store_error,
    connect,
    creation,
    has_code,
    inspect,
    is_foreign,
    refuse_odd,
    state_of,
)
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.optional import REQUIREMENTS

T = TypeVar("T")

OPEN_TIMEOUT_SECONDS = 30.0
"""For so long an opening waits while a process prunes the ledger or replaces a damaged file."""

OPEN_POLL_SECONDS = 0.05

IN_USE = 0
"""The byte that every run with the ledger open locks; those of keys follow."""

# Locks of single bytes.


def open_locks(path: Path) -> int:
    """Return the open file next to a ledger whose single bytes its runs lock."""
    return os.open(
        f"{path}-claims", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600
    )


LockKind = Literal["F_WRLCK", "F_RDLCK", "F_UNLCK"]
"""What becomes of a byte, by its name in ``fcntl``: locked, locked with others, or free."""


def lock(file: int, byte: int, kind: LockKind) -> bool:
    """Lock a byte or free it; return False if another run holds it.

    The kernel frees it when the process ends. True where there are no such locks.
    """
    try:
        import fcntl  # noqa: PLC0415  # Windows has none
    except ImportError:
        return True
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            # A lock of the open file, not of the process: closing another handle keeps it.
            types = {
                "F_UNLCK": fcntl.F_UNLCK,
                "F_RDLCK": fcntl.F_RDLCK,
                "F_WRLCK": fcntl.F_WRLCK,
            }
            request = struct.pack("hhqqi", types[kind], os.SEEK_SET, byte, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, request)
        else:
            modes = {
                "F_UNLCK": fcntl.LOCK_UN,
                "F_RDLCK": fcntl.LOCK_SH | fcntl.LOCK_NB,
                "F_WRLCK": fcntl.LOCK_EX | fcntl.LOCK_NB,
            }
            fcntl.lockf(file, modes[kind], 1, byte)
    except OSError as error:
        return not isinstance(error, BlockingIOError | PermissionError)
    return True


def _byte_of(key: str) -> int:
    """Return the byte that stands for a key: 60 bits of a hash do not collide by chance."""
    return IN_USE + 1 + int(key[:15], 16)


# The open ledger.


class SqliteStore:
    """An open ledger file, read only; ``opened`` to write, it has a connection and locks.

    Any thread may use it. One connection writes, under ``_writing``; another reads, under
    ``_reading``, and never waits for a commit.

    Where the file proves to be damaged it is mended on the spot, if no other run has it open,
    and what was to be read or changed is done in the new file.

    A ledger that is only read is read as if it could not change: so no other file is made
    next to it, and it may lie in a folder that is read only. Therefore each read looks
    whether a run has begun to write to it meanwhile, by the file's ``_state``.
    """

    near = True
    """Whether a look-up takes microseconds, so that it may run on the event loop."""

    def __init__(
        self,
        path: Path,
        notes: list[str],
        opened: tuple[sqlite3.Connection, int] | None = None,
    ) -> None:
        self.times_mended = 0
        self._path = path
        self._locks: int | None = None
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._search: DamageSearch | None = None
        self._state: tuple[int, ...] = ()
        self._notes = notes
        if opened is None:
            self._open_to_read()
        else:
            self._writer, self._locks = opened
            self._reader = connect(path)

    def _open_to_read(self) -> None:
        """Open the file without changing it or making any other."""
        with ExitStack() as on_error:
            state = state_of(self._path)
            connection = on_error.enter_context(closing(connect(self._path, state)))
            shape = inspect(self._path, connection)
            # A table that is not as it was made counts as empty.
            unusable = (shape.missing | shape.odd) & TABLES.keys()
            empty = creation(unusable, "TEMP TABLE")
            connection.executescript(f"PRAGMA temp_store = MEMORY; {empty}")
            on_error.pop_all()
        if shape.odd:
            self._note_damage()
        self._reader = connection
        self._writer = connection
        self._state = state

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says about the file: damage, and who could change it."""
        return tuple(self._notes)

    def _note_damage(self) -> None:
        """Note that a replay does without a part of the file."""
        note = f"{self._path} is damaged: replayed as far as it can be read"
        if note not in self._notes:
            self._notes.append(note)

    @property
    def size(self) -> int:
        """The bytes of the file and its log."""
        files = (self._path, Path(f"{self._path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query."""
        if self._locks is None:
            return self._replay(sql, values)
        return self._mending(lambda: self._read(sql, values))

    def _read(self, sql: str, values: Sequence[object]) -> list[Row]:
        with as_store_error(), self._reading:
            return self._reader.execute(sql, values).fetchall()

    def _replay(self, sql: str, values: Sequence[object]) -> list[Row]:
        """Return the rows of a query of a file that may change at any time."""
        while True:
            try:
                rows = self._read(sql, values)
            except StoreError as error:
                if not self._has_changed():
                    if error.is_damage:
                        self._note_damage()
                    raise
            else:
                if not self._has_changed():
                    return rows
            # What was read may be torn: a run has begun to write to the file.
            self.close()
            with as_store_error():
                self._open_to_read()

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a query."""
        with as_store_error():
            # Not the cursor itself: the end of this generator would close it, perhaps too late.
            yield from iter(self._reader.execute(sql, values).fetchone, None)
        if self._has_changed():
            raise StoreError(
                "a run began to write while it was read; run this command again"
            )

    def _has_changed(self) -> bool:
        return bool(self._state) and self._state != state_of(self._path)

    def change(self, statements: Statements) -> None:
        """Return once all changes are on the disk."""
        self._mending(lambda: self._change(statements))

    def _change(self, statements: Statements) -> None:
        with as_store_error(), self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            for sql, rows in statements:
                self._writer.executemany(sql, rows)

    def _mending(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns; where the file proves to be damaged, after it is mended."""
        times_mended = self.times_mended
        try:
            return work()
        except StoreError as error:
            if not error.is_damage or self._locks is None:
                raise
            self._mend(str(error), times_mended)
        return work()

    def _mend(self, why: str, times_mended: int) -> None:
        """Set the damaged file aside, unless that was done since it had been so often.

        Raises StoreError where another run uses the file, or no new one can be made.
        """
        if self._search is not None:
            self._search.interrupt()  # it has the file open
        with self._writing, self._reading:
            if self.times_mended != times_mended:
                return
            if not self.alone():
                raise StoreError(
                    f"the ledger is damaged ({why}) and another run uses it; run again once "
                    "that run has ended",
                    is_damage=True,
                )
            self._reader.close()
            self._writer.close()
            try:
                with as_store_error():
                    self._notes.append(set_aside(self._path, why))
                    self._writer = _open(self._path)
                    self._reader = connect(self._path)
            except OSError as error:
                raise StoreError(f"the ledger is damaged ({why}): {error}") from None
            finally:
                self._lock(IN_USE, "F_RDLCK")
            self.times_mended += 1

    def mend(self, why: str) -> None:
        """Set the file aside, for what is wrong with it; a new one takes its place.

        Raises StoreError where another run uses it.
        """
        self._mend(why, self.times_mended)

    def begin_search(self) -> None:
        """Look for damage in all of the file from now on, slice by slice, until it is closed."""
        if self._locks is None or self._search is not None:
            return
        self._search = DamageSearch(self._path, self._hear_of_damage)
        self._search.start()

    def _hear_of_damage(self, why: str) -> None:
        """Mend the file, or note why it must wait."""
        try:
            self.mend(why)
        except StoreError as error:
            self._notes.append(f"{self._path}: {error}")

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other run is making."""
        return {key for key in keys if self._lock(_byte_of(key), "F_WRLCK")}

    def give_back(self, key: str) -> None:
        """End a claim."""
        self._lock(_byte_of(key), "F_UNLCK")

    def alone(self) -> bool:
        """Return whether no other run has the file open; then none can open it until it closes."""
        return self._lock(IN_USE, "F_WRLCK")

    def _lock(self, byte: int, kind: LockKind) -> bool:
        if self._locks is None:
            return True
        return lock(self._locks, byte, kind)

    def shrink(self) -> None:
        """Return the space of removed rows to the system."""
        with as_store_error(), self._writing:
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the files."""
        if self._search is not None:
            self._search.close()
        self._reader.close()
        self._writer.close()
        if self._locks is not None:
            os.close(self._locks)


# Opening a file to write.


def _open_to_write(path: Path, notes: list[str]) -> SqliteStore:
    """Return the ledger at a path, made if there is none; a damaged file is set aside."""
    with ExitStack() as on_error:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        # What is not ours is refused before a file is made next to it.
        _refuse_other_files(path)
        locks = open_locks(path)
        on_error.callback(os.close, locks)
        is_alone = _wait_for_use(path, locks)
        if is_alone and is_being_replaced(path):
            why = "the process that mended it was killed"
            notes.append(finish_replacement(path, why))
        try:
            connection = _open(path)
        except sqlite3.DatabaseError as error:
            if not has_code(error, *DAMAGE):
                raise
            if not is_alone:
                raise UsageError(
                    f"{path}: the ledger is damaged ({error}) and another run uses it; "
                    "run again once that run has ended"
                ) from None
            notes.append(set_aside(path, str(error)))
            connection = _open(path)
        lock(locks, IN_USE, "F_RDLCK")
        on_error.pop_all()
    return SqliteStore(path, notes, (connection, locks))


def _refuse_other_files(path: Path) -> None:
    """Raise an error for a file that has content and is no ledger.

    A file whose locks lie next to it was used as one, whatever is in it now.
    """
    if Path(f"{path}-claims").exists():
        return
    with path.open("rb") as file:
        head = file.read(len(HEAD))
    if not head:
        return
    if head != HEAD:
        raise sqlite3.DatabaseError("file is not a database")
    with closing(connect(path, state_of(path))) as connection:
        inspect(path, connection)


def _wait_for_use(path: Path, locks: int) -> bool:
    """Lock the byte IN_USE; return whether no other run has it. Raises UsageError."""
    if lock(locks, IN_USE, "F_WRLCK"):
        return True
    end = time.monotonic() + OPEN_TIMEOUT_SECONDS
    while not lock(locks, IN_USE, "F_RDLCK"):
        if time.monotonic() > end:
            raise UsageError(
                f"{path}: another process keeps this ledger to itself; wait until it has ended"
            )
        time.sleep(OPEN_POLL_SECONDS)
    return False


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection to write, and make the tables of a new file.

    Raises sqlite3.DatabaseError for damage, UsageError for what is no ledger.
    """
    with ExitStack() as on_error:
        connection = on_error.enter_context(closing(connect(path)))
        shape = inspect(path, connection)
        refuse_odd(shape)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if shape.missing:
            # In their order, so that a new file is always laid out alike.
            tables = creation([name for name in TABLES if name in shape.missing])
            connection.executescript(
                f"BEGIN IMMEDIATE; {tables} PRAGMA user_version = {SCHEMA}; COMMIT"
            )
        on_error.pop_all()
    return connection


# Who else could change a ledger.


def _notes_on_others(path: Path) -> list[str]:
    """Return how others could change it. Raises UsageError if they could do so unnoticed."""
    notes = []
    for ending in ("", *LOGS, READY, "-claims"):
        file = Path(f"{path}{ending}")
        try:
            status = file.stat()
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{file.name} is not a regular file")
        if is_foreign(status):
            notes.append(
                f"{file} belongs to another user, who could change its replies"
            )
        elif status.st_mode & stat.S_IWOTH:
            notes.append(
                f"{file} can be changed by every user; chmod 600 makes it private"
            )
        elif status.st_mode & stat.S_IWGRP:
            notes.append(
                f"{file} can be changed by its group; chmod 600 makes it private"
            )
    if notes and VARIABLE not in os.environ:
        raise UsageError(
            f"{notes[0]}; use a ledger of your own, or sign its rows with {VARIABLE}"
        )
    if path.parent.is_dir():
        others = _others_who_may_write(path.parent.stat())
        if others:
            notes.append(
                f"{path.parent} can be changed by {others}; keep the ledger in one of your own"
            )
    return notes


def _others_who_may_write(folder: os.stat_result) -> str:
    """Return who could put other files into a folder; empty if nobody could.

    The system's own folders are sticky, as /tmp is: there only the owner replaces a file.
    """
    if folder.st_uid and is_foreign(folder):
        return "another user, its owner"
    if folder.st_mode & stat.S_ISVTX:
        return ""
    if folder.st_mode & stat.S_IWOTH:
        return "every user"
    if folder.st_mode & stat.S_IWGRP and folder.st_gid != os.getegid():
        return "its group"
    return ""


# Opening any ledger.


def open_store(place: LedgerPlace, *, read_only: bool = False) -> Store:
    """Return the open ledger at a place; a missing one is made to be written. Raises UsageError."""
    if isinstance(place, PostgresUrl):
        return _database_ledgers().open(place, read_only=read_only)
    if read_only and not place.is_file():
        missing = "no ledger to replay from; run once without --replay or give --ledger"
        raise UsageError(f"{place}: {missing}")
    try:
        notes = _notes_on_others(place)
        if read_only:
            return SqliteStore(place, notes)
        return _open_to_write(place, notes)
    except (OSError, sqlite3.Error) as error:
        why = f"cannot be opened as a ledger ({getattr(error, 'strerror', None) or error})"
        raise UsageError(f"{place}: {why}; give another --ledger path") from None


def exists(place: LedgerPlace) -> bool:
    """Return whether there is a ledger. Raises UsageError if a database does not answer."""
    if isinstance(place, PostgresUrl):
        return _database_ledgers().exists(place)
    return place.exists()


def _database_ledgers() -> doors.LedgerStores:
    """Return what opens ledgers in databases. Raises UsageError if a library is missing."""
    try:
        return doors.load_ledger_stores("postgresql")
    except ImportError as error:  # of psycopg, or of the library that it needs
        advice = f"pip install '{REQUIREMENTS['psycopg']}'"
        raise UsageError(f"--ledger postgresql://: {error}; {advice}") from None

"""Opens ledgers. One in an SQLite file is private to its user, in WAL mode, and shared by runs.

Next to the ledger ``l`` lies the file ``l-claims``, which stays empty: runs lock single bytes
of it. The first byte says that a run uses the ledger; each of the others stands for the key
of a call that a run is making. The kernel frees them when the run ends, however it ends.

A damaged file is set aside, and the rows in it that verify go on in a new one. A file that
never was a ledger is refused and not touched.
"""

import mmap
import os
import re
import sqlite3
import stat
import struct
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from qagate.evaluators import doors
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import LedgerPlace, PostgresUrl
from qagate.evaluators.ledger.rows import (
    SCHEMA,
    VARIABLE,
    Row,
    Sql,
    Statements,
    StoredRow,
    StoreError,
)
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.optional import REQUIREMENTS

TABLES = {
    "calls": """(
        key TEXT, run TEXT, schema INTEGER NOT NULL, at REAL NOT NULL, spec TEXT NOT NULL,
        reply TEXT NOT NULL, checksum TEXT NOT NULL, PRIMARY KEY (key, run)
    ) WITHOUT ROWID""",
    "damaged": "(key TEXT NOT NULL, at REAL NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL)",
    "imported": "(key TEXT, run TEXT, PRIMARY KEY (key, run)) WITHOUT ROWID",
    "documents": "(kind TEXT, key TEXT, text TEXT NOT NULL, PRIMARY KEY (kind, key))",
}

BUSY_TIMEOUT_SECONDS = 30.0
"""For so long a commit waits for another run's."""

OPEN_TIMEOUT_SECONDS = 30.0
"""For so long an opening waits while a process prunes the ledger or replaces a damaged file."""

OPEN_POLL_SECONDS = 0.05

IN_USE = 0
"""The byte that every run with the ledger open locks; those of keys follow."""

STRETCHES = 256
"""In so many parts, by key, a damaged ledger is read: a bad page costs rows of one part only."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LOGS = ("-wal", "-shm")
_HEAD = b"SQLite format 3\0"

_TRACES = b'CREATE TABLE calls|"input_tokens":'
"""Either is left in a damaged file that was a ledger."""


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

    Any thread may use it. One connection writes, under ``_writing``; another reads and never
    waits for a commit.

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
        self._path = path
        self._locks: int | None = None
        self._writing = threading.Lock()
        self._state: tuple[int, ...] = ()
        if opened is None:
            self._open_to_read(notes)
        else:
            self._writer, self._locks = opened
            self._reader = _connect(path)
        self.notes = tuple(notes)

    def _open_to_read(self, notes: list[str]) -> None:
        """Open the file without changing it or making any other."""
        with ExitStack() as on_error:
            state = _state(self._path)
            connection = on_error.enter_context(closing(_connect(self._path, state)))
            shape = _inspect(self._path, connection)
            # A table that is not as it was made counts as empty.
            unusable = (shape.missing | shape.odd) & TABLES.keys()
            empty = _creation(unusable, "TEMP TABLE")
            connection.executescript(f"PRAGMA temp_store = MEMORY; {empty}")
            try:
                _check_pages(connection, shape)
            except sqlite3.DatabaseError as error:
                if not _has_code(error, *_DAMAGE):
                    raise
                notes.append(
                    f"{self._path} is damaged: replayed as far as it can be read"
                )
            on_error.pop_all()
        self._reader = connection
        self._writer = connection
        self._state = state

    @property
    def size(self) -> int:
        """The bytes of the file and its log."""
        files = (self._path, Path(f"{self._path}-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query."""
        while True:
            try:
                with _as_store_error():
                    rows = self._reader.execute(sql, values).fetchall()
            except StoreError:
                if not self._has_changed():
                    raise
            else:
                if not self._has_changed():
                    return rows
            # What was read may be torn: a run has begun to write to the file.
            self.close()
            with _as_store_error():
                self._open_to_read([])

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a query."""
        with _as_store_error():
            # Not the cursor itself: the end of this generator would close it, perhaps too late.
            yield from iter(self._reader.execute(sql, values).fetchone, None)
        if self._has_changed():
            raise StoreError(
                "a run began to write while it was read; run this command again"
            )

    def _has_changed(self) -> bool:
        return bool(self._state) and self._state != _state(self._path)

    def change(self, statements: Statements) -> None:
        """Return once all changes are on the disk."""
        with _as_store_error(), self._writing, self._writer:
            self._writer.execute("BEGIN IMMEDIATE")
            for sql, rows in statements:
                self._writer.executemany(sql, rows)

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
        with _as_store_error(), self._writing:
            self._writer.execute("VACUUM")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the files."""
        self._reader.close()
        self._writer.close()
        if self._locks is not None:
            os.close(self._locks)


@contextmanager
def _as_store_error() -> Iterator[None]:
    """Raise errors of SQLite as StoreErrors."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreError(
            str(error),
            is_damage=_has_code(error, *_DAMAGE),
            is_full=_has_code(error, sqlite3.SQLITE_FULL),
        ) from None


def _has_code(error: sqlite3.Error, *codes: int) -> bool:
    """Return whether the primary result code of an error is one of these."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in codes


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a ledger is written; empty if a run may be writing it now."""
    if Path(f"{path}-wal").exists() or not path.exists():
        return ()
    file = path.stat()
    return file.st_ino, file.st_mtime_ns, file.st_size


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
        try:
            connection = _open(path)
        except sqlite3.DatabaseError as error:
            if not _has_code(error, *_DAMAGE) or not _was_ledger(path):
                raise
            if not is_alone:
                raise UsageError(
                    f"{path}: the ledger is damaged ({error}) and another run uses it; "
                    "run again once that run has ended"
                ) from None
            notes.append(_set_aside(path, str(error)))
            connection = _open(path)
        lock(locks, IN_USE, "F_RDLCK")
        on_error.pop_all()
    return SqliteStore(path, notes, (connection, locks))


def _refuse_other_files(path: Path) -> None:
    """Raise an error if a file that is not empty is no ledger, damaged or not."""
    with path.open("rb") as file:
        head = file.read(len(_HEAD))
    if not head:
        return
    if head != _HEAD and not _was_ledger(path):
        raise sqlite3.DatabaseError("file is not a database")
    if Path(f"{path}-claims").exists():
        return
    with (
        suppress(sqlite3.DatabaseError),
        closing(_connect(path, _state(path))) as connection,
    ):
        _inspect(path, connection)


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


def _connect(path: Path, state: tuple[int, ...] | None = None) -> sqlite3.Connection:
    """Return a connection with explicit transactions; to read only, if the ``state`` is given.

    Nothing that the file defines is trusted; text that is not UTF-8 fails its checksum.
    """
    database = str(path)
    if state is not None:
        # A file without a log can be read without making one, until a run begins.
        mode = "immutable=1" if state else "mode=ro"
        database = f"{path.resolve().as_uri()}?{mode}"
    connection = sqlite3.connect(
        database,
        timeout=BUSY_TIMEOUT_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # commits run on a pool thread, one at a time
        uri=state is not None,
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _open(path: Path) -> sqlite3.Connection:
    """Return a connection to write, and make the tables of a new file.

    Raises sqlite3.DatabaseError for damage, UsageError for what is no ledger.
    """
    with ExitStack() as on_error:
        connection = on_error.enter_context(closing(_connect(path)))
        shape = _inspect(path, connection)
        _check_pages(connection, shape)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if shape.missing:
            # In their order, so that a new file is always laid out alike.
            creation = _creation([name for name in TABLES if name in shape.missing])
            connection.executescript(
                f"BEGIN IMMEDIATE; {creation} PRAGMA user_version = {SCHEMA}; COMMIT"
            )
        on_error.pop_all()
    return connection


def _creation(
    names: Collection[str] = TABLES.keys(),
    kind: Literal["TABLE", "TEMP TABLE"] = "TABLE",
) -> str:
    """Return the statements that make these tables."""
    return " ".join(
        f"CREATE {kind} IF NOT EXISTS {name} {TABLES[name]};" for name in names
    )


# What a file is: a ledger, a damaged one, or something else.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How the tables of a file differ from a ledger's."""

    missing: set[str]
    """Those that are not there; all of them in a new file."""
    odd: set[str]
    """Those that are damaged, and tables that no ledger has."""


def _inspect(path: Path, connection: sqlite3.Connection) -> _Shape:
    """Return how a file differs from a ledger. Raises UsageError if it never was one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    query = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite~_%' ESCAPE '~'"
    objects = set(connection.execute(query))
    odd = set()
    for name, definition in TABLES.items():
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        if columns and columns != _columns_of(definition):
            odd.add(name)
    others = objects - {("table", name) for name in TABLES}
    has_calls = ("table", "calls") in objects
    has_other_tables_only = all(kind == "table" for kind, _ in others)
    is_foreign_database = bool(others) and not (has_calls and has_other_tables_only)
    if is_foreign_database or ("calls" in odd and not 0 < version < SCHEMA):
        raise UsageError(
            f"{path}: cannot be opened as a ledger (a database of something else); "
            "give another --ledger path"
        )
    if version > SCHEMA or "calls" in odd:
        which = "newer" if version > SCHEMA else "older"
        raise UsageError(
            f"{path}: a ledger of format {version}, this version reads format {SCHEMA}; "
            f"use the {which} version, or give another --ledger path"
        )
    missing = TABLES.keys() - {name for _, name in objects}
    odd.update(name for _, name in others)
    if missing != TABLES.keys():
        odd |= missing  # all are made at once: one that is not there was lost
    return _Shape(missing=missing, odd=odd)


def _columns_of(definition: str) -> list[str]:
    """Return the names of the columns in a definition of TABLES."""
    return re.findall(r"(\w+) (?:TEXT|INTEGER|REAL)\b", definition)


def _check_pages(connection: sqlite3.Connection, shape: _Shape) -> None:
    """Raise sqlite3.DatabaseError if a file is damaged."""
    if not shape.odd:
        result = connection.execute("PRAGMA quick_check(1)").fetchone()
        if result == ("ok",):
            return
    error = sqlite3.DatabaseError("its pages contradict each other")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    raise error


def _was_ledger(path: Path) -> bool:
    """Return whether a damaged file was a ledger or is all zeros; any other is the user's own."""
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        if re.search(_TRACES, content):
            return True
        return not re.search(b"[^\0]", content)


# What becomes of a damaged file.


def _set_aside(path: Path, why: str) -> str:
    """Put a new ledger with the rows that verify in a damaged one's place; return a note on it.

    Nothing is renamed before the new file is complete: a full disk leaves everything as it was.
    The caller alone uses the ledger.
    """
    fresh = Path(f"{path}-new")
    with ExitStack() as at_end:
        # It goes if anything fails; once it is renamed there is nothing left to remove.
        at_end.callback(fresh.unlink, missing_ok=True)
        fresh.touch(mode=0o600)
        with (
            closing(_connect(fresh)) as new,
            closing(_connect(path, _state(path))) as old,
        ):
            kept = _carry_over(old, new)
        aside = f"{path}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
        # The logs go first: next to a new file they would be taken for that file's own.
        for ending in (*_LOGS, ""):
            file = Path(f"{path}{ending}")
            if file.exists():
                file.rename(f"{aside}{ending}")
        fresh.rename(path)
    return (
        f"the ledger {path} was damaged ({why}): it is kept as {Path(aside).name}; "
        f"{kept:,} of its rows verify and are used, the others are asked again"
    )


def _carry_over(old: sqlite3.Connection, new: sqlite3.Connection) -> int:
    """Copy what verifies in a damaged ledger to a new file; return how many replies do."""
    new.executescript(f"{_creation()} PRAGMA user_version = {SCHEMA}; BEGIN")
    sound = (row for row in _rows(old) if row.opened() is not None)
    new.executemany(Sql.INSERT, sound)
    imported = _readable(old, "SELECT key, run FROM imported")
    new.executemany(Sql.MARK_IMPORTED, imported)
    # Documents have seals of their own, which are checked when they are used.
    documents = _readable(old, "SELECT kind, key, text FROM documents")
    new.executemany(Sql.ADD_DOCUMENT, documents)
    new.execute("COMMIT")
    (kept,) = new.execute("SELECT count(*) FROM calls").fetchone()
    return int(kept)


def _rows(old: sqlite3.Connection) -> Iterator[StoredRow]:
    """Yield rows up to each damaged page from both sides, in STRETCHES of the key."""
    for number in range(STRETCHES):
        start = f"{number:02x}"
        end = f"{number + 1:02x}" if number + 1 < STRETCHES else "g"
        for order in ("", " DESC"):
            query = f"{Sql.ROWS} WHERE key >= ? AND key < ? ORDER BY key{order}"
            for values in _readable(old, query, (start, end)):
                yield StoredRow._make(values)


def _readable(
    old: sqlite3.Connection, query: str, values: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield the rows of a query up to the first damage."""
    with suppress(sqlite3.Error):
        for row in old.execute(query, values):
            if None not in row:
                yield row


# Who else could change a ledger.


def _notes_on_others(path: Path) -> list[str]:
    """Return how others could change it. Raises UsageError if they could do so unnoticed."""
    notes = []
    for ending in ("", *_LOGS, "-claims"):
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


def is_foreign(file: os.stat_result) -> bool:
    """Return whether a file belongs to another user than the one who runs this."""
    return hasattr(os, "geteuid") and file.st_uid != os.geteuid()


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

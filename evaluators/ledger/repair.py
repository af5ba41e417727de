"""A ledger that SQLite finds malformed: the file is kept aside, its readable rows are kept."""

import mmap
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from evaluators.ledger.database import COLUMNS, INSERT, TABLES, StoredRow, connect

LOGS = ("-wal", "-shm")
TRACES = (b"CREATE TABLE calls", b'"input_tokens":')


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
            connection.executescript(TABLES)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(INSERT, (row for row in _readable_rows(copy) if row.is_sound))
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


def _free_name(path: Path, now: float) -> Path:
    """Return the name of a damaged file: with the time, and a number where that is taken."""
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    numbered = (f"-{number}" if number > 1 else "" for number in count(1))
    names = (path.with_name(f"{path.name}.damaged-{time}{number}") for number in numbered)
    return next(name for name in names if not name.exists())

"""A ledger that SQLite finds malformed: the file is kept aside, the rows that can be read go on."""

import mmap
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

from evaluators.ledger.rows import COLUMNS, INSERT, TABLES, Stored, is_sound
from evaluators.ledger.sqlite import connect

_BESIDE = ("-wal", "-shm")
_TRACES = (b"CREATE TABLE calls", b'"input_tokens":')
_PREFIXES = [f"{number:02x}" for number in range(256)]
_RANGE = f"SELECT {COLUMNS} FROM calls WHERE key >= ? AND key < ? ORDER BY key"


def looks_like_ledger(path: Path) -> bool:
    """Return whether a file that is no sound database was once a ledger, or is nothing but zeros.

    Anything else is a file of the user's that was named by mistake.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if any(content.find(trace) >= 0 for trace in _TRACES):
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
        for ending in ("", *_BESIDE):
            if _beside(path, ending).exists():
                shutil.copyfile(_beside(path, ending), _beside(copy, ending))
        fresh.touch(mode=0o600)
        count = _rescue(copy, fresh)
        kept = _free_name(path, now)
        # The log goes first: beside a new file it would be taken for that file's own.
        for ending in (*_BESIDE, ""):
            if _beside(path, ending).exists():
                _beside(path, ending).rename(_beside(kept, ending))
        fresh.rename(path)
    return (
        f"the ledger {path} was damaged ({reason}): {count:,} of its rows could be read and are "
        f"used, the others are asked again; the damaged file is kept as {kept.name}"
    )


def _rescue(copy: Path, fresh: Path) -> int:
    with closing(connect(fresh)) as connection:
        connection.executescript(TABLES)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(INSERT, _sound_rows(copy))
        connection.execute("COMMIT")
        (count,) = connection.execute("SELECT count(*) FROM calls").fetchone()
    return int(count)


def _sound_rows(copy: Path) -> Iterator[Stored]:
    return filter(is_sound, _readable_rows(copy))


def _readable_rows(copy: Path) -> Iterator[Stored]:
    """Yield rows up to each damaged page from both sides, in 256 stretches of the key."""
    try:
        connection = connect(copy)
    except sqlite3.Error:
        return
    with closing(connection):
        for number, low in enumerate(_PREFIXES):
            high = _PREFIXES[number + 1] if number + 1 < len(_PREFIXES) else "g"
            for order in ("", " DESC"):
                # Where a page cannot be read the stretch ends; the other direction is left.
                with suppress(sqlite3.Error):
                    found = connection.execute(_RANGE + order, (low, high))
                    yield from (Stored(*row) for row in found)
                    break


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _free_name(path: Path, now: float) -> Path:
    time = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    name = _beside(path, f".damaged-{time}")
    number = 1
    while name.exists():
        number += 1
        name = _beside(path, f".damaged-{time}-{number}")
    return name

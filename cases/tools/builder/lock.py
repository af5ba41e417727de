"""One command at a time in a work folder."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cases.tools.builder.items import BuildError

NAME = "lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands out of a folder for a block; the system lets go when a process dies.

    Raises BuildError where another command is at work there, or the folder cannot be written.
    """
    with closing(_held(folder)):
        yield


def _held(folder: Path) -> sqlite3.Connection:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        held = sqlite3.connect(folder / NAME, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        msg = f"{folder}: cannot be written ({error}); mend that and run again"
        raise BuildError(msg) from None
    try:
        held.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        held.close()
        is_busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
        why = "another command is at work there; wait for it" if is_busy else f"no lock ({error})"
        msg = f"{folder}: {why}, or take another --folder"
        raise BuildError(msg) from None
    return held

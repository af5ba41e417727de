"""How every part of the ledger speaks to SQLite."""

import sqlite3
from pathlib import Path

BUSY_SECONDS = 30.0
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


def connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection to a path, or to a ``file:`` URI where a text is given.

    Transactions are the caller's own, text that is not UTF-8 comes as replacement characters (so
    that its checksum fails), and nothing that the file defines is trusted.
    """
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # commits run on a pool thread, one at a time
        uri=isinstance(path, str),
    )
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def error_code(error: Exception) -> int:
    """Return SQLite's primary result code of an error; 0 where there is none."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF

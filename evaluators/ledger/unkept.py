"""Replies that a lost database, or a full disk, did not take: kept for an import to bring in."""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from evaluators.ledger.database import StoredRow

FOLDER = Path(".qa")


class Unkept:
    """A file of exported rows in the working folder, made once there is something to write.

    Used by one thread at a time.
    """

    def __init__(self) -> None:
        started = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self._path = FOLDER / f"unkept-{started}-{os.getpid()}.jsonl"
        self._has_rows = False

    def add(self, rows: Iterable[StoredRow]) -> None:
        """Write rows behind those that are there; private, as a ledger is. Raises OSError."""
        lines = [row.line for row in rows]
        if not lines:
            return
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        self._has_rows = True

    def __str__(self) -> str:
        """Return where replies are and how they get into the ledger, or nothing without any."""
        if not self._has_rows:
            return ""
        return (
            f"; replies that it could not take are in {self._path}: "
            f"`python -m evaluators ledger import {self._path}` with the same --ledger adds them"
        )

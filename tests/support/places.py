"""Ledgers of both kinds for tests: one file, one PostgreSQL database; looked into, or damaged."""

import concurrent.futures.thread  # noqa: F401  # another user may not be able to load it
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace, PostgresUrl

PAGE = 4096  # bytes
NOBODY = 65534
"""The user who owns nothing, by number."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory, where hundreds of commits wait for no disk; else any folder."""
    if (found := in_memory()) is None:
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(prefix="qa-", dir=found) as folder:
            yield Path(folder)


def in_memory() -> Path | None:
    """Return a file system in memory with a gigabyte to spare, None where there is none."""
    found = Path("/dev/shm")
    has_room = os.access(found, os.W_OK) and shutil.disk_usage(found).free > 2**30
    return found if has_room else None


@pytest.fixture
def plain_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Be a user whom rights concern, for a test; return a folder of that user, and work there."""
    is_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory(prefix="qa-user-") as name:
        folder = Path(name)
        if is_root:
            os.chown(folder, NOBODY, -1)
        monkeypatch.chdir(folder)
        if is_root:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o700)


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerPlace:
    if request.param == "file":
        return tmp_path / "l"
    return PostgresUrl(request.getfixturevalue("database"))


@pytest.fixture
def server(database: str) -> PostgresUrl:
    return PostgresUrl(database)


def text_of(place: LedgerPlace) -> str:
    return place.url if isinstance(place, PostgresUrl) else str(place)


def change(place: LedgerPlace, statement: str) -> None:
    """Change a ledger behind its back."""
    with closing(_connect(place)) as connection, connection:
        connection.execute(statement)


def ask(place: LedgerPlace, statement: str) -> object:
    """Return the first column of the first row of a query."""
    with closing(_connect(place)) as connection:
        return connection.execute(statement).fetchone()[0]


def _connect(place: LedgerPlace) -> Any:
    if isinstance(place, PostgresUrl):
        import psycopg  # noqa: PLC0415

        return psycopg.connect(place.url)
    return sqlite3.connect(place)


def zero_page(path: Path, page: int | None = None) -> bytes:
    """Damage a ledger file: blank one of its pages, by default the middle one; return the bytes."""
    content = bytearray(path.read_bytes())
    page = len(content) // PAGE // 2 if page is None else page
    content[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    path.write_bytes(content)
    return bytes(content)


def wait_for_note(ledger: Ledger) -> str:
    """Return the ledger's first note once it has one."""
    for _ in range(1000):
        if ledger.notes:
            return ledger.notes[0]
        time.sleep(0.01)
    raise AssertionError("nothing was found")

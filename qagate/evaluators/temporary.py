"""Temporary folders that do not outlive their processes for long.

A process that is killed cannot remove its folder. Each folder holds a file that its process keeps
locked; the kernel frees the lock when the process ends, however it ends. Whoever makes a folder
removes those of the same user whose lock is free.

This file needs the standard library alone: Ray carries it to nodes that have no more.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK = ".in-use"
"""The file that is locked, in each folder."""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Make a folder whose name begins so, for a block; first clear those of dead processes."""
    for left_folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        _remove_if_left(left_folder)
    folder, file = _locked_folder(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(file)


def _locked_folder(prefix: str) -> tuple[Path, int]:
    """Return a new folder, and its file, which this process keeps locked."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        _lock(file, waits=True)
        was_removed = os.fstat(file).st_nlink == 0
        if not was_removed:
            return folder, file
        # Another process found the file before it was locked, and took the folder for a left one.
        os.close(file)


def _remove_if_left(folder: Path) -> None:
    """Remove a folder of this user whose process is dead; leave alone what has no lock."""
    if sys.platform == "win32":  # it has no such locks
        return
    with suppress(OSError):
        if folder.lstat().st_uid != os.geteuid():
            return
        file = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            if _lock(file, waits=False):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(file)


def _lock(file: int, *, waits: bool) -> bool:
    """Lock a file until its last copy is closed; return whether this process has the lock.

    It may wait for another process that has it. Some systems have no such locks.
    """
    try:
        import fcntl  # noqa: PLC0415  # Windows has none

        fcntl.flock(file, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except (ImportError, OSError):
        return False
    return True

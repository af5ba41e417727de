"""Which calls some live run is making: locks on single bytes of a file beside the ledger.

The kernel gives a lock back when its process ends, however it ends: a killed run holds nothing up,
there is no expiry to tune and no clock to trust, and taking one costs microseconds, not a commit.
"""

import os
import struct
from pathlib import Path

_USE = 0  # held by every run that has the ledger open
_FIRST_KEY = 1


class Claims:
    """One run's locks. Where the system knows no such locks every claim is granted."""

    def __init__(self, path: Path) -> None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o600)

    def close(self) -> None:
        """Give everything back."""
        os.close(self._file)

    def take(self, key: str) -> bool:
        """Claim the call with this key; False while another run is making it."""
        return _lock(self._file, _offset(key), "F_WRLCK")

    def give_back(self, key: str) -> None:
        """Let others make the call."""
        _lock(self._file, _offset(key), "F_UNLCK")

    def alone(self) -> bool:
        """Return whether no other run has the ledger open; then none can open it until ``join``."""
        return _lock(self._file, _USE, "F_WRLCK")

    def join(self) -> bool:
        """Share the ledger with other runs; False while one of them must be alone with it."""
        return _lock(self._file, _USE, "F_RDLCK")


def _offset(key: str) -> int:
    """Return the byte that a key locks: 60 bits of a hash do not collide by chance."""
    return _FIRST_KEY + int(key[:15], 16)


def _lock(file: int, offset: int, kind: str) -> bool:
    try:
        import fcntl  # noqa: PLC0415  # Windows has none
    except ImportError:
        return True
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            # Of the open file, not of the process: no other close of the file gives it back.
            lock = struct.pack("hhqqi", getattr(fcntl, kind), os.SEEK_SET, offset, 1, 0)
            fcntl.fcntl(file, fcntl.F_OFD_SETLK, lock)
        else:
            now = fcntl.LOCK_NB
            modes = {
                "F_UNLCK": fcntl.LOCK_UN,
                "F_RDLCK": fcntl.LOCK_SH | now,
                "F_WRLCK": fcntl.LOCK_EX | now,
            }
            fcntl.lockf(file, modes[kind], 1, offset)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True  # a file system without locks: the run must not fail for that
    return True

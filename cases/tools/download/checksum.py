"""The SHA-256 of a file, and the one recorded beside it (in the format of ``sha256sum``)."""

import hashlib
import re
from pathlib import Path

from evaluators.core import UsageError
from evaluators.files import read_text

SUFFIX = ".sha256"
DIGITS = re.compile(r"[0-9a-f]{64}")
LIMIT = 4096  # bytes: a name and a hash


def well_formed(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hexadecimal."""
    return DIGITS.fullmatch(text) is not None


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in lower-case hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_path(path: Path) -> Path:
    """Return where the hash of a file is recorded."""
    return path.with_name(path.name + SUFFIX)


def recorded(path: Path) -> str:
    """Return the hash recorded beside a file, ``""`` where there is none.

    Raises UsageError where the record does not begin with a SHA-256.
    """
    record = record_path(path)
    if not record.exists():
        return ""
    word = read_text(record, LIMIT).partition(" ")[0].strip().lower()
    if not well_formed(word):
        msg = f"{record}:1: does not begin with a SHA-256 (64 hexadecimal digits); delete the file"
        raise UsageError(msg)
    return word


def record(path: Path, sha256: str) -> None:
    """Record the hash of a file beside it, unless that stands there. Raises OSError."""
    line = f"{sha256}  {path.name}\n".encode()
    place = record_path(path)
    if not place.exists() or place.read_bytes() != line:
        place.write_bytes(line)

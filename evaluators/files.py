"""Reading the user's text files: bounded, UTF-8, with errors that name file and line."""

import hashlib
import stat
from pathlib import Path

from evaluators.core import UsageError

MAX_BYTES = 512 * 1024 * 1024
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
ARCHIVES = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstd archive",
}


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Return a regular file's text without BOM, its line ends untouched.

    Raises UsageError where the file is missing, is a folder, a pipe or an archive, is larger
    than ``limit`` bytes, or is not UTF-8 (naming the line of the first wrong byte).
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            msg = f"{path}: not a regular file; give the path of a text file"
            raise UsageError(msg)
        if status.st_size > limit:
            msg = f"{path}: {status.st_size:,} bytes; at most {limit:,} are read"
            raise UsageError(msg)
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        msg = f"{path}: cannot be read ({reason}); check the path"
        raise UsageError(msg) from None
    return _decode(path, raw)


def _decode(path: Path, raw: bytes) -> str:
    for mark, what in ARCHIVES.items():
        if raw.startswith(mark):
            msg = f"{path}: {what}; archives are not read, give the text file itself"
            raise UsageError(msg)
    if b"\0" in raw[:2] or raw[:2] in UTF_16:
        msg = f"{path}:1: wrong encoding: UTF-16; save the file as UTF-8"
        raise UsageError(msg)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        msg = (
            f"{path}:{line}: wrong encoding: byte 0x{raw[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        )
        raise UsageError(msg) from None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""Reading the user's text files: bounded, UTF-8, with errors that name file and line."""

import stat
from pathlib import Path

from evaluators.core import UsageProblem

MAX_BYTES = 512 * 1024 * 1024


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Return a regular file's text without BOM, its line ends untouched.

    Raises UsageProblem where the file is missing, is a folder or a pipe, is larger than ``limit``
    bytes, or is not UTF-8 (naming the line of the first wrong byte).
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            msg = f"{path}: not a regular file; give the path of a text file"
            raise UsageProblem(msg)
        if status.st_size > limit:
            msg = f"{path}: {status.st_size:,} bytes; at most {limit:,} are read"
            raise UsageProblem(msg)
        raw = path.read_bytes()
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror or error}); check the path"
        raise UsageProblem(msg) from None
    return _decode(path, raw)


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        msg = (
            f"{path}:{line}: wrong encoding: byte 0x{raw[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8"
        )
        raise UsageProblem(msg) from None

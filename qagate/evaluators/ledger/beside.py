"""A judge's replies out of an earlier report: looked up where the ledger has none.

The folder of a report holds them in a file of its own, so that a run elsewhere, as in CI
without a ledger, pays for no grade twice. The file has a row of a ledger on each line, sealed
and signed as there (``rows``), and is compressed. Whoever reads it trusts no line: what does
not verify is left out and named, and costs no run.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from qagate.evaluators.ledger.kept import ANY, Kept
from qagate.evaluators.ledger.rows import Signer, StoredRow, read_line
from qagate.evaluators.text import mask, may_hold_key

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is no reply of a judge."""

MAX_FILE_BYTES = 1024 * 1024 * 1024
"""Of one file, unpacked: a small file can be made to unpack without end."""

COMPRESSION_LEVEL = 6
"""Of 9."""

GZIP_FORMAT = 31
"""The ``wbits`` of zlib for gzip's format; it writes no time and no name into the header."""

MAX_NAMED = 3
"""So many bad lines are named one by one."""


class RowsBeside:
    """Rows in memory, found as those of a ledger are."""

    def __init__(
        self, rows: Iterable[StoredRow] = (), notes: Iterable[str] = ()
    ) -> None:
        self.notes = tuple(notes)
        """What the report says about the files."""
        self._by_key: dict[str, list[StoredRow]] = {}
        for row in rows:
            self._by_key.setdefault(row.key, []).append(row)

    def newest(self, key: str, kept: Kept = ANY) -> StoredRow | None:
        """Return the newest row that counts."""
        newest: StoredRow | None = None
        for row in self._by_key.get(key, ()):
            if not kept.counts(row.run, row.at):
                continue
            if newest is None or (row.at, row.run) > (newest.at, newest.run):
                newest = row
        return newest


def load_beside(paths: Iterable[Path]) -> RowsBeside:
    """Return the sound rows of these files; a file that is not there has none."""
    signer = Signer()
    rows: list[StoredRow] = []
    notes: list[str] = []
    for path in paths:
        if not path.is_file():
            continue
        problems: list[str] = []
        rows += _sound_rows(path, signer, problems)
        notes += problems[:MAX_NAMED]
        if len(problems) > MAX_NAMED:
            notes.append(f"{path}: {len(problems):,} lines are not used")
    return RowsBeside(rows, notes)


def _sound_rows(path: Path, signer: Signer, problems: list[str]) -> Iterator[StoredRow]:
    """Yield the rows of a file that verify; say of each other line what is wrong with it."""
    try:
        for number, line in enumerate(_lines(path), start=1):
            try:
                if len(line) > MAX_LINE_BYTES:
                    raise ValueError(f"longer than {MAX_LINE_BYTES:,} bytes")
                yield read_line(line, signer)
            except ValueError as error:
                problems.append(f"{path}:{number}: not used: {error}")
    except (OSError, EOFError, zlib.error) as error:
        problems.append(f"{path}: not used from there on: {error}")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed file; of one that is too long its beginning.

    Raises OSError, EOFError or zlib.error where it is not what was written.
    """
    size = 0
    with gzip.open(path) as file:
        while line := file.readline(MAX_LINE_BYTES + 1):
            size += len(line)
            if size > MAX_FILE_BYTES:
                raise OSError(f"it holds more than {MAX_FILE_BYTES:,} bytes")
            yield line
            while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                line = file.readline(MAX_LINE_BYTES + 1)
                size += len(line)


def packed(rows: Iterable[StoredRow]) -> Iterator[bytes]:
    """Yield the file of these rows, each in it once; the same rows are the same bytes.

    A reply that holds an API key is left out: a report is read by others than a ledger.
    """
    packer = zlib.compressobj(COMPRESSION_LEVEL, wbits=GZIP_FORMAT)
    for row in sorted(set(rows)):
        if not may_hold_key(row.reply) or mask(row.reply) == row.reply:
            yield packer.compress(row.line.encode())
    yield packer.flush()

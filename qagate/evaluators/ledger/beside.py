"""A judge's replies out of an earlier report: looked up where the ledger has none.

The folder of a report holds them in a file of its own, so that a run elsewhere, as in CI
without a ledger, pays for no grade twice. The file has a row of a ledger on each line, sealed
and signed as there (``rows``), and is compressed. Whoever reads it trusts no line: what does
not verify is left out and named, and costs no run.

A line is verified when its key is first looked up. To verify all of them would hold up the
start of a run, and a run that has its ledger needs none.
"""

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

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


_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
"""Where a line has its key. In a reply's text such quotes have a backslash before them."""


class _Line(NamedTuple):
    """A line that is not verified yet."""

    path: Path
    number: int
    content: bytes


class RowsBeside:
    """Rows in memory, found as those of a ledger are."""

    def __init__(self) -> None:
        self._signer = Signer()
        self._lines: dict[str, list[_Line]] = {}
        self._rows: dict[str, list[StoredRow]] = {}
        """Those that were looked up and verify."""
        self._problems: list[str] = []

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says about the files: the lines that are not used."""
        notes = self._problems[:MAX_NAMED]
        if len(self._problems) > MAX_NAMED:
            notes.append(
                f"{len(self._problems):,} lines of earlier reports are not used"
            )
        return tuple(notes)

    def add_file(self, path: Path) -> None:
        """Take in the lines of a file; nothing if it is not there."""
        if not path.is_file():
            return
        try:
            for number, content in enumerate(_lines(path), start=1):
                self._add(_Line(path, number, content))
        except (OSError, EOFError, zlib.error) as error:
            self._problems.append(f"{path}: not used from there on: {error}")

    def _add(self, line: _Line) -> None:
        key = _KEY.search(line.content)
        if len(line.content) > MAX_LINE_BYTES:
            self._refuse(line, f"longer than {MAX_LINE_BYTES:,} bytes")
        elif key is None:
            self._refuse(line, "not a row of a ledger")
        else:
            self._lines.setdefault(key[1].decode(), []).append(line)

    def _refuse(self, line: _Line, why: str) -> None:
        self._problems.append(f"{line.path}:{line.number}: not used: {why}")

    def newest(self, key: str, kept: Kept = ANY) -> StoredRow | None:
        """Return the newest row that counts."""
        for line in self._lines.pop(key, ()):
            try:
                row = read_line(line.content, self._signer)
            except ValueError as error:
                self._refuse(line, str(error))
            else:
                self._rows.setdefault(row.key, []).append(row)
        newest: StoredRow | None = None
        for row in self._rows.get(key, ()):
            if not kept.counts(row.run, row.at):
                continue
            if newest is None or (row.at, row.run) > (newest.at, newest.run):
                newest = row
        return newest


def load_beside(paths: Iterable[Path]) -> RowsBeside:
    """Return the rows of these files."""
    beside = RowsBeside()
    for path in paths:
        beside.add_file(path)
    return beside


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

"""JSON, Parquet and archives that others wrote, read within one budget.

Whoever wrote a file may have meant to hang or to fill this machine: a few kilobytes of an
archive can hold hours of work. A ReadingBudget is made once for all that one command reads and
is carried along: bytes unpacked, members, values and seconds are counted over everything, not
for each file. What exceeds it is a UsageError in one line.

``read_json`` gives plain values with finite numbers. What they mean is for the caller to check.
"""

import io
import json
import math
import re
import stat
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from qagate.evaluators.core import UsageError
from qagate.evaluators.optional import REQUIREMENTS, not_installed
from qagate.evaluators.reading import read_text

MAX_UNPACKED_BYTES = 2 * 1024**3
"""Of all members of all archives."""
MAX_MEMBER_BYTES = 64 * 1024**2
"""Of one member: a sample of an agent's log has a few megabytes."""
MAX_MEMBERS = 200_000
MAX_VALUES = 8_000_000
"""Of the JSON that is held at one time. The smallest take some 100 bytes each."""
MAX_SECONDS = 300.0
"""To read everything."""
MAX_DIGITS_OF_A_FLOAT = 300
"""So many any float can have before its point; of more digits none may be made."""
PARQUET_MARK = b"PAR1"
"""How a Parquet file begins and ends."""
ROWS_AT_ONCE = 1_000
"""Of a Parquet file."""
LOCAL_HEADER_BYTES = 30
"""Before the name and the body of a member in an archive."""

_LONG_NUMBER = re.compile(rf"\d{{{MAX_DIGITS_OF_A_FLOAT}}}")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


@dataclass(slots=True)
class ReadingBudget:
    """What may still be read. Each ``take`` raises UsageError, naming the file, beyond it."""

    clock: Callable[[], float] = time.monotonic
    unpacked_bytes: int = 0
    members: int = 0
    values: int = 0
    ends_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.ends_at = self.clock() + MAX_SECONDS

    def take_members(self, path: Path, count: int) -> None:
        """Count the members of an archive."""
        self.members += count
        if self.members > MAX_MEMBERS:
            raise _too_much(path, f"more than {MAX_MEMBERS:,} members")

    def take_bytes(self, path: Path, count: int) -> None:
        """Count bytes that an archive unpacks to, before they are unpacked; look at the clock."""
        self.unpacked_bytes += count
        if self.unpacked_bytes > MAX_UNPACKED_BYTES:
            raise _too_much(path, f"more than {MAX_UNPACKED_BYTES:,} bytes unpacked")
        self._check_clock(path)

    def take_values(self, path: Path, count: int) -> None:
        """Count values that are held until the command ends; look at the clock."""
        self.values += count
        _check_values(path, self.values)
        self._check_clock(path)

    def _check_clock(self, path: Path) -> None:
        if self.clock() > self.ends_at:
            raise _too_much(path, f"more than {MAX_SECONDS:g} s to read")


def _check_values(path: Path, count: int) -> None:
    if count > MAX_VALUES:
        raise _too_much(path, f"more than {MAX_VALUES:,} values")


def _too_much(path: Path, amount: str) -> UsageError:
    return UsageError(
        f"{path}: holds {amount}, which is no result of an evaluation; give a part of it"
    )


def check_regular(path: Path) -> None:
    """Raise UsageError for a pipe or a device: opening one may wait for ever."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read ({reason}); check the path") from None
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: not a regular file; give the path of one")


# JSON


def read_json_file(path: Path, budget: ReadingBudget) -> Any:
    """Return the value of a JSON file, or the list of those of a JSON Lines file.

    None for a file that begins as neither does. Raises UsageError.
    """
    text = read_text(path)
    if path.suffix == ".jsonl":
        rows = []
        for line in text.split("\n"):
            if line.strip():
                budget.take_values(path, count_values(line))
                rows.append(read_json(path, line))
        return rows
    if text.lstrip()[:1] not in ("{", "["):
        return None
    budget.take_values(path, count_values(text))
    return read_json(path, text)


def read_json(path: Path, text: str) -> Any:
    """Return the value of a JSON text. Raises UsageError.

    NaN and infinities, which tools do write, become None, and so does a number beyond the
    range of floats.
    """
    # msgspec is five times as fast, and reads less: what it refuses may be what tools write.
    if not _LONG_NUMBER.search(text):
        with suppress(msgspec.DecodeError, RecursionError, ValueError):
            return msgspec.json.decode(text)
    try:
        return json.loads(
            text,
            parse_constant=lambda _: None,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{path}: not JSON ({str(error)[:80]}); give the file as written"
        ) from None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _bounded(digits: str) -> int | None:
    return int(digits) if len(digits) <= MAX_DIGITS_OF_A_FLOAT else None


def count_values(text: str) -> int:
    """Return at least how many values a JSON text holds, and hardly more.

    Each value but the first stands behind a comma or an opening bracket. Those in strings
    are left out only where they matter, as that takes longer.
    """
    count = _count_marks(text)
    if count > MAX_VALUES:
        count = _count_marks(_STRING.sub("", text))
    return count


def _count_marks(text: str) -> int:
    return 1 + text.count(",") + text.count("[") + text.count("{")


# Parquet


def read_parquet(
    path: Path, content: bytes, budget: ReadingBudget
) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file by column name; ``path`` names it in messages.

    Raises UsageError for a damaged file, beyond the budget, and where pyarrow is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise UsageError(not_installed("pyarrow", f"{path}: a parquet file")) from None
    rows: list[dict[str, Any]] = []
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        for group in range(file.metadata.num_row_groups):
            budget.take_bytes(path, file.metadata.row_group(group).total_byte_size)
        budget.take_values(path, file.metadata.num_rows * file.metadata.num_columns)
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            rows += batch.to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise UsageError(
            f"{path}: a damaged parquet file ({error}); give it whole"
        ) from None
    return rows


# Archives


class Archive:
    """A zip archive, of which each member is read as JSON. Raises UsageError."""

    def __init__(
        self, path: Path, budget: ReadingBudget, zip_module: ModuleType = zipfile
    ) -> None:
        """Open an archive; ``zip_module`` is one like Python's, which may unpack in more ways."""
        self.path = path
        self._budget = budget
        damaged = (OSError, ValueError, NotImplementedError, zip_module.BadZipFile)
        try:
            self._zip: zipfile.ZipFile = zip_module.ZipFile(path)
        except damaged as error:
            raise UsageError(
                f"{path}: a damaged archive ({error}); give a whole log"
            ) from None
        budget.take_members(path, len(self._zip.infolist()))
        self._check_bodies()

    def _check_bodies(self) -> None:
        """Refuse members that share a name or a body: one body may be read any number of times."""
        members = sorted(self._zip.infolist(), key=lambda member: member.header_offset)
        names = {member.filename for member in members}
        if len(names) < len(members):
            raise UsageError(
                f"{self.path}: two members have one name; give a whole log"
            )
        end_of_last = 0
        for member in members:
            if member.header_offset < end_of_last:
                raise UsageError(
                    f"{self.path}: two members share one body; give a whole log"
                )
            end_of_last = (
                member.header_offset + LOCAL_HEADER_BYTES + member.compress_size
            )

    @property
    def names(self) -> list[str]:
        """The names of its members, in its order."""
        return self._zip.namelist()

    def read(self, name: str) -> Any:
        """Return the JSON value of a member, which the caller keeps no longer than it needs."""
        try:
            size = self._zip.getinfo(name).file_size
        except KeyError:
            raise UsageError(f"{self.path}: has no {name}; give a whole log") from None
        if size > MAX_MEMBER_BYTES:
            raise UsageError(
                f"{self.path}: {name} cannot be read (larger than {MAX_MEMBER_BYTES:,} bytes); "
                "give a whole log"
            )
        self._budget.take_bytes(self.path, size)
        text = self._unpacked(name)
        _check_values(self.path, count_values(text))
        return read_json(self.path, text)

    def _unpacked(self, name: str) -> str:
        try:
            with self._zip.open(name) as member:
                return member.read(MAX_MEMBER_BYTES).decode("utf-8")
        except Exception as error:  # noqa: BLE001  # each way to compress has errors of its own
            package = REQUIREMENTS["backports.zstd"]
            raise UsageError(
                f"{self.path}: {name} cannot be read ({error}); give a whole log; one by zstd "
                f"needs: pip install '{package}'"
            ) from None

"""The files of a report that hold items, one a line: records, labelled answers, readings.

``run.json`` vouches for each of them by its checksum. A promoted run has them compressed.

:``records.jsonl``: the run's own items.

:``labels.jsonl``: the labelled answers that were judged beside them.

:``readings.jsonl``: the answers of earlier runs as this run's judge reads them, each with the
   name of its reading; see ``readings.py``.
"""

import gzip
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from qagate.cases.earlier import NOW, NOW_THEN, THEN
from qagate.evaluators.core import UsageError
from qagate.evaluators.reading import MAX_BYTES, parse_json
from qagate.evaluators.typed_data import decode, decode_whole, encode
from qagate.reports.run.json_data import dump, inner, ordered
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record, in_order, safe
from qagate.reports.run.report import Report, Role
from qagate.reports.run.report_folder import LABELS, PACKED, READINGS, RECORDS

ItemFileName = Literal["records", "labels", "readings"]
FILES: Mapping[ItemFileName, str] = {
    "records": RECORDS,
    "labels": LABELS,
    "readings": READINGS,
}
"""The files by the key under which ``run.json`` vouches for them, in the order of writing."""
ROLES: Sequence[Role] = ("baseline", "anchor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """What the files of items hold."""

    records: tuple[Record, ...] = ()
    labels: tuple[Record, ...] = ()
    readings: Mapping[str, tuple[Record, ...]] | None = None
    """By the name of the reading, such as ``baseline:then``."""

    def reading(self, role: Role, lacking: Mapping[str, str]) -> Reading:
        """Return how the run reads the answers of the earlier run in this role."""
        readings = self.readings or {}
        return Reading(
            old=readings.get(f"{role}{NOW}", ()),
            old_then=readings.get(f"{role}{THEN}", ()),
            new_then=readings.get(f"{role}{NOW_THEN}", ()),
            lacking=lacking,
        )


@dataclass(slots=True, kw_only=True)
class Voucher:
    """Counts the lines of a file and its checksum while it is written."""

    file: str
    count: int = 0
    _digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def seen(self, line: str) -> str:
        """Count a line, and return it."""
        self._digest.update(line.encode())
        self.count += 1
        return line

    @property
    def data(self) -> dict[str, object]:
        """What ``run.json`` says of the file."""
        return {
            "file": self.file,
            "count": self.count,
            "sha256": self._digest.hexdigest(),
        }


# Writing


def lines_of(report: Report, name: ItemFileName) -> Iterator[str]:
    """Yield the lines of a file, by dataset, language, row and repeat."""
    if name == "records":
        return _record_lines(report.records)
    if name == "labels":
        return _record_lines(report.labels)
    return _reading_lines(report)


def _record_lines(records: Iterable[Record]) -> Iterator[str]:
    for record in in_order(records):
        yield dump(_record_data(record)) + "\n"


def _reading_lines(report: Report) -> Iterator[str]:
    readings = {"baseline": report.reading, "anchor": report.anchor_reading}
    for role, reading in readings.items():
        if reading is None:
            continue
        parts = {NOW: reading.old, THEN: reading.old_then, NOW_THEN: reading.new_then}
        for part, records in parts.items():
            for record in in_order(records):
                line = {"reading": f"{role}{part}", "record": _record_data(record)}
                yield dump(line) + "\n"


def _record_data(record: Record) -> dict[str, object]:
    return {**encode(record), "metadata": ordered(record.metadata)}


# Reading


def load_items(source: Path, run: Mapping[str, Any]) -> Items:
    """Return the items of a ``run.json``, the ``source``, from the files beside it.

    Raises UsageError for a file that is not there, or not as it was written.
    """
    return Items(
        records=tuple(
            record_of_line(path, row, line)
            for path, row, line in _lines(source, run, "records")
        ),
        labels=tuple(
            record_of_line(path, row, line)
            for path, row, line in _lines(source, run, "labels")
        ),
        readings=_load_readings(source, run),
    )


def _load_readings(
    source: Path, run: Mapping[str, Any]
) -> Mapping[str, tuple[Record, ...]]:
    readings: dict[str, list[Record]] = defaultdict(list)
    for path, row, line in _lines(source, run, "readings"):
        try:
            data = decode(dict[str, Any], parse_json(line))
            name = data["reading"]
            record = decode_whole(Record, data["record"])
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise _odd_line(path, row, error) from None
        readings[str(name)].append(safe(record))
    return {name: tuple(records) for name, records in readings.items()}


def record_of_line(path: Path, row: int, line: str) -> Record:
    """Return the record of a line, with keys masked. Raises UsageError."""
    try:
        record: Record = decode_whole(Record, parse_json(line))
        return safe(record)
    except (ValueError, RecursionError) as error:
        raise _odd_line(path, row, error) from None


def _odd_line(path: Path, row: int, error: Exception) -> UsageError:
    return UsageError(
        f"{path}:{row}: not a record as it was written ({error}); "
        "restore the file from the run"
    )


def _lines(
    source: Path, run: Mapping[str, Any], name: ItemFileName
) -> Iterator[tuple[Path, int, str]]:
    """Yield each line of a file with its path and number, once its checksum is seen to hold."""
    path, content = _vouched(source, run, name)
    text = content.decode("utf-8", "replace")
    for row, line in enumerate(text.split("\n"), start=1):
        if line:
            yield path, row, line


def _vouched(
    source: Path, run: Mapping[str, Any], name: ItemFileName
) -> tuple[Path, bytes]:
    """Return a file's path and content. Raises UsageError if ``run.json`` has another checksum."""
    expected = inner(run, name).get("sha256")
    if not isinstance(expected, str):
        raise UsageError(
            f"{source}: '{name}.sha256' is {expected!r}, not a checksum; write the report again"
        )
    path = source.parent / FILES[name]
    packed = source.parent / PACKED[FILES[name]]
    if not path.exists() and packed.exists():
        path = packed
    content = _content(path, source)
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise UsageError(
            f"{path}: altered since {source.name} was written (SHA-256 {actual[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )
    return path, content


def _content(path: Path, source: Path) -> bytes:
    """Return what a file holds, unpacked. Raises UsageError."""
    is_packed = path.suffix == ".gz"
    try:
        with gzip.open(path) if is_packed else path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", "") or error
        what_failed = "unpacked" if is_packed else "read"
        raise UsageError(
            f"{path}: cannot be {what_failed} ({reason}); "
            f"{source.name} needs it in the same folder"
        ) from None

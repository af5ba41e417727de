"""Records whose texts stay on disk: what gates count is in memory, the rest is read when needed.

A million records with their questions, answers and reasons would not fit; their grades, costs and
times do. A record is a line of a file in the form of ``records.jsonl``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from sys import intern

from cases.dataset import Slice
from evaluators.core import Vote
from evaluators.kinds import Cluster
from reports.run.record import Record

ON_DISK: Mapping[str, object] = {
    "question": "",
    "context": "",
    "expected": "",
    "answer": None,
    "reason": "",
    "votes": (),
    "metadata": {},
    "calls": (),
}
"""The fields that are read from the file, and what is held in memory where one is empty."""

_NAMES = tuple(field.name for field in fields(Record))
_HELD = tuple(name for name in _NAMES if name not in ON_DISK)
_REPEATED = (
    *("dataset", "language", "outcome", "grade", "error", "label"),
    *("model", "judge", "adjudicated_by"),
)
_values = attrgetter(*_NAMES)


class RecordFile:
    """A file of records, from which one at a time is in memory."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._at = -1
        self._record: Record | None = None

    def scan(self, slices: Mapping[str, Slice]) -> Iterator["StoredRecord"]:
        """Yield every record without its texts, in the order of the file.

        ``slices`` say which of them hang together.
        """
        at = 0
        for line in iter(self._file.readline, b""):
            record = _decoded(line)
            cluster = slices[f"{record.dataset}:{record.language}"].cluster_of(record)
            yield StoredRecord.of(record, self, at, cluster)
            at += len(line)

    def line(self, at: int) -> str:
        """Return the line that begins there."""
        self._file.seek(at)
        return self._file.readline().decode()

    def read(self, at: int) -> Record:
        """Return the record whose line begins there; the last one is not read again."""
        if self._record is None or self._at != at:
            self._record, self._at = _decoded(self.line(at)), at
        return self._record


def _decoded(line: str | bytes) -> Record:
    values = json.loads(line)
    votes = tuple(Vote(**vote) for vote in values.pop("votes"))
    return Record(votes=votes, calls=tuple(values.pop("calls")), **values)


class StoredRecord(Record):
    """A record that reads its texts when they are asked for; ``cluster`` is that of its slice."""

    __slots__ = ("_at", "_file", "cluster")

    cluster: Cluster
    _at: int
    _file: RecordFile

    @classmethod
    def of(cls, record: Record, file: RecordFile, at: int, cluster: Cluster) -> "StoredRecord":
        """Return the record whose line begins there."""
        made, put = cls.__new__(cls), object.__setattr__
        for name in _HELD:
            put(made, name, getattr(record, name) or _empty(getattr(record, name)))
        for name in _REPEATED:
            if text := getattr(record, name):
                put(made, name, intern(text))
        for name, empty in ON_DISK.items():
            if getattr(record, name) == empty:
                put(made, name, empty)
        for name, value in (("_file", file), ("_at", at), ("cluster", cluster)):
            put(made, name, value)
        return made

    def __getattr__(self, name: str) -> object:
        """Read a field that is not held."""
        if name in ON_DISK:
            return getattr(self._file.read(self._at), name)
        raise AttributeError(name)

    @property
    def line(self) -> str:
        """The record as the line of ``records.jsonl`` that it was written as."""
        return self._file.line(self._at)

    def __eq__(self, other: object) -> bool:
        """Return whether another record says the same, wherever its texts are."""
        return isinstance(other, Record) and _values(self) == _values(other)

    __hash__ = None  # type: ignore[assignment]  # as mappings in it have none


_NOTHING: Mapping[str, object] = {}


def _empty(value: object) -> object:
    """Return one empty mapping for all records that have one; other values as they are."""
    return _NOTHING if value == {} else value

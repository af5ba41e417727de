"""Claims about records whose texts stay on disk."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.core import Vote
from reports.run.record import Record, in_order
from reports.run.run_json import line
from reports.run.stored_records import ON_DISK, RecordFile, StoredRecord
from tests.support.made_records import make_record, make_slice

SLICE = make_slice()
FULL = make_record(
    1,
    context="Sofia lies in the west.\nIt is old.",
    answer="It is \ud800 София, \u202e\x00 really",
    reason="so it is",
    votes=(Vote(judge="a", grade="CORRECT", reason="yes"), Vote(judge="b", error="no reply")),
    metadata={"topic": "Art", "fact_id": 7, "deep": {"b": [1, None], "a": 0.5}},
    measures={"bias": 0.25, "faithful": None},
    cost=0.001,
    score=1.0,
    calls=("ab" * 32, "cd" * 32),
)
BARE = make_record(2, answer=None, grade=None, outcome="error", error="timeout: no reply")


def stored(folder: Path, *records: Record) -> list[StoredRecord]:
    """Return these records from a file in this folder."""
    path = folder / "records.jsonl"
    path.write_text("".join(map(line, records)), encoding="utf-8", newline="")
    return list(RecordFile(path).scan({SLICE.name: SLICE}))


def test_a_stored_record_is_the_record(tmp_path: Path) -> None:
    """Every field, read in any order; equal to one in memory either way round; and its own line."""
    records = [FULL, BARE, replace(FULL, key="k3", row=3)]
    found = stored(tmp_path, *records)
    for one, record in reversed(list(zip(found, records, strict=True))):
        assert one == record
        assert record == one
        assert one != replace(record, reason="another")
        assert one.line == line(record)
        assert (one.answer, one.votes, one.metadata) == (
            record.answer,
            record.votes,
            record.metadata,
        )
    assert in_order(reversed(found)) == records


def test_texts_are_not_held(tmp_path: Path) -> None:
    """What is on disk is in no slot of the object, unless it is empty; a changed copy has all."""
    full, bare = stored(tmp_path, FULL, BARE)
    for name in ON_DISK:
        with pytest.raises(AttributeError):
            vars(Record)[name].__get__(full)
    assert vars(Record)["answer"].__get__(bare) is None
    changed = replace(full, outcome="missing", answer=None)
    assert (changed.question, changed.answer, changed.outcome) == (FULL.question, None, "missing")
    with pytest.raises(AttributeError, match="nothing"):
        full.nothing  # noqa: B018


def test_clusters_are_those_of_the_records(tmp_path: Path) -> None:
    """Noted as the file is read, they are what the slice says of the whole record."""
    for kind in ("graded", "yes_no"):
        slice_ = make_slice(kind)
        path = tmp_path / f"{kind}.jsonl"
        record = replace(FULL, metadata={}, dataset=slice_.dataset, language=slice_.language)
        path.write_text(line(record), encoding="utf-8", newline="")
        (found,) = RecordFile(path).scan({slice_.name: slice_})
        assert found.cluster == slice_.cluster_of(record) == slice_.cluster_of(found)

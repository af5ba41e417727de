"""The judge's replies behind the grades of a report, as a file of their own beside it.

A later run that has this one for its baseline looks them up where its own ledger has none, and
pays for no grade twice. The file's form is that of ``evaluators/ledger/beside.py``.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.beside import packed
from qagate.evaluators.ledger.rows import StoredRow
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import JUDGE_REPLIES

KEYS_PER_QUERY = 500
"""Replies that are looked up in a ledger with one query."""

JudgeReplies = Callable[[], Iterator[bytes]]
"""Yields the file in pieces."""


def of_ledger(ledger: Ledger, report: Report, judges: Collection[str]) -> JudgeReplies:
    """Return the file of what the models with these SPECs said about a report's answers."""
    return partial(_pieces, ledger, _keys_of(report), judges)


def _pieces(
    ledger: Ledger, keys: Sequence[str], judges: Collection[str]
) -> Iterator[bytes]:
    rows: list[StoredRow] = []
    for start in range(0, len(keys), KEYS_PER_QUERY):
        for row in ledger.stored_rows(keys[start : start + KEYS_PER_QUERY]):
            if row.spec in judges:
                rows.append(row)
    yield from packed(rows)


def _keys_of(report: Report) -> list[str]:
    """Return the keys of all calls for records, labelled answers and readings, each once."""
    keys: dict[str, None] = {}
    for record in _all_records(report):
        keys |= dict.fromkeys(record.calls)
    return list(keys)


def _all_records(report: Report) -> Iterator[Record]:
    yield from report.records
    yield from report.labels
    for reading in (report.reading, report.anchor_reading):
        if reading is not None:
            yield from reading.old
            yield from reading.old_then
            yield from reading.new_then


def of_folders(folders: Iterable[Path]) -> JudgeReplies | None:
    """Return the files of these report folders as one; None where none has such a file."""
    files = [folder / JUDGE_REPLIES for folder in folders]
    files = [file for file in files if file.is_file()]
    if not files:
        return None
    return partial(_joined, files)


def _joined(files: Sequence[Path]) -> Iterator[bytes]:
    """Yield the files one after the other: several gzip files in a row are one."""
    for file in files:
        yield file.read_bytes()

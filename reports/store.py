"""Reading a run back from its report folder: only what its own checksum vouches for."""

import hashlib
import json
from dataclasses import fields
from pathlib import Path

from evaluators.core import UsageError, Vote
from evaluators.files import read_text
from reports.record import Record
from reports.reload import report_from
from reports.render.run_json import RECORDS, SCHEMA_VERSION
from reports.report import Report

RUN = "run.json"
_FIELDS = frozenset(field.name for field in fields(Record))


def load_run(path: Path) -> tuple[dict[str, object], tuple[Record, ...]]:
    """Return ``run.json`` and the records beside it, given the report folder or the file.

    Raises UsageError where a file is missing, is no report of this version, or where
    ``records.jsonl`` is not the file that ``run.json`` was written for.
    """
    source = path / RUN if path.is_dir() else path
    run = _run(source)
    items = source.parent / RECORDS
    _check(items, source, _checksum(source, run))
    lines = read_text(items).split("\n")
    return run, tuple(_record(items, row, line) for row, line in enumerate(lines, 1) if line)


def load_report(path: Path) -> Report:
    """Return the report that a folder, or its ``run.json``, was written for.

    What renders it again renders the same bytes. Raises UsageError as ``load_run`` does, and
    where ``run.json`` was altered.
    """
    run, records = load_run(path)
    try:
        return report_from(run, records)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{path}: run.json is not as it was written ({error}); restore it from the run"
        raise UsageError(msg) from None


def _run(path: Path) -> dict[str, object]:
    run = _parse(read_text(path), str(path))
    version = run.get("schema_version")
    if version != SCHEMA_VERSION:
        msg = (
            f"{path}: 'schema_version' is {version!r}, this version reads {SCHEMA_VERSION}; "
            "give the report folder of a run"
        )
        raise UsageError(msg)
    return run


def _checksum(path: Path, run: dict[str, object]) -> str:
    block = run.get("records")
    sha256 = block.get("sha256") if isinstance(block, dict) else None
    if not isinstance(sha256, str):
        msg = f"{path}: 'records.sha256' is {sha256!r}, not a checksum; write the report again"
        raise UsageError(msg)
    return sha256


def _check(items: Path, source: Path, expected: str) -> None:
    try:
        with items.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        msg = (
            f"{items}: cannot be read ({error.strerror or error}); "
            f"{source.name} needs it in the same folder"
        )
        raise UsageError(msg) from None
    if found != expected:
        msg = (
            f"{items}: altered since {source.name} was written (SHA-256 {found[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )
        raise UsageError(msg)


def _record(path: Path, row: int, line: str) -> Record:
    values = _parse(line, f"{path}:{row}")
    if values.keys() != _FIELDS:
        odd = sorted(values.keys() ^ _FIELDS)
        msg = f"{path}:{row}: fields {odd} are missing or unknown; another version wrote the file"
        raise UsageError(msg)
    votes = tuple(Vote(**vote) for vote in values.pop("votes"))  # type: ignore[attr-defined]
    return Record(votes=votes, **values)  # type: ignore[arg-type]  # the checksum vouches for it


def _parse(text: str, where: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{where}: not valid JSON ({error}); give the report folder of a run"
        raise UsageError(msg) from None
    if not isinstance(value, dict):
        msg = f"{where}: a JSON {type(value).__name__}, not an object; give the folder of a run"
        raise UsageError(msg)
    return value

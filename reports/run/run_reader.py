"""Reading a run back from its report folder: only what its own checksum vouches for."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from cases.config import LANGUAGE, NAME
from evaluators.core import UsageError
from evaluators.reading import file_hash, parse_json, read_text
from evaluators.text import shown
from reports.run.clean import masked
from reports.run.json_data import decode
from reports.run.record import Record, safe
from reports.run.report import Report, SliceSummary
from reports.run.run_json import RECORDS, SCHEMA_VERSION, report_from, slices_from

RUN = "run.json"
MAX_TOKENS = 10**12  # of one item, whatever its judges were
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[@^][0-9]{1,2})?(?: \(anchor\))?", re.ASCII)
NAMES: Mapping[str, re.Pattern[str]] = {
    "dataset": NAME,
    "language": LANGUAGE,
    "measure": WORD,
    "measures": WORD,
    "metric": WORD,
    "kind": WORD,
    "outcome": WORD,
    "state": WORD,
}
"""What the values of these keys look like; of a mapping, its own keys."""
_FIELDS = frozenset(field.name for field in fields(Record))
_LATER = frozenset({"calls"})
"""What records of earlier versions do not have."""


def load_run(path: Path) -> tuple[dict[str, object], tuple[Record, ...]]:
    """Return ``run.json`` and the records beside it, given the report folder or the file.

    Raises UsageError where a file is missing, is no report of this version, or where
    ``records.jsonl`` is not the file that ``run.json`` was written for.
    """
    source = path / RUN if path.is_dir() else path
    run = _checked_run(source)
    block = run.get("records")
    sha256 = block.get("sha256") if isinstance(block, dict) else None
    if not isinstance(sha256, str):
        raise UsageError(
            f"{source}: 'records.sha256' is {sha256!r}, not a checksum; write the report again"
        )
    items = source.parent / RECORDS
    _check(items, source, sha256)
    lines = read_text(items).split("\n")
    return run, tuple(_record(items, row, line) for row, line in enumerate(lines, 1) if line)


def load_summaries(path: Path) -> tuple[dict[str, object], tuple[SliceSummary, ...]]:
    """Return ``run.json`` of a report folder and its slices, without a look at the records.

    Raises UsageError where it cannot be read, or is not as it was written.
    """
    run = _checked_run(path / RUN)
    try:
        parts = slices_from(run)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: run.json is not as it was written ({error}); restore it from the run"
        ) from None
    return run, parts


def load_report(path: Path) -> Report:
    """Return the report that a folder, or its ``run.json``, was written for.

    What renders it again renders the same bytes. Raises UsageError as ``load_run`` does, and
    where ``run.json`` was altered.
    """
    run, records = load_run(path)
    try:
        return report_from(run, records)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: run.json is not as it was written ({error}); restore it from the run"
        ) from None


def _checked_run(source: Path) -> dict[str, object]:
    run = _run(source)
    try:
        _check_names(run)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: {error}; give the report folder of a run") from None
    return masked(run)


def _run(path: Path) -> dict[str, object]:
    run = _parse(read_text(path), str(path))
    version = run.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{path}: 'schema_version' is {version!r}, this version reads {SCHEMA_VERSION}; "
            "give the report folder of a run"
        )
    return run


def _check(items: Path, source: Path, expected: str) -> None:
    try:
        found = file_hash(items)
    except OSError as error:
        raise UsageError(
            f"{items}: cannot be read ({error.strerror or error}); "
            f"{source.name} needs it in the same folder"
        ) from None
    if found != expected:
        raise UsageError(
            f"{items}: altered since {source.name} was written (SHA-256 {found[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )


def _record(path: Path, row: int, line: str) -> Record:
    values = _parse(line, f"{path}:{row}")
    if odd := sorted((values.keys() ^ _FIELDS) - _LATER):
        raise UsageError(
            f"{path}:{row}: fields {odd} are missing or unknown; another version wrote the file"
        )
    try:
        _check_names(values)
        record = decode(Record, values)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}:{row}: {error}; restore the file from the run") from None
    if record.row < 1 or not 0 <= record.tokens < MAX_TOKENS:
        raise UsageError(
            f"{path}:{row}: row {record.row} or {record.tokens} tokens cannot be; restore the file"
        )
    return safe(record)


def _check_names(value: object) -> None:
    """Raise ValueError for names that no run has; they are shown wherever a run is.

    Checksums say that a folder is whole, not who wrote it.
    """
    if isinstance(value, Mapping):
        for key, part in value.items():
            for name in part if isinstance(part, Mapping) else (part,):
                odd = isinstance(name, str) and name and key in NAMES
                if odd and not NAMES[key].fullmatch(name):
                    raise ValueError(f"{key!r} is {shown(name)}")
            if key not in ("metadata", "breakdowns", "run"):
                _check_names(part)
    elif isinstance(value, list):
        for part in value:
            _check_names(part)


def _parse(text: str, where: str) -> dict[str, object]:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where}: not valid JSON ({error}); give the report folder of a run"
        ) from None
    if not isinstance(value, dict):
        raise UsageError(
            f"{where}: a JSON {type(value).__name__}, not an object; give the folder of a run"
        )
    return value

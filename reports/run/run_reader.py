"""Reading a run back from its report folder: only what its own checksum vouches for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from cases.config import LANGUAGE, NAME
from cases.dataset import Shards, SliceSample, Threshold
from evaluators.core import UsageError
from evaluators.reading import file_hash, parse_json, read_text
from evaluators.text import shown
from reports.run.codec import decode
from reports.run.evidence import Comparison, Judging, LanguageGap
from reports.run.provenance import load_datasets
from reports.run.record import Record
from reports.run.report import (
    Counts,
    Decision,
    GateResult,
    Report,
    SessionEnd,
    SliceSummary,
    TrendPoint,
)
from reports.run.run_json import RECORDS, SCHEMA_VERSION

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
        parts = tuple(_slice(part, run["provenance"]) for part in _list(run["slices"]))
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
    return run


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
    return record


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


_RULE = tuple(field.name for field in fields(Threshold))
_PLAIN = ("model", "judge", "baseline", "complete", "cost", "tokens", "provenance", "run")


def report_from(run: Mapping[str, object], records: tuple[Record, ...]) -> Report:
    """Return the report that ``run.json`` with these records was written for.

    Raises KeyError, TypeError or ValueError where ``run`` is not what that report would render.
    """
    return Report(
        **{name: run[name] for name in _PLAIN},  # type: ignore[arg-type]
        counts=decode(Counts, _plan(run["counts"])),
        slices=tuple(_slice(part, run["provenance"]) for part in _list(run["slices"])),
        decision=replace(
            decode(Decision, {**_object(run["decision"]), "gates": []}),
            gates=tuple(_gate(_object(gate)) for gate in _list(run["gates"])),
        ),
        records=records,
        notes=tuple(map(str, _list(run["notes"]))),
        datasets=load_datasets(_list(run["datasets"])),
        session=decode(SessionEnd, run["session"]),
        comparison=_comparison(run["comparison"]),
        anchor=str(run.get("anchor", "")),
        since_anchor=_comparison(run.get("since_anchor")),
        parity=tuple(decode(LanguageGap, gap) for gap in _list(run["parity"])),
        trend=tuple(decode(TrendPoint, point) for point in _list(run.get("trend", []))),
        judging=decode(Judging, run["judging"]),
        shards=decode(Shards, run["shards"]) if run.get("shards") else None,
    )


def _comparison(value: object) -> Comparison | None:
    return decode(Comparison, value) if value else None


def _gate(gate: Mapping[str, object]) -> GateResult:
    rest = {name: part for name, part in gate.items() if name not in (*_RULE, "slice", "bar")}
    return decode(
        GateResult, {**rest, "threshold": {name: gate[name] for name in _RULE if name in gate}}
    )


def _slice(value: object, provenance: object) -> SliceSummary:
    part = _object(value)
    rest = {name: one for name, one in part.items() if name not in ("name", "confusion", "sample")}
    made = decode(SliceSummary, {**rest, "counts": _plan(part["counts"])})
    cells = map(_object, _list(part["confusion"]))
    confusion = {(str(one["label"]), str(one["grade"])): int(str(one["count"])) for one in cells}
    return replace(made, confusion=confusion, sample=sample_of(part, _object(provenance)))


def sample_of(part: Mapping[str, object], provenance: Mapping[str, object]) -> SliceSample | None:
    """Return what ``--limit`` drew of a slice of ``run.json``, None where all of it was asked.

    Runs from before this was noted have the limit in their provenance: a slice with just so many
    items may have had more. Raises KeyError or ValueError where nothing is known.
    """
    if "sample" in part:
        return decode(SliceSample, part["sample"]) if part["sample"] else None
    limit, seed, repeats = (provenance[name] for name in ("limit", "seed", "repeats"))
    if limit is None:
        return None
    items, times, whole = (int(str(one)) for one in (limit, repeats, part["whole"]))
    return None if whole < items * times else SliceSample(items=items, of=None, seed=int(str(seed)))


def _plan(value: object) -> dict[str, object]:
    counts = dict(_object(value))
    return {"planned": counts.pop("plan"), **counts}


def _object(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise ValueError(f"an object is needed, not {type(value).__name__}")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError(f"a list is needed, not {type(value).__name__}")
    return value

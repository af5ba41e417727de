"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run.

Every field of a report is derived from its dataclass. What is named or placed differently in the
file is defined in this module alone.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from cases.config import NAME
from cases.dataset import SliceSample, Threshold
from evaluators.core import UsageError
from evaluators.reading import MAX_BYTES, file_hash, parse_json, read_text
from evaluators.text import flat, shown
from reports.run.clean import masked
from reports.run.json_data import decode, dump, encode, ordered
from reports.run.provenance import dump_datasets, load_datasets
from reports.run.record import COLUMNS, Record, in_order, safe, values_of
from reports.run.report import Report, SliceSummary
from reports.run.report_folder import NO_VERDICT, PACKED, RECORDS, RUN

SCHEMA_VERSION = 2
MAX_TOKENS = 10**12  # of one item, with any number of judges
WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:[@^][0-9]{1,2})?(?: \(anchor\))?", re.ASCII)
PART = re.compile(r"[a-z][A-Za-z0-9]{0,39}(?:-[A-Za-z0-9]{1,39})*", re.ASCII)
"""The language of a slice, or what else divides an imported task."""
NAMES: Mapping[str, re.Pattern[str]] = {
    "dataset": NAME,
    "language": PART,
    "measure": WORD,
    "measures": WORD,
    "metric": WORD,
    "kind": WORD,
    "outcome": WORD,
    "state": WORD,
}
"""What the values of these keys look like; of a mapping, its own keys."""
_LATER_COLUMNS = frozenset({"calls"})  # what records of earlier versions do not have
Data = Mapping[str, Any]
T = TypeVar("T")

_APART = ("records", "datasets", "decision", "counts", "slices", "provenance", "run")
_LATER = frozenset({"anchor", "since_anchor", "trend", "shards"})
"""What earlier versions did not write."""
_RULE = tuple(field.name for field in fields(Threshold))


def render(report: Report, vouched: str) -> str:
    """Return ``run.json``; its ``records`` block vouches for the items, by their SHA-256 in hex."""
    whole = {f.name: getattr(report, f.name) for f in fields(Report) if f.name not in _APART}
    decision = report.decision
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "decision": {"code": decision.code, "line": decision.line},
        **encode(whole),
        "counts": _renamed(encode(report.counts), "planned", "plan"),
        "slices": [
            {"name": part.name, **made, "counts": _renamed(made["counts"], "planned", "plan")}
            for part, made in zip(report.slices, encode(report.slices), strict=True)
        ],
        "gates": [
            {"slice": gate.slice, **made.pop("threshold"), "bar": gate.bar, **made}
            for gate, made in zip(decision.gates, encode(decision.gates), strict=True)
        ],
        "datasets": dump_datasets(report.datasets),
        "records": {"file": RECORDS, "count": len(report.records), "sha256": vouched},
        "provenance": ordered(report.provenance),
        "run": ordered(report.run),
    }
    return dump(data, indent=1) + "\n"


def records(report: Report) -> Iterator[str]:
    """Return the lines of ``records.jsonl``, one a record: by dataset, language, row, repeat."""
    for record in in_order(report.records):
        values = dict(zip(COLUMNS, values_of(record), strict=True))
        if record.votes:
            values["votes"] = [flat(vote) for vote in record.votes]
        values["metadata"] = ordered(record.metadata)
        yield f"{dump(values)}\n"


def _renamed(counts: Data, old: str, new: str) -> Data:
    return {new if name == old else name: count for name, count in counts.items()}


def report_from(run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report behind ``run.json``. Raises KeyError, TypeError, ValueError if altered."""
    gates: list[Data] = []
    for gate in _list(run["gates"]):
        rule = {name: gate[name] for name in _RULE if name in gate}
        others = {name: gate[name] for name in gate if name not in (*_RULE, "slice", "bar")}
        gates.append({**others, "threshold": rule})
    data = {
        **run,
        "counts": _renamed(run["counts"], "plan", "planned"),
        "decision": {**run["decision"], "gates": gates},
    }
    apart: Any = {
        "records": found,
        "datasets": load_datasets(_list(run["datasets"])),
        "slices": slices_from(run),
    }
    known = {part.name for part in apart["slices"]}
    if lacking := sorted({f"{one.dataset}:{one.language}" for one in found} - known):
        raise ValueError(f"no slice {lacking[0]!r}, which records have")
    decode(Mapping[str, Mapping[str, object]], run["provenance"].get("slices", {}))
    hints = get_type_hints(Report)
    missing = _LATER - run.keys()
    names = [name for name in hints if name not in apart and name not in missing]
    made = Report(**apart, **{name: _field(hints[name], name, data[name]) for name in names})
    if made.session.pytest_code not in range(256):
        raise ValueError(f"{made.session.pytest_code} is no exit code - at `session.pytest_code`")
    return made


def _field(hint: Any, name: str, value: object) -> Any:
    try:
        return decode(hint, value)
    except ValueError as error:
        raise ValueError(str(error).replace("`$", f"`{name}")) from None


def slices_from(run: Data) -> tuple[SliceSummary, ...]:
    """Return the slices of ``run.json``. Raises KeyError, TypeError or ValueError."""
    found = []
    for part in _list(run["slices"]):
        sample, counts = sample_of(part, run["provenance"]), part["counts"]
        data = {**part, "counts": _renamed(counts, "plan", "planned"), "sample": encode(sample)}
        del data["name"]
        found.append(_field(SliceSummary, "slices[]", data))
    return tuple(found)


def sample_of(part: Data, provenance: Data) -> SliceSample | None:
    """Return what ``--limit`` drew of a slice of ``run.json``, None where all of it was asked.

    Earlier versions noted only the limit, which may be all items. Raises KeyError or ValueError.
    """
    if "sample" in part:
        sample: SliceSample | None = decode(SliceSample | None, part["sample"])
        return sample
    limit, seed, repeats = (provenance[name] for name in ("limit", "seed", "repeats"))
    if limit is None:
        return None
    items, times, whole = (int(str(one)) for one in (limit, repeats, part["whole"]))
    return None if whole < items * times else SliceSample(items=items, of=None, seed=int(str(seed)))


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(f"a list is needed, not {type(value).__name__}")
    return value


def load_run(path: Path) -> tuple[dict[str, object], tuple[Record, ...]]:
    """Return ``run.json`` and its records, by folder or file. Raises UsageError if they differ."""
    source = path / RUN if path.is_dir() else path
    run = _checked_run(source)
    block = run.get("records")
    expected = block.get("sha256") if isinstance(block, dict) else None
    if not isinstance(expected, str):
        raise UsageError(
            f"{source}: 'records.sha256' is {expected!r}, not a checksum; write the report again"
        )
    items, raw = source.parent / RECORDS, None
    try:
        if not items.exists() and (source.parent / PACKED).exists():
            items = source.parent / PACKED
            with gzip.open(items) as file:
                raw = file.read(MAX_BYTES + 1)  # at most as much as is read of a plain file
        found = file_hash(items) if raw is None else hashlib.sha256(raw).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        can = "unpacked" if items.name == PACKED else "read"
        raise UsageError(
            f"{items}: cannot be {can} ({getattr(error, 'strerror', '') or error}); "
            f"{source.name} needs it in the same folder"
        ) from None
    if found != expected:
        raise UsageError(
            f"{items}: altered since {source.name} was written (SHA-256 {found[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )
    lines = (read_text(items) if raw is None else raw.decode("utf-8", "replace")).split("\n")
    return run, tuple(_record(items, row, line) for row, line in enumerate(lines, 1) if line)


def load_summaries(path: Path) -> tuple[dict[str, object], tuple[SliceSummary, ...]]:
    """Return ``run.json`` of a folder and its slices, but not records. Raises UsageError."""
    run = _checked_run(path / RUN)
    return run, _as_written(path, lambda: slices_from(run))


def load_report(path: Path) -> Report:
    """Return the report of a folder or its ``run.json``, as rendered. Raises UsageError."""
    run, records = load_run(path)
    return _as_written(path, lambda: report_from(run, records))


def _as_written(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(
            f"{path}: run.json is not as it was written ({error}); restore it from the run"
        ) from None


def _checked_run(source: Path) -> dict[str, object]:
    run = _parse(read_text(source), str(source))
    if run.get("verdict") == NO_VERDICT:
        raise UsageError(f"{source}: {NO_VERDICT}: its run wrote no report; run it again")
    version = run.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{source}: 'schema_version' is {version!r}, this version reads {SCHEMA_VERSION}; "
            "give the report folder of a run"
        )
    try:
        _check_names(run)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source}: {error}; give the report folder of a run") from None
    return masked(run)


def _record(path: Path, row: int, line: str) -> Record:
    values = _parse(line, f"{path}:{row}")
    if odd := sorted((values.keys() ^ set(COLUMNS)) - _LATER_COLUMNS):
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
    """Raise ValueError for names that no run has; checksums do not say who wrote a folder."""
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

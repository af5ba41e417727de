"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run.

Every field of a report is derived from its dataclass by msgspec, which checks what is read. What is
named or placed differently in the file is defined in this module alone.
"""

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import msgspec

from qagate.cases.dataset import Dataset, Slice, SliceSample, Threshold
from qagate.evaluators.core import GRADES, UsageError
from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.output import visible
from qagate.evaluators.reading import MAX_BYTES, parse_json, read_text
from qagate.reports.run.clean import masked
from qagate.reports.run.record import COLUMNS, Record, by_slice, in_order, safe
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import NO_VERDICT, PACKED, RECORDS, RUN_FILE

SCHEMA_VERSION = 2
Data = Mapping[str, Any]


def _names(kind: Any, *apart: str) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind) if one.name not in apart)


_WHOLE = _names(
    Report, "records", "datasets", "decision", "slices", "provenance", "run"
)
_LATER = frozenset({"anchor", "since_anchor", "trend", "shards"})
_LATER_COLUMNS = frozenset({"calls"})
"""What earlier versions did not write of a report and of a record."""
_OF_DATASET = _names(Dataset, "folder", "slices")
_OF_SLICE = _names(
    Slice, *("dataset", "kind", "path", "prompt", "rubric", "thresholds", "yes", "no"),
    *("metrics", "checks", "label_reading"),
)  # fmt: skip
"""The fields that the file has as they are."""
_OF_RUBRIC = ("protocol", "scores", "labels", "passing")


def render(report: Report, vouched: str) -> str:
    """Return ``run.json``; its ``records`` block vouches for the items, by their SHA-256 in hex."""
    decision = report.decision
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "decision": {"code": decision.code, "line": decision.line},
        **{name: encode(getattr(report, name)) for name in _WHOLE},
        "slices": [{"name": part.name, **encode(part)} for part in report.slices],
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
        yield dump({**encode(record), "metadata": ordered(record.metadata)}) + "\n"


def dump_datasets(datasets: Iterable[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load_datasets`` reads back: no items, no texts."""
    found: list[dict[str, object]] = []
    for one in datasets:
        slices = []
        for part in one.slices.values():
            rubric, is_usual = part.rubric, part.labels == GRADES
            slices.append({
                **{name: encode(getattr(part, name)) for name in _OF_SLICE},
                "file": part.path.name,
                "rules": encode(part.thresholds),
                "metrics": [metric.name for metric in part.metrics],
                "checks": [check.name for check in part.checks],
                "rubric": getattr(rubric, "version", ""),
                "protocol": getattr(rubric, "protocol", None),
                "scores": getattr(rubric, "scores", {}),
                # As in every run before there were others, the usual labels are not written.
                **({} if is_usual else {"labels": part.labels, "passing": part.passing}),
            })  # fmt: skip
        own = {name: encode(getattr(one, name)) for name in _OF_DATASET}
        found.append({**own, "slices": slices})
    return found


def load_datasets(values: Iterable[Data]) -> tuple[Dataset, ...]:
    """Return datasets to decide gates again, without texts. Raises ValueError and the like."""
    found = []
    for value in values:
        slices = {}
        for part in value["slices"]:
            own = dict(part)
            rubric = {name: own.pop(name) for name in _OF_RUBRIC if name in own}
            rubric |= {"language": own["language"], "version": own.pop("rubric", "")}
            rubric |= {
                "name": rubric["version"].partition(".")[0],
                "system": "",
                "user": "",
            }
            slices[own["language"]] = {
                "dataset": value["name"],
                "kind": value["kind"],
                "path": own.pop("file"),
                "rubric": rubric if rubric.get("protocol") else None,
                "thresholds": own.pop("rules", []),
                "metrics": [{"name": name} for name in own.pop("metrics", ())],
                "checks": [
                    {"name": name, "check": ""} for name in own.pop("checks", ())
                ],
                **own,
            }
        found.append(
            decode(Dataset, {**value, "folder": value["name"], "slices": slices})
        )
    return tuple(found)


def report_from(run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report behind ``run.json``. Raises KeyError, TypeError, ValueError if altered."""
    gates = []
    for gate in decode(list[dict[str, Any]], run["gates"]):
        rule = {name: gate.pop(name) for name in _names(Threshold) if name in gate}
        others = {
            name: one for name, one in gate.items() if name not in ("slice", "bar")
        }
        gates.append({**others, "threshold": rule})
    slices = decode(list[dict[str, Any]], run["slices"])
    for part in slices:
        part["sample"] = encode(sample_of(part, run["provenance"]))
        part.pop("name", None)
    names = _names(Report, "records", "datasets")
    data = {name: run[name] for name in names if name in run or name not in _LATER}
    data |= {
        "decision": {**run["decision"], "gates": gates},
        "slices": slices,
        "records": [],
    }
    datasets = load_datasets(decode(list[Data], run["datasets"]))
    made: Report = replace(decode(Report, data), records=found, datasets=datasets)
    if lacking := sorted(by_slice(found).keys() - {part.name for part in made.slices}):
        raise ValueError(f"no slice {lacking[0]!r}, which records have")
    decode(Mapping[str, Mapping[str, object]], made.provenance.get("slices", {}))
    return made


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
    return (
        None
        if whole < items * times
        else SliceSample(items=items, of=None, seed=int(str(seed)))
    )


def load_run(path: Path) -> tuple[dict[str, object], tuple[Record, ...]]:
    """Return ``run.json`` and its records, by folder or file. Raises UsageError if they differ."""
    source = path / RUN_FILE if path.is_dir() else path
    run = _checked_run(source)
    expected = inner(run, "records").get("sha256")
    if not isinstance(expected, str):
        raise UsageError(
            f"{source}: 'records.sha256' is {expected!r}, not a checksum; write the report again"
        )
    items = source.parent / RECORDS
    if not items.exists() and (source.parent / PACKED).exists():
        items = source.parent / PACKED
    try:
        with gzip.open(items) if items.name == PACKED else items.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        can = "unpacked" if items.name == PACKED else "read"
        raise UsageError(
            f"{items}: cannot be {can} ({getattr(error, 'strerror', '') or error}); "
            f"{source.name} needs it in the same folder"
        ) from None
    if (found := hashlib.sha256(raw).hexdigest()) != expected:
        raise UsageError(
            f"{items}: altered since {source.name} was written (SHA-256 {found[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )
    lines = raw.decode("utf-8", "replace").split("\n")
    return run, tuple(
        _record(items, row, line) for row, line in enumerate(lines, 1) if line
    )


def load_report(path: Path, *, items: bool = True) -> Report:
    """Return the report of a folder or its ``run.json``, as rendered. Raises UsageError.

    Without ``items`` no records are read: the figures of a folder's report.
    """
    run, records = load_run(path) if items else (_checked_run(path / RUN_FILE), ())
    try:
        return report_from(run, records)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = str(error).replace("`$.", "`")
        raise UsageError(
            f"{path}: run.json is not as it was written ({what}); restore it from the run"
        ) from None


def _checked_run(source: Path) -> dict[str, object]:
    try:
        run: dict[str, object] = decode(dict[str, Any], parse_json(read_text(source)))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{source}: no run ({error}); give the report folder of a run"
        ) from None
    if run.get("verdict") == NO_VERDICT:
        raise UsageError(
            f"{source}: {NO_VERDICT}: its run wrote no report; run it again"
        )
    version = run.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{source}: 'schema_version' is {version!r}, this version reads {SCHEMA_VERSION}; "
            "give the report folder of a run"
        )
    return masked(run)


def _record(path: Path, row: int, line: str) -> Record:
    try:
        values: Any = parse_json(line)
        record: Record = decode(Record, values)
        if lacking := sorted({*COLUMNS}.difference(values, _LATER_COLUMNS)):
            raise ValueError(f"another version wrote it, without {', '.join(lacking)}")
        return safe(record)
    except (ValueError, RecursionError) as error:
        what = (
            f"not a record as it was written ({error}); restore the file from the run"
        )
        raise UsageError(f"{path}:{row}: {what}") from None


# Any data of a report


def decode(kind: Any, value: object) -> Any:
    """Return JSON data as a value of type ``kind``; raises ValueError, naming the field."""
    made = msgspec.convert(value, kind, dec_hook=_custom)
    _refuse_unknown(value, encode(made), "$")
    return made


def encode(value: object) -> Any:
    """Return a dataclass, or what holds some, as JSON data; field names as they are."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the mapping under these names in data of any version; empty where none is."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list of any version; none where there is no list."""
    parts = value if isinstance(value, (list, tuple)) else ()
    return [one for one in parts if isinstance(one, Mapping)]


def _custom(kind: type, value: object) -> object:
    if kind is object:  # what a user's own columns hold
        return value
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is Kind and isinstance(value, str) and value in KINDS:
        return KINDS[value]
    raise ValueError(f"{str(value)[:60]!r} is no {kind.__name__}")


def _refuse_unknown(given: Any, known: Any, where: str) -> None:
    """Raise ValueError for a field that was given and not understood: msgspec passes it over."""
    if isinstance(given, dict):
        if unknown := sorted(given.keys() - known.keys()):
            raise ValueError(f"unknown field {unknown[0]!r} - at `{where}`")
        for name, part in given.items():
            if isinstance(part, (dict, list)):
                _refuse_unknown(part, known[name], f"{where}.{name}")
    elif isinstance(given, list):
        for number, part in enumerate(given):
            _refuse_unknown(part, known[number], f"{where}[{number}]")


def dump(value: object, indent: int | None = None) -> str:
    """Return strict JSON: null for NaN and infinities; what is hidden as escapes that read back."""
    shape: Any = {"ensure_ascii": False, "default": _plain, "indent": indent}
    try:
        text = json.dumps(value, allow_nan=False, **shape)
    except ValueError:
        finite = json.loads(json.dumps(value, **shape), parse_constant=lambda _: None)
        text = json.dumps(finite, **shape)
    return visible(text)


def ordered(value: object) -> Any:
    """Return free-form data with its mappings by key: they may have been filled in any order."""
    return msgspec.to_builtins(
        value, enc_hook=_plain, str_keys=True, order="deterministic"
    )


def _plain(value: object) -> object:
    """Return what JSON does not know: mappings and numbers as such, the rest as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    return str(value)

"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run.

Every field of a report is derived from its dataclass. What is named or placed differently in the
file is defined in this module alone.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from cases.config import NAME
from cases.dataset import Dataset, SliceSample, Threshold
from evaluators.core import GRADES, UsageError
from evaluators.reading import MAX_BYTES, parse_json, read_text
from evaluators.text import flat, shown
from reports.run.clean import masked
from reports.run.json_data import decode, dump, encode, ordered
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
_WHOLE = tuple(one.name for one in fields(Report) if one.name not in _APART)
_LATER = frozenset({"anchor", "since_anchor", "trend", "shards"})
"""What earlier versions did not write."""
_RULE = tuple(one.name for one in fields(Threshold))
_OF_DATASET = (
    *("name", "kind", "pooled", "holm", "require_calibration", "sampling"),
    *("judge_unmeasured", "left_out", "laxer", "baseline_required"),
)
_OF_SLICE = (
    *("language", "pass_bar", "penalty", "by", "floor", "floor_limit", "offline_floor"),
    *("declared", "cluster", "attacks", "order"),
)
"""The fields of a dataset and of a slice that the file has as they are."""
_OF_RUBRIC = ("protocol", "scores", "labels", "passing")


def render(report: Report, vouched: str) -> str:
    """Return ``run.json``; its ``records`` block vouches for the items, by their SHA-256 in hex."""
    decision = report.decision
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "decision": {"code": decision.code, "line": decision.line},
        **{name: encode(getattr(report, name)) for name in _WHOLE},
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
        found.append({name: encode(getattr(one, name)) for name in _OF_DATASET})
        found[-1]["slices"] = slices
    return found


def load_datasets(values: Iterable[Data]) -> tuple[Dataset, ...]:
    """Return datasets to decide gates again, without texts. Raises ValueError and the like."""
    return tuple(decode(Dataset, _dataset(value)) for value in values)


def _dataset(value: Data) -> Data:
    """Return a dataset of the file as the dataclass has it."""
    slices = {}
    for part in value["slices"]:
        own = dict(part)
        rubric = {name: own.pop(name) for name in _OF_RUBRIC if name in own}
        rubric |= {"language": own["language"], "version": own.pop("rubric", "")}
        rubric |= {"name": rubric["version"].partition(".")[0], "system": "", "user": ""}
        slices[own["language"]] = {
            "dataset": value["name"],
            "kind": value["kind"],
            "path": own.pop("file"),
            "rubric": rubric if rubric.get("protocol") else None,
            "thresholds": own.pop("rules", []),
            "metrics": [{"name": name} for name in own.pop("metrics", ())],
            "checks": [{"name": name, "check": ""} for name in own.pop("checks", ())],
            **own,
        }
    return {**value, "folder": value["name"], "slices": slices}


def _renamed(counts: Data, old: str, new: str) -> Data:
    return {new if name == old else name: count for name, count in counts.items()}


def report_from(run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report behind ``run.json``. Raises KeyError, TypeError, ValueError if altered."""
    gates: list[Data] = []
    for gate in decode(list[Data], run["gates"]):
        rule = {name: gate[name] for name in _RULE if name in gate}
        others = {name: gate[name] for name in gate if name not in (*_RULE, "slice", "bar")}
        gates.append({**others, "threshold": rule})
    data = {
        **{name: run[name] for name in _WHOLE if name in run or name not in _LATER},
        "counts": _renamed(run["counts"], "plan", "planned"),
        "decision": {**run["decision"], "gates": gates},
        "datasets": list(map(_dataset, decode(list[Data], run["datasets"]))),
        "slices": _slices(run),
        "provenance": run["provenance"],
        "run": run["run"],
        "records": [],
    }
    made: Report = replace(decode(Report, data), records=found)
    known = {part.name for part in made.slices}
    if lacking := sorted({f"{one.dataset}:{one.language}" for one in found} - known):
        raise ValueError(f"no slice {lacking[0]!r}, which records have")
    decode(Mapping[str, Mapping[str, object]], made.provenance.get("slices", {}))
    if made.session.pytest_code not in range(256):
        raise ValueError(f"{made.session.pytest_code} is no exit code - at `session.pytest_code`")
    return made


def _slices(run: Data) -> list[Data]:
    """Return the slices of the file as the dataclass has them."""
    return [
        {
            **{name: one for name, one in part.items() if name != "name"},
            "counts": _renamed(part["counts"], "plan", "planned"),
            "sample": encode(sample_of(part, run["provenance"])),
        }
        for part in decode(list[Data], run["slices"])
    ]


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
    return run, tuple(_record(items, row, line) for row, line in enumerate(lines, 1) if line)


def load_summaries(path: Path) -> tuple[dict[str, object], tuple[SliceSummary, ...]]:
    """Return ``run.json`` of a folder and its slices, but not records. Raises UsageError."""
    run = _checked_run(path / RUN)
    return run, _as_written(path, lambda: decode(tuple[SliceSummary, ...], _slices(run)))


def load_report(path: Path) -> Report:
    """Return the report of a folder or its ``run.json``, as rendered. Raises UsageError."""
    run, records = load_run(path)
    return _as_written(path, lambda: report_from(run, records))


def _as_written(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = str(error).replace("`$.", "`")
        raise UsageError(
            f"{path}: run.json is not as it was written ({what}); restore it from the run"
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

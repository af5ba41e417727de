"""``run.json`` and ``records.jsonl``: strict JSON, exact text, the same bytes for the same run.

``run.json`` has the fields of a ``Report`` by their names. What is named or placed
differently in the file is written and read in this module alone: records are a file of their
own, gates stand at the top level and say their bar, and data sets come without items and
texts. ``run.json`` vouches for the records by their checksum.

A file is read only as it was written: every field must be there, and none may be unknown.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import GRADES, UsageError
from qagate.evaluators.reading import MAX_BYTES, parse_json, read_text
from qagate.reports.run.clean import masked
from qagate.reports.run.json_data import (
    decode,
    decode_whole,
    dump,
    encode,
    inner,
    ordered,
)
from qagate.reports.run.record import Record, by_slice, in_order, safe
from qagate.reports.run.report import GateResult, Report
from qagate.reports.run.report_folder import NO_VERDICT, PACKED, RECORDS, RUN_FILE

SCHEMA_VERSION = 2
WRITTEN_APART = (
    "records",
    "labels",
    "reading",
    "anchor_reading",
    "datasets",
    "decision",
    "slices",
    "provenance",
    "run",
)
"""The fields of a report that have a form of their own in the file."""
Data = Mapping[str, Any]


# Writing


def render(report: Report, records_sha256: str) -> str:
    """Return ``run.json``; ``records_sha256`` is the checksum of ``records.jsonl``, in hex."""
    fields_as_they_are = encode(
        replace(
            report,
            records=(),
            labels=(),
            reading=None,
            anchor_reading=None,
            datasets=(),
            slices=(),
            provenance={},
            run={},
        )
    )
    for name in WRITTEN_APART:
        del fields_as_they_are[name]
    decision = report.decision
    data = {
        "schema_version": SCHEMA_VERSION,
        "verdict": report.verdict,
        "decision": {"code": decision.code, "line": decision.line},
        **fields_as_they_are,
        "slices": [{"name": part.name, **encode(part)} for part in report.slices],
        "gates": [_gate_data(gate) for gate in decision.gates],
        "datasets": dump_datasets(report.datasets),
        "records": {
            "file": RECORDS,
            "count": len(report.records),
            "sha256": records_sha256,
        },
        "provenance": ordered(report.provenance),
        "run": ordered(report.run),
    }
    return dump(data, indent=1) + "\n"


def _gate_data(gate: GateResult) -> dict[str, object]:
    """Return a gate with the fields of its threshold beside its own."""
    values = encode(gate)
    threshold = values.pop("threshold")
    return {"slice": gate.slice, **threshold, "bar": gate.bar, **values}


def records(report: Report) -> Iterator[str]:
    """Return the lines of ``records.jsonl``, one a record: by dataset, language, row, repeat."""
    for record in in_order(report.records):
        yield dump({**encode(record), "metadata": ordered(record.metadata)}) + "\n"


def dump_datasets(datasets: Iterable[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load_datasets`` reads back: no items, no texts."""
    return [_dataset_data(dataset) for dataset in datasets]


def _dataset_data(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "kind": encode(dataset.kind),
        "pooled": encode(dataset.pooled),
        "holm": dataset.holm,
        "require_calibration": dataset.require_calibration,
        "sampling": encode(dataset.sampling),
        "judge_unmeasured": dataset.judge_unmeasured,
        "left_out": encode(dataset.left_out),
        "laxer": encode(dataset.laxer),
        "baseline_required": dataset.baseline_required,
        "slices": [_slice_data(slice_) for slice_ in dataset.slices.values()],
    }


def _slice_data(slice_: Slice) -> dict[str, object]:
    rubric = slice_.rubric
    data: dict[str, object] = {
        "language": slice_.language,
        "pass_bar": slice_.pass_bar,
        "penalty": slice_.penalty,
        "by": encode(slice_.by),
        "floor": encode(slice_.floor),
        "floor_limit": encode(slice_.floor_limit),
        "offline_floor": encode(slice_.offline_floor),
        "declared": slice_.declared,
        "cluster": slice_.cluster,
        "attacks": slice_.attacks,
        "measures": slice_.measures,
        "order": slice_.order,
        "file": slice_.path.name,
        "rules": encode(slice_.thresholds),
        "metrics": [metric.name for metric in slice_.metrics],
        "checks": [check.name for check in slice_.checks],
        "rubric": rubric.version if rubric else "",
        "protocol": rubric.protocol if rubric else None,
        "scores": rubric.scores if rubric else {},
    }
    if slice_.labels != GRADES:  # the usual three go without saying
        data["labels"] = slice_.labels
        data["passing"] = slice_.passing
    return data


# Reading


def load_run(path: Path) -> tuple[dict[str, object], tuple[Record, ...]]:
    """Return ``run.json`` and its records, by folder or file. Raises UsageError if they differ."""
    source = path / RUN_FILE if path.is_dir() else path
    run = _checked_run(source)
    expected = inner(run, "records").get("sha256")
    if not isinstance(expected, str):
        raise UsageError(
            f"{source}: 'records.sha256' is {expected!r}, not a checksum; write the report again"
        )
    file = source.parent / RECORDS
    if not file.exists() and (source.parent / PACKED).exists():
        file = source.parent / PACKED
    content = _records_content(file, source)
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise UsageError(
            f"{file}: altered since {source.name} was written (SHA-256 {actual[:12]}…, expected "
            f"{expected[:12]}…); restore both files from the same run"
        )
    found = []
    for row, line in enumerate(content.decode("utf-8", "replace").split("\n"), start=1):
        if line:
            found.append(_record(file, row, line))
    return run, tuple(found)


def load_report(path: Path, *, items: bool = True) -> Report:
    """Return the report of a folder or its ``run.json``, as rendered. Raises UsageError.

    Without ``items`` no records are read: the figures of a folder's report.
    """
    if items:
        run, found = load_run(path)
        return checked_report(path, run, found)
    return checked_report(path, _checked_run(path / RUN_FILE), ())


def checked_report(path: Path, run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report behind ``run.json``. Raises UsageError if that was altered."""
    try:
        return report_from(run, found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = str(error).replace("`$.", "`")
        raise UsageError(
            f"{path}: run.json is not as it was written ({reason}); restore it from the run"
        ) from None


def _checked_run(source: Path) -> dict[str, object]:
    """Return ``run.json`` with keys masked. Raises UsageError if it is no run that is over."""
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


def _records_content(file: Path, source: Path) -> bytes:
    """Return the records that belong to ``run.json``, the ``source``. Raises UsageError."""
    is_packed = file.name == PACKED
    try:
        with gzip.open(file) if is_packed else file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", "") or error
        what_failed = "unpacked" if is_packed else "read"
        raise UsageError(
            f"{file}: cannot be {what_failed} ({reason}); "
            f"{source.name} needs it in the same folder"
        ) from None


def _record(file: Path, row: int, line: str) -> Record:
    """Return the record of a line, with keys masked. Raises UsageError."""
    try:
        record: Record = decode_whole(Record, parse_json(line))
        return safe(record)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{file}:{row}: not a record as it was written ({error}); "
            "restore the file from the run"
        ) from None


def report_from(run: Data, found: tuple[Record, ...]) -> Report:
    """Return the report behind ``run.json``. Raises KeyError, TypeError, ValueError if altered."""
    data = {}
    for report_field in fields(Report):
        if report_field.name not in WRITTEN_APART:
            data[report_field.name] = run[report_field.name]
    gates = decode(list[dict[str, Any]], run["gates"])
    slices = decode(list[dict[str, Any]], run["slices"])
    for part in slices:
        del part["name"]  # follows from its other fields
    data["decision"] = {
        **run["decision"],
        "gates": [_gate_values(gate) for gate in gates],
    }
    data["slices"] = slices
    data["provenance"] = run["provenance"]
    data["run"] = run["run"]
    data["datasets"] = []
    data["records"] = []
    data["labels"] = []
    data["reading"] = None
    data["anchor_reading"] = None
    report: Report = decode_whole(Report, data)
    datasets = load_datasets(decode(list[Data], run["datasets"]))
    report = replace(report, records=found, datasets=datasets)
    slices_without_summary = by_slice(found).keys() - {
        part.name for part in report.slices
    }
    if slices_without_summary:
        name = min(slices_without_summary)
        raise ValueError(f"no slice {name!r}, which records have")
    decode(Mapping[str, Mapping[str, object]], report.provenance.get("slices", {}))
    return report


def _gate_values(gate: Data) -> dict[str, object]:
    """Return a gate of the file in the form of a ``GateResult``: its threshold apart."""
    values = dict(gate)
    threshold = {field.name: values.pop(field.name) for field in fields(Threshold)}
    del values["slice"], values["bar"]  # follow from the others
    return {**values, "threshold": threshold}


def load_datasets(values: Iterable[Data]) -> tuple[Dataset, ...]:
    """Return datasets to decide gates again, without texts. Raises ValueError and the like."""
    datasets = []
    for value in values:
        slices = {}
        for part in value["slices"]:
            slices[part["language"]] = _slice_values(part, value)
        values_of_dataset = {**value, "folder": value["name"], "slices": slices}
        datasets.append(decode(Dataset, values_of_dataset))
    return tuple(datasets)


def _slice_values(part: Data, dataset: Data) -> dict[str, object]:
    """Return a slice of the file in the form of a ``Slice``, with empty texts."""
    values = dict(part)
    version = values.pop("rubric")
    rubric = {
        "name": version.partition(".")[0],
        "language": part["language"],
        "version": version,
        "protocol": values.pop("protocol"),
        "scores": values.pop("scores"),
        "system": "",
        "user": "",
    }
    for name in ("labels", "passing"):
        if name in values:
            rubric[name] = values.pop(name)
    file = values.pop("file")
    thresholds = values.pop("rules")
    metrics = values.pop("metrics")
    checks = values.pop("checks")
    return {
        **values,
        "dataset": dataset["name"],
        "kind": dataset["kind"],
        "path": file,
        "rubric": rubric if rubric["protocol"] else None,
        "thresholds": thresholds,
        "metrics": [{"name": name} for name in metrics],
        "checks": [{"name": name, "check": ""} for name in checks],
    }

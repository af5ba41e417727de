"""``run.json``: strict JSON, exact text, the same bytes for the same run.

``run.json`` has the fields of a ``Report`` by their names. What is named or placed
differently in the file is written and read in this module alone: gates stand at the top level
and say their bar, and data sets come without items and texts. Items are in files of their own
(``item_files.py``), for which ``run.json`` vouches by their checksums.

A file is read only as it was written: every field must be there, and none may be unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import GRADES, UsageError
from qagate.evaluators.reading import parse_json, read_text
from qagate.evaluators.typed_data import decode, decode_whole, encode
from qagate.reports.run.clean import masked
from qagate.reports.run.item_files import (
    ROLES,
    ItemFileName,
    Items,
    Voucher,
    load_items,
)
from qagate.reports.run.json_data import dump, ordered
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import by_slice
from qagate.reports.run.report import Decision, GateResult, Report, Role
from qagate.reports.run.report_folder import NO_VERDICT, RUN_FILE

SCHEMA_VERSION = 3
READING_OF: Mapping[Role, str] = {"baseline": "reading", "anchor": "anchor_reading"}
"""The field of a report with its reading of an earlier run, by the role of that run."""
DECIDED = "decided"
"""The entry of ``run`` with the decision as later runs have to know it: it names the run."""
WRITTEN_APART = (
    "records",
    "labels",
    "reading",
    "anchor_reading",
    "datasets",
    "label_datasets",
    "decision",
    "slices",
    "decided",
    "provenance",
    "run",
)
"""The fields of a report that have a form of their own in the file."""
Data = Mapping[str, Any]


# Writing


def render(report: Report, vouchers: Mapping[ItemFileName, Voucher]) -> str:
    """Return ``run.json``, which vouches for these files of items."""
    fields_as_they_are = encode(
        replace(
            report,
            records=(),
            labels=(),
            reading=None,
            anchor_reading=None,
            datasets=(),
            label_datasets=(),
            slices=(),
            decided=None,
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
        "decision": _decision_data(decision),
        **fields_as_they_are,
        "slices": [{"name": part.name, **encode(part)} for part in report.slices],
        "gates": [_gate_data(gate) for gate in decision.gates],
        "datasets": dump_datasets(report.datasets),
        "label_datasets": dump_datasets(report.label_datasets),
        **{name: voucher.data for name, voucher in vouchers.items()},
        READING_OF["baseline"]: _reading_data(report.reading),
        READING_OF["anchor"]: _reading_data(report.anchor_reading),
        "provenance": ordered(report.provenance),
        "run": {**ordered(report.run), DECIDED: encode(report.decided)},
    }
    return dump(data, indent=1) + "\n"


def _reading_data(reading: Reading | None) -> dict[str, object] | None:
    """Return what ``run.json`` says of a reading; its records are in a file of their own."""
    if reading is None:
        return None
    return {"lacking": dict(reading.lacking)}


def _decision_data(decision: Decision) -> dict[str, object]:
    """Return a decision without its gates, which stand at the top level."""
    values: dict[str, object] = encode(decision)
    del values["gates"]
    return values


def _gate_data(gate: GateResult) -> dict[str, object]:
    """Return a gate with the fields of its threshold beside its own."""
    values = encode(gate)
    threshold = values.pop("threshold")
    return {"slice": gate.slice, **threshold, "bar": gate.bar, **values}


def dump_datasets(datasets: Iterable[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load_datasets`` reads back: no items, no texts."""
    return [_dataset_data(dataset) for dataset in datasets]


def _dataset_data(dataset: Dataset) -> dict[str, object]:
    return {
        "name": dataset.name,
        "kind": encode(dataset.kind),
        "pooled": encode(dataset.pooled),
        "holm": dataset.holm,
        "sampling": encode(dataset.sampling),
        "judge_unmeasured": dataset.judge_unmeasured,
        "health_off": dataset.health_off,
        "left_out": encode(dataset.left_out),
        "laxer": encode(dataset.laxer),
        "baseline_required": dataset.baseline_required,
        "decided_together": dataset.decided_together,
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
        "retired": encode(slice_.retired),
        "bundled": slice_.bundled,
        "file": slice_.path.name,
        "rules": encode(slice_.thresholds),
        "metrics": encode(slice_.metrics),
        "checks": encode(slice_.checks),
        "yes": slice_.yes,
        "no": slice_.no,
        "rubric": rubric.version if rubric else "",
        "protocol": rubric.protocol if rubric else None,
        "scores": rubric.scores if rubric else {},
    }
    if slice_.labels != GRADES:  # the usual three go without saying
        data["labels"] = slice_.labels
        data["passing"] = slice_.passing
    return data


# Reading


def load_run(path: Path) -> tuple[dict[str, object], Items]:
    """Return ``run.json`` and its items, by folder or file. Raises UsageError if they differ."""
    source = path / RUN_FILE if path.is_dir() else path
    run = _checked_run(source)
    return run, load_items(source, run)


def load_report(path: Path, *, items: bool = True) -> Report:
    """Return the report of a folder or its ``run.json``, as rendered. Raises UsageError.

    Without ``items`` no records are read: the figures of a folder's report.
    """
    if items:
        run, items_of_run = load_run(path)
        return checked_report(path, run, items_of_run)
    return checked_report(path, _checked_run(path / RUN_FILE), Items())


def checked_report(path: Path, run: Data, items: Items) -> Report:
    """Return the report behind ``run.json``. Raises UsageError if that was altered."""
    try:
        return report_from(run, items)
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


def report_from(run: Data, items: Items) -> Report:
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
    about_run = decode(dict[str, Any], run["run"])
    data["decided"] = about_run.pop(DECIDED)
    data["run"] = about_run
    data["datasets"] = []
    data["label_datasets"] = []
    data["records"] = []
    data["labels"] = []
    data["reading"] = None
    data["anchor_reading"] = None
    report: Report = decode_whole(Report, data)
    datasets = load_datasets(decode(list[Data], run["datasets"]))
    readings = {}
    for role in ROLES:
        if run[READING_OF[role]] is not None:
            lacking = decode(Mapping[str, str], run[READING_OF[role]]["lacking"])
            readings[role] = items.reading(role, lacking)
    report = replace(
        report,
        records=items.records,
        labels=items.labels,
        reading=readings.get("baseline"),
        anchor_reading=readings.get("anchor"),
        datasets=datasets,
        label_datasets=load_datasets(decode(list[Data], run["label_datasets"])),
    )
    slices_without_summary = by_slice(items.records).keys() - {
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
    return {
        **values,
        "dataset": dataset["name"],
        "kind": dataset["kind"],
        "path": file,
        "rubric": rubric if rubric["protocol"] else None,
        "thresholds": thresholds,
    }

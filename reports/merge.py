"""Runs of CI shards put together into the one run that they are parts of."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from cases.slices import Dataset, Slice
from evaluators.core import UsageError
from reports.assemble import Facts, Material, account
from reports.decide import FAILED, INTERRUPTED, OK, SessionFacts
from reports.evidence import Calibration
from reports.record import Record
from reports.report import Report
from reports.rework import material_of
from reports.trust import Baseline

UNITED = ("models_returned", "judges_returned")  # lists of what the providers named
MAY_DIFFER = ("python", "packages")  # kept side by side


def merged(reports: Sequence[Report], baseline: Baseline | None) -> Report:
    """Return the report of all items of these runs, of which there is at least one.

    Raises UsageError where the runs are not parts of one: another model, judge, seed, prompt,
    rubric, data file or gate, or an item with two different outcomes.
    """
    for name in ("model", "judge"):
        _same(name, [getattr(report, name) for report in reports])
    material = Material(
        datasets=_datasets([report.datasets for report in reports]),
        records=_records(reports),
        whole=_whole(reports),
        outside=_outside(reports),
    )
    return account(material, _facts(reports), baseline)


def _facts(reports: Sequence[Report]) -> Facts:
    ends = [report.session for report in reports]
    return Facts(
        model=reports[0].model,
        judge=reports[0].judge,
        session=SessionFacts(
            other_failures=sum(end.failures for end in ends),
            interrupted=any(end.interrupted for end in ends),
            pytest_code=_pytest_code([end.pytest_code for end in ends]),
        ),
        provenance=_provenance([report.provenance for report in reports]),
        run={"shards": [report.run for report in reports]},
        notes=tuple(dict.fromkeys(note for end in ends for note in end.notes)),
        complete=all(report.complete for report in reports),
    )


def _pytest_code(codes: Sequence[int]) -> int:
    """Return the code of one session in which all of this had happened."""
    odd = [code for code in codes if code not in (OK, FAILED, INTERRUPTED)]
    return odd[0] if odd else INTERRUPTED if INTERRUPTED in codes else max(codes)


def _records(reports: Iterable[Report]) -> tuple[Record, ...]:
    found: dict[str, Record] = {}
    for record in (record for report in reports for record in report.records):
        first = found.setdefault(record.key, record)
        if first != record:
            names = (field.name for field in fields(Record))
            odd = next(name for name in names if getattr(first, name) != getattr(record, name))
            msg = (
                f"item {record.key} is in two of the runs with another {odd!r}; give each item to "
                "one run, or let the runs share a ledger"
            )
            raise UsageError(msg)
    return tuple(found.values())


def _outside(reports: Iterable[Report]) -> tuple[Calibration, ...]:
    """Return what measured the judge beside the records, unless the records of a shard do.

    Shards may have measured it each for its own slices; the figures are the same for the same
    judge, so that the first stands for all, with the slices of all.
    """
    inside = {part.name for report in reports for part in report.slices}
    found: dict[str, Calibration] = {}
    for one in (one for report in reports for one in material_of(report).outside):
        name = f"{one.dataset}:{one.language}"
        first = found.get(name, one)
        _same(f"measures of the judge by {name}", [first.measures, one.measures])
        found[name] = replace(first, graders=tuple(dict.fromkeys((*first.graders, *one.graders))))
    return tuple(one for name, one in found.items() if name not in inside)


def _whole(reports: Iterable[Report]) -> dict[str, int]:
    found: dict[str, list[int]] = {}
    for part in (part for report in reports for part in report.slices):
        found.setdefault(part.name, []).append(part.whole)
    for name, sizes in found.items():
        _same(f"number of items in {name}", sizes)
    return {name: sizes[0] for name, sizes in found.items()}


def _datasets(groups: Sequence[Sequence[Dataset]]) -> tuple[Dataset, ...]:
    names = dict.fromkeys(dataset.name for group in groups for dataset in group)
    every = [dataset for group in groups for dataset in group]
    return tuple(_dataset([one for one in every if one.name == name]) for name in names)


def _dataset(parts: Sequence[Dataset]) -> Dataset:
    name = parts[0].name
    for field in ("kind", "pooled", "holm", "require_calibration"):
        _same(f"{field} of dataset {name}", [getattr(part, field) for part in parts])
    slices: dict[str, Slice] = {}
    for language, slice_ in (pair for part in parts for pair in part.slices.items()):
        if slices.setdefault(language, slice_) != slice_:
            msg = (
                f"{slice_.name}: gates, rubric or data file are not those of the other runs; merge "
                "parts of one run only"
            )
            raise UsageError(msg)
    return Dataset(
        name=name,
        folder=parts[0].folder,
        kind=parts[0].kind,
        slices=slices,
        pooled=parts[0].pooled,
        holm=parts[0].holm,
        require_calibration=parts[0].require_calibration,
    )


def _provenance(parts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _origin(name, [part.get(name) for part in parts]) for name in names}


def _origin(name: str, values: Sequence[object]) -> object:
    if name in UNITED:
        return sorted({str(one) for value in values for one in _listed(value)})
    if name == "slices":
        return _slices(values)
    if name in MAY_DIFFER and any(value != values[0] for value in values):
        return list(values)
    _same(name, values)
    return values[0]


def _slices(values: Sequence[object]) -> dict[str, object]:
    """Return what every slice was asked with, which is the same wherever it was asked."""
    found: dict[str, object] = {}
    for value in values:
        for name, known in value.items() if isinstance(value, Mapping) else ():
            _same(f"data, prompt or rubric of {name}", [found.setdefault(name, known), known])
    return dict(sorted(found.items()))


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _same(what: str, values: Sequence[object]) -> None:
    other = next((value for value in values if value != values[0]), values[0])
    if other != values[0]:
        first, second = (str(value)[:200] for value in (values[0], other))
        msg = f"the runs differ in {what}: {first!r} and {second!r}; merge parts of one run only"
        raise UsageError(msg)

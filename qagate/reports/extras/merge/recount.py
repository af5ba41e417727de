"""The runs of CI shards counted as one run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace

from qagate.cases.dataset import Dataset, Shards, Slice, Threshold
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.runs import LONGEST_RUN_SECONDS
from qagate.reports.gates.decide import FAILED, INTERRUPTED, OK, SessionFacts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import COLUMNS, Record
from qagate.reports.run.report import Decided, Report, SliceSummary
from qagate.reports.verdict.assemble import Facts, ReportInputs, account


def merged(
    reports: Sequence[Report], baseline: Baseline | None, anchor: Baseline | None = None
) -> Report:
    """Return the report of these runs as one. Raises UsageError if they are not parts of one."""
    _check_one_run(reports)
    _same("model", [report.model for report in reports])
    _same("judge", [report.judge for report in reports])
    groups: dict[str, list[Dataset]] = defaultdict(list)
    for dataset in (dataset for report in reports for dataset in report.datasets):
        groups[dataset.name].append(dataset)
    parts: dict[str, SliceSummary] = {}
    for part in (part for report in reports for part in report.slices):
        first = parts.setdefault(part.name, part)
        _same(f"number of items in {part.name}", [first.whole, part.whole])
        samples = [summary.sample for summary in (first, part)]
        _same(f"sample of {part.name}", [sample and sample.text for sample in samples])
    shards = _shards_together([report.shards for report in reports])
    inputs = ReportInputs(
        datasets=tuple(map(_dataset, groups.values())),
        records=_together(report.records for report in reports),
        whole={name: part.whole for name, part in parts.items()},
        samples={name: part.sample for name, part in parts.items() if part.sample},
        labels=_together(report.labels for report in reports),
        label_datasets=_label_datasets(reports),
        shards=shards if shards and shards.missing else None,
    )
    return account(inputs, _facts(reports), baseline, anchor)


def _check_one_run(reports: Iterable[Report]) -> None:
    """Raise UsageError for parts that different runs asked.

    Answers of two runs are two sets of answers, and may be those of two models under one name.
    Parts with ledgers of their own know of no common run: they belong together by the name that
    the user or a CI system gave them, or else by the time at which they began.
    """
    parts = [report.decided for report in reports if report.decided is not None]
    if len({part.run for part in parts}) <= 1:
        return
    _same("NAME of --fresh", [part.fresh for part in parts])
    if len({part.named for part in parts}) > 1:
        raise UsageError(
            "the runs have different names (QA_RUN, or the number of the CI run); parts of one run "
            "have one: ask the older ones anew under the name of the newest"
        )
    began = [part.at for part in parts]
    if not parts[0].named and max(began) - min(began) > LONGEST_RUN_SECONDS:
        hours = (max(began) - min(began)) / 3600
        raise UsageError(
            f"the runs began {hours:.0f} hours apart and have no common name; ask the older ones "
            "anew, or give all parts of a run one QA_RUN"
        )


def _shards_together(shards: Sequence[Shards | None]) -> Shards | None:
    """Return all shards as one; None of runs that are none. Raises UsageError for a mixture."""
    counts = [shard.of if shard else "no shard" for shard in shards]
    _same("number of shards", counts)
    held: set[int] = set()
    for shard in shards:
        if shard:
            held.update(shard.held)
    if not shards[0]:
        return None
    return Shards(of=shards[0].of, held=tuple(sorted(held)))


def _facts(reports: Sequence[Report]) -> Facts:
    ends = [report.session for report in reports]
    codes = [end.pytest_code for end in ends]
    odd = [code for code in codes if code not in (OK, FAILED, INTERRUPTED)]
    worst = INTERRUPTED if INTERRUPTED in codes else max(codes)
    parts = [report.provenance for report in reports]
    names = dict.fromkeys(name for part in parts for name in part)
    return Facts(
        model=reports[0].model,
        judge=reports[0].judge,
        session=SessionFacts(
            failures=sum(end.failures for end in ends),
            interrupted=any(end.interrupted for end in ends),
            cause=next((end.cause for end in ends if end.cause), ""),
            left="; ".join(dict.fromkeys(end.left for end in ends if end.left)),
            expected=tuple(
                dict.fromkeys(name for end in ends for name in end.expected)
            ),
            superseded=next((end.superseded for end in ends if end.superseded), ""),
            pytest_code=odd[0] if odd else worst,
            notes=tuple(dict.fromkeys(note for end in ends for note in end.notes)),
        ),
        provenance={
            name: _origin(name, [part.get(name) for part in parts]) for name in names
        },
        run={"shards": [report.run for report in reports]},
        complete=all(report.complete for report in reports),
        run_id=_first_decided(reports).run,
        started=_first_decided(reports).at,
        named=_first_decided(reports).named,
        fresh=_first_decided(reports).fresh,
        monitor=_first_decided(reports).monitor,
        tries=_tries(reports),
        unsettled=_unsettled(reports),
        canaries=tuple(
            dict.fromkeys(
                canaries for report in reports for canaries in report.judging.canaries
            )
        ),
    )


def _first_decided(reports: Sequence[Report]) -> Decided:
    """Return what the first part says of its run; all parts are of one."""
    for report in reports:
        if report.decided is not None:
            return report.decided
    return Decided(run="", at=0.0, code=0, model=reports[0].model)


def _tries(reports: Iterable[Report]) -> dict[str, tuple[str, ...]]:
    """Return the most tries that a part knows of each slice."""
    tries: dict[str, tuple[str, ...]] = {}
    for report in reports:
        for name, ends in report.tries.items():
            if len(ends) >= len(tries.get(name, ())):
                tries[name] = ends
    return tries


def _unsettled(reports: Iterable[Report]) -> dict[str, tuple[str, ...]]:
    """Return all items that a part knows as retired after this model's first try."""
    ids_of: dict[str, tuple[str, ...]] = {}
    for report in reports:
        for name, ids in report.unsettled.items():
            ids_of[name] = tuple(sorted({*ids_of.get(name, ()), *ids}))
    return ids_of


def _together(parts: Iterable[Sequence[Record]]) -> tuple[Record, ...]:
    """Return the records of all parts, each once. Raises UsageError for two that differ."""
    records: dict[str, Record] = {}
    for part in parts:
        for record in part:
            first = records.setdefault(record.key, record)
            if first != record:
                raise UsageError(
                    f"item {record.key} is in two of the runs with another "
                    f"{_differing_column(first, record)!r}; give each item to one run, or "
                    "let the runs share a ledger"
                )
    return tuple(records.values())


def _differing_column(first: Record, second: Record) -> str:
    for name in COLUMNS:
        if getattr(first, name) != getattr(second, name):
            return name
    return "value"


def _label_datasets(reports: Iterable[Report]) -> tuple[Dataset, ...]:
    """Return the labelled data sets of all parts, with the languages of all."""
    datasets: dict[str, Dataset] = {}
    for report in reports:
        for dataset in report.label_datasets:
            first = datasets.setdefault(dataset.name, dataset)
            slices = {**dataset.slices, **first.slices}
            datasets[dataset.name] = replace(first, slices=slices)
    return tuple(datasets.values())


def _dataset(parts: Sequence[Dataset]) -> Dataset:
    name = parts[0].name
    alike = [
        field.name
        for field in fields(Dataset)
        if field.name not in ("folder", "slices")
    ]
    for field in alike:
        _same(f"{field} of dataset {name}", [getattr(part, field) for part in parts])
    slices: dict[str, Slice] = {}
    for language, slice_ in (pair for part in parts for pair in part.slices.items()):
        first = slices.setdefault(language, slice_)
        _same(f"gates of {slice_.name}", [first.thresholds, slice_.thresholds])
        if first != slice_:
            raise UsageError(
                f"{slice_.name}: rubric, data file or settings are not those of the other runs; "
                "merge parts of one run only"
            )
    return replace(parts[0], slices=slices)


def _origin(name: str, values: Sequence[object]) -> object:
    if name in ("models_returned", "judges_returned"):  # what the providers named
        listed = [value for value in values if isinstance(value, (list, tuple))]
        return sorted({str(one) for value in listed for one in value})
    if name == "slices":
        found: dict[str, object] = {}
        for value in values:
            for slice_, known in value.items() if isinstance(value, Mapping) else ():
                same = [found.setdefault(slice_, known), known]
                _same(f"data, prompt or rubric of {slice_}", same)
        return dict(sorted(found.items()))
    if name in ("python", "packages") and any(value != values[0] for value in values):
        return list(values)  # these may differ
    _same(name, values)
    return values[0]


def _same(what: str, values: Sequence[object]) -> None:
    other = next((value for value in values if value != values[0]), values[0])
    if other != values[0]:
        first, second = (_text(value)[:200] for value in (values[0], other))
        raise UsageError(
            f"the runs differ in {what}: {first!r} and {second!r}; merge parts of one run only"
        )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value)) or "none"
    if not isinstance(value, Threshold):
        return str(value)
    how = f"fail: {value.fail}, " if value.fail else ""
    looked = f", share: {value.share:g}" if value.evidence == "audited" else ""
    return f"{value.name} {value.bar} ({how}evidence: {value.evidence}{looked})"

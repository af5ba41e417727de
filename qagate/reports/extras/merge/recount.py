"""The runs of CI shards counted as one run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from qagate.cases.dataset import Dataset, Shards, Slice, Threshold
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.runs import LONGEST_RUN_SECONDS
from qagate.evaluators.text import flat
from qagate.reports.gates.decide import FAILED, INTERRUPTED, OK, SessionFacts
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.record import Record
from qagate.reports.run.report import WARNING, Decided, Report, SliceSummary
from qagate.reports.verdict.assemble import Facts, ReportInputs, account

NAMED_ITEMS = 5
"""So many items with two answers are named one by one."""


def merged(
    reports: Sequence[Report], baseline: Baseline | None, anchor: Baseline | None = None
) -> Report:
    """Return the report of these runs as one. Raises UsageError if they are not parts of one.

    Two attempts of one shard are one part: what the first answered counts, whatever the second
    holds, and how the part ended is said by the last.
    """
    reports = sorted(reports, key=_start)
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
    records, second_answers = _together(report.records for report in reports)
    labels, second_labels = _together(report.labels for report in reports)
    inputs = ReportInputs(
        datasets=tuple(map(_dataset, groups.values())),
        records=records,
        whole={name: part.whole for name, part in parts.items()},
        samples={name: part.sample for name, part in parts.items() if part.sample},
        labels=labels,
        label_datasets=_label_datasets(reports),
        rule_checks=_rule_checks(reports),
        shards=shards if shards and shards.missing else None,
    )
    facts = _facts(reports, _last_attempts(reports))
    note = _note_on_second_answers([*second_answers, *second_labels])
    if note:
        notes = (*facts.session.notes, note)
        facts = replace(facts, session=replace(facts.session, notes=notes))
    return account(inputs, facts, baseline, anchor)


def _start(report: Report) -> str:
    """Return when the process of a part began; the last of the attempts has the latest."""
    return str(report.run.get("started", ""))


def _last_attempts(reports: Sequence[Report]) -> list[Report]:
    """Return the last attempt of each shard, and every run that is no shard."""
    attempts: dict[tuple[int, ...] | int, Report] = {}
    for number, report in enumerate(reports):
        attempts[report.shards.held if report.shards else number] = report
    return list(attempts.values())


def _note_on_second_answers(keys: Sequence[str]) -> str:
    """Return the note on items of which two attempts hold different answers, or nothing."""
    if not keys:
        return ""
    named = ", ".join(keys[:NAMED_ITEMS])
    if len(keys) > NAMED_ITEMS:
        named += f" and {len(keys) - NAMED_ITEMS:,} more"
    return f"{WARNING}the runs hold different answers to {named}: the first ones count"


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


def _facts(reports: Sequence[Report], last_attempts: Sequence[Report]) -> Facts:
    ends = [report.session for report in last_attempts]
    codes = [end.pytest_code for end in ends]
    _same("what was accepted", [end.accepted.text for end in ends])
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
        complete=all(report.complete for report in last_attempts),
        run_id=_first_decided(reports).run,
        started=_began(reports),
        named=_first_decided(reports).named,
        fresh=_first_decided(reports).fresh,
        monitor=_first_decided(reports).monitor,
        accepted=ends[0].accepted,
        needs_baseline=next(
            (end.needs_baseline for end in ends if end.needs_baseline), ""
        ),
        tries=_tries(reports),
        unsettled=_unsettled(reports),
        canaries=tuple(
            dict.fromkeys(
                canaries for report in reports for canaries in report.judging.canaries
            )
        ),
    )


def _rule_checks(reports: Iterable[Report]) -> dict[str, str]:
    """Return what the model said in any part of answers that rules before it settled."""
    checks: dict[str, str] = {}
    for report in reports:
        checks.update(report.judging.rule_checks)
    return checks


def _first_decided(reports: Sequence[Report]) -> Decided:
    """Return what the first part says of its run; all parts are of one."""
    for report in reports:
        if report.decided is not None:
            return report.decided
    return Decided(run="", at=0.0, code=0, model=reports[0].model)


def _began(reports: Iterable[Report]) -> float:
    """Return when the first part began, in seconds since 1970."""
    return min(
        (report.decided.at for report in reports if report.decided is not None),
        default=0.0,
    )


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


def _together(
    parts: Iterable[Sequence[Record]],
) -> tuple[tuple[Record, ...], list[str]]:
    """Return the records of all parts, each once, and the keys of those with two answers.

    The first grade of an item counts: another attempt must be no second draw. One that the
    first attempt did not grade may be graded by the second.
    """
    records: dict[str, Record] = {}
    keys_of_two: dict[str, None] = {}
    for part in parts:
        for record in part:
            first = records.setdefault(record.key, record)
            if not _is_graded(first):
                records[record.key] = record
            elif _is_graded(record) and _answer_of(record) != _answer_of(first):
                keys_of_two[record.key] = None
    return tuple(records.values()), list(keys_of_two)


def _answer_of(record: Record) -> tuple[object, ...]:
    """Return what two attempts must have alike: the answer, and what the judge made of it."""
    return record.answer, record.grade, record.rating


def _is_graded(record: Record) -> bool:
    return record.outcome in ("passed", "failed")


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
    declarations = [flat(part) for part in parts]
    for field in declarations[0]:
        if field not in ("folder", "slices"):
            values = [declaration[field] for declaration in declarations]
            _same(f"{field} of dataset {name}", values)
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

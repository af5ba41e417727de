"""What a slice came to: counts, every measure of its kind, breakdowns."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from cases.slices import Slice
from reports.extras import extra_estimates
from reports.record import Record
from reports.report import Counts, Estimate, SliceSummary
from reports.tally import Sample, estimates, is_graded, tabulate
from reports.votes import self_agreement

Breakdown = Mapping[str, Mapping[str, Estimate]]

NO_VALUE = "(none)"


def count(records: Sequence[Record]) -> Counts:
    """Return how many records ended in which state. One record stands for one planned item."""
    states = Counter(record.outcome for record in records)
    return Counts(
        planned=len(records),
        passed=states["passed"],
        failed=states["failed"],
        error=states["error"],
        missing=states["missing"],
    )


def summarise(
    records: Sequence[Record], slice_: Slice, *, partial: bool = False, note: str = ""
) -> SliceSummary:
    """Return the summary of one slice.

    ``records`` holds every planned item of the slice, those that ended in an error or are missing
    included: they are counted, and are in no measure. ``partial`` and ``note`` are passed on.
    """
    sample = tabulate(records, slice_)
    return SliceSummary(
        dataset=slice_.dataset,
        language=slice_.language,
        kind=slice_.kind,
        counts=count(records),
        measures={**estimates(sample), **self_agreement(sample), **extra_estimates(records)},
        labels=_labels(sample),
        confusion=_confusion(sample),
        breakdowns={name: _breakdown(records, slice_, name) for name in slice_.by},
        partial=partial,
        note=note,
    )


def _labels(sample: Sample) -> dict[str, int]:
    """Count each grade or rating, those that never occurred included."""
    totals = sample.whole.counts.sum(axis=0)
    return {label: int(n) for label, n in zip(sample.patterns.outcomes, totals, strict=True)}


def _confusion(sample: Sample) -> dict[tuple[str, str], int]:
    """Count the (given label, outcome) pairs that occurred; empty where there is no label."""
    if sample.kind not in ("yes_no", "judged"):
        return {}
    whole = sample.whole
    cells = ((gold, outcome) for gold in whole.golds for outcome in whole.outcomes)
    counts = {(gold, outcome): int(whole.of(outcome, gold)) for gold, outcome in cells}
    return {cell: n for cell, n in counts.items() if n}


def _breakdown(records: Sequence[Record], slice_: Slice, name: str) -> Breakdown:
    """Return every measure for each value of a metadata field, over the graded items."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in filter(is_graded, records):
        groups[str(record.metadata.get(name, NO_VALUE))].append(record)
    return {
        text: {**estimates(tabulate(groups[text], slice_)), **extra_estimates(groups[text])}
        for text in sorted(groups)
    }

"""Whether a judge can be believed: what it is worth on answers with given labels."""

from collections.abc import Mapping, Sequence

from cases.dataset import Dataset, Slice
from cases.plan import Labelled
from evaluators.core import CORRECT, Outcome
from evaluators.kinds import GRADED
from evaluators.output import plural
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import corrected_rate
from reports.evidence import Calibration, ConfusionCell, Corrected, Source
from reports.gates.gate import distrust_in
from reports.record import make_record, total_cost
from reports.report import SliceSummary
from reports.summary import summarise


def calibrator(datasets: Sequence[Dataset], slice_: Slice) -> Dataset | None:
    """Return the labelled dataset that measures this slice's judge, None where there is none.

    Rules need no trust, and labelled slices are the test itself.
    """
    if not slice_.kind.by_rubric:
        return None
    judged = (dataset for dataset in datasets if not dataset.kind.answered)
    for dataset in judged:
        rated = {one.rubric.protocol == "rate" for one in dataset.slices.values() if one.rubric}
        if rated in (set(), {slice_.kind.rated}):  # its labels are of this slice's kind
            return dataset
    return None


def is_whole(judged: SliceSummary) -> bool:
    """Say whether every labelled item came to a grade."""
    return not judged.obstacle and not judged.counts.ungraded


def distrust(
    datasets: Sequence[Dataset], slice_: Slice, summaries: Mapping[str, SliceSummary]
) -> str:
    """Return why the judge of a slice is not trusted, empty where it is."""
    dataset = calibrator(datasets, slice_)
    if dataset is None:
        return ""
    language = slice_.language
    floor = dataset.slices[language].floor if language in dataset.slices else {}
    judged = summaries.get(f"{dataset.name}:{language}")
    known = judged if judged and is_whole(judged) else None
    return distrust_in(language, known, floor, required=dataset.require_calibration)


ENOUGH = 300
"""Labelled items from which on a rate may be corrected for the judge's errors."""


def calibrate(labelled: Labelled, outcomes: Mapping[str, Outcome], source: Source) -> Calibration:
    """Return what the outcomes of the labelled items say of the judge.

    Unless every item came to a grade the judge counts as not measured.
    """
    records = [
        make_record(item, outcomes[item.key]) for item in labelled.items if item.key in outcomes
    ]
    if not labelled.items or len(records) < len(labelled.items):
        return unmeasured(labelled, labelled.why_not or "not all labelled items were judged")
    slice_ = labelled.items[0].slice
    summary = summarise(records, slice_)
    if not is_whole(summary):
        why = f"{plural(summary.counts.ungraded, 'labelled item')} without a grade"
        if source == "ledger":
            why += " in the ledger; a run without --items measures it"
        return unmeasured(labelled, why)
    blocks = distrust_in(
        labelled.language, summary, slice_.floor, required=labelled.dataset.require_calibration
    )
    return Calibration(
        dataset=labelled.dataset.name,
        language=labelled.language,
        measures=summary.measures,
        floor=slice_.floor,
        trusted=not blocks if slice_.floor else None,
        reason=blocks,
        graders=labelled.graders,
        source=source,
        blocks=blocks,
        items=len(records),
        confusion=confusion_cells(summary),
        tokens=sum(record.tokens for record in records),
        cost=total_cost(record.cost for record in records),
    )


def unmeasured(labelled: Labelled, why: str) -> Calibration:
    """Return that the judge is not measured, and why; which blocks only where it is required."""
    required = labelled.dataset.require_calibration
    return Calibration(
        dataset=labelled.dataset.name,
        language=labelled.language,
        measures={},
        reason=why,
        graders=labelled.graders,
        source="session",
        blocks=distrust_in(labelled.language, None, {}, required=required),
    )


def confusion_cells(summary: SliceSummary) -> tuple[ConfusionCell, ...]:
    """Return a judged slice's confusion matrix as a list of its cells."""
    return tuple(
        ConfusionCell(label=label, grade=grade, count=count)
        for (label, grade), count in sorted(summary.confusion.items())
    )


def calibration_notes(calibrations: Sequence[Calibration]) -> list[str]:
    """Return a line for each language: what the judge reached there, or why nobody knows."""
    notes = []
    for one in (one for one in calibrations if one.source != "records"):
        slices = ", ".join(one.graders)
        if not one.measures:
            notes.append(f"judge not measured in {one.language} (for {slices}): {one.reason}")
            continue
        figures = ", ".join(f"{name} {found.text()}" for name, found in one.measures.items())
        earlier = ", measured earlier" if one.source == "ledger" else ""
        trust = f"; {one.reason}" if one.reason else ""
        notes.append(
            f"judge in {one.language} (for {slices}){earlier}: {figures} over "
            f"{plural(one.items, 'labelled item')} of {one.dataset}{trust}"
        )
    return notes


def correct_rates(
    slices: Sequence[SliceSummary], calibrations: Sequence[Calibration]
) -> tuple[Corrected, ...]:
    """Return ``correct`` freed of the judge's errors where at least 300 labelled items show them.

    The estimate is Rogan and Gladen's, its interval from both samples (``corrected_rate``).
    """
    by_slice = {name: one for one in calibrations for name in one.graders if one.items >= ENOUGH}
    found = (_corrected(one, by_slice.get(one.name)) for one in slices if one.kind == GRADED)
    return tuple(one for one in found if one)


def _corrected(summary: SliceSummary, calibration: Calibration | None) -> Corrected | None:
    if calibration is None or CORRECT not in summary.labels:
        return None  # or by a rubric with labels of its own
    cells = calibration.confusion
    if sum(one.count for one in cells) != calibration.items:
        return None  # judged more than once: its counts are no independent items
    right = [one for one in cells if one.label == CORRECT]
    wrong = [one for one in cells if one.label != CORRECT]
    rate = corrected_rate(
        (summary.labels.get(CORRECT, 0), sum(summary.labels.values())),
        (sum(one.count for one in right if one.grade == CORRECT), sum(one.count for one in right)),
        (sum(one.count for one in wrong if one.grade != CORRECT), sum(one.count for one in wrong)),
    )
    if rate is None:
        return None
    return Corrected(
        slice=summary.name,
        correct=Estimate.of(rate.value, rate.interval, sum(summary.labels.values())),
        labelled=calibration.items,
        sensitivity=rate.sensitivity,
        specificity=rate.specificity,
    )


def corrected_notes(found: Sequence[Corrected]) -> list[str]:
    """Return a line for each corrected rate."""
    return [
        f"{one.slice}: correct {one.correct.text()} once the judge's errors are taken out "
        f"(sensitivity {one.sensitivity:.3f}, specificity {one.specificity:.3f} over "
        f"{one.labelled} labelled items)"
        for one in found
    ]

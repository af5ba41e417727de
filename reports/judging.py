"""What a report says of the judge: who graded, at what cost in calls, and how it was measured."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from cases.dataset import Dataset, Slice
from evaluators.judge_spec import JudgeSpec, PanelSpec
from evaluators.kinds import Kind
from reports.evidence import Calibration, Judging
from reports.gates.gate import distrust_in
from reports.record import Record
from reports.report import SliceSummary
from reports.trust import (
    calibration_notes,
    calibrator,
    confusion_cells,
    correct_rates,
    corrected_notes,
    is_whole,
)
from reports.votes import audit, panels, vote_notes


def judging(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    summaries: Mapping[str, SliceSummary],
    judge: str,
    outside: Sequence[Calibration] = (),
) -> Judging:
    """Return the judge's part of the report. ``records`` holds those of each slice by its name.

    ``judge`` is the SPEC. An item counts as settled without a call where rules alone decided it.
    ``outside`` are the calibrations over labelled items that are not among the records.
    """
    graded_slices = [one for one in _slices(datasets, records) if one.kind.by_rubric]
    judged_slices = [one for one in _slices(datasets, records) if not one.kind.answered]
    every = {one.name: records[one.name] for one in (*graded_slices, *judged_slices)}
    decided = [record for some in every.values() for record in some if record.is_graded]
    elsewhere = {name for one in outside for name in one.graders}
    inside = [one for one in graded_slices if one.name not in elsewhere]
    calibrations = (*_calibrations(datasets, records, summaries, inside), *outside)
    split = [record.key for record in decided if _split(record)]
    cascade = PanelSpec.parse(judge).is_cascade
    measured = {name for one in calibrations if one.measures for name in one.graders}
    return Judging(
        graded=len(decided),
        settled=sum(_settled(record, judge, cascade=cascade) for record in decided),
        by_judge=dict(sorted(Counter(map(_decider, decided)).items())),
        calibrations=calibrations,
        unmeasured=tuple(one.name for one in graded_slices if one.name not in measured),
        disagreements=() if cascade else tuple(split),
        audited=sum(len(record.votes) > 1 for record in decided) if cascade else 0,
        audit_disagreements=tuple(split) if cascade else (),
        audit=audit([one for part in graded_slices for one in records[part.name]], judge),
        panels=panels(every, judge),
        corrected=correct_rates(
            [summaries[name] for name, some in records.items() if _are_once(some)], calibrations
        ),
    )


def _are_once(records: Sequence[Record]) -> bool:
    """Say whether no item was asked twice: what follows takes items for independent."""
    return all(record.repeat == 1 for record in records)


def judging_notes(found: Judging, judge: str, kinds: Collection[Kind]) -> list[str]:
    """Return what votes and labelled items say of the judge, a line each.

    ``kinds`` are those of the slices that were run.
    """
    judges = PanelSpec.parse(judge)
    alone = any(one.is_cascade for one in judges.members) and any(kind.rated for kind in kinds)
    return [
        *([f"{judge}: ratings are the model's alone, no rule settles one"] if alone else []),
        *([] if judges.is_offline else _unmeasured_notes(found)),
        *calibration_notes(found.calibrations),
        *vote_notes(judge, found.audit, found.panels),
        *corrected_notes(found.corrected),
    ]


def _slices(datasets: Sequence[Dataset], records: Mapping[str, Sequence[Record]]) -> list[Slice]:
    every = (one for dataset in datasets for one in dataset.slices.values())
    return [one for one in every if one.name in records]


def _calibrations(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    summaries: Mapping[str, SliceSummary],
    graded: Sequence[Slice],
) -> list[Calibration]:
    found = []
    for dataset in (one for one in datasets if not one.kind.answered):
        for language, slice_ in dataset.slices.items():
            summary = summaries.get(slice_.name)
            if summary is None:
                continue
            hanging = [
                one.name
                for one in graded
                if one.language == language and calibrator(datasets, one) is dataset
            ]
            items = len({record.id for record in records[slice_.name]})
            found.append(_calibration(slice_, summary, hanging, items))
    return found


def _calibration(
    slice_: Slice, summary: SliceSummary, graders: Sequence[str], items: int
) -> Calibration:
    whole = is_whole(summary)
    known = bool(slice_.floor) and whole
    reason = distrust_in(slice_.language, summary, slice_.floor, required=True) if known else ""
    return Calibration(
        dataset=slice_.dataset,
        language=slice_.language,
        measures=summary.measures,
        floor=slice_.floor,
        trusted=not reason if known else None,
        reason=reason if whole else "only a part of the labelled items came to a grade",
        graders=tuple(graders),
        items=items,
        confusion=confusion_cells(summary),
    )


def _decider(record: Record) -> str:
    return "people" if record.adjudicated_by else record.judge


def _settled(record: Record, judge: str, *, cascade: bool) -> bool:
    """Rules before a model sign with the first vote; where no model was called the SPEC signs."""
    if record.adjudicated_by:
        return False
    if cascade and record.votes:
        return JudgeSpec.parse(record.votes[0].judge).is_offline
    return not record.votes and (JudgeSpec.parse(record.judge).is_offline or record.judge == judge)


def _split(record: Record) -> bool:
    return len({vote.label for vote in record.votes if vote.label}) > 1


def _unmeasured_notes(found: Judging) -> list[str]:
    noted = {name for one in found.calibrations for name in one.graders}
    names = ", ".join(name for name in found.unmeasured if name not in noted)
    return [f"judge not measured for {names}: no labelled items were judged"] if names else []

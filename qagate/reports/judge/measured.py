"""A judge measured on labelled answers: its agreement, its floor, and whether it may decide."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from qagate.cases.dataset import Dataset, Slice
from qagate.cases.labels import CONSTRUCTED, OWN_RATER
from qagate.cases.plan import Labelled, rates
from qagate.evaluators.core import RECORDED, Outcome, parse_judges
from qagate.evaluators.kinds import is_right
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import count_table, intervals, separation
from qagate.evaluators.statistics.agreement import kappas, krippendorff_alpha
from qagate.evaluators.statistics.intervals import UNDEFINED, Array, Estimate
from qagate.evaluators.statistics.metrics import YOUDEN, YOUDEN_INCORRECT
from qagate.evaluators.statistics.separation import Separation
from qagate.reports.judge.weaknesses import weaknesses
from qagate.reports.metrics.gate import GateInputs, floor_gates, gate_inputs
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.evidence import Calibration, PanelAgreement
from qagate.reports.run.record import Record, make_record, total_cost
from qagate.reports.run.report import GateResult, Obstacle, SliceSummary

CALIBRATION_OFF = (
    "calibration is off"  # why nothing measures a judge where the user wants that
)
EACH_CLASS = 10
"""The fewest labels of right answers, and of wrong ones, that let a judge be trusted."""
CANNOT_TELL = "cannot tell right from wrong answers"
NAME_A_MODEL = "name a model as the judge"

CLASSES = {
    YOUDEN: count_table.passing_labels,
    YOUDEN_INCORRECT: count_table.incorrect_label,
}


def measured_among(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    summaries: Mapping[str, SliceSummary],
    judge: str,
    outside: Sequence[Calibration],
) -> list[Calibration]:
    """Return how labelled slices of a run measure its judge, unless that is measured ``outside``.

    Labels measure the judge of a slice with the same language and kind of verdict, and for a model
    with the same rubric too; of one data set alone where they say so.
    """
    elsewhere = {name for one in outside for name in one.graders}
    slices = [
        one for part in datasets for one in part.slices.values() if one.name in records
    ]
    graded = [one for one in slices if one.kind.by_rubric and one.name not in elsewhere]
    offline = parse_judges(judge.split(" ")).is_offline
    found = []
    for one in (one for one in slices if not one.kind.answered and not one.attacks):
        rubric, only = one.rubric, one.measures
        own = [
            other
            for other in graded
            if other.language == one.language and (rubric or offline)
        ]
        own = [other for other in own if only in ("", other.dataset)]
        if rubric:
            own = [
                other
                for other in own
                if (rubric.protocol == "rate") == other.kind.rated
            ]
        if rubric and not offline:
            version = rubric.version
            own = [
                other
                for other in own
                if other.rubric and other.rubric.version == version
            ]
        graders = tuple(other.name for other in own)
        answerers = {record.model for name in graders for record in records[name]}
        placeholder = offline and answerers <= {"", RECORDED}
        measured = records[one.name], summaries[one.name], graders
        found.append(calibration_of(one, *measured, placeholder=placeholder))
    return found


def calibrate(
    labelled: Labelled, outcomes: Mapping[str, Outcome], *, placeholder: bool = False
) -> Calibration:
    """Return how a session's labelled items measure its judge; missing outcomes are ungraded."""
    if not labelled.items:
        return unmeasured(labelled, labelled.why_not)
    never = partial(
        Outcome, state="missing", kind="stopped", message="the run ended before it"
    )
    records = [
        make_record(one, outcomes.get(one.key) or never(key=one.key))
        for one in labelled.items
    ]
    slice_ = labelled.items[0].slice
    if (
        len(records) < labelled.whole
    ):  # a few may be right by luck: take the whole interval
        slice_ = replace(slice_, floor_limit={**slice_.floor, **slice_.floor_limit})
    summary = summarise(records, slice_)
    found = calibration_of(
        slice_, records, summary, labelled.graders, placeholder=placeholder
    )
    return replace(
        found,
        whole=labelled.whole,
        source="session",
        tokens=sum(record.tokens for record in records),
        cost=total_cost(record.cost for record in records),
        judges=dict(Counter(record.judge for record in records if record.is_graded)),
    )


def calibration_of(
    slice_: Slice,
    records: Sequence[Record],
    summary: SliceSummary,
    graders: tuple[str, ...],
    *,
    placeholder: bool = False,
) -> Calibration:
    """Return how a labelled slice measures the judge; ``records`` has all its planned items.

    The floor is decided like a gate; Youden's J has to be above 0 too, as a judge with one verdict
    for all may reach any floor. A ``placeholder`` judge is held to the ``offline_floor`` alone.
    """
    inputs = gate_inputs(slice_, records, summary)
    of_model = floor_gates(slice_.floor, inputs, slice_.floor_limit)
    placeholder = placeholder and bool(slice_.offline_floor)
    gates = floor_gates(slice_.offline_floor, inputs) if placeholder else of_model
    known = separations(inputs)
    unable = _cannot_tell(slice_, records, known.get(YOUDEN), placeholder=placeholder)
    trusted, blocks = _trust(slice_, gates, unable if gates else "")
    return Calibration(
        dataset=slice_.dataset,
        language=slice_.language,
        measures={**summary.measures, **_length_bias(slice_, records)},
        floor=slice_.offline_floor if placeholder else slice_.floor,
        floor_limit={} if placeholder else slice_.floor_limit,
        stand_in=_against_model(of_model) if placeholder else "",
        trusted=trusted,
        reason=blocks,
        graders=graders,
        blocks=blocks,
        items=len({record.id for record in records}),
        ungraded=summary.counts.ungraded,
        constructed=sum(
            CONSTRUCTED in str(r.metadata.get("label_source", "")) for r in records
        ),
        separations=known,
        pass_bar=slice_.pass_bar if slice_.rates else None,
        confusion=summary.confusion,
        people=_people(slice_, records),
        weaknesses=weaknesses(slice_, records),
    )


def separations(inputs: GateInputs) -> dict[str, Separation]:
    """Return how well a labelled slice shows the judge to tell classes apart, by measure.

    One undefined in a worst case of the ungraded items is left out; a class may lack grades.
    """
    sample, found = inputs.graded, {}
    for name in (one for one in CLASSES if one in inputs.summary.measures):
        values, ends = inputs.values(name), inputs.ends(name)
        if values and ends:
            tables = sample.patterns
            rates = separation.class_rates(tables, sample.items, CLASSES[name](tables))
            youden = Estimate.of(values[0], ends, inputs.summary.counts.planned)
            found[name] = Separation(youden=youden, rates=rates)
    return found


def _people(slice_: Slice, records: Sequence[Record]) -> PanelAgreement | None:
    own = [record for record in records if record.repeat == 1]
    fields = {name for record in own for name in record.metadata}
    names = tuple(sorted(filter(OWN_RATER.fullmatch, fields)))
    rows = [(one, [str(one.metadata.get(name, "")) for name in names]) for one in own]
    tied = {record.key for record in own if record.label is None}
    return agreement_of(slice_, names, rows, tied) if len(names) > 1 else None


def agreement_of(
    slice_: Slice,
    names: tuple[str, ...],
    rows: Sequence[tuple[Record, Sequence[str]]],
    undecided: Collection[str],
) -> PanelAgreement:
    """Return how far those called ``names`` agree; ``rows`` have what each said of a record."""
    given = [[label for label in said if label] for _, said in rows]
    clusters = [slice_.cluster_of(record) for record, _ in rows]
    differ = [len(set(said)) > 1 for said in given]
    split = tuple(
        one.key for (one, _), apart in zip(rows, differ, strict=True) if apart
    )
    return PanelAgreement(
        slice=slice_.name,
        judges=names,
        alpha=krippendorff_alpha(given, clusters),
        pairs=kappas(names, [said for _, said in rows], clusters),
        split=split,
        undecided=sum(key in undecided for key in split),
    )


def _length_bias(slice_: Slice, records: Sequence[Record]) -> dict[str, Estimate]:
    """Return a rater's error in points, by least squares, for each doubling of an answer."""
    import numpy as np

    points = [
        (
            slice_.cluster_of(one),
            math.log2(max(1, len(one.answer or ""))),
            one.rating - int(label),
        )
        for one in records
        if one.rating is not None and (label := one.label or "").isdigit()
    ]
    if len(points) < 3 or len({x for _, x, _ in points}) < 2:
        return {}
    rows = np.array([(1.0, x, y, x * y, x * x) for _, x, y in points])
    sums = intervals.cluster_sums(rows, [cluster for cluster, _, _ in points])

    def parts(totals: Array) -> tuple[Array, Array]:
        ones, xs, ys, xy, xx = totals.T
        return ones * xy - xs * ys, ones * xx - xs**2

    top, bottom = parts(sums.sum(axis=0))
    drawn = intervals.resample(sums, np.ones(len(sums)))
    interval = intervals.percentile(*parts(drawn), len(sums), len(points))
    return {"bias_by_length": Estimate.of(float(top / bottom), interval, len(points))}


def _trust(
    slice_: Slice, gates: Sequence[GateResult], unable: str
) -> tuple[bool | None, str]:
    """Return whether the floor's gates trust a judge, and why not; ``unable`` is its own reason."""
    failed = [gate for gate in gates if gate.state == "FAIL"]
    unclear = [gate for gate in gates if gate.state == "INCONCLUSIVE"]
    why = next((gate.reason for gate in (*failed, *unclear)), "") or unable
    is_refused = bool(failed) or why.startswith(CANNOT_TELL)
    how = Obstacle.DISTRUSTED if is_refused else Obstacle.FEW_LABELS
    blocks = f"judge {how} in {slice_.language}: {why}" if why else ""
    return None if not gates or (why and not is_refused) else not is_refused, blocks


def _against_model(of_model: Sequence[GateResult]) -> str:
    missed: dict[str, str] = {}
    for gate in of_model:
        if gate.state != "PASS":
            missed.setdefault(gate.threshold.measure, gate.reason)
    found = (
        f"misses a model's: {'; '.join(missed.values())}"
        if missed
        else "reaches a model's"
    )
    return f"held to the lower floor of a placeholder judge; {found}"


def _cannot_tell(
    slice_: Slice,
    records: Sequence[Record],
    found: Separation | None,
    *,
    placeholder: bool,
) -> str:
    """Return why a judge may not decide even if it reaches its floor: it may let all pass."""
    labels = {one.id: one.label for one in records if one.label is not None}
    right = sum(
        is_right(one, slice_.passing, slice_.pass_bar) for one in labels.values()
    )
    wrong = len(labels) - right
    if min(right, wrong) < (1 if placeholder else EACH_CLASS):
        least = "add some" if placeholder else f"it takes {EACH_CLASS} of each"
        return f"{plural(right, 'label')} of right answers and {wrong} of wrong ones; {least}"
    youden = found.youden if found else UNDEFINED
    if placeholder or (youden.low is not None and youden.low > 0):
        return ""
    return f"{CANNOT_TELL}: Youden's J {youden.text('{value}, 95 % interval {low} to {high}')}"


def unmeasured(labelled: Labelled, why: str) -> Calibration:
    """Return the calibration of a judge that was not measured, and why."""
    language = labelled.language
    required = f"judge {Obstacle.UNMEASURED} in {language}, and calibration is required"
    return Calibration(
        dataset=labelled.dataset.name,
        language=language,
        measures={},
        reason=why,
        graders=labelled.graders,
        source="session",
        blocks=required if labelled.dataset.require_calibration else "",
    )


def distrust(
    datasets: Sequence[Dataset],
    slice_: Slice,
    calibrations: Sequence[Calibration],
    judge: str,
) -> str:
    """Return why the judge of a slice may not decide its gates, empty where it may.

    Rules may decide unmeasured unless labels are required; a model only if that is waived.
    """
    own = [one for one in calibrations if slice_.name in one.graders]
    offline = parse_judges(judge.split(" ")).is_offline
    blocks = next((one.blocks for one in own if one.blocks), "")
    if blocks and offline:
        return f"{blocks}; {NAME_A_MODEL} (--judge)"
    if blocks or not slice_.kind.by_rubric or any(one.trusted for one in own):
        return blocks
    alike = [
        one
        for one in datasets
        if not one.kind.answered and rates(one) == slice_.kind.rated
    ]
    waived = any(one.judge_unmeasured for one in datasets if one.name == slice_.dataset)
    measured = next((one.dataset for one in own if is_measured(one)), "")
    if not measured and any(one.require_calibration for one in alike):
        return f"judge {Obstacle.UNMEASURED} in {slice_.language}, and calibration is required"
    if waived or offline:
        return ""
    why = next((one.reason for one in own), "no labelled items were judged")
    lacks = f"{Obstacle.UNMEASURED} in {slice_.language}: {why}"
    name = f"labels_{slice_.language.lower().replace('-', '_')}"
    kind = "judged-ratings" if slice_.kind.rated else "judged"
    command = f"qagate new {name} --kind {kind} --lang {slice_.language}"
    remedy = f"label answers by the same rubric ({command})"
    if why == CALIBRATION_OFF:
        remedy = "leave out --calibration off"
    if measured:
        lacks = f"{Obstacle.DISTRUSTED} in {slice_.language}: {measured} has no floor for it"
        remedy = "give one (floor: {agreement: 0.9})"
    waiver = f"say judge: unmeasured in the dataset.yaml of {slice_.dataset}"
    return f"judge {lacks}; {remedy}, or {waiver}"


def is_measured(found: Calibration) -> bool:
    """Return whether at least one labelled item was graded."""
    return any(one.value is not None for one in found.measures.values())


def calibration_notes(calibrations: Sequence[Calibration]) -> list[str]:
    """Return a line for each language: the judge's figures there, or why there are none."""
    notes = []
    for one in calibrations:
        slices = ", ".join(one.graders)
        if one.stand_in:
            notes.append(
                f"judge in {one.language} (for {slices or 'no slice'}): {one.stand_in}"
            )
        if one.source == "records":
            continue
        if not one.measures:
            notes.append(
                f"judge not measured in {one.language} (for {slices}): {one.reason}"
            )
            continue
        wanted = {
            name: one.measures.get(name) for name in ("agreement", "youden", *one.floor)
        }
        known = {
            name: found
            for name, found in wanted.items()
            if found and found.value is not None
        }
        figures = ", ".join(f"{name} {found.text()}" for name, found in known.items())
        earlier = ", measured earlier" if one.source == "ledger" else ""
        lost = f", {one.ungraded} without a grade" if one.ungraded else ""
        distrust = one.reason or ("" if one.floor else "it has no floor")
        notes.append(
            f"judge in {one.language} (for {slices}){earlier}: {figures or 'no figure'} over "
            f"{one.labels} ({one.dataset}){lost}{f'; {distrust}' if distrust else ''}"
        )
    return notes

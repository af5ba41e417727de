"""Whether a judge can be believed: what it is worth on answers with given labels."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cases.dataset import Dataset, Slice
from cases.labels import raters
from cases.plan import Labelled, rates
from evaluators.answerers import RECORDED
from evaluators.core import Outcome
from evaluators.judge_spec import PanelSpec
from evaluators.output import plural
from evaluators.statistics.agreement import alpha_of, kappas
from evaluators.statistics.intervals import Estimate, cluster_sums, percentile, resample
from reports.judge.judge_errors import constructed_in, separations
from reports.metrics.gate import floor_gates, gate_inputs
from reports.metrics.summary import summarise
from reports.run.evidence import Calibration, PanelAgreement
from reports.run.record import Record, make_record, total_cost
from reports.run.report import GateResult, SliceSummary

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array


def measured_among(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    summaries: Mapping[str, SliceSummary],
    judge: str,
    outside: Sequence[Calibration],
) -> list[Calibration]:
    """Return what the labelled slices of a run say of its judge, for the slices that they measure.

    ``records`` and ``summaries`` are by the name of a slice. What is measured ``outside`` of the
    records is not measured by them.
    """
    elsewhere = {name for one in outside for name in one.graders}
    slices = [one for part in datasets for one in part.slices.values() if one.name in records]
    graded = [one for one in slices if one.kind.by_rubric and one.name not in elsewhere]
    offline = PanelSpec.parse(judge).is_offline
    found = []
    for one in (one for one in slices if not one.kind.answered and not one.attacks):
        own = [other.name for other in graded if _measures(one, other, offline=offline)]
        answerers = {record.model for name in own for record in records[name]}
        found.append(
            calibration_of(
                one,
                records[one.name],
                summaries[one.name],
                graders=tuple(own),
                stands_in=offline and answerers <= {"", RECORDED},
            )
        )
    return found


def _measures(labelled: Slice, slice_: Slice, *, offline: bool) -> bool:
    """Return whether labels say how far a slice's judge can be trusted.

    They do in the same language and for verdicts of the same kind; those of a model hang on the
    rubric, too, which has to be the same.
    """
    own, other = labelled.rubric, slice_.rubric
    if labelled.language != slice_.language or not (own or offline):
        return False
    if own and (own.protocol == "rate") != slice_.kind.rated:
        return False
    return offline or (own and own.version) == (other and other.version)


def distrust(
    datasets: Sequence[Dataset], slice_: Slice, calibrations: Sequence[Calibration], judge: str
) -> str:
    """Return why the judge of a slice cannot decide its gates, empty where it can.

    Rules need no trust where no labelled items measure them, unless a labelled dataset says
    ``require_calibration``. A judge that asks a model has to reach a floor, unless the slice's
    dataset says ``judge: unmeasured``.
    """
    own = [one for one in calibrations if slice_.name in one.graders]
    offline = PanelSpec.parse(judge).is_offline
    blocks = next((one.blocks for one in own if one.blocks), "")
    if blocks and offline:
        return f"{blocks}; name a model as the judge (--judge)"
    if blocks or not slice_.kind.by_rubric or any(one.trusted for one in own):
        return blocks
    alike = [one for one in datasets if not one.kind.answered and rates(one) == slice_.kind.rated]
    waived = any(one.judge_unmeasured for one in datasets if one.name == slice_.dataset)
    measured = next((one.dataset for one in own if is_measured(one)), "")
    if not measured and any(one.require_calibration for one in alike):
        return f"judge not measured in {slice_.language}, and calibration is required"
    if waived or offline:
        return ""
    why = next((one.reason for one in own), "no labelled items were judged")
    lacks, remedy = f"not measured in {slice_.language}: {why}", "give labelled items"
    if measured:
        lacks = f"not trusted in {slice_.language}: {measured} has no floor for it"
        remedy = "give one (floor: {agreement: 0.9})"
    waiver = f"say judge: unmeasured in the dataset.yaml of {slice_.dataset}"
    return f"judge {lacks}; {remedy}, or {waiver}"


def is_measured(found: Calibration) -> bool:
    """Return whether some labelled item came to a grade."""
    return any(one.value is not None for one in found.measures.values())


def calibrate(
    labelled: Labelled, outcomes: Mapping[str, Outcome], *, stands_in: bool = False
) -> Calibration:
    """Return what the outcomes of items that were judged beside the tests say of the judge.

    An item without an outcome was not judged, which counts as any item without a grade does.
    ``stands_in`` is that of ``calibration_of``.
    """
    if not labelled.items:
        return unmeasured(labelled, labelled.why_not)
    records = [
        make_record(item, outcomes.get(item.key) or _not_judged(item.key))
        for item in labelled.items
    ]
    slice_ = labelled.items[0].slice
    if len(records) < labelled.whole:  # so few may be right by luck: the whole interval has to be
        slice_ = replace(slice_, floor_limit={**slice_.floor, **slice_.floor_limit})
    return replace(
        calibration_of(
            slice_, records, summarise(records, slice_), labelled.graders, stands_in=stands_in
        ),
        whole=labelled.whole,
        source="session",
        tokens=sum(record.tokens for record in records),
        cost=total_cost(record.cost for record in records),
    )


def _not_judged(key: str) -> Outcome:
    return Outcome(key=key, state="missing", kind="stopped", message="the run ended before it")


def calibration_of(
    slice_: Slice,
    records: Sequence[Record],
    summary: SliceSummary,
    graders: tuple[str, ...],
    *,
    stands_in: bool = False,
) -> Calibration:
    """Return what a labelled slice says of the judge; ``records`` holds every planned item of it.

    Its floor is decided as a gate is: items without a grade could be right or wrong. Labels of
    one class only cannot show that it is reached: a judge with one verdict for all has it there.
    A judge without a model that ``stands_in``, as the answers are recorded ones too, is held to the
    ``offline_floor``, where there is one.
    """
    inputs = gate_inputs(slice_, records, summary)
    of_model = floor_gates(slice_.floor, inputs, slice_.floor_limit)
    stands_in = stands_in and bool(slice_.offline_floor)
    gates = floor_gates(slice_.offline_floor, inputs) if stands_in else of_model
    trusted, blocks = _trust(slice_, records, gates)
    return Calibration(
        dataset=slice_.dataset,
        language=slice_.language,
        measures={**summary.measures, **_length_bias(slice_, records)},
        floor=slice_.offline_floor if stands_in else slice_.floor,
        floor_limit={} if stands_in else slice_.floor_limit,
        stand_in=_stand_in(of_model) if stands_in else "",
        trusted=trusted,
        reason=blocks,
        graders=graders,
        blocks=blocks,
        items=len({record.id for record in records}),
        ungraded=summary.counts.ungraded,
        constructed=constructed_in(records),
        separations=separations(inputs),
        pass_bar=slice_.pass_bar if slice_.rates else None,
        confusion=summary.confusion,
        people=_people(slice_, records),
    )


def _people(slice_: Slice, records: Sequence[Record]) -> PanelAgreement | None:
    """Return how far people agree where several labelled the same items."""
    own = [record for record in records if record.repeat == 1]
    names = tuple(sorted({name for record in own for name in raters(record.metadata)}))
    if len(names) < 2:
        return None
    rows = [(one, [str(one.metadata.get(name, "")) for name in names]) for one in own]
    tied = {record.key for record in own if record.label is None}
    return agreement_of(slice_, names, rows, tied)


def agreement_of(
    slice_: Slice,
    names: tuple[str, ...],
    rows: Sequence[tuple[Record, Sequence[str]]],
    undecided: Collection[str],
) -> PanelAgreement:
    """Return how far judges or people agree, whose ``names`` these are.

    ``rows`` has each record with what each of them said of it, empty for nothing; ``undecided`` are
    the keys of records on which they came to no decision.
    """
    given = [[label for label in said if label] for _, said in rows]
    clusters = [slice_.cluster_of(record) for record, _ in rows]
    differ = [len(set(said)) > 1 for said in given]
    split = tuple(one.key for (one, _), apart in zip(rows, differ, strict=True) if apart)
    return PanelAgreement(
        slice=slice_.name,
        judges=names,
        alpha=alpha_of(given, clusters),
        pairs=kappas(names, [said for _, said in rows], clusters),
        split=split,
        undecided=sum(key in undecided for key in split),
    )


def _length_bias(slice_: Slice, records: Sequence[Record]) -> dict[str, Estimate]:
    """Return by how many points a rater's error grows with each doubling of the answer's length.

    It is the least-squares slope of rating less label over the length's logarithm; the interval is
    a bootstrap over clusters. Nothing where no rating meets a label, or all lengths are the same.
    """
    import numpy as np

    points = [
        (slice_.cluster_of(one), math.log2(max(1, len(one.answer or ""))), one.rating - int(label))
        for one in records
        if one.rating is not None and (label := one.label or "").isdigit()
    ]
    if len(points) < 3 or len({x for _, x, _ in points}) < 2:
        return {}
    rows = np.array([(1.0, x, y, x * y, x * x) for _, x, y in points])
    sums = cluster_sums(rows, [cluster for cluster, _, _ in points])

    def parts(totals: Array) -> tuple[Array, Array]:
        ones, xs, ys, xy, xx = totals.T
        return ones * xy - xs * ys, ones * xx - xs**2

    top, bottom = parts(sums.sum(axis=0))
    drawn = resample(sums, np.ones(len(sums)))
    interval = percentile(*parts(drawn), len(sums), len(points))
    return {"bias_by_length": Estimate.of(float(top / bottom), interval, len(points))}


def _trust(
    slice_: Slice, records: Sequence[Record], gates: Sequence[GateResult]
) -> tuple[bool | None, str]:
    """Return whether these gates show a judge to be trusted, and what speaks against it."""
    failed = [gate for gate in gates if gate.state == "FAIL"]
    unclear = [gate for gate in gates if gate.state == "INCONCLUSIVE"]
    why = next((gate.reason for gate in (*failed, *unclear)), "")
    why = why or (_one_class(slice_, records) if gates else "")
    how = "not trusted" if failed else "measured too little"
    blocks = f"judge {how} in {slice_.language}: {why}" if why else ""
    return None if not gates or (why and not failed) else not failed, blocks


def _stand_in(of_model: Sequence[GateResult]) -> str:
    """Return how an offline judge that only stands in compares with the floor of a model."""
    missed: dict[str, str] = {}
    for gate in of_model:
        if gate.state != "PASS":
            missed.setdefault(gate.threshold.measure, gate.reason)
    found = f"misses it: {'; '.join(missed.values())}" if missed else "reaches it"
    return f"the offline judge stands in for a model, whose floor is higher, and {found}"


def _one_class(slice_: Slice, records: Sequence[Record]) -> str:
    """Return that all labels are of right answers or all of wrong ones, but not of ratings."""
    if slice_.rates:
        return ""
    sides = {one.label in slice_.passing for one in records if one.label is not None}
    if len(sides) != 1:
        return ""
    given, lacking = ("right", "wrong") if sides.pop() else ("wrong", "right")
    count = plural(len({one.id for one in records}), "label")
    return f"{count} of {given} answers and none of {lacking} ones; add some"


def unmeasured(labelled: Labelled, why: str) -> Calibration:
    """Return that the judge is not measured, and why."""
    language = labelled.language
    required = f"judge not measured in {language}, and calibration is required"
    return Calibration(
        dataset=labelled.dataset.name,
        language=language,
        measures={},
        reason=why,
        graders=labelled.graders,
        source="session",
        blocks=required if labelled.dataset.require_calibration else "",
    )


def calibration_notes(calibrations: Sequence[Calibration]) -> list[str]:
    """Return lines for each language: what the judge reached there, or why nobody knows."""
    notes = []
    for one in calibrations:
        slices = ", ".join(one.graders)
        if one.stand_in:
            notes.append(f"judge in {one.language} (for {slices or 'no slice'}): {one.stand_in}")
        if one.source == "records":
            continue
        if not one.measures:
            notes.append(f"judge not measured in {one.language} (for {slices}): {one.reason}")
            continue
        figures = ", ".join(f"{name} {found.text()}" for name, found in one.measures.items())
        earlier = ", measured earlier" if one.source == "ledger" else ""
        lost = f", {one.ungraded} without a grade" if one.ungraded else ""
        trust = f"; {one.reason}" if one.reason else "" if one.floor else "; it has no floor"
        notes.append(
            f"judge in {one.language} (for {slices}){earlier}: {figures} over "
            f"{one.labels} ({one.dataset}){lost}{trust}"
        )
    return notes

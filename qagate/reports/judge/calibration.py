"""What labelled answers show of a judge, set by set, for people to read.

Whether a judge may decide in a slice is said by ``trust.py``, from all sets that measure it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from qagate.cases.dataset import Slice
from qagate.cases.labels import CONSTRUCTED, OWN_RATER
from qagate.evaluators.core import parse_judges
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.intervals import Array, Estimate
from qagate.evaluators.statistics.misclassification import (
    KeptShare,
    Reader,
    kept_share,
)
from qagate.reports.judge.classes import border_of
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.judge.trust import Trust, trust_of
from qagate.reports.judge.votes import agreement_of
from qagate.reports.judge.waivers import PLACEHOLDER
from qagate.reports.judge.weaknesses import weaknesses
from qagate.reports.metrics.gate import floor_gates, gate_inputs
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.evidence import Calibration, PanelAgreement
from qagate.reports.run.record import Record, total_cost
from qagate.reports.run.report import GateResult, SliceSummary


def calibrations_of(
    sets: Sequence[LabelSet],
    judges: Mapping[str, SliceJudge],
    summaries: Mapping[str, SliceSummary],
    judge: str,
) -> list[Calibration]:
    """Return what each labelled set shows; ``summaries`` has those among a run's own items."""
    found = []
    for labels in sets:
        if labels.slice_.attacks:
            continue
        measured = [each for each in judges.values() if labels.measures(each.slice_)]
        summary = summaries.get(labels.slice_.name)
        is_of_run = summary is not None
        if summary is None:
            summary = summarise(labels.records, labels.slice_)
        calibration = calibration_of(labels, summary, measured, judge)
        if not is_of_run:
            calibration = replace(
                calibration,
                source="session",
                tokens=sum(record.tokens for record in labels.records),
                cost=total_cost(record.cost for record in labels.records),
                judges=dict(
                    Counter(
                        record.judge for record in labels.records if record.is_graded
                    )
                ),
            )
        found.append(calibration)
    return found


def calibration_of(
    labels: LabelSet,
    summary: SliceSummary,
    measured: Sequence[SliceJudge],
    judge: str,
) -> Calibration:
    """Return what a labelled set shows of the judge of the slices that it measures.

    Rules that grade bundled answers as a placeholder are held to the ``offline_floor`` alone.
    """
    slice_, records = labels.slice_, labels.records
    inputs = gate_inputs(slice_, records, summary)
    of_model = floor_gates(slice_.floor, inputs, slice_.floor_limit)
    stands_in = _stands_in(measured, judge) and bool(slice_.offline_floor)
    if stands_in:
        trust = _trust_of_placeholder(floor_gates(slice_.offline_floor, inputs))
    else:
        trust = _trust(labels, measured)
    return Calibration(
        dataset=slice_.dataset,
        language=slice_.language,
        measures={**summary.measures, **_length_bias(slice_, records)},
        floor=slice_.offline_floor if stands_in else slice_.floor,
        floor_limit={} if stands_in else slice_.floor_limit,
        stand_in=_against_model(of_model) if stands_in else "",
        trusted=trust.trusted,
        reason=trust.reason and trust.obstacle(slice_.language),
        graders=tuple(each.name for each in measured),
        items=len({record.id for record in records}),
        whole=len({record.id for record in records}),
        ungraded=summary.counts.ungraded,
        constructed=sum(
            CONSTRUCTED in str(record.metadata.get("label_source", ""))
            for record in records
        ),
        bundled=slice_.bundled,
        pass_bar=slice_.pass_bar if slice_.rates else None,
        kept=_kept_shares(labels),
        confusion=summary.confusion,
        people=_people(slice_, records),
        weaknesses=weaknesses(slice_, records),
    )


def _stands_in(measured: Sequence[SliceJudge], judge: str) -> bool:
    """Return whether rules grade nothing but bundled answers as a placeholder, or nothing."""
    if not parse_judges(judge.split(" ")).is_offline:
        return False
    return all(each.waiver == PLACEHOLDER for each in measured)


def _trust(labels: LabelSet, measured: Sequence[SliceJudge]) -> Trust:
    """Return whether the judge is trusted where it decides, else by these labels alone."""
    for each in measured:
        if each.labels:
            return trust_of(each.labels, each.reader())
    if not labels.slice_.floor and not labels.slice_.floor_limit:
        return Trust(trusted=None)
    alone = Labels.alone(labels)
    if not alone:
        return Trust(trusted=None)
    return trust_of(alone, _reader_of(alone))


def _reader_of(alone: Labels) -> Reader | str:
    """Return the confusion over the classes that a set has labels of."""
    inner = border_of(alone.slice_, "", alone.classes) or frozenset()
    present = [
        name for name in alone.classes.names if alone.own_counts.labels(name) > 0
    ]
    merged = {}
    for name in alone.classes.names:
        if name in present:
            continue
        alike = [other for other in present if (other in inner) is (name in inner)]
        if not alike:
            return "it takes labels of right answers and of wrong ones"
        merged[name] = alike[0]
    return alone.confusion(inner, merged)


def _trust_of_placeholder(gates: Sequence[GateResult]) -> Trust:
    for state, trusted in (("FAIL", False), ("INCONCLUSIVE", None)):
        for gate in gates:
            if gate.state == state:
                return Trust(trusted=trusted, reason=gate.reason)
    return Trust(trusted=True)


def _kept_shares(labels: LabelSet) -> tuple[KeptShare, ...]:
    """Return how much of each class the judge keeps on its side of the border, by class."""
    alone = Labels.alone(labels)
    inner = border_of(labels.slice_, "", alone.classes)
    if not inner:
        return ()
    shares = []
    for name in alone.classes.names:
        row = alone.row(name, inner)
        if row is not None:
            shares.append(kept_share(row, name, alone.classes.names, inner))
    return tuple(shares)


def _people(slice_: Slice, records: Sequence[Record]) -> PanelAgreement | None:
    own = [record for record in records if record.repeat == 1]
    fields = {name for record in own for name in record.metadata}
    names = tuple(sorted(filter(OWN_RATER.fullmatch, fields)))
    rows = [(one, [str(one.metadata.get(name, "")) for name in names]) for one in own]
    tied = {record.key for record in own if record.label is None}
    return agreement_of(slice_, names, rows, tied) if len(names) > 1 else None


def _length_bias(slice_: Slice, records: Sequence[Record]) -> dict[str, Estimate]:
    """Return a rater's error in points, by least squares, for each doubling of an answer.

    It is the slope of the error over the binary logarithm of the answer's characters.
    """
    import numpy as np

    clusters = []
    sums_of_answers = []
    lengths = set()
    for record in records:
        label = record.label or ""
        if record.rating is None or not label.isdigit():
            continue
        length = math.log2(max(1, len(record.answer or "")))
        error = record.rating - int(label)
        lengths.add(length)
        clusters.append(slice_.cluster_of(record))
        sums_of_answers.append((1.0, length, error, length * error, length**2))
    n = len(clusters)
    if n < 3 or len(lengths) < 2:
        return {}
    sums = intervals.cluster_sums(np.array(sums_of_answers), clusters)
    top, bottom = _slope(sums.sum(axis=0))
    drawn = intervals.resample(sums, np.ones(len(sums)))
    interval = intervals.percentile(*_slope(drawn), len(sums), n)
    return {"bias_by_length": Estimate.of(float(top / bottom), interval, n)}


def _slope(sums: Array) -> tuple[Array, Array]:
    """Return a least-squares slope as a fraction, from the sums of 1, x, y, x y and x²."""
    ones, xs, ys, xy, xx = sums.T
    return ones * xy - xs * ys, ones * xx - xs**2


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


def calibration_notes(calibrations: Sequence[Calibration]) -> list[str]:
    """Return a line for each labelled set that no item of the run shows: the judge's figures."""
    notes = []
    for calibration in calibrations:
        slices = ", ".join(calibration.graders) or "no slice"
        place = f"judge in {calibration.language} (for {slices})"
        if calibration.stand_in:
            notes.append(f"{place}: {calibration.stand_in}")
        if calibration.source == "records":
            continue
        figures = []
        for name in ("agreement", "youden", *calibration.floor):
            estimate = calibration.measures.get(name)
            if estimate is not None and estimate.value is not None:
                figures.append(f"{name} {estimate.text()}")
        clauses = [
            f"{place}: {', '.join(dict.fromkeys(figures)) or 'no figure'} over "
            f"{calibration.labels} ({calibration.dataset})"
        ]
        if calibration.ungraded:
            clauses.append(f"{calibration.ungraded} without a grade")
        if calibration.reason:
            clauses.append(calibration.reason)
        notes.append("; ".join(clauses))
    return notes

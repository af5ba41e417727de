"""Shares of one run without the judge's errors, and the bars that they have to clear.

A lenient judge lifts a share over its bar. So the share that is corrected class by class has to
clear the bar as well; with its whole interval where the judge is poor, that is
where the lower end of J is below ``POOR``. The judge must also be shown to refuse more than half of
the wrong answers. What a person decided counts as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Slice, Threshold
from qagate.evaluators.core import INCORRECT
from qagate.evaluators.kinds import GRADED, NOT_CORRECT
from qagate.evaluators.number_text import figure, span_of
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    Interval,
    clustered_rate,
)
from qagate.evaluators.statistics.misclassification import (
    HIT,
    MISS,
    Confusion,
    CorrectedShare,
    GradeChange,
    GradeChanges,
    corrected_share,
)
from qagate.reports.judge.classes import BELOW
from qagate.reports.judge.slice_judge import SliceJudge, UnknownErrors
from qagate.reports.metrics.gate import side_of
from qagate.reports.run.columns import columns_of, numbered
from qagate.reports.run.evidence import Corrected
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, GateState

POOR = 0.5
"""The lower end of J under which the estimate alone shows nothing."""
HALF = 0.5
"""The share of wrong answers that a judge must be shown to refuse."""
ERRS_TOO_OFTEN = "the judge errs too often for a conclusion"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareOfRun:
    """A share of a slice's answers, as its judge reads them."""

    judge: SliceJudge
    confusion: Confusion
    records: Sequence[Record]

    def corrected(self, ungraded: str = "") -> CorrectedShare | None:
        """Return the share; ungraded answers are left out, or all ``HIT`` or all ``MISS``."""
        name = self.judge.slice_.name
        columns = columns_of(self.records, self.judge.slice_)
        cells = []
        for record in columns.column.kinds:
            grade = self._grade(record) or ungraded
            cells.append(GradeChange(group=name, before=MISS, now=grade))
        places = columns.column.places
        clusters = numbered(columns.clusters)
        if not ungraded:
            are_graded = columns.column.asked(lambda record: record.is_graded) == 1
            places = places[are_graded]
            clusters = clusters[are_graded]
        if not len(places):
            return None
        answers = GradeChanges.counted(cells, places, clusters)
        readers = {name: self.confusion}
        return corrected_share(answers, readers, self._as_judged(answers))

    def _grade(self, record: Record) -> str:
        """Return what a record counts as; empty where it has no grade."""
        if not record.is_graded:
            return ""
        if not record.adjudicated_by:
            return record.result
        place = self.confusion.place_of(record.result)
        is_inner = self.confusion.classes[place] in self.confusion.inner
        return HIT if is_inner else MISS

    def _as_judged(self, answers: GradeChanges) -> Interval:
        """Return the interval of the share as the judge has it."""
        import numpy as np

        counted = np.array([self._counts(cell.now) for cell in answers.cells])
        hits = answers.counts @ counted
        sizes = answers.counts.sum(axis=1)
        return clustered_rate(hits, sizes, answers.clusters) or (0.0, 1.0)

    def _counts(self, grade: str) -> float:
        if grade in (HIT, MISS):
            return float(grade == HIT)
        place = self.confusion.place_of(grade)
        return float(self.confusion.classes[place] in self.confusion.inner)


def doubt_of(judge: SliceJudge, records: Sequence[Record], gate: Threshold) -> str:
    """Return why a bar that is cleared as judged does not pass; empty where it does.

    Ungraded answers count at their worst.
    """
    reader = judge.reader(gate.measure)
    if isinstance(reader, UnknownErrors):
        return ""
    if isinstance(reader, str):
        return reader
    if not isinstance(reader, Confusion):
        return ""
    if reader.inverse is None:
        return ERRS_TOO_OFTEN
    lenient = _too_lenient(judge)
    if lenient:
        return lenient
    share = ShareOfRun(judge=judge, confusion=reader, records=records)
    is_poor = reader.youden().low < POOR
    for ungraded in _worst(gate):
        corrected = share.corrected(ungraded)
        if corrected is None:
            return ERRS_TOO_OFTEN
        value = corrected.value
        hidden = judge.misread.value or 0.0
        bounds = _widened((value, value), hidden)
        if is_poor:
            hidden = judge.misread.high or 0.0
            bounds = _widened(corrected.estimate.interval or (0.0, 1.0), hidden)
        if side_of(gate, bounds) != "PASS":
            what = f"{gate.measure} is {figure(value, gate.min, gate.max)}"
            if is_poor:
                what += f", 95 % interval {span_of(bounds)}"
            return f"corrected for the judge's errors, {what}, and does not clear {gate.bar}"
    return ""


def _widened(bounds: Interval, hidden: float) -> Interval:
    """Return bounds with a share of answers, which rules may have misread, at either extreme."""
    return max(0.0, bounds[0] - hidden), min(1.0, bounds[1] + hidden)


def _worst(gate: Threshold) -> list[str]:
    """Return what ungraded answers count as at their worst."""
    worst = []
    if gate.min is not None:
        worst.append(MISS)
    if gate.max is not None:
        worst.append(HIT)
    return worst


def _too_lenient(judge: SliceJudge) -> str:
    """Return why a judge is not shown to refuse more than half of the wrong answers."""
    reader = judge.reader()
    if not isinstance(reader, Confusion):
        return ""
    for name in (INCORRECT, NOT_CORRECT, BELOW):
        if name in reader.classes and name not in reader.inner:
            kept = reader.kept(name)
            if kept.low <= HALF:
                return (
                    f"the judge is not shown to refuse more than half of the answers that are "
                    f"{name}: {figure(kept.value)}, 95 % interval "
                    f"{span_of((kept.low, kept.high))}"
                )
    return ""


def correct_rates(
    judges: Mapping[str, SliceJudge], records: Mapping[str, Sequence[Record]]
) -> tuple[Corrected, ...]:
    """Return ``correct`` of each graded slice corrected for its judge's errors, where known."""
    found = []
    for name, judge in judges.items():
        if judge.slice_.kind != GRADED or not records.get(name):
            continue
        corrected = _corrected(judge, records[name])
        if corrected is not None:
            found.append(corrected)
    return tuple(found)


def _corrected(judge: SliceJudge, records: Sequence[Record]) -> Corrected | None:
    reader = judge.reader()
    if not isinstance(reader, Confusion) or reader.inverse is None:
        return None
    youden = reader.youden()
    if youden.value <= 0:
        return None
    share = ShareOfRun(judge=judge, confusion=reader, records=records)
    corrected = share.corrected()
    if corrected is None:
        return None
    unfit = _unfit(corrected)
    constructed = judge.labels.constructed
    return Corrected(
        slice=judge.name,
        correct=UNDEFINED if unfit else corrected.estimate,
        unfit=unfit,
        labelled=len(judge.labels.own) + len(judge.labels.bundled),
        sensitivity=reader.kept(youden.inner).value,
        specificity=reader.kept(youden.outer).value,
        by_people=sum(bool(record.adjudicated_by) for record in records),
        constructed=constructed,
    )


def _unfit(corrected: CorrectedShare) -> str:
    if not corrected.fits:
        return "the labels do not fit these answers"
    if corrected.estimate.interval == (0.0, 1.0):
        return ERRS_TOO_OFTEN
    return ""


def corrected_gates(
    slice_: Slice,
    records: Sequence[Record],
    judge: SliceJudge | None,
    obstacle: str,
) -> Iterator[GateResult]:
    """Yield the bars that the whole corrected interval decides, ungraded items at both extremes."""
    for gate in slice_.thresholds:
        if gate.evidence == "corrected":
            yield _corrected_gate(slice_, records, judge, gate, obstacle)


def _corrected_gate(
    slice_: Slice,
    records: Sequence[Record],
    judge: SliceJudge | None,
    gate: Threshold,
    obstacle: str,
) -> GateResult:
    reader = judge.reader(gate.measure) if judge else ""
    if not obstacle and judge is not None and judge.is_read:
        obstacle = f"no labels measure the judge's errors ({judge.basis})"
    if not obstacle and not isinstance(reader, Confusion):
        obstacle = str(reader) or "no labels measure the judge's errors"
    shares: list[CorrectedShare] = []
    if not obstacle and judge is not None and isinstance(reader, Confusion):
        if reader.inverse is None:
            obstacle = ERRS_TOO_OFTEN
        else:
            share = ShareOfRun(judge=judge, confusion=reader, records=records)
            for ungraded in ("", MISS, HIT):
                corrected = share.corrected(ungraded)
                if corrected is None:
                    obstacle = "no answer has a grade"
                    break
                obstacle = obstacle or _unfit(corrected)
                shares.append(corrected)
    if obstacle:
        return _result(slice_, gate, "INCONCLUSIVE", UNDEFINED, obstacle)
    rate, lowest, highest = (corrected.estimate for corrected in shares)
    hidden = 0.0 if judge is None else judge.misread.high or 0.0
    ends = _widened((lowest.low or 0.0, highest.high or 1.0), hidden)
    state = side_of(gate, ends)
    reason = _sentence(gate, state, rate, ends)
    if state == "PASS" and judge is not None:
        lenient = _too_lenient(judge)
        if lenient:
            state, reason = "INCONCLUSIVE", lenient
    return _result(
        slice_,
        gate,
        state,
        rate,
        reason,
        worst=lowest.value,
        best=highest.value,
    )


def _sentence(gate: Threshold, state: GateState, rate: Estimate, ends: Interval) -> str:
    words = {"PASS": "clears", "FAIL": "misses"}
    verb = words.get(state, "neither clears nor misses")
    value = rate.text("{value} after correction for the judge's errors")
    return (
        f"{gate.measure} is {value}, 95 % interval {span_of(ends)}: it {verb} the bar "
        f"(n={rate.n})"
    )


def _result(
    slice_: Slice,
    gate: Threshold,
    state: GateState,
    estimate: Estimate,
    reason: str,
    *,
    worst: float | None = None,
    best: float | None = None,
) -> GateResult:
    return GateResult(
        dataset=slice_.dataset,
        language=slice_.language,
        threshold=gate,
        state=state,
        estimate=estimate,
        worst=worst,
        best=best,
        reason=reason,
    )


def corrected_notes(found: Sequence[Corrected]) -> list[str]:
    """Return a line for each corrected rate."""
    notes = []
    for corrected in found:
        value = corrected.correct.text(undefined="not known")
        labels = plural(corrected.labelled, "labelled item")
        note = (
            f"{corrected.slice}: correct, corrected for the judge's errors: {value} "
            f"(sensitivity {corrected.sensitivity:.3f}, specificity "
            f"{corrected.specificity:.3f}, from {labels})"
        )
        if corrected.caution:
            note += f"; {corrected.caution}"
        notes.append(note)
    return notes

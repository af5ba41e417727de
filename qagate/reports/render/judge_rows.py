"""How often the judge was right in each language, drawn against what is asked of it.

A row is what one labelled set showed. The limit is that for the end of the interval, where there
is one: a judge decides if its share is at least the floor, and its range stays clear of the limit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qagate.reports.render import measure_words
from qagate.reports.render.judge_words import agreement_of
from qagate.reports.render.names import language_name
from qagate.reports.render.pictures import Axis, Picture, Span, Tick
from qagate.reports.run.evidence import Calibration
from qagate.reports.run.report import GateState, Report

ROOM = 0.03
"""Left free at the lower end of the axis, as a share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRow:
    """What the labels of one language say of the judge."""

    name: str
    agreed: str
    """On how many labels of how many: ``110 of 115``."""
    share: float
    state: GateState
    word: str
    picture: Picture


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRows:
    """The rows on one axis."""

    rows: Sequence[JudgeRow]
    ticks: Sequence[Tick]


def judge_rows(report: Report) -> JudgeRows | None:
    """Return a row for each labelled set that measures a judge; None where none does."""
    measured = [
        calibration
        for calibration in report.judging.calibrations
        if _share_of(calibration) is not None
    ]
    if not measured:
        return None
    limits = {limit for one in measured if (limit := _limit_of(one)) is not None}
    axis = _axis(measured, limits)
    datasets = {calibration.dataset for calibration in measured}
    rows = [
        _row(calibration, axis, has_several=len(datasets) > 1)
        for calibration in measured
    ]
    ticks = [
        Tick(
            place=axis.place(limit),
            text=f"{measure_words.percent(limit)} limit",
            is_limit=True,
        )
        for limit in sorted(limits)
    ]
    return JudgeRows(rows=rows, ticks=axis.round_ticks(ticks))


def _share_of(calibration: Calibration) -> float | None:
    agreement = agreement_of(calibration)
    return agreement.value if agreement else None


def _limit_of(calibration: Calibration) -> float | None:
    """Return what the range of the agreement has to clear; None where nothing is asked."""
    name = "agreement" if calibration.pass_bar is None else "pass_agreement"
    floor = calibration.floor.get(name)
    return calibration.floor_limit.get(name, floor)


def _axis(measured: Sequence[Calibration], limits: set[float]) -> Axis:
    ends = [1.0, *limits]
    for calibration in measured:
        agreement = agreement_of(calibration)
        if agreement is not None and agreement.value is not None:
            ends += agreement.interval or (agreement.value,)
    start = max(0.0, min(ends) - ROOM)
    return Axis(start=start, end=1.0, is_change=False, is_share=True)


def _row(calibration: Calibration, axis: Axis, *, has_several: bool) -> JudgeRow:
    agreement = agreement_of(calibration)
    share = (agreement.value if agreement else None) or 0.0
    labels = agreement.n if agreement else 0
    interval = agreement.interval if agreement else None
    limit = _limit_of(calibration)
    name = language_name(calibration.language)
    if has_several:
        name += f" in {calibration.dataset}"
    state, word = _state_of(calibration)
    agreed = f"{round(share * labels):,} of {labels:,}"
    band = None
    if interval is not None:
        low, high = map(axis.place, interval)
        band = Span(start=low, width=round(high - low, 2))
    place = None if limit is None else axis.place(limit)
    return JudgeRow(
        name=name,
        agreed=agreed,
        share=share,
        state=state,
        word=word,
        picture=Picture(
            beyond=[] if place is None else [Span(start=0.0, width=place)],
            limits=[] if place is None else [place],
            band=band,
            mark=axis.place(share),
            old=None,
            label=f"{name}: {agreed}, {word}",
        ),
    )


def _state_of(calibration: Calibration) -> tuple[GateState, str]:
    """Return how a judge is drawn, and whether it is trusted in a word."""
    if calibration.trusted is None:
        return "INCONCLUSIVE", "not known"
    if not calibration.trusted:
        return "FAIL", "not trusted"
    if calibration.stand_in:
        return "INCONCLUSIVE", "placeholder"
    return "PASS", "trusted"

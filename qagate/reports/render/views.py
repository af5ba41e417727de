"""What the sections of ``report.html`` show, without markup: values grouped, named and drawn."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from qagate.evaluators.statistics.betting import DECISIVE
from qagate.evaluators.statistics.count_table import RATINGS
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate, Interval
from qagate.reports.render import words, worst_first
from qagate.reports.run.evidence import AuditStep, AuditTrail, ConfusionCell
from qagate.reports.run.json_data import inner
from qagate.reports.run.report import Report, SliceSummary

_SOURCES = (
    "file",
    "data_sha256",
    "prompt",
    "rubric",
    "pass_bar",
)  # these columns come first


def _numbers(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def sections(report: Report) -> dict[str, object]:
    """Return what the templates need in addition to the report, by name."""
    records = {record.key: record for record in report.records}
    changes = report.comparison.changes if report.comparison else ()
    rated = (one for one in report.slices if "correct" in one.measures)
    return {
        "gates": worst_first.gates(report),
        "records": records,
        "flips": {
            "broke": [
                (lost.record, lost.change) for lost in worst_first.lost_answers(report)
            ],
            "fixed": [
                (records[one.key], one) for one in changes if one.flip == "fixed"
            ],
        },
        "judged_rate": {one.name: one.measures["correct"].value for one in rated},
        "trend": _trend(report),
        **_origin(report),
    }


def fixed(value: float | None) -> str:
    """Return a share or a rating to three decimals, as all of its table have them."""
    known = value is not None and math.isfinite(value)
    return f"{round(value or 0.0, 3) + 0.0:.3f}" if known else "undefined"


def _trend(report: Report) -> dict[str, object] | None:
    if not report.trend:
        return None
    heads = [
        f"{point.name} ({point.model}, {point.started[:10]})" for point in report.trend
    ]
    rows = []
    for part in report.slices:
        measure, now = next(iter(words.headline(part).items()), ("", UNDEFINED))
        before = [point.slices.get(part.name) for point in report.trend]
        if any(before):
            found = [
                (one.estimate, one.changed) if one else (None, ()) for one in before
            ]
            figures = [*found, (now, ())]
            marks = trend_marks([estimate or UNDEFINED for estimate, _ in figures])
            named = [
                (head, *one) for head, one in zip([*heads, "now"], figures, strict=True)
            ]
            rows.append(
                {
                    "name": part.name,
                    "measure": measure,
                    "marks": marks,
                    "figures": named,
                }
            )
    return {"heads": [*heads, "Now"], "rows": rows}


def trend_marks(estimates: Sequence[Estimate]) -> list[tuple[float, ...]]:
    """Return x, y and the interval's ends of each estimate with a value, in a box of 100 by 30."""
    spans = {
        place: (one.value, *(one.interval or (one.value, one.value)))
        for place, one in enumerate(estimates)
        if one.value is not None
    }
    ends = [end for span in spans.values() for end in span]
    bottom, height = (
        min(ends, default=0.0),
        max(ends, default=0.0) - min(ends, default=0.0),
    )
    step = 90 / max(1, len(estimates) - 1)
    return [
        (round(5 + step * place, 1), *(round(27 - 24 * (y - bottom) / (height or 1.0), 1)
                                       for y in span))
        for place, span in spans.items()
    ]  # fmt: skip


def _origin(report: Report) -> dict[str, object]:
    """Return the provenance; that of the slices as a table, in an order that survives a file."""
    slices = inner(report.provenance, "slices")
    if not slices:
        return {"sources": None, "provenance": report.provenance}
    unset: Any = (None, "", [], ())
    known = {str(name): {key: str(one) for key, one in inner(slices, name).items()
                         if one not in unset} for name in sorted(slices)}  # fmt: skip
    rest = {name: part for name, part in report.provenance.items() if name != "slices"}
    names = {name for part in known.values() for name in part}
    columns = (
        *(name for name in _SOURCES if name in names),
        *sorted(names.difference(_SOURCES)),
    )
    rows = [
        (name, [(key, part.get(key, "–")) for key in columns])
        for name, part in known.items()
    ]
    return {"sources": {"columns": columns, "rows": rows}, "provenance": rest}


def segments(part: SliceSummary) -> list[tuple[str, str, int]]:
    """Return tone, word and count of a slice's right, silent, wrong, ungraded and unasked items."""
    counts, silent_word = part.counts, part.kind.silent
    silent = min(counts.failed, part.labels.get(silent_word, 0)) if silent_word else 0
    right, wrong = part.kind.outcome_words
    return [
        ("right", right, counts.passed),
        ("silent", silent_word.lower().replace("_", " "), silent),
        ("wrong", wrong, counts.failed - silent),
        ("ungraded", "ungraded", counts.error + counts.missing),
        ("stopped", "stopped", counts.stopped),
    ]


def matrix(
    confusion: Iterable[ConfusionCell],
) -> tuple[list[str], dict[str, list[tuple[str, int]]]]:
    """Return the columns (grades) and, for each label, its counts with their columns."""
    counts = {(cell.label, cell.grade): cell.count for cell in confusion}

    def by_number(label: str) -> tuple[int, str]:
        return int(label) if label.isdecimal() else 0, label

    columns = sorted({grade for _, grade in counts}, key=by_number)
    labels = sorted({label for label, _ in counts}, key=by_number)
    return columns, {
        label: [(column, counts.get((label, column), 0)) for column in columns]
        for label in labels
    }


HISTOGRAM_WIDTH = 210.0
"""In units of the SVG, as the three below."""
HISTOGRAM_HEIGHT = 60.0
COLUMN_GAP = 3.0
WIDEST_COLUMN = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """One value of a distribution."""

    text: str
    count: int
    tone: str
    """``right`` or ``wrong``: whether items with this value pass."""
    size: float
    """What the height shows: a count, or a share."""
    interval: Interval | None = None
    """Of the share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One bar of a histogram: places from the left, heights above the axis."""

    text: str
    count: int
    tone: str
    x: float
    width: float
    height: float
    ends: tuple[float, float] | None

    @property
    def middle(self) -> float:
        """Where its figures stand."""
        return round(self.x + self.width / 2, 2)

    @property
    def top(self) -> float:
        """The height of all that is drawn."""
        if self.ends is None:
            return self.height
        return max(self.height, self.ends[1])


def histogram(bins: Sequence[Bin], largest: float = 0.0) -> list[Column]:
    """Return the bars of a distribution; ``largest`` is what several ones are drawn against."""
    step = HISTOGRAM_WIDTH / max(1, len(bins))
    width = round(min(WIDEST_COLUMN, step - COLUMN_GAP), 2)
    largest = largest or max((bin_.size for bin_ in bins), default=0.0) or 1.0

    def height_of(size: float) -> float:
        return round(HISTOGRAM_HEIGHT * size / largest, 2)

    columns = []
    for place, bin_ in enumerate(bins):
        ends = None
        if bin_.interval is not None:
            low, high = bin_.interval
            ends = (height_of(low), height_of(high))
        columns.append(
            Column(
                text=bin_.text,
                count=bin_.count,
                tone=bin_.tone,
                x=round(step * place + (step - width) / 2, 2),
                width=width,
                height=height_of(bin_.size),
                ends=ends,
            )
        )
    return columns


def rating_bins(labels: Mapping[str, int], bar: int | None) -> list[Bin]:
    """Return how often each rating from 1 to 10 was given, by its text."""
    bins = []
    for text in RATINGS:
        count = labels.get(text, 0)
        passes = bar is None or int(text) >= bar
        tone = "right" if passes else "wrong"
        bins.append(Bin(text=text, count=count, tone=tone, size=count))
    return bins


CHART_WIDTH = 100.0
"""In units of the SVG, as the two below."""
CHART_TOP = 4.0
CHART_BOTTOM = 84.0
LOWEST_POWER = -2.0
"""Evidence below 1/100 is drawn at the bottom: such a bet is as good as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceChart:
    """How people's verdicts added up, pair by pair: heights, and lines of points (x, y)."""

    start: float
    """The height of evidence 1, with which each line begins."""
    enough: float
    """The height of evidence that decides."""
    passing: list[tuple[float, float]]
    """The evidence for PASS."""
    failing: list[tuple[float, float]]
    """The evidence for FAIL."""


def growth(trail: AuditTrail) -> EvidenceChart:
    """Return how the evidence for PASS and for FAIL grew with each pair.

    Evidence is the capital of a bet, drawn by powers of ten. It starts at 1 and decides at
    DECISIVE. See ``evaluators/statistics/betting.py``.
    """
    enough_power = math.log10(DECISIVE)
    top_power = enough_power
    pairs_looked_at = 1
    for step in trail.steps:
        top_power = max(top_power, step.passing, step.failing)
        pairs_looked_at = max(pairs_looked_at, step.looked)

    def x_of(step: AuditStep) -> float:
        return round(CHART_WIDTH * step.looked / pairs_looked_at, 2)

    def y_of(power: float) -> float:
        above_bottom = max(power, LOWEST_POWER) - LOWEST_POWER
        height = (CHART_BOTTOM - CHART_TOP) * above_bottom / (top_power - LOWEST_POWER)
        return round(CHART_BOTTOM - height, 2)

    return EvidenceChart(
        start=y_of(0.0),
        enough=y_of(enough_power),
        passing=[(x_of(step), y_of(step.passing)) for step in trail.steps],
        failing=[(x_of(step), y_of(step.failing)) for step in trail.steps],
    )


def draw(
    estimate: Estimate,
    start: float,
    end: float,
    bars: Sequence[float | None] = (),
    bounds: tuple[float | None, float | None] = (None, None),
) -> SimpleNamespace:
    """Return the picture of an estimate on an axis: positions from 0 to 100, None where undefined.

    ``low`` and ``high`` are the ends of the 95 % interval; the effect of ungraded items lies
    between the ``bounds``, worst and best; ``bars`` are thresholds; ``zero`` lies inside the axis.
    """

    def place(value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        return round(100 * min(1.0, max(0.0, (value - start) / (end - start))), 2)

    value, low, high, worst, best = map(place, (*_numbers(estimate), *bounds))
    return SimpleNamespace(
        start=start, end=end, value=value, low=low, high=high, worst=worst, best=best,
        bars=tuple(_known(map(place, bars))), zero=place(0.0) if start < 0 else None,
    )  # fmt: skip


def reach_of(estimates: Iterable[Estimate]) -> float:
    """Return how far from zero an axis must go that these differences share."""
    return _reach(_known(number for one in estimates for number in _numbers(one)))


def _reach(numbers: Iterable[float]) -> float:
    return 1.1 * max(map(abs, numbers), default=0.0) or 1.0


def _known(numbers: Iterable[float | None]) -> list[float]:
    return [x for x in numbers if x is not None and math.isfinite(x)]

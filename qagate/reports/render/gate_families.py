"""All gates as the page shows them: those on one thing together, a row a language, with a reason.

Each row has the old model's value, the new one's, the picture and a sentence. The record's own
text stands one click below.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.metrics import USAGE
from qagate.reports.render import measure_words, worst_first
from qagate.reports.render.language_rows import LanguageRow, rows_of
from qagate.reports.render.measure_words import percent, percents
from qagate.reports.render.names import Names
from qagate.reports.render.pictures import Axis, Picture, Tick, draw
from qagate.reports.render.sentence import why_open
from qagate.reports.run.report import GateResult, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """A gate in one language, or in one language of a pool that fails by it."""

    row: LanguageRow
    old: str
    new: str
    picture: Picture
    why: str
    record: str
    """The record's own text."""
    link: str
    """The address of the answers behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateFamily:
    """The gates on one thing."""

    title: str
    limit: str
    rows: Sequence[GateRow]
    ticks: Sequence[Tick]


def gate_families(report: Report) -> list[GateFamily]:
    """Return all gates, worst first, those on one thing with one limit together."""
    names = Names.of(report)
    families: dict[tuple[object, ...], list[GateResult]] = {}
    for gate in worst_first.gates(report):
        threshold = gate.threshold
        key = (
            threshold.measure,
            threshold.of,
            threshold.min,
            threshold.max,
            threshold.evidence,
            threshold.fail,
            gate.anchored,
        )
        families.setdefault(key, []).append(gate)
    return [_family(report, names, gates) for gates in families.values()]


def _family(report: Report, names: Names, gates: Sequence[GateResult]) -> GateFamily:
    rows = [row for gate in gates for row in rows_of(report, gate, names)]
    axis = Axis.of(rows)
    threshold = gates[0].threshold
    return GateFamily(
        title=_title(threshold),
        limit=_limit(threshold, anchored=gates[0].anchored),
        rows=[_gate_row(report, row, axis) for row in rows],
        ticks=axis.ticks(rows),
    )


def _gate_row(report: Report, row: LanguageRow, axis: Axis) -> GateRow:
    threshold = row.gate.threshold
    dataset, _, language = row.slice.partition(":")
    link = f"#items?dataset={dataset}"
    if language != "*":
        link += f"&language={language}"
    if threshold.paired:
        link += "&flip=broke"
    return GateRow(
        row=row,
        old=_value(threshold, row.old),
        new=_value(threshold, row.new),
        picture=draw(row, axis),
        why=why(report, row),
        record=f"{row.gate.slice} {row.gate.name}: {row.gate.reason}",
        link=link,
    )


def _value(threshold: Threshold, value: float | None) -> str:
    if value is None:
        return "–"
    return measure_words.figures(threshold, value)[0]


def _title(threshold: Threshold) -> str:
    measure = threshold.of if threshold.paired else threshold.measure
    name = measure_words.noun(measure)
    if measure in USAGE:
        name = USAGE[measure].title
    name = name[:1].upper() + name[1:]
    if not threshold.paired:
        return name
    if measure_words.falls(threshold):
        return f"{name} lost" if not threshold.of else f"{name}, fewer than before"
    return f"{name}, more than before"


def _limit(threshold: Threshold, *, anchored: bool) -> str:
    if threshold.paired:
        (limit,) = measure_words.figures(threshold, threshold.max or 0.0)
        against = "the anchor" if anchored else "the old model"
        share = " of the questions" if measure_words.is_share(threshold) else ""
        if threshold.relative:
            limit, share = percent(threshold.max or 0.0), " of the old value"
        return f"against {against}; at most {limit}{share}"
    bounds = []
    if threshold.min is not None:
        bounds.append(f"at least {measure_words.figures(threshold, threshold.min)[0]}")
    if threshold.max is not None:
        bounds.append(f"at most {measure_words.figures(threshold, threshold.max)[0]}")
    if threshold.evidence == "confident":
        bounds.append("by the whole range that it may have")
    return ", ".join(bounds)


def why(report: Report, row: LanguageRow) -> str:
    """Return why a gate ended as it did, in a sentence or two."""
    if row.state == "INCONCLUSIVE":
        return why_open(report, row.gate)
    threshold = row.gate.threshold
    if not threshold.paired:
        return _why_bar(row)
    if measure_words.falls(threshold) and not threshold.of:
        return f"{_counts(report, row)}{_why_loss(row)}"
    return _why_change(row)


def _counts(report: Report, row: LanguageRow) -> str:
    compared = report.since_anchor if row.gate.anchored else report.comparison
    for part in compared.slices if compared else ():
        if part.name == row.slice:
            counts = (
                f"Lost {part.broke:,}, won {part.fixed:,}, of {part.difference.n:,}."
            )
            return f"{counts} "
    return ""


def _why_loss(row: LanguageRow) -> str:
    if row.band is None:
        return ""
    low, high = row.band
    limit = row.gate.threshold.max or 0.0
    if row.state == "PASS":
        if low >= 0:
            return "None are lost at worst."
        return f"At worst {percent(-low)} are lost."
    if row.gate.threshold.fail == "zero":
        return f"Even at best {percent(-high)} are lost."
    at_best, allowed = percents(-high, limit)
    return f"Even at best {at_best} are lost; at most {allowed} may be."


def _why_change(row: LanguageRow) -> str:
    threshold = row.gate.threshold
    if row.band is None or threshold.relative:
        return ""
    sign = -1 if measure_words.falls(threshold) else 1
    ends = sorted(sign * end for end in row.band)
    limit = threshold.max or 0.0
    at_best, at_worst, allowed = measure_words.figures(
        threshold, max(0.0, ends[0]), max(0.0, ends[1]), limit
    )
    verb = "fell" if measure_words.falls(threshold) else "rose"
    if row.state == "PASS":
        return f"At worst they {verb} by {at_worst}; {allowed} may be."
    return f"Even at best they {verb} by {at_best}; {allowed} may be."


def _why_bar(row: LanguageRow) -> str:
    gate = row.gate
    threshold = gate.threshold
    value = gate.estimate.value
    if value is None:
        return ""
    bar = threshold.min
    if bar is None or (threshold.max is not None and value > threshold.max):
        bar = threshold.max or 0.0
    word = "needed" if bar == threshold.min else "allowed"
    is_count = measure_words.is_share(threshold) and gate.estimate.n
    if is_count and threshold.measure in measure_words.RIGHT:
        right = round(value * gate.estimate.n)
        needed = bar * gate.estimate.n
        return f"{right:,} of {gate.estimate.n:,} right; {_whole(needed)} {word}."
    shown, limit = measure_words.figures(threshold, value, bar)
    return f"{shown}, of {gate.estimate.n:,}; {limit} {word}."


def _whole(number: float) -> str:
    """Return a number of answers that suffices, rounded up."""
    return f"{-int(-number // 1):,}"

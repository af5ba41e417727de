"""The words and numbers that every report for people shares."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import PurePath

from qagate.evaluators.metric_specs import (
    CHECK_PREFIX,
    DEEPEVAL_METRICS,
    GEVAL_PREFIX,
)
from qagate.evaluators.output import plural
from qagate.evaluators.runtime.budget import part_of_cost
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate, number
from qagate.evaluators.statistics.metrics import (
    DROP,
    RISE,
    USAGE,
    floor_ends,
    headlines,
)
from qagate.evaluators.text import first_of
from qagate.reports.run.evidence import Calibration, Change, UsageShift
from qagate.reports.run.json_data import inner, mappings
from qagate.reports.run.provenance import named_model
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, Report, SliceSummary

Shown = Callable[[float | None], str]  # writes a figure, for instance to three decimals
_PROMOTED = (
    "reports",
    "baselines",
)  # as in qagate/reports/run/baselines.py, which needs this module
WEAKNESSES_SHOWN = 10
"""Kinds of error named of each language; run.json has all."""


def model(report: Report) -> str:
    """Return the model's name; that of recorded answers with their file, where they have one."""
    return named_model(report.model, report.provenance)


def run_name(path: str) -> str:
    """Return the name of a promoted run, the path of any other."""
    *_, reports, baselines, name = ("", "", "", *PurePath(path).parts)
    return name if (reports, baselines) == _PROMOTED else path


def origin(run: Mapping[str, object]) -> str:
    """Return how many verdicts of a ``run`` block, or its shards, rest on earlier replies."""

    def whole(value: object) -> int:
        return value if isinstance(value, int) and 0 <= value < 10**9 else 0

    known = [inner(one, "replies") for one in mappings(run.get("shards")) or [run]]
    names = ("verdicts", "earlier", "imported", "answers", "judgements")
    verdicts, earlier, imported, *both = (
        sum(whole(one.get(n)) for one in known) for n in names
    )
    if not earlier:
        return ""
    brought = f", {imported:,} of them imported" if imported else ""
    share = f"{earlier:,} of {plural(verdicts, 'verdict')}"
    which = (
        f" ({plural(both[0], 'answer')}, {plural(both[1], 'judgement')})"
        if any(both)
        else ""
    )
    return f"{share} rest on replies of earlier runs{which}{brought}"


def date(started: object) -> str:
    """Return the minute of an ISO time stamp, ``unknown`` where there is none."""
    return str(started)[:16].replace("T", " ") + " UTC" if started else "unknown"


def interval(estimate: Estimate, shown: Shown = number) -> str:
    """Return a 95 % interval as ``low to high``, or a dash where there is none."""
    known = estimate.interval
    return " to ".join(map(shown, known)) if known else "–"


def weaknesses(calibration: Calibration) -> str:
    """Return what a judge gets wrong by kind of error, worst first; empty where nothing is."""
    wrong = [
        f"{weakness.kind} {weakness.wrong} of {weakness.answers}"
        for weakness in calibration.weaknesses
        if weakness.wrong
    ]
    return first_of(wrong, WEAKNESSES_SHOWN)


def headline(part: SliceSummary) -> dict[str, Estimate]:
    """Return the measures that sum a slice up, its kind's main one first."""
    return {
        one: part.measures[one] for one in headlines(part.kind) if one in part.measures
    }


def extras(part: SliceSummary) -> dict[str, Estimate]:
    """Return what checks by code, such as BLEU and ROUGE-L, and deepeval's metrics measured."""
    return {
        name: estimate
        for name, estimate in part.measures.items()
        if name in DEEPEVAL_METRICS or name.startswith((CHECK_PREFIX, GEVAL_PREFIX))
    }


def bounds(gate: GateResult, shown: Shown = number) -> str:
    """Return a gate's measure with every ungraded item against it, and with every one for it."""
    return " to ".join(dict.fromkeys((shown(gate.worst), shown(gate.best))))


def cost(report: Report) -> str:
    """Return what the run cost, or the part of it that is known."""
    if report.cost is not None:
        return f"${report.cost:,.4f}" if math.isfinite(report.cost) else "unknown"
    known = [
        one.get("known_cost")
        for one in mappings(report.run.get("shards")) or [report.run]
    ]
    known += [
        one.cost for one in report.judging.calibrations if one.source != "records"
    ]
    return part_of_cost(
        sum(one for one in known if isinstance(one, (int, float)) and one > 0)
    )


def bar(gate: GateResult) -> str:
    """Return a gate's threshold in words; for ``drop`` and ``rise`` the margin to the baseline."""
    sides = {DROP: "not below -", RISE: "not above +"}
    if gate.threshold.paired and gate.threshold.max is not None:
        return f"{sides[gate.threshold.measure]}{gate.threshold.amount(gate.threshold.max)}"
    return gate.bar


def floor(name: str, lowest: float) -> str:
    """Return what the floor of a judge asks of a metric, for instance ``≥ 0.8``."""
    low, high = floor_ends(name, lowest)
    return f"≥ {low:g}" if high is None else f"within ±{high:g}"


def ungraded(report: Report) -> list[tuple[str, str, int]]:
    """Return how often each kind of error or gap occurred: (outcome, kind, items), most first."""
    lacking = (one for one in report.records if not one.is_graded)
    kinds = Counter((one.outcome, one.error_kind or "unknown") for one in lacking)
    return [
        (*pair, count)
        for pair, count in sorted(kinds.items(), key=lambda e: (-e[1], e[0]))
    ]


def mark(one: Record | Change, without: str = "not graded") -> str:
    """Return a grade, ``rating 7``, or what to say ``without`` either."""
    return f"rating {one.rating}" if one.rating is not None else one.grade or without


def signed(estimate: Estimate, shown: Shown = number) -> str:
    """Return a difference with its sign and interval, for instance ``-0.050 [-0.120, +0.020]``."""
    if estimate.value is None:
        return "undefined"
    ends = (estimate.value, *(estimate.interval or ()))
    value, *interval = (f"{'-' if one < 0 else '+'}{shown(abs(one))}" for one in ends)
    return f"{value} [{', '.join(interval)}]" if interval else value


def odds(estimate: Estimate) -> str:
    """Return an odds ratio with its interval; ``∞`` means unbounded."""
    if not estimate.n:
        return "–"
    ends = (estimate.value, estimate.low, estimate.high)
    value, low, high = ("∞" if one is None else f"{one:.2f}" for one in ends)
    return f"{value} [{low}, {high}]"


def p_value(value: float | None) -> str:
    """Return a p-value to three decimals, ``< 0.001``, or a dash where there is none."""
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


USAGE_HEADER = ("Slice", *(row.title for row in USAGE.values()))


def usage_rows(report: Report) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the slices with any figure of what answers took, the one that grew most first.

    Each has two texts a metric: its value and interval, or then and now and the factor between.
    """
    compared = report.comparison.slices if report.comparison else ()
    shifts = {one.name: one.usage for one in compared}
    rows = []
    for part in report.slices:
        moved: Mapping[str, UsageShift] = shifts.get(part.name, {})
        if USAGE.keys() & part.measures.keys():
            cells = [_cell(moved.get(one) or part.measures.get(one)) for one in USAGE]
            factor = max(
                (one.factor.value or 0.0 for one in moved.values()), default=0.0
            )
            rows.append((factor, (part.name, cells)))
    return [row for _, row in sorted(rows, key=lambda pair: -pair[0])]


def _cell(found: Estimate | UsageShift | None) -> tuple[str, str]:
    """Return a cell with numbers to three digits, whole from 100 on: ``1,234``, ``0.00041``."""

    def amount(value: float | None) -> str:
        value = value or 0.0
        if abs(value) >= 100:
            return f"{value:,.0f}"
        return f"{value:.3g}" if abs(value) >= 0.01 else number(value)

    shown = found.factor if isinstance(found, UsageShift) else found or UNDEFINED
    ends = shown.interval
    interval = f"[{', '.join(map(amount, ends))}]" if ends else ""
    if isinstance(found, UsageShift):
        low, high = ends or (1.0, 1.0)
        mark = "▲ " if low > 1 else ("▼ " if high < 1 else "")
        moved = f"{amount(found.before.value)} → {amount(found.now.value)}"
        return moved, f"{mark}×{amount(shown.value)} {interval}".strip()
    return ("–", "") if shown.value is None else (amount(shown.value), interval)


def usage_notes(report: Report) -> str:
    """Return what the figures of the table are."""
    said = (
        "of the model's own answers, judge apart; seconds of the calls as they were first made, "
        "without waits for limits and retries"
    )
    paired = "then → now over the items known in both runs, × now / then with its 95 % interval"
    return f"{said}; {paired}" if report.comparison else said


def tokens(report: Report) -> str:
    """Return how many tokens the run's replies took, and how many a provider's cache gave."""
    cached = sum(record.cached_tokens for record in report.records)
    of_cache = f", of them {cached:,} read from a provider's cache" if cached else ""
    return f"{report.tokens:,}{of_cache}"

"""What answers took, as a table: seconds, tokens and USD an item by slice, then and now."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluators.statistics.intervals import Estimate, number
from evaluators.statistics.metrics import USAGE
from reports.run.report import Report
from reports.run.usage_summary import UsageShift

HEADER = ("Slice", *(row.title for row in USAGE.values()))
UNKNOWN = "–"
Cell = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One slice: a cell for each metric, and the largest factor by which one of them grew.

    A cell is a value, or that of then and now, and behind it the factor and the interval.
    """

    name: str
    cells: tuple[Cell, ...]
    factor: float


def usage_rows(report: Report) -> list[UsageRow]:
    """Return a row for each slice of which anything is known, what grew most first."""
    compared = report.comparison.slices if report.comparison else ()
    shifts = {one.name: one.usage for one in compared}
    rows = [
        _row(part.name, part.measures, shifts.get(part.name, {}))
        for part in report.slices
        if USAGE.keys() & part.measures.keys()
    ]
    return sorted(rows, key=lambda row: -row.factor)


def _row(name: str, measures: Mapping[str, Estimate], shifts: Mapping[str, UsageShift]) -> UsageRow:
    factors = [one.factor.value or 0.0 for one in shifts.values()]
    cells = tuple(
        _shift(shifts[one]) if one in shifts else _estimate(measures.get(one)) for one in USAGE
    )
    return UsageRow(name=name, cells=cells, factor=max(factors, default=0.0))


def _estimate(found: Estimate | None) -> Cell:
    if found is None or found.value is None:
        return UNKNOWN, ""
    return amount(found.value), _interval(found)


def _shift(found: UsageShift) -> Cell:
    """Return before, now and the factor, marked where its whole interval lies off 1."""
    before, now = (amount(one.value or 0.0) for one in (found.before, found.now))
    factor, ends = found.factor, found.factor.interval
    mark = "" if ends is None else "▲ " if ends[0] > 1 else "▼ " if ends[1] < 1 else ""
    return f"{before} → {now}", f"{mark}×{amount(factor.value or 0.0)} {_interval(factor)}".strip()


def _interval(found: Estimate) -> str:
    return f"[{', '.join(map(amount, found.interval))}]" if found.interval else ""


def amount(value: float) -> str:
    """Return a number to three digits, whole from 100 on: ``1,234``, ``8.12``, ``0.00041``."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.01 else number(value)


def notes(report: Report) -> Iterator[str]:
    """Yield what the figures of the table are."""
    yield (
        "of the model's own answers, judge apart; seconds of the calls as they were first made, "
        "without waits for limits and retries"
    )
    if report.comparison:
        yield "then → now over the items known in both runs, × now / then with its 95 % interval"


def tokens(report: Report) -> str:
    """Return how many tokens the run's replies took, and how many a provider's cache gave."""
    cached = sum(record.cached_tokens for record in report.records)
    of_cache = f", of them {cached:,} read from a provider's cache" if cached else ""
    return f"{report.tokens:,}{of_cache}"

"""A ledger's stock in words."""

from datetime import UTC, datetime
from pathlib import Path

from evaluators.ledger.upkeep import LedgerStats, Total
from evaluators.models.secrets import one_line
from evaluators.output import aligned_table, plural
from evaluators.runtime.budget import money

_HEAD = ("model", "calls", "tokens in", "tokens out", "call time", "cost", "first", "last")


def stock_lines(path: Path, size: int, stock: LedgerStats) -> list[str]:
    """Return what a ledger holds as lines: a summary, then a row for each model."""
    calls = sum(total.calls for total in stock.models.values())
    head = f"{path}: {calls:,} replies, {size / 1e6:,.1f} MB"
    table = [_HEAD, *(_row(spec, total) for spec, total in stock.models.items())]
    lines = [head, *(aligned_table(table) if stock.models else ())]
    if stock.damaged:
        rows = plural(stock.damaged, "damaged row")
        lines.append(f"{rows}: the next run sets aside what it needs")
    if stock.set_aside:
        rows = plural(stock.set_aside, "damaged row")
        lines.append(f"{rows} set aside by earlier runs")
    if any(total.cost is None for total in stock.models.values()):
        lines.append("cost unknown: neither models.yaml nor genai-prices has a price")
    return lines


def _row(spec: str, total: Total) -> tuple[str, ...]:
    return (
        one_line(spec),
        f"{total.calls:,}",
        f"{total.input_tokens:,}",
        f"{total.output_tokens:,}",
        f"{total.seconds:,.0f} s",
        "unknown" if total.cost is None else money(total.cost),
        _day(total.first),
        _day(total.last),
    )


def _day(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        return "no date"

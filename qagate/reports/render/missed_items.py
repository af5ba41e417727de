"""Missed items in full, where a run has so few of them that somebody looks into them.

Who runs one case from an editor, or ``-k`` some, wants to see what was asked and said.
In a run of thousands the page has that.
"""

from collections.abc import Iterator

from qagate.reports.render import console
from qagate.reports.run import clean
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report

MOST_ITEMS = 10
"""A run that asked more items shows none of them."""
MOST_CHARACTERS = 1_000
"""Of one text; the page has the rest."""
NAME_WIDTH = 12
INDENT = "    "


def missed_items(report: Report) -> Iterator[str]:
    """Yield each item that did not pass, with question, expected answer, answer and reason.

    Nothing where more than ``MOST_ITEMS`` were asked.
    """
    asked = [
        record
        for record in report.records
        if record.outcome not in ("missing", "stopped")
    ]
    if len(asked) > MOST_ITEMS:
        return
    for record in asked:
        if record.outcome != "passed":
            yield from _item(record)


def _item(record: Record) -> Iterator[str]:
    result = record.result or "ERROR"
    yield f"{'missed':<{NAME_WIDTH}} {clean.line(record.key)}: {clean.line(result)}"
    texts = {
        "question": record.question,
        "expected": " | ".join(record.golds) or record.expected,
        "answer": record.answer or "",
        "reason": record.reason or record.error,
    }
    for name, text in texts.items():
        if not text:
            continue
        shown = clean.cut(clean.line(text), MOST_CHARACTERS)
        # The name is part of the wrapped text, so that a line keeps to the terminal's width.
        first, *more = console.wrapped(f"{name:<{NAME_WIDTH - 4}} {shown}", INDENT)
        yield first
        yield from more

"""What a judge is weak at: how often it is wrong by kind of error.

Labelled answers may say in a column ``error`` why they are hard to judge: the year is off
by one, the gold stands inside a longer answer, the answer asks back. A judge that agrees
with most labels may still miss one kind every time.
"""

from collections import Counter
from collections.abc import Iterable

from qagate.cases.dataset import Slice
from qagate.evaluators.kinds import is_right
from qagate.evaluators.statistics.intervals import wilson
from qagate.evaluators.text import one_line
from qagate.reports.run.evidence import Weakness
from qagate.reports.run.record import Record

COLUMN = "error"
MAX_KINDS = 100
"""Kept of each language: a column that holds a text of its own for each row names no kinds."""
MAX_CHARACTERS = 60
"""Of a kind's name."""


def weaknesses(slice_: Slice, records: Iterable[Record]) -> tuple[Weakness, ...]:
    """Return the kinds of labelled answers, those first that the judge gets wrong most.

    The order is that of the lower ends of Wilson's intervals, so that 1 wrong of 1 does not
    stand before 9 of 10. Answers without a grade or without a label are not counted.
    """
    answers: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for record in records:
        kind = _kind_of(record)
        if not kind or not record.is_graded or record.label is None:
            continue
        answers[kind] += 1
        if _is_misjudged(slice_, record):
            wrong[kind] += 1
    found = [
        Weakness(kind=kind, wrong=wrong[kind], answers=count)
        for kind, count in answers.items()
    ]
    return tuple(sorted(found, key=_place)[:MAX_KINDS])


def _kind_of(record: Record) -> str:
    value = record.metadata.get(COLUMN)
    return "" if value is None else one_line(str(value).strip(), MAX_CHARACTERS)


def _is_misjudged(slice_: Slice, record: Record) -> bool:
    """Return whether a grade is not the label, or a rating on the other side of the bar."""
    label = record.label or ""
    if record.rating is None or not label.isdigit():
        return record.outcome == "failed"
    passes = is_right(record.result, slice_.passing, slice_.pass_bar)
    return passes != is_right(label, slice_.passing, slice_.pass_bar)


def _place(weakness: Weakness) -> tuple[float, int, str]:
    interval = wilson(weakness.wrong, weakness.answers)
    lower_end = interval[0] if interval else 0.0
    return -lower_end, -weakness.answers, weakness.kind

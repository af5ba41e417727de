"""The bars, histograms and confusion matrices of ``report.html``: numbers, and no markup."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.evidence import ConfusionCell
from reports.report import Counts, SliceSummary

_TONES = {"passed": "right", "failed": "wrong", "error": "ungraded", "missing": "ungraded"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of a bar that is 100 wide; ``tone`` names its colour and pattern."""

    tone: str
    word: str
    count: int
    start: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a histogram, whose height is at most 60."""

    tone: str
    label: str
    count: int
    height: float


def states(counts: Counts) -> list[Segment]:
    """Return a bar of end states."""
    return _bar(
        (_TONES[state], state, getattr(counts, state))
        for state in ("passed", "failed", "error", "missing")
    )


def segments(part: SliceSummary) -> list[Segment]:
    """Return a slice's bar: right, silent, wrong and ungraded items."""
    counts, labels = part.counts, part.labels
    silent_word = {"graded": "NOT_ATTEMPTED", "yes_no": "UNANSWERED"}.get(part.kind, "")
    silent = min(counts.failed, labels.get(silent_word, 0)) if silent_word else 0
    right, wrong = {
        "graded": ("correct", "incorrect"),
        "judged": ("agree", "disagree"),
        "rated": ("pass", "below the bar"),
    }.get(part.kind, ("right", "wrong"))
    return _bar(
        (
            ("right", right, counts.passed),
            ("silent", silent_word.lower().replace("_", " "), silent),
            ("wrong", wrong, counts.failed - silent),
            ("ungraded", "ungraded", counts.error + counts.missing),
        )
    )


def _bar(parts: Iterable[tuple[str, str, int]]) -> list[Segment]:
    known = list(parts)
    whole = sum(count for _, _, count in known) or 1
    found, start = [], 0
    for tone, word, count in known:
        place, width = round(100 * start / whole, 2), round(100 * count / whole, 2)
        found.append(Segment(tone=tone, word=word, count=count, start=place, width=width))
        start += count
    return found


def histogram(part: SliceSummary, bar: int | None) -> list[Column]:
    """Return how often each rating was given, from 1 to 10; ``bar`` is the lowest that passes."""
    counts = [part.labels.get(str(rating), 0) for rating in range(1, 11)]
    highest = max(counts) or 1
    return [
        Column(
            tone="wrong" if bar is not None and rating < bar else "right",
            label=str(rating),
            count=count,
            height=round(60 * count / highest, 2),
        )
        for rating, count in enumerate(counts, 1)
    ]


def matrix(
    confusion: Mapping[tuple[str, str], int],
) -> tuple[list[str], dict[str, list[tuple[str, int]]]]:
    """Return the columns (grades) and, for each label, its counts with their columns."""
    columns = sorted({grade for _, grade in confusion}, key=_by_number)
    labels = sorted({label for label, _ in confusion}, key=_by_number)
    return columns, {
        label: [(column, confusion.get((label, column), 0)) for column in columns]
        for label in labels
    }


def _by_number(label: str) -> tuple[int, str]:
    return int(label) if label.isdecimal() else 0, label


def cells(confusion: Iterable[ConfusionCell]) -> dict[tuple[str, str], int]:
    """Return the cells of a confusion as ``matrix`` takes them."""
    return {(cell.label, cell.grade): cell.count for cell in confusion}

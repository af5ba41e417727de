"""What a check looks at, and what it finds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from cases.dataset import Slice
from cases.loading import load_rows
from cases.rows import id_of
from evaluators.core import Case

LOOKED_AT = 10_000
"""Characters of each text that are checked: what is odd in a text shows by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at."""

    severity: Literal["error", "warning"]
    row: int
    """Which record of the file, from 1; 0 is the file as a whole."""
    message: str
    check: str = ""
    file: Path = Path()

    @property
    def line(self) -> str:
        """The finding as one line of text."""
        where = f"{self.file}: row {self.row}" if self.row else f"{self.file}"
        return f"{where}: {self.check}: {self.severity}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A slice with its items, their texts cut after ``LOOKED_AT`` characters."""

    slice_: Slice
    cases: tuple[Case, ...]
    ids: Mapping[int, str | None] = field(default_factory=dict)
    """The id that the file gives each row, None where it gives none."""


def read_subject(slice_: Slice) -> Subject:
    """Return a slice with its items. Raises UsageError where the file cannot be loaded."""
    loaded = load_rows(slice_)
    cut = (
        replace(
            case,
            question=case.question[:LOOKED_AT],
            context=case.context[:LOOKED_AT],
            golds=tuple(gold[:LOOKED_AT] for gold in case.golds),
            recorded=case.recorded and case.recorded[:LOOKED_AT],
        )
        for _, case in loaded
    )
    ids = {case.row: id_of(row) for row, case in loaded}
    return Subject(slice_=slice_, cases=tuple(cut), ids=ids)


def error(row: int, message: str) -> Finding:
    """Return a finding about something surely wrong."""
    return Finding(severity="error", row=row, message=message)


def warning(row: int, message: str) -> Finding:
    """Return a finding about something that may be meant."""
    return Finding(severity="warning", row=row, message=message)


def asked(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of each question, and of each context that is not empty."""
    for case in subject.cases:
        yield case.row, "question", case.question
        if case.context:
            yield case.row, "context", case.context


def written(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of all that people wrote: questions, contexts and golds."""
    yield from asked(subject)
    yield from ((case.row, "gold", gold) for case in subject.cases for gold in case.golds)


def rows_listed(rows: Iterable[int], most: int = 5) -> str:
    """Return row numbers for a message, such as ``3, 8 and 12 more``."""
    numbers = list(rows)
    text = ", ".join(map(str, numbers[:most]))
    return text if len(numbers) <= most else f"{text} and {len(numbers) - most} more"

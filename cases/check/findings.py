"""What a check looks at and what it says."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal

from cases.dataset import Slice
from cases.loading import load_rows
from cases.rows import ItemRow
from evaluators.core import Case

Severity = Literal["error", "warning"]
LOOKED_AT = 10_000  # characters of a text: what is odd in one shows by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at. ``row`` counts the file's records from 1; 0 is the file as a whole."""

    severity: Severity
    file: Path
    row: int
    check: str
    message: str

    def place(self) -> tuple[str, int, str, str]:
        """Return what findings are sorted by."""
        return str(self.file), self.row, self.check, self.message

    @property
    def line(self) -> str:
        """The finding as one line of text."""
        where = f"{self.file}: row {self.row}" if self.row else f"{self.file}"
        return f"{where}: {self.check}: {self.severity}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a check says. ``file`` is None where it is about the file that was looked at."""

    severity: Severity
    row: int
    message: str
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSettings:
    """What ``check:`` in a ``dataset.yaml`` says.

    Facts are stale ``stale_after`` months after their ``as_of``; ``waived`` maps the names of
    checks that are not to be told to the reasons why.
    """

    stale_after: int = 24
    waived: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A slice with its items: ``rows`` as they stand in the file, ``cases`` as they are used.

    ``today`` is the day of the check; on the first day of time nothing is stale.
    """

    slice_: Slice
    rows: tuple[ItemRow, ...]
    cases: tuple[Case, ...]
    settings: CheckSettings = field(default_factory=CheckSettings)
    today: date = date.min


def read_subject(slice_: Slice, settings: CheckSettings | None = None) -> Subject:
    """Return a slice with its items, of each text the first 10,000 characters.

    Raises UsageError where the file cannot be loaded.
    """
    loaded = load_rows(slice_)
    rows, cases = zip(*((_cut_row(row), _cut_case(case)) for row, case in loaded), strict=True)
    own, today = settings or CheckSettings(), datetime.now(tz=UTC).date()
    return Subject(slice_=slice_, rows=rows, cases=cases, settings=own, today=today)


def _cut(value: object) -> object:
    return value[:LOOKED_AT] if isinstance(value, str) and len(value) > LOOKED_AT else value


def _cut_row(row: ItemRow) -> ItemRow:
    values = {name: _cut(value) for name, value in row.record.values.items()}
    return replace(row, record=replace(row.record, values=values))


def _cut_case(case: Case) -> Case:
    return replace(
        case,
        question=case.question[:LOOKED_AT],
        context=case.context[:LOOKED_AT],
        golds=tuple(gold[:LOOKED_AT] for gold in case.golds),
        recorded=case.recorded and case.recorded[:LOOKED_AT],
    )


def error(row: int, message: str, file: Path | None = None) -> Note:
    """Return a note about something surely wrong."""
    return Note(severity="error", row=row, message=message, file=file)


def warning(row: int, message: str, file: Path | None = None) -> Note:
    """Return a note about something that may be meant."""
    return Note(severity="warning", row=row, message=message, file=file)


def asked(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of each question and of each context that is not empty."""
    for case in subject.cases:
        yield case.row, "question", case.question
        if case.context:
            yield case.row, "context", case.context


def written(subject: Subject) -> Iterator[tuple[int, str, str]]:
    """Yield row, name and text of all that people wrote: asked texts and golds."""
    yield from asked(subject)
    yield from ((case.row, "gold", gold) for case in subject.cases for gold in case.golds)


def rows_listed(rows: Iterable[int], most: int = 5) -> str:
    """Return row numbers for a message, such as ``3, 8 and 12 more``."""
    numbers = list(rows)
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"

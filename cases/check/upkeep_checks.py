"""Checks of whether items can be trusted tomorrow: their sources, their dates, the law cited."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import cast

from cases.check.field_checks import has_field
from cases.check.findings import Note, Subject, error, rows_listed, warning
from evaluators.core import Case
from evaluators.reading import Map, load_yaml
from evaluators.settings import Settings
from evaluators.text import shown

BUNDLED = Path(__file__).parents[1]
ACTS = Path(__file__).parent / "amended_acts.yaml"
AS_OF = "as_of"
SOURCES = ("source", "sources", "url", "urls", "qa_id", "celex", "legal_act")
"""Fields that say where an item can be looked up."""


def missing_sources(subject: Subject) -> Iterator[Note]:
    """Yield the rows that do not say where they can be looked up.

    An error where other rows of the file do, or where the file is bundled with this suite;
    otherwise one warning for the file. Judged rows say who gave their labels.
    """
    if not subject.slice_.kind.answered:
        return
    bare = [case.row for case in subject.cases if not any(has_field(case, one) for one in SOURCES)]
    if not bare:
        return
    if len(bare) < len(subject.cases):
        message = f"{len(bare)} of {len(subject.cases)} rows have no source ({rows_listed(bare)})"
        yield error(bare[0], f"{message}; say where each can be looked up")
    else:
        own = subject.slice_.path.resolve().is_relative_to(BUNDLED)
        message = "no row says where it can be looked up; add a column 'source'"
        yield (error if own else warning)(0, message)


def stale_items(subject: Subject) -> Iterator[Note]:
    """Yield the dates in ``as_of`` that are none or to come, and one note on all that are old."""
    old: dict[int, date] = {}
    for case in subject.cases:
        text = str(case.metadata.get(AS_OF) or "").strip()
        day = _day(text)
        if text and day is None:
            yield error(case.row, f"{AS_OF!r} is {shown(text)}; write a date as 2026-01-31")
        elif day and date.min < subject.today < day:
            yield error(case.row, f"{AS_OF!r} is {text}, a day to come; write when it was checked")
        elif day and _months(day, subject.today) >= subject.settings.stale_after:
            old[case.row] = day
    if old:
        message = (
            f"{len(old)} of {len(subject.cases)} rows were last looked up {min(old.values())} or "
            f"later, {subject.settings.stale_after} months ago or more ({rows_listed(old)}); look "
            f"them up again and renew {AS_OF!r}"
        )
        yield warning(0, message)


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None


def _months(day: date, today: date) -> int:
    """Return how many whole months lie between two days; negative for one to come."""
    months = 12 * (today.year - day.year) + today.month - day.month
    return months - (today.day < day.day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Amendment:
    """A change of a legal act, ``since`` a day: how the act and what changed it are cited."""

    act: str
    cited: tuple[str, ...]
    by: str
    since: date


@cache
def amendments() -> Sequence[Amendment]:
    """Return the changes of legal acts that are known. Raises UsageError for a broken list."""
    entries = cast("Sequence[Map]", load_yaml(ACTS))
    settings = (Settings(ACTS, "", entry) for entry in entries)
    return [
        Amendment(
            act=one.text("act"),
            cited=one.words("cited"),
            by=one.text("by"),
            since=date.fromisoformat(one.text("since")),
        )
        for one in settings
    ]


def amended_acts(subject: Subject) -> Iterator[Note]:
    """Yield the legal acts that items cite as they were before a change that they do not name.

    When an item was looked up is its ``as_of``; one without is left to the check of fields.
    """
    if not subject.slice_.kind.rated:
        return
    for change in amendments():
        rows = [case.row for case in subject.cases if _is_before(case, change)]
        if rows:
            message = (
                f"{len(rows)} of {len(subject.cases)} rows cite {change.act} "
                f"({', '.join(change.cited)}), changed by {change.by} since {change.since}, and "
                f"were not looked up after that ({rows_listed(rows)}); check them, then renew "
                f"{AS_OF!r}"
            )
            yield warning(rows[0], message)


def _is_before(case: Case, change: Amendment) -> bool:
    fields = map(str, case.metadata.values())
    text = " ".join([case.question, case.context, *case.golds, *fields])
    day = _day(str(case.metadata.get(AS_OF) or "").strip())
    cites = any(name in text for name in change.cited) and change.by not in text
    return cites and day is not None and day < change.since

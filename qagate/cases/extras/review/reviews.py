"""What was issued to reviewers, what they sent back, and what they agree on."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict, TypeVar

from qagate.cases.extras.review.page import write_sheet
from qagate.cases.extras.review.sheet import RATE, Sheet, name_fault
from qagate.cases.tables import read_csv
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import unguarded, write_texts
from qagate.evaluators.reading import read_text
from qagate.evaluators.statistics.agreement import Agreement, agreement_among
from qagate.evaluators.text import encodable, listed, shown
from qagate.evaluators.typed_data import read_file

ISSUED = "sheet.json"
"""The file of what was asked; it stays with whoever gives the sheets out."""
LONGEST_NAME = 100
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one reviewer answered to one question about an item."""

    item: str
    """The item's id, or ``ITEM#CRITERION``."""
    reviewer: str = ""
    verdict: str
    """The verdict or rating; empty if there is only a comment."""
    edited: str = ""
    """The corrected text; empty if it was left as it is."""
    comment: str = ""
    source: str = ""
    """File and row."""
    column: str = "verdict"
    """Where the verdict stands in the row."""
    sheet: str = ""
    """The digest of the form's sheet; empty in a CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedItem:
    """What a sheet asked about one item, and what the judge said of it."""

    choices: tuple[str, ...]
    """The verdicts or ratings that a person may give."""
    judged: str = ""
    """The judge's own verdict; empty if it gave none, or a rating was asked for."""
    upgrades: tuple[str, ...] = ()
    """Choices that would make an answer pass that the judge failed."""
    about: tuple[str, ...] = ()
    """What was asked, in words, line by line."""
    criterion: str = ""
    """The criterion's name, if a rating was asked for; the next three are empty without it."""
    question: str = ""
    part: str = ""
    """The answer's slice."""
    run: str = ""
    """Which run gave the answer."""


Asked = Mapping[str, IssuedItem]
"""Questions by id."""


class Issued(TypedDict):
    """All sheets issued in one folder: their digests, and their questions by id."""

    sheets: list[str]
    items: Asked


def issue(sheet: Sheet, asked: Asked, folder: Path) -> tuple[Path, ...]:
    """Write a sheet and add it to ``sheet.json``; return three paths. Raises UsageError."""
    path = folder / ISSUED
    old = load_issued(path) if path.exists() else Issued(sheets=[], items={})
    before: dict[str, object] = {}
    for one in (*old["items"].values(), *asked.values()):
        form = one.run, one.question, one.choices
        if one.criterion and before.setdefault(one.criterion, form) != form:
            what = f"criterion {shown(one.criterion)} was asked otherwise, or of another run"
            raise UsageError(
                f"{path}: {what}, in a form issued there; give the new form another folder (--to)"
            )
    needed = ("choices", "judged", "upgrades")
    value = {
        "sheets": list(dict.fromkeys((*old["sheets"], sheet.digest))),
        "items": {
            item: {
                name: value
                for name, value in asdict(one).items()
                if value or name in needed
            }
            for item, one in {**old["items"], **asked}.items()
        },
    }
    files = write_sheet(sheet, folder)
    write_texts([(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")])
    return *files, path


def load_issued(path: Path) -> Issued:
    """Return what ``issue`` wrote. Raises UsageError if there is no such file, or another."""
    if not path.exists():
        what = "no sheet was issued there; name the form's own sheet.json as --sheet"
        raise UsageError(f"{path}: {what}")
    issued: Issued = read_file(
        path, Issued, "not what `qagate review` writes; write the form again"
    )
    return issued


def read_issued(path: Path, files: Iterable[Path]) -> tuple[Asked, tuple[Review, ...]]:
    """Return what ``path`` asked, and the reviews in files. UsageError names all it did not ask."""
    issued, rows, what = load_issued(path), [*read_rows(files)], ""
    items = issued["items"]
    if others := dict.fromkeys(one.item for one in rows if one.item not in items):
        what = f"verdicts on items that no sheet asked: {listed(others)}"
    if sheets := sorted({one.sheet for one in rows} - {"", *issued["sheets"]}):
        what = f"made from sheets that were not issued: {listed(sheets)}"
    if what:
        advice = "nothing is taken; name the form's own sheet.json as --sheet"
        raise UsageError(f"{path}: {what}; {advice}")
    return items, check_rows(rows, {id_: one.choices for id_, one in items.items()})


def read_rows(paths: Iterable[Path]) -> Iterator[Review]:
    """Yield what stands in files, unchecked, without rows that were left empty."""
    readers = {".json": _from_json, ".csv": _from_csv}
    for path in paths:
        read = readers.get(path.suffix.lower())
        if read is None:
            what = (
                "a review ends in .json (saved by the form) or .csv; give one of these"
            )
            raise UsageError(f"{path}: {what}")
        for row in read(path):
            review = replace(
                row,
                item=row.item.strip(),
                verdict=row.verdict.strip(),
                edited=row.edited.strip(),
                comment=row.comment.strip(),
                reviewer=row.reviewer.strip(),
            )
            if review.verdict or review.edited or review.comment:
                yield review


def _from_csv(path: Path) -> Iterator[Review]:
    """Yield one row for each question that a line answers; the first has the line's comment."""
    table = read_csv(path, read_text(path))
    id_ending = {}  # by the column of each question
    mark = RATE.strip()
    for column, name in table.names.items():
        if name.startswith(mark):
            criterion = unguarded(name.removeprefix(mark).strip())
            id_ending[column] = f"#{criterion}"
    if not id_ending:
        id_ending = {"verdict": ""}
    for column in ("item", *id_ending, "edited", "comment", "reviewer"):
        if column not in table.names:
            what = f"{path}:1: no column {column!r}; keep the columns of the sheet as they are"
            raise UsageError(what)
    for record in table.records:
        cells = {name: unguarded(str(value)) for name, value in record.values.items()}
        answered = [column for column in id_ending if cells[column].strip()]
        if not answered:
            answered = list(id_ending)[:1]
        for column in answered:
            is_first = column == answered[0]
            yield Review(
                item=cells["item"].strip() + id_ending[column],
                verdict=cells[column],
                column=table.names[column],
                edited=cells["edited"] if is_first else "",
                comment=cells["comment"] if is_first else "",
                reviewer=cells["reviewer"],
                source=f"{path}:{record.line}: row {record.row}",
            )


class _Saved(TypedDict):
    sheet: str
    reviewer: str
    rows: list[Review]


def _from_json(path: Path) -> Iterator[Review]:
    saved: _Saved = read_file(path, _Saved, "give the file as the form saved it")
    for number, row in enumerate(saved["rows"], 1):
        yield replace(
            row,
            source=f"{path}: row {number}",
            reviewer=saved["reviewer"],
            sheet=saved["sheet"],
        )


def check_rows(
    rows: Iterable[Review], allowed: Mapping[str, Sequence[str]]
) -> tuple[Review, ...]:
    """Return rows as reviews, each once, with the answers in ``allowed`` (``Sheet.allowed``).

    Raises UsageError naming file, row and column, also for a reviewer who contradicts himself.
    """
    found: dict[tuple[str, str], Review] = {}
    for row in rows:
        choices = {one.casefold(): one for one in allowed.get(row.item, ())}
        if fault := next(_faults(row, choices), None):
            raise UsageError("{}, column {!r}: {}".format(row.source, *fault))
        name = " ".join(unicodedata.normalize("NFC", row.reviewer).split())
        review = replace(
            row, reviewer=name, verdict=choices.get(row.verdict.casefold(), "")
        )
        before = found.setdefault((row.item, name.casefold()), review)
        if (before.verdict, before.edited) != (review.verdict, review.edited):
            raise UsageError(
                f"{row.source}: {shown(name)} said otherwise of item {shown(row.item)} "
                f"in {before.source}; keep one of the two"
            )
    return tuple(found.values())


def _faults(row: Review, choices: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the columns of a row that cannot be taken, each with the reason."""
    typed = {
        "item": row.item,
        "verdict": row.verdict,
        "edited": row.edited,
        "comment": row.comment,
        "reviewer": row.reviewer,
    }
    for column, text in typed.items():
        if not encodable(text) or "\0" in text:
            yield column, "holds half a character or a NUL; type it again"
    if not row.reviewer:
        yield "reviewer", "empty; who gave this verdict?"
    if len(row.reviewer) > LONGEST_NAME:
        yield "reviewer", f"a name of 1 to {LONGEST_NAME} characters is needed"
    if fault := name_fault(row.reviewer):
        yield "reviewer", fault
    if not choices:
        yield "item", f"{shown(row.item)} is no item of the sheet; was it changed?"
    if row.verdict and row.verdict.casefold() not in choices:
        there = ", ".join(choices.values())
        yield row.column, f"{shown(row.verdict)} is no choice; there are {there}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of one item: a conflict if there are reviews and no verdict."""

    verdict: str
    """What is agreed, empty for nothing."""
    edited: str
    """The text that replaces the old one; empty if nobody changed it."""
    reviews: Sequence[Review]
    """Those that gave a verdict, by reviewer."""
    agreed: Sequence[Review]
    """Those that gave the agreed verdict."""


def settle(items: Iterable[str], reviews: Iterable[Review]) -> dict[str, Settled]:
    """Return the outcome of each item, in the order of ``items``.

    A verdict holds if more than half of those who gave one gave it: two who differ are a conflict,
    which a third decides by agreeing with one of them. Edits are settled in the same way among
    those who gave that verdict and changed the text; edits without a majority are a conflict too.
    """
    given: dict[str, list[Review]] = defaultdict(list)
    for review in sorted(reviews, key=lambda one: one.reviewer.casefold()):
        if review.verdict:
            given[review.item].append(review)
    found = {}
    for item in items:
        said = given[item]
        verdict = _majority([one.verdict for one in said])
        edits = [one.edited for one in said if one.verdict == verdict and one.edited]
        edited = _majority(edits)
        verdict = verdict if edited or not edits else ""
        agreed = [one for one in said if one.verdict == verdict]
        found[item] = Settled(
            verdict=verdict, edited=edited, reviews=said, agreed=agreed
        )
    return found


def _majority(values: Sequence[str]) -> str:
    first = Counter(values).most_common(1)
    return first[0][0] if first and 2 * first[0][1] > len(values) else ""


def agreement(
    reviews: Iterable[Review], groups: Mapping[str, str] | None = None
) -> tuple[Agreement, ...]:
    """Return the agreement on all items (group ``""``), then on each of ``groups`` by name."""
    given: dict[str, dict[str, str]] = defaultdict(dict)
    for review in reviews:
        if review.verdict:
            given[review.item][review.reviewer] = review.verdict
    group_of = {item: (groups or {}).get(item, "") for item in given}
    found = []
    for group in sorted({"", *group_of.values()}):
        units = [one for item, one in given.items() if group in ("", group_of[item])]
        found.append(agreement_among(units, group=group))
    return tuple(found)

"""What reviewers sent back, the form's JSON or the CSV twin, as one row a verdict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.csv_reader import read_csv
from cases.problems import encodable, hint, shown
from cases.tables import Record, Table
from cases.tools.review.table import BETWEEN
from cases.tools.review.visible import from_cell
from evaluators import strict_json
from evaluators.core import UsageError
from evaluators.files import read_text

Allowed = Mapping[str, Sequence[str]]
_KEYS = frozenset({"sheet", "reviewer", "rows"})
_ROW = ("item", "verdict", "edited", "comment")
_COLUMNS = (*_ROW, "reviewer")
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one reviewer said of one item; ``verdict`` is empty where there is only a comment.

    ``edited`` is empty where the text was left as it is. ``source`` is the file and row.
    """

    item: str
    reviewer: str
    verdict: str
    edited: str = ""
    comment: str = ""
    source: str = ""


def read_sheets(paths: Iterable[Path], allowed: Allowed | None = None) -> tuple[Review, ...]:
    """Return the reviews in these files; rows left empty are none.

    ``allowed`` (``Sheet.allowed``) names the verdicts of each item; a CSV names its own. The same
    review in two files counts once. Raises UsageError naming file, row and column for whatever
    cannot be read, an item or verdict that is not allowed, or a reviewer who contradicts himself.
    """
    found: dict[tuple[str, str], Review] = {}
    for path in paths:
        for review in _file(path, allowed):
            place = (review.item, review.reviewer.casefold())
            before = found.setdefault(place, review)
            if _said(before) != _said(review):
                msg = (
                    f"{review.source}: {shown(review.reviewer)} said otherwise of item "
                    f"{shown(review.item)} in {before.source}; keep one of the two"
                )
                raise UsageError(msg)
    return tuple(found.values())


def _said(review: Review) -> tuple[str, str]:
    return review.verdict, review.edited


def _file(path: Path, allowed: Allowed | None) -> list[Review]:
    readers = {".json": _from_json, ".csv": _from_csv}
    read = readers.get(path.suffix.lower())
    if read is None:
        msg = f"{path}: a review ends in .json (saved by the form) or .csv; give one of these"
        raise UsageError(msg)
    return [one for one in read(path, allowed) if one.verdict or one.edited or one.comment]


def _from_csv(path: Path, allowed: Allowed | None) -> list[Review]:
    table = read_csv(path, read_text(path))
    for column in _COLUMNS:
        if column not in table.names:
            msg = f"{path}:1: no column {column!r}; keep the columns of the sheet as they are"
            raise UsageError(msg)
    return [_csv_row(table, record, allowed) for record in table.records]


def _csv_row(table: Table, record: Record, allowed: Allowed | None) -> Review:
    cells = {name: from_cell(str(value)).strip() for name, value in record.values.items()}
    own = tuple(filter(None, cells.get("choices", "").split(BETWEEN.strip())))
    source = f"{table.path}:{record.line}: row {record.row}"
    values = {name: cells[name] for name in _COLUMNS}
    given = any(values[name] for name in ("verdict", "edited", "comment"))
    if given and not values["reviewer"]:
        raise table.problem(record, "reviewer", "empty; who gave this verdict?")
    return _review(values, source, allowed, tuple(map(str.strip, own))) if given else _NOTHING


_NOTHING = Review(item="", reviewer="", verdict="")


def _from_json(path: Path, allowed: Allowed | None) -> list[Review]:
    try:
        value = strict_json.loads(read_text(path))
    except ValueError as error:
        msg = f"{path}: {error}; give the file that the form saved"
        raise UsageError(msg) from None
    if not isinstance(value, dict) or value.keys() != _KEYS or not isinstance(value["rows"], list):
        msg = f"{path}: not what the form saves (sheet, reviewer, rows); give that file"
        raise UsageError(msg)
    reviews = []
    for number, row in enumerate(value["rows"], 1):
        source = f"{path}: row {number}"
        if not isinstance(row, dict) or row.keys() != set(_ROW):
            msg = f"{source}: not {', '.join(_ROW)}; give the file as the form saved it"
            raise UsageError(msg)
        values = {**row, "reviewer": value["reviewer"]}
        for column, text in values.items():
            if not isinstance(text, str):
                msg = f"{source}, column {column!r}: text is needed, not {shown(text)}"
                raise UsageError(msg)
        reviews.append(_review({name: values[name].strip() for name in values}, source, allowed))
    return reviews


def _review(
    values: Mapping[str, str], source: str, allowed: Allowed | None, own: Sequence[str] = ()
) -> Review:
    for column, text in values.items():
        if not encodable(text) or "\0" in text:
            msg = f"{source}, column {column!r}: holds half a character or a NUL; type it again"
            raise UsageError(msg)
    if not values["reviewer"] or len(values["reviewer"]) > LONGEST_NAME:
        msg = f"{source}, column 'reviewer': a name of 1 to {LONGEST_NAME} characters is needed"
        raise UsageError(msg)
    item = values["item"]
    if allowed is not None and item not in allowed:
        msg = f"{source}, column 'item': {shown(item)} is no item of the sheet; was it changed?"
        raise UsageError(msg)
    known = own if allowed is None else allowed[item]
    return Review(
        item=item,
        reviewer=" ".join(values["reviewer"].split()),
        verdict=_verdict(values["verdict"], known, source),
        edited=values["edited"],
        comment=values["comment"],
        source=source,
    )


def _verdict(given: str, known: Sequence[str], source: str) -> str:
    """Return the verdict as the sheet spells it: people write it in any letter case."""
    spelled = {one.casefold(): one for one in known}
    if not given or not known:
        return given
    if given.casefold() not in spelled:
        msg = f"{source}, column 'verdict': {shown(given)} is no choice; {hint(given, known)}"
        raise UsageError(msg)
    return spelled[given.casefold()]

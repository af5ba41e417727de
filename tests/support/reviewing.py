"""Sheets, reviews and files that reviewers send back, for tests of the review."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.review.reviews import Review
from cases.review.sheet import Field, Sheet, SheetItem, choice_set


def sheet_item(id_: str, **fields: object) -> SheetItem:
    """Return one item with a question, to be given a verdict of the set ``question``."""
    values: dict[str, object] = {
        "language": "be",
        "fields": (Field(title="question", text=f"Ці {id_}?"),),
        "choices": "question",
        "edit": f"Ці {id_}?",
        **fields,
    }
    return SheetItem(id=id_, **values)  # type: ignore[arg-type]


def sheet(*items: SheetItem, **fields: object) -> Sheet:
    """Return a sheet of these items with every choice set they may need."""
    names = sorted({item.choices for item in items} | {"question"})
    values: dict[str, object] = {"name": "sheet", **fields}
    choices = {name: choice_set(name) for name in names}
    return Sheet(items=items, choices=choices, **values)  # type: ignore[arg-type]


def review(item: str, reviewer: str, verdict: str, edited: str = "", comment: str = "") -> Review:
    """Return one review."""
    return Review(item=item, reviewer=reviewer, verdict=verdict, edited=edited, comment=comment)


def saved(
    path: Path,
    reviewer: str,
    verdicts: Mapping[str, str],
    edits: Mapping[str, str] | None = None,
    sheet: str = "x",
) -> Path:
    """Write what the form with this digest saves for these verdicts, by item."""
    rows: Sequence[Mapping[str, str]] = [
        {"item": item, "verdict": verdict, "edited": (edits or {}).get(item, ""), "comment": ""}
        for item, verdict in verdicts.items()
    ]
    value = {"sheet": sheet, "reviewer": reviewer, "rows": rows}
    path.write_text(json.dumps(value), encoding="utf-8")
    return path

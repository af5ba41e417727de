"""Sheets, reviews and files that reviewers send back, for tests of the review."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from cases.review.reviews import Review
from cases.review.sheet import Field, Sheet, SheetItem, verdict_question


def sheet_item(id_: str, kind: str = "question", **fields: object) -> SheetItem:
    """Return one item, to be given a verdict of a choice set."""
    values: dict[str, object] = {
        "language": "be",
        "fields": (Field(title="question", text=f"Ці {id_}?"),),
        "questions": (verdict_question(kind),),
        "edit": f"Ці {id_}?",
        **fields,
    }
    return SheetItem(id=id_, **values)  # type: ignore[arg-type]


def sheet(*items: SheetItem, name: str = "sheet", reviewer: str = "") -> Sheet:
    """Return a sheet of these items."""
    return Sheet(items=items, name=name, reviewer=reviewer)


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

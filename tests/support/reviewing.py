"""Sheets, reviews and files that reviewers send back, for tests of the review."""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qagate.cases.adjudication_files import load_adjudications
from qagate.cases.extras.review.reviews import Review, check_rows, read_rows
from qagate.cases.extras.review.sheet import Sheet, SheetItem, verdict_question
from qagate.command import main
from qagate.evaluators.adjudications import Adjudication

Row = dict[str, str]
Fill = Callable[[int, Row], Row]
"""What a person puts into the row of this number: verdict, edited, comment, reviewer."""


def sheet_rows(path: Path) -> list[Row]:
    return list(
        csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline=""))
    )


def as_csv(path: Path, rows: Iterable[Mapping[str, object]]) -> Path:
    rows = list(rows)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def filled_in(sheet: Path, fill: Fill, back: Path) -> Path:
    return as_csv(back, [row | fill(n, row) for n, row in enumerate(sheet_rows(sheet))])


def sheet_item(id_: str, kind: str = "question", **fields: object) -> SheetItem:
    """Return one item, to be given a verdict of a choice set."""
    values: dict[str, object] = {
        "language": "be",
        "fields": {"question": f"Ці {id_}?"},
        "questions": (verdict_question(kind),),
        "edit": f"Ці {id_}?",
        **fields,
    }
    return SheetItem(id=id_, **values)  # type: ignore[arg-type]


def sheet(*items: SheetItem, name: str = "sheet", reviewer: str = "") -> Sheet:
    return Sheet(items=items, name=name, reviewer=reviewer)


def review(
    item: str, reviewer: str, verdict: str, edited: str = "", comment: str = ""
) -> Review:
    return Review(
        item=item, reviewer=reviewer, verdict=verdict, edited=edited, comment=comment
    )


def read_sheets(paths: Iterable[Path], asked: Sheet) -> tuple[Review, ...]:
    return check_rows(read_rows(paths), asked.allowed)


def saved(
    path: Path,
    reviewer: str,
    verdicts: Mapping[str, str],
    edits: Mapping[str, str] | None = None,
    sheet: str = "x",
) -> Path:
    """Write what the form with this digest saves for these verdicts, by item."""
    rows: Sequence[Mapping[str, str]] = [
        {
            "item": item,
            "verdict": verdict,
            "edited": (edits or {}).get(item, ""),
            "comment": "",
        }
        for item, verdict in verdicts.items()
    ]
    value = {"sheet": sheet, "reviewer": reviewer, "rows": rows}
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


class IssuedRun:
    """A run whose form was issued with some words, and what comes back."""

    def __init__(self, folder: Path, run: Path, *words: str) -> None:
        self.folder, self.run, self.words = folder, run, words
        self.to = folder / "adjudications.yaml" if "--criteria" not in words else None
        assert self.issue() == 0
        self.issued: Any = json.loads((run / "sheet.json").read_text("utf-8"))
        self.items = list(self.issued["items"])

    def issue(self, *more: str) -> int:
        return main(["review", str(self.run), *self.words, *more])

    def back(self, name: str, verdicts: Mapping[str, str], sheet: str = "") -> Path:
        path = self.folder / f"{name.strip()}.json"
        return saved(path, name, verdicts, sheet=sheet or self.issued["sheets"][-1])

    def accept(
        self, *files: Path, to: Path | None = None, more: Sequence[str] = ()
    ) -> int:
        words = [
            "--accept",
            *map(str, files),
            "--sheet",
            str(self.run / "sheet.json"),
            *more,
        ]
        to = to or self.to
        return main(["review", *words, *(["--to", str(to)] if to else [])])

    @property
    def kept(self) -> list[Adjudication]:
        return list(load_adjudications(self.folder / "adjudications.yaml").values())

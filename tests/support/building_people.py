"""People who fill in the builder's sheets, and the way from sampled to validated beneath them."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.building import models, rows
from tests.support.building_site import Site, site
from tests.support.loopback import Answer, Seen, reply

Row = dict[str, str]
Fill = Callable[[int, Row], Row]
"""What a person puts into the row of this number: verdict, edited, comment, reviewer."""

TWO = ("--reviewer", "Ганна", "--reviewer", "Янка", "--overlap", "0.5")


def sheet_rows(path: Path) -> list[Row]:
    """Return the rows of a CSV twin."""
    text = path.read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def sent_back(sheet: Path, back: Path, fill: Fill) -> Path:
    """Fill a sheet in and return the file: a CSV, or the JSON that the form saves."""
    filled = [row | fill(number, row) for number, row in enumerate(sheet_rows(sheet))]
    if back.suffix == ".json":
        keys = ("item", "verdict", "edited", "comment")
        said = [{key: row[key] for key in keys} for row in filled]
        saved = {"sheet": "x", "reviewer": filled[0]["reviewer"], "rows": said}
        back.write_text(json.dumps(saved, ensure_ascii=False), encoding="utf-8")
        return back
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(filled[0]))
    writer.writeheader()
    writer.writerows(filled)
    back.write_text(out.getvalue(), encoding="utf-8")
    return back


def other(answer: str) -> str:
    return "NO" if answer == "YES" else "YES"


def agreeing(answers: Mapping[str, str]) -> Fill:
    """Return a person who finds every answer right."""
    return lambda _, row: {"verdict": answers[row["item"]]}


@contextmanager
def reviewed_site(path: Path, count: int = 10) -> Iterator[Site]:
    """Make everything up to the sheets of two reviewers."""
    with site(path, models(), articles=40) as made:
        assert made.all(count=count) == 0
        assert made.build("review", *TWO) == 0
        yield made


def answers_of(folder: Path) -> dict[str, str]:
    """Return the answer that was generated for each item."""
    return {row["id"]: row["answer"] for row in rows(folder, "review")}


def back_from_both(made: Site, fill: Fill) -> list[str]:
    """Return the files of both reviewers, one a CSV and one a form's JSON."""
    sheets = made.path / "work" / "review"
    files = [
        sent_back(sheets / "be-1.csv", made.path / "back1.csv", fill),
        sent_back(sheets / "be-2.csv", made.path / "back2.json", fill),
    ]
    return [str(file) for file in files]


def every_third_wrong(words: Mapping[str, str]) -> Callable[[Seen], Answer]:
    """Return a model under test that says yes, no, and now and then neither."""

    def handle(seen: Seen) -> Answer:
        turn = sum(seen.prompt.encode()) % 7
        said = "Не ведаю, ці так." if turn == 0 else words["YES" if turn % 2 else "NO"]
        return reply(seen, text=said)

    return handle

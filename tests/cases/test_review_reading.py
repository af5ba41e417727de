"""Claims about what comes back from reviewers: read exactly, or refused by file, row and column."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.tools.review.reviews import Review, read_sheets
from cases.tools.review.sheet import Sheet
from cases.tools.review.sheet_files import csv_twin
from evaluators.core import UsageError
from tests.support.reviewing import saved, sheet, sheet_item

SHEET = sheet(sheet_item("a"), sheet_item("b"), sheet_item("c"))


def filled(path: Path, rows: dict[str, dict[str, str]], of: Sheet = SHEET) -> Path:
    """Fill in the CSV twin as a spreadsheet would save it."""
    lines = list(csv.DictReader(io.StringIO(csv_twin(of)[1:], newline="")))
    for line in lines:
        line.update(rows.get(line["item"], {}))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(lines[0]))
    writer.writeheader()
    writer.writerows(lines)
    path.write_text(out.getvalue(), encoding="utf-8-sig")
    return path


def told(reviews: tuple[Review, ...]) -> list[tuple[str, str, str, str, str]]:
    return [(r.item, r.reviewer, r.verdict, r.edited, r.comment) for r in reviews]


def test_the_twin_comes_back_as_it_was_filled_in(tmp_path: Path) -> None:
    """Any letter case, BOM or not; rows left empty say nothing; a guard is taken off."""
    rows = {
        "a": {"verdict": "yes", "reviewer": " Ана  Петрова "},
        "b": {"verdict": "BAD_LANGUAGE", "edited": "'=Ці?", "comment": "so", "reviewer": "Іван"},
    }
    path = filled(tmp_path / "sheet.csv", rows)
    expected = [
        ("a", "Ана Петрова", "YES", "", ""),
        ("b", "Іван", "BAD_LANGUAGE", "=Ці?", "so"),
    ]
    assert told(read_sheets([path])) == expected
    assert told(read_sheets([path], SHEET.allowed)) == expected


def test_form_and_twin_of_one_person_count_once(tmp_path: Path) -> None:
    """Sent twice is said once; the comment alone is kept as well."""
    twin = filled(tmp_path / "a.csv", {"a": {"verdict": "NO", "reviewer": "ана"}})
    form = saved(tmp_path / "a.json", "Ана", {"a": "NO", "b": "YES"})
    assert told(read_sheets([form, twin], SHEET.allowed)) == [
        ("a", "Ана", "NO", "", ""),
        ("b", "Ана", "YES", "", ""),
    ]
    other = saved(tmp_path / "b.json", "Ана", {"a": "YES"})
    with pytest.raises(UsageError, match=r"a\.csv:2: row 1: 'ана' said otherwise .*b\.json"):
        read_sheets([other, twin])


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"verdict": "YES"}, r"sheet\.csv:2: row 1, column 'reviewer': empty; who gave"),
        ({"verdict": "YEP", "reviewer": "A"}, "row 1, column 'verdict': 'YEP' is no choice; did"),
        ({"verdict": "YES", "reviewer": "A" * 101}, "column 'reviewer': a name of 1 to 100"),
        ({"item": "zz", "verdict": "YES", "reviewer": "A"}, "column 'item': 'zz' is no item"),
    ],
)
def test_a_wrong_cell_is_named(cells: dict[str, str], message: str, tmp_path: Path) -> None:
    """By file, row and column."""
    path = filled(tmp_path / "sheet.csv", {"a": cells})
    with pytest.raises(UsageError, match=message):
        read_sheets([path], SHEET.allowed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not what the form saves"),
        ('{"sheet": "x", "reviewer": "A", "rows": 1}', "not what the form saves"),
        ('{"sheet": "x", "reviewer": "A", "rows": [1]}', "row 1: not item, verdict"),
        ('{"sheet": "x", "reviewer": "A", "rows": [{"item": "a"}]}', "row 1: not item, verdict"),
    ],
)
def test_a_broken_export_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Nothing is guessed."""
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_sheets([path])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"verdict": 1}, "row 1, column 'verdict': text is needed"),
        ({"comment": "\ud800"}, "row 1, column 'comment': holds half a character"),
        ({"edited": "a\0"}, "row 1, column 'edited': holds half a character or a NUL"),
    ],
)
def test_a_wrong_value_of_an_export_is_named(
    row: dict[str, object], message: str, tmp_path: Path
) -> None:
    """By row and column."""
    path = tmp_path / "x.json"
    values = {"item": "a", "verdict": "YES", "edited": "", "comment": "", **row}
    path.write_text(json.dumps({"sheet": "x", "reviewer": "A", "rows": [values]}))
    with pytest.raises(UsageError, match=message):
        read_sheets([path])


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Another suffix, and a table that lacks a column."""
    with pytest.raises(UsageError, match=r"ends in \.json"):
        read_sheets([tmp_path / "x.xlsx"])
    (tmp_path / "x.csv").write_text("item,verdict\na,YES\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.csv:1: no column 'edited'"):
        read_sheets([tmp_path / "x.csv"])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)


@settings(max_examples=30)
@given(
    verdicts=st.lists(st.sampled_from(("YES", "NO", "UNCLEAR")), min_size=3, max_size=3),
    edits=st.lists(TEXT, min_size=3, max_size=3),
)
def test_both_ways_back_say_the_same(
    verdicts: list[str], edits: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever was typed, the export and the twin read as the same reviews."""
    folder = tmp_path_factory.mktemp("ways")
    given = dict(zip("abc", verdicts, strict=True))
    texts = dict(zip("abc", (edit.strip() for edit in edits), strict=True))
    plain = {item: text for item, text in texts.items() if not text.startswith("'")}
    rows = {
        item: {"verdict": verdict, "edited": plain.get(item, ""), "reviewer": "A"}
        for item, verdict in given.items()
    }
    form = saved(folder / "x.json", "A", given, plain)
    assert told(read_sheets([form])) == told(read_sheets([filled(folder / "x.csv", rows)]))

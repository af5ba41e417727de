"""Readers turn a file into rows and say where a bad one is bad."""

import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.tables import Table, read_csv, read_json, read_jsonl, read_table
from evaluators.core import UsageError

HERE = Path("data.csv")
CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=12)


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def rows(table: Table) -> list[dict[str, object]]:
    return [dict(record.values) for record in table.records]


def refusal(folder: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        read_table(write(folder, name, content))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_columns_are_found_whatever_their_case_and_spaces(tmp_path: Path) -> None:
    """Names are compared without case and outer spaces, and shown as the file spells them.

    A byte order mark is no part of the first name. CR alone ends lines, as in old spreadsheets.
    """
    for text in ("\ufeffquestion,answer\nQ,A\n", "question,answer\rQ,A\rQ2,A2"):
        table = read_table(write(tmp_path, "a.csv", text))
        assert list(table.names) == ["question", "answer"]
        assert rows(table)[0] == {"question": "Q", "answer": "A"}
    assert len(table.records) == 2
    table = read_table(write(tmp_path, "a.csv", " ANSWERS ,Predicted Answers\r\nA,P\r\n"))
    assert rows(table) == [{"answers": "A", "predicted_answers": "P"}]
    assert table.names == {"answers": "ANSWERS", "predicted_answers": "Predicted Answers"}


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_file_of_a_spreadsheet_with_decimal_commas_is_read(tmp_path: Path, mark: str) -> None:
    """Semicolons or tabs in the header separate all rows; a comma is text then."""
    path = tmp_path / "excel.csv"
    rows = [["Question", "Answers"], ["How long, in m?", "1,5"], [f"a{mark}b", 'He said "x"']]
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=mark).writerows(rows)
    found = [list(row.values.values()) for row in read_table(path).records]
    assert found == rows[1:]


def test_rows_and_lines_differ_where_cells_hold_line_breaks(tmp_path: Path) -> None:
    """``row`` counts records, ``line`` the physical line on which a record begins."""
    table = read_table(write(tmp_path, "a.csv", 'q,a\nQ1,"x\ny"\n\nQ2,A2\n'))
    assert [(record.row, record.line) for record in table.records] == [(1, 2), (2, 5)]
    assert table.records[0].values["a"] == "x\ny"


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_csv_round_trip(cells: list[tuple[str, str]]) -> None:
    """What the csv module writes is read back unchanged, line breaks and quotes included."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(["q", "a"])
    writer.writerows(cells)
    table = read_csv(HERE, out.getvalue())
    assert [(row["q"], row["a"]) for row in rows(table)] == cells


def test_json_lines_split_at_line_feeds_alone(tmp_path: Path) -> None:
    """U+2028, U+2029 and U+0085 stand inside values; blank lines and CR are skipped."""
    text = '{"q": "a\u2028b\u2029c\u0085d"}\r\n\r\n{"q": "e"}'
    table = read_table(write(tmp_path, "a.jsonl", text))
    assert [(record.row, record.line) for record in table.records] == [(1, 1), (2, 3)]
    assert table.records[0].values["q"] == "a\u2028b\u2029c\u0085d"


def test_json_list_items_know_their_lines(tmp_path: Path) -> None:
    """Items of a JSON list are counted, and their first lines are known.

    Only real nesting counts as depth, however many brackets a value holds.
    """
    brackets = json.dumps({"q": "[" * 200, "list": [[], {}] * 30})
    assert len(read_table(write(tmp_path, "a.jsonl", brackets)).records) == 1
    table = read_table(write(tmp_path, "a.json", ' [\n{"q": "a"},\n\n {"q":\n"b"} ] \n'))
    assert [(record.row, record.line) for record in table.records] == [(1, 2), (2, 4)]


VALUES = st.recursive(
    st.none() | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_json_round_trip(values: list[object]) -> None:
    """Values are read back unchanged from a list and from lines alike."""
    objects = [{"v": value} for value in values]
    as_list = read_json(HERE, json.dumps(objects, indent=1))
    as_lines = read_jsonl(HERE, "\n".join(json.dumps(item) for item in objects))
    assert rows(as_list) == rows(as_lines) == objects


def test_yaml_values_are_text(tmp_path: Path) -> None:
    """Scalars of a YAML list arrive as they stand in the file."""
    text = "- id: 2024_7108\n  expected: off\n\n- {id: 007, expected: 2024-12-31}\n"
    table = read_table(write(tmp_path, "a.yaml", text))
    assert rows(table) == [
        {"id": "2024_7108", "expected": "off"},
        {"id": "007", "expected": "2024-12-31"},
    ]
    assert [(record.row, record.line) for record in table.records] == [(1, 1), (2, 4)]


@pytest.mark.parametrize("name", ["a.txt", "a.csv.gz", "a.xlsx", "a"])
def test_other_suffixes_are_refused(tmp_path: Path, name: str) -> None:
    """The format is known by the suffix, and the message lists those read; a folder is no file."""
    (tmp_path / "x.jsonl").mkdir()
    with pytest.raises(UsageError, match="not a regular file"):
        read_table(tmp_path / "x.jsonl")
    assert ".csv, .jsonl, .json, .yaml, .yml" in refusal(tmp_path, name, "q,a\nx,y\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=40))
def test_any_bytes_are_rows_or_a_usage_problem(tmp_path: Path, content: bytes) -> None:
    """No file content makes the reader raise anything but a UsageError."""
    for name in ("a.csv", "a.jsonl", "a.json", "a.yaml"):
        try:
            read_table(write(tmp_path, name, content))
        except UsageError:
            continue

"""The CSV files: harmless in a spreadsheet, and letters as the published graders write them."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.review.form import csv_twin
from reports.commands.build import error_sheet
from reports.render import csv_files
from reports.run.record import Record
from reports.run.report import Report
from reports.run.report_folder import GRADED_NAME
from tests.support.hostile import HOSTILE
from tests.support.projects import ROOT
from tests.support.reviewing import sheet, sheet_item
from tests.support.samples import full, part, record, report


def rows(text: str) -> list[list[str]]:
    """Return the rows of a CSV text."""
    return list(csv.reader(io.StringIO(text, newline="")))


def test_results_have_a_row_an_item_and_a_column_a_field() -> None:
    """The byte-order mark lets a spreadsheet see UTF-8."""
    made = full(5)
    text = "".join(csv_files.results(made))
    assert text.startswith("\ufeff")
    header, *items = rows(text[1:])
    assert header == [field.name for field in fields(Record)]
    assert len(items) == len(made.records)
    assert {len(row) for row in items} == {len(header)}


def results_of(text: str) -> str:
    return "".join(csv_files.results(report((record(answer=text, metadata={"note": text}),))))


def letters_of(text: str) -> str:
    (graded_file,) = csv_files.graded(report((record(grade=text),))).values()
    return graded_file


def sheet_of(text: str) -> str:
    return csv_twin(sheet(sheet_item("a", fields={text or "-": text}, edit=text), reviewer=text))


def errors_of(text: str) -> str:
    one = record(question=text, context=text, label="YES", grade="NO", outcome="failed")
    return error_sheet({text: [one]})


WRITERS = (results_of, letters_of, sheet_of, errors_of)
"""Every writer of a CSV file that people open."""
FORMULA = re.compile(r"\s*[=+@＝＋＠－-]")


@pytest.mark.parametrize("write", WRITERS)
@given(text=st.text("a=+@-＝;,\t\n\r \"'\u202e", max_size=12) | st.sampled_from(HOSTILE))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_cell_is_a_formula_whatever_the_separator(
    write: Callable[[str], str], text: str
) -> None:
    """Read with commas, semicolons or tabs, with quotes or without, no cell begins a formula."""
    written = write(text).removeprefix("\ufeff")
    assert all(line.startswith('"') for line in written.splitlines()[:1])
    for separator in ",;\t":
        for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator):
            assert not [cell for cell in row if FORMULA.match(cell)]
    for piece in re.split(r"[;\t\r\n]", written):
        assert not FORMULA.match(piece)


def test_the_writers_are_all() -> None:
    """No other module of the product writes CSV: each goes through ``sheet_lines``."""
    modules = [p for one in ("cases", "evaluators", "reports") for p in (ROOT / one).rglob("*.py")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in modules}
    assert [name for name, text in texts.items() if "csv.writer(" in text] == ["output.py"]
    calls = re.compile(r"spreadsheet_text\(|sheet_lines\(")
    users = {name for name, text in texts.items() if calls.search(text)}
    assert users == {"output.py", "csv_files.py", "form.py", "build.py"}


def test_values_of_all_types_have_a_cell() -> None:
    """None is empty, text is itself, metadata is JSON in one order."""
    item = record(answer=None, score=0.5, metadata={"b": [1], "a": "Изкуство"})
    header, row = rows("".join(csv_files.results(report((item,))))[1:])
    cells = dict(zip(header, row, strict=True))
    assert (cells["answer"], cells["score"], cells["row"]) == ("", "0.5", "1")
    assert cells["metadata"] == '{"a": "Изкуство", "b": [1]}'


def graded(*records: Record) -> dict[str, str]:
    """Return the graded files of a report on these records."""
    return csv_files.graded(report(records))


def test_graded_files_have_letters_by_row() -> None:
    """A, B, C by grade; ERROR for an item that was not graded; repeats do not add lines."""
    files = graded(
        record(3, outcome="failed", grade="NOT_ATTEMPTED"),
        record(2, outcome="failed", grade="INCORRECT"),
        record(1),
        record(1, repeat=2, grade="INCORRECT"),
        record(4, outcome="error", grade=None),
        record(5, outcome="missing", grade="CORRECT"),
    )
    assert {name: rows(text) for name, text in files.items()} == {
        "simpleqa-en-graded.csv": [
            ["Question number", "Classification"],
            *(["1", "A"], ["2", "B"], ["3", "C"], ["4", "ERROR"], ["5", "ERROR"]),
        ]
    }


def test_only_graded_slices_have_letters() -> None:
    """Rated, yes/no and judged slices have no A, B or C."""
    names = set(csv_files.graded(full(3)))
    assert names == {f"simpleqa-{code}-graded.csv" for code in ("en", "bg", "pl", "hu")}


def named(*names: tuple[str, str]) -> Report:
    """Return a report with a graded slice for each dataset and language."""
    items = tuple(record(i, dataset=d, language=c) for i, (d, c) in enumerate(names, 1))
    return report(items, slices=tuple(part("graded", (item,), {"correct": 1.0}) for item in items))


@pytest.mark.parametrize("name", ["../../etc", ".hidden", "a/b\\c", "имя", "", "x" * 300, "-rf"])
def test_file_names_are_safe(name: str) -> None:
    """Names come from the user's options: no path, no hidden file, no other script."""
    (file,) = csv_files.graded(named((name, "en")))
    assert GRADED_NAME.fullmatch(file)
    assert len(file) < 150


def test_file_names_are_unique_on_every_file_system() -> None:
    """Slices whose safe names fall together still have a file each."""
    made = named(("a-b", "c"), ("a", "b-c"), ("A", "B-C"), ("имя", "en"), ("име", "en"))
    files = csv_files.graded(made)
    assert len({name.casefold() for name in files}) == 5
    assert all(GRADED_NAME.fullmatch(name) for name in files)


def test_a_record_without_a_known_grade_is_an_error() -> None:
    """A passed item without a grade has no letter to show."""
    assert graded(replace(record(), grade=None))["simpleqa-en-graded.csv"].endswith(
        '"1","ERROR"\r\n'
    )

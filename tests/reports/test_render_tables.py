"""The CSV files: harmless in a spreadsheet, and letters as the published graders write them."""

import csv
import io
from dataclasses import fields, replace

import pytest

from reports.render import csv_files
from reports.run.record import Record
from reports.run.report import Report
from reports.run.report_folder import GRADED_NAME
from tests.support.samples import full, hostile, part, record, report


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


def test_no_cell_of_hostile_records_is_a_formula() -> None:
    """Whatever a model answers, the spreadsheet shows it and runs nothing."""
    for row in rows("".join(csv_files.results(report(hostile())))[1:]):
        assert not any(cell[:1] in tuple("=+-@\t\r\n＝＋－＠") for cell in row)


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
    assert files == {
        "simpleqa-en-graded.csv": (
            "Question number,Classification\r\n1,A\r\n2,B\r\n3,C\r\n4,ERROR\r\n5,ERROR\r\n"
        )
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
    assert graded(replace(record(), grade=None))["simpleqa-en-graded.csv"].endswith("1,ERROR\r\n")

"""``columns:`` of a data set: a file with headings of its own is read as it is."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError

POLISH = "Nr;Pytanie;Odpowiedź\n7;Ile dni ma tydzień?;7\n"
COLUMNS = "{question: Pytanie, answer: Odpowiedź, id: Nr}"


def cases_of(
    folder: Path, data: str, columns: str = COLUMNS, kind: str = "graded"
) -> list[Case]:
    declared = folder / "reg" / "dataset.yaml"
    declared.parent.mkdir()
    (declared.parent / "pl.csv").write_text(data, encoding="utf-8")
    declared.write_text(
        f"kind: {kind}\nrubric: simpleqa\ncolumns: {columns}\n"
        "languages:\n  pl: {file: pl.csv}\n",
        encoding="utf-8",
    )
    return load_cases(load_dataset(declared).slices["pl"])


def test_a_file_has_its_own_headings(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, POLISH)
    assert (case.id, case.question, case.golds) == ("7", "Ile dni ma tydzień?", ("7",))


def test_a_heading_that_is_named_is_no_metadata(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, POLISH)
    assert case.metadata == {}


def test_case_and_spaces_of_a_heading_do_not_count(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, POLISH.replace("Pytanie", "PYTANIE "))
    assert case.question == "Ile dni ma tydzień?"


def test_two_headings_may_change_places(tmp_path: Path) -> None:
    columns = "{question: Answer, answer: Question}"
    (case,) = cases_of(tmp_path, "question,answer\nseven,how many?\n", columns)
    assert (case.question, case.expected) == ("how many?", "seven")


def test_a_file_with_our_names_is_read_too(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, "id,question,answer\n7,q?,a\n")
    assert (case.id, case.question) == ("7", "q?")


def test_labelled_answers_have_headings_of_their_own_too(tmp_path: Path) -> None:
    columns = "{question: P, answer: O, predicted_answer: M, label: Ocena}"
    (case,) = cases_of(
        tmp_path, "P,O,M,Ocena\nq,a,b,incorrect\n", columns, kind="judged"
    )
    assert (case.recorded, case.label) == ("b", "INCORRECT")


def test_an_error_names_the_column_as_the_file_does(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="row 1, column 'Odpowiedź': empty"):
        cases_of(tmp_path, POLISH.replace(";7\n", ";\n"))


WRONG: Mapping[str, tuple[str, str, str]] = {
    "a heading that is not there": (
        POLISH,
        "{question: Pytani, answer: Odpowiedź}",
        "no column 'Pytani', which 'columns:' names as question; did you mean 'Pytanie'",
    ),
    "a second column of that name": (
        "Pytanie,question,answer\na,b,c\n",
        "{question: Pytanie}",
        "names 'Pytanie' as question, and there is a column 'question' too",
    ),
    "a heading named twice": (
        POLISH,
        "{question: Pytanie, answer: pytanie}",
        "'pytanie' is named as question too",
    ),
    "no name of ours": (
        POLISH,
        "{querstion: Pytanie}",
        "not known; did you mean 'question'",
    ),
}


@pytest.mark.parametrize(
    ("data", "columns", "message"), WRONG.values(), ids=list(WRONG)
)
def test_a_wrong_name_is_refused(
    tmp_path: Path, data: str, columns: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        cases_of(tmp_path, data, columns)

"""Answers are read strictly from runs and from files of predictions; the tables show them all."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.builder.model_answers import (
    ModelAnswers,
    YesNoData,
    facets_of,
    read_data,
    read_models,
    score_models,
    scores,
)
from evaluators.core import NO, UNANSWERED, YES, Case, UsageError
from reports.commands.build import csv_table, error_sheet, json_table, markdown
from tests.support.building import recipe
from tests.support.scripted import make_case

WORDS = {YES: "Так", NO: "Не"}
IDS = ("a", "b", "c", "d")


@pytest.fixture
def data(tmp_path: Path) -> YesNoData:
    rows = [
        {
            "id": id_,
            "passage": "У вёсцы стаіць школа. " * (1 + 20 * number),
            "question": f"Ці праўда, што школ {number + 1}?",
            "answer": "Так" if number % 2 else "Не",
            "source": "news" if number else "=books",
        }
        for number, id_ in enumerate(IDS)
    ]
    path = tmp_path / "be.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_data(path, "be", WORDS)


def record(data: YesNoData, id_: str, **changes: Any) -> dict[str, Any]:
    case = data.cases[id_]
    row = {"id": id_, "dataset": "mine", "language": "be", "grade": YES, "label": case.label}
    return {**row, "outcome": "passed", "digest": case.digest, **changes}


def write(path: Path, rows: list[Any]) -> Path:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def from_run(data: YesNoData, path: Path, *, allow_missing: bool = False) -> ModelAnswers:
    (one,) = read_models(data, [("m", path)], [], allow_missing=allow_missing)
    return one


def from_file(data: YesNoData, path: Path, *, allow_missing: bool = False) -> ModelAnswers:
    (one,) = read_models(data, [], [("m", path)], allow_missing=allow_missing)
    return one


def test_a_run_is_read_from_its_records(data: YesNoData, tmp_path: Path) -> None:
    """Grades come as they are; a failed call is no answer; other slices are passed over."""
    rows = [
        record(data, "a"),
        record(data, "b", grade=UNANSWERED, outcome="failed"),
        record(data, "c", grade=None, outcome="error"),
        record(data, "d", grade=None, outcome="missing"),
        record(data, "a", language="en"),
        record(data, "a", dataset="other") | {"id": "z"},
        "",
    ]
    write(tmp_path / "records.jsonl", rows)
    answers = from_run(data, tmp_path).answers
    assert answers == {"a": YES, "b": UNANSWERED, "c": None, "d": None}
    assert from_run(data, tmp_path / "records.jsonl").answers == answers
    assert from_run(data, tmp_path / "run.json").answers == answers


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", r"records\.jsonl:5: not JSON"),
        ("[]", r"records\.jsonl:5: not a record"),
        ('{"id": "a"}', "not a record"),
        ('{"id": ["a"], "grade": "", "label": "", "outcome": ""}', "not a record"),
        ({"id": "e"}, "'e' is no id of"),
        ({"id": "a"}, "has a record before; give a run without --repeats"),
        ({"id": "d", "label": NO}, "was another item in that run"),
        ({"id": "d", "digest": "x"}, "was another item in that run"),
        ({"id": "d", "grade": "CORRECT"}, "none of a yes/no run"),
        ({"id": "d", "outcome": "odd"}, "none of a yes/no run"),
        (None, "1 of 4 items .* have no answer, the first is 'd'; give --allow-missing"),
    ],
)
def test_a_run_of_other_items_is_refused(
    data: YesNoData, tmp_path: Path, row: Any, message: str
) -> None:
    """File and line are named, and what to give."""
    rows: list[Any] = [record(data, id_) for id_ in "abc"]
    if isinstance(row, dict):
        row = {**record(data, row["id"] if row["id"] in IDS else "a"), **row}
    write(tmp_path / "records.jsonl", ["", *rows, *([] if row is None else [row])])
    with pytest.raises(UsageError, match=message):
        from_run(data, tmp_path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.csv", 'id,answer,score\na,Так,1\nb,"Не, не так",2\nc,,3\nd,можа,4\n'),
        ("p.json", '[{"id":"a","answer":true},{"id":"b","answer":false},'
                   '{"id":"c","answer":null},{"id":"d","answer":"?"}]'),
    ],
)  # fmt: skip
def test_predictions_are_read_as_a_models_answers_are(
    data: YesNoData, tmp_path: Path, name: str, text: str
) -> None:
    """The language's words, or true and false; whatever else is unanswered."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    answers = from_file(data, tmp_path / name).answers
    assert answers == {"a": YES, "b": NO, "c": UNANSWERED, "d": UNANSWERED}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,answer\na,Так\nx,Так\n", r"p\.csv:3: row 2, column 'id': 'x' is no id"),
        ("id,answer\na,Так\na,Так\n", "row 2, column 'id': 'a' stands twice"),
        ("id,answer\n,Так\n", "row 1, column 'id': text is needed"),
        ("id,label\na,Так\n", "row 1, column 'answer': missing"),
        ("answer\nТак\n", "row 1, column 'id'"),
        ("id,answer\na,Так\n", "3 of 4 items"),
        ("id,answer\na,1\nb,0\nc,1\nd,0\n", "no answer is read as Так or Не"),
    ],
)
def test_strange_predictions_are_refused(
    data: YesNoData, tmp_path: Path, text: str, message: str
) -> None:
    """Unknown, missing and double ids are errors that name the row."""
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        from_file(data, tmp_path / "p.csv")


def test_missing_answers_count_as_unanswered_where_that_is_said(
    data: YesNoData, tmp_path: Path
) -> None:
    """Only with --allow-missing."""
    (tmp_path / "p.csv").write_text("id,answer\nb,Не\n", encoding="utf-8")
    answers = from_file(data, tmp_path / "p.csv", allow_missing=True).answers
    assert answers == {"a": UNANSWERED, "b": NO, "c": UNANSWERED, "d": UNANSWERED}
    write(tmp_path / "records.jsonl", [record(data, "b")])
    assert from_run(data, tmp_path, allow_missing=True).answers["a"] == UNANSWERED


def test_two_models_of_one_name_are_refused(data: YesNoData, tmp_path: Path) -> None:
    """The table could not tell them apart."""
    with pytest.raises(UsageError, match="two models are named 'm'"):
        read_models(data, [("m", tmp_path)], [("m", tmp_path)], allow_missing=False)


def test_a_model_without_a_grade_has_no_figures(data: YesNoData) -> None:
    """What is undefined is said so, and is never 0."""
    nothing = ModelAnswers(name="down", answers=dict.fromkeys(IDS))
    text = markdown(data, score_models(data, [nothing], facets_of(recipe().type_of)))
    assert f"| down | {'undefined | ' * 7}0 | 4 |" in text


def test_tables_show_every_model_and_what_most_miss(data: YesNoData) -> None:
    """Markdown, CSV and JSON hold the same figures; the sheet lists misses, worst first."""
    models = [
        ModelAnswers(name="so|so", answers={"a": YES, "b": YES, "c": NO, "d": None}),
        ModelAnswers(name="=bad", answers={"a": YES, "b": NO, "c": YES, "d": UNANSWERED}),
    ]
    facets = facets_of(recipe().type_of)
    table = score_models(data, models, facets)
    text = markdown(data, table)
    assert "| so\\|so | 0.667" in text
    assert "| =bad | 0.000" in text
    assert "| 0 to 300 characters |" in text
    assert "| 601 characters and more |" in text
    assert "undefined, n = 0" not in text
    told = json.loads(json_table(data, table))
    assert [one["ungraded"] for one in told["models"]] == [1, 0]
    assert told["models"][0]["kinds"]["source"]["news"]["n"] == 2
    rows = list(csv.DictReader(io.StringIO(csv_table(table).lstrip("\ufeff"))))
    assert {row["model"] for row in rows} == {"so|so", "'=bad"}
    (ungraded,) = [r for r in rows if (r["model"], r["measure"]) == ("so|so", "not_graded")]
    assert ungraded["value"] == "1"
    errors = list(csv.DictReader(io.StringIO(error_sheet(data, models, facets).lstrip("\ufeff"))))
    assert [(row["id"], row["missed_by"], row["of_models"]) for row in errors] == [
        ("a", "2", "2"),
        ("d", "1", "1"),
        ("b", "1", "2"),
        ("c", "1", "2"),
    ]
    assert errors[0]["source"] == "'=books"
    assert errors[0]["answer: so|so"] == "Так"
    assert (errors[1]["answer: so|so"], errors[1]["answer: =bad"]) == ("", UNANSWERED)
    assert errors[0]["question_type"] == "number"


def asked(*pairs: tuple[str, str], passage: str = "") -> list[tuple[Case, str]]:
    """Return a case for each pair of label and answer, all on one passage where it is given."""
    return [
        (replace(make_case(n), label=label, context=passage or f"Passage {n}"), answer)
        for n, (label, answer) in enumerate(pairs)
    ]


def test_questions_on_one_passage_count_together() -> None:
    """Ten passages, all their questions right or all wrong, say as much as ten questions."""
    rows = [
        answer
        for number in range(10)
        for answer in asked(*[(YES, YES if number < 7 else NO)] * 3, passage=f"P{number}")
    ]
    alone = scores(asked(*[(str(case.label), answer) for case, answer in rows]))["accuracy"]
    together = scores(rows)["accuracy"]
    assert (together.value, together.n) == (alone.value, alone.n)
    assert together.low is not None
    assert alone.low is not None
    assert together.low < alone.low - 0.1


def test_unanswered_is_wrong() -> None:
    """It is a false negative where the gold is yes, and no prediction where it is no."""
    found = scores(asked((YES, YES), (YES, UNANSWERED), (NO, UNANSWERED), (NO, NO)))
    assert found["accuracy"].value == 0.5
    assert found["precision"].value == 1.0
    assert found["recall"].value == 0.5
    assert found["unanswered"].value == 0.5
    assert found["f1"].value == 2 / 3
    assert found["majority_baseline"].value == 0.5


def test_nothing_is_undefined_and_not_zero() -> None:
    """Without items there is no figure."""
    assert {one.value for one in scores([]).values()} == {None}

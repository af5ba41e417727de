"""Claims about ``qagate label``: what it writes, takes in, and refuses."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.loading import load_cases
from qagate.command import main
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.reports.extras.label.labelled_set import agreed_label
from qagate.reports.judge.labels import LabelSet
from qagate.reports.run.record import Record
from tests.support.fixtures import Captured, Patch
from tests.support.labelling import (
    DECLARATIONS,
    LabelProject,
    by_its_letter,
    rated_records,
)
from tests.support.made_runs import (
    RUBRIC,
    answered,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.reviewing import saved

MANY = "c" * 40 + "i" * 35 + "n" * 10


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Patch) -> LabelProject:
    monkeypatch.chdir(tmp_path)
    return LabelProject(tmp_path)


def rows_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_page_is_written_beside_the_run(
    project: LabelProject, capsys: Captured
) -> None:
    run = project.graded(MANY)
    assert main(["label", str(run)]) == 0
    assert (run / "label.html").is_file()
    out = capsys.readouterr().out
    assert (
        "facts:en: 0 of 70 labels; still needed: 30 × CORRECT, 30 × INCORRECT, 10 × NOT_ATTEMPTED"
        in out
    )
    assert f"then: qagate label {run} --accept FILE" in out


def test_labels_become_the_labelled_set_of_the_data_set(
    project: LabelProject, capsys: Captured
) -> None:
    run = project.graded(MANY)
    assert project.accept(project.back(answered(MANY))) == 0
    out = capsys.readouterr().out
    assert "facts:en: labels by Anna 70" in out
    assert "the judge agrees with 70 of 70" in out
    assert "facts/facts_labels/en.jsonl: measures the judge of facts:en" in out
    assert "next: qagate run facts --judge j" in out
    rows = rows_in(project.labels)
    assert Counter(row["label"] for row in rows) == {
        CORRECT: 30,
        INCORRECT: 30,
        NOT_ATTEMPTED: 10,
    }
    assert run.is_dir()


def test_the_labelled_set_measures_the_judge_of_the_data_set(
    project: LabelProject,
) -> None:
    project.graded("ci")
    project.accept(project.back(answered("ci")))
    dataset = load_dataset(project.root / "facts" / "dataset.yaml")
    labels = load_dataset(project.labels.with_name("dataset.yaml")).slices["en"]
    assert LabelSet(slice_=labels, records=()).measures(dataset.slices["en"])
    assert labels.floor == {"agreement": 0.9}
    cases = load_cases(labels)
    assert [(case.question, case.golds, case.recorded) for case in cases] == [
        (f"Question {number}?", ("Sofia",), f"{letter}: {number}")
        for number, letter in sorted(
            enumerate("ci"),
            key=lambda pair: cases[0].question != f"Question {pair[0]}?",
        )
    ]


def test_a_row_says_how_its_answer_was_drawn(project: LabelProject) -> None:
    project.graded("ccci")
    project.accept(project.back(answered("ccci")))
    (row,) = [row for row in rows_in(project.labels) if row["label"] == INCORRECT]
    assert row["drawn_grade"] == INCORRECT
    assert row["drawn_share"] == 0.25
    assert row["drawn_from"] == "r1"
    assert row["fact_id"] == "F3"
    assert row["item"] == "facts-en-i3"


def test_all_accepted_forms_and_the_context_go_with_the_answer(
    project: LabelProject,
) -> None:
    records = [
        replace(record, golds=("Sofia", "София"), context="A text.")
        for record in answered("c")
    ]
    project.write(records)
    project.accept(project.back(records))
    (case,) = load_cases(
        load_dataset(project.labels.with_name("dataset.yaml")).slices["en"]
    )
    assert case.golds == ("Sofia", "София")
    assert case.context == "A text."


def test_a_label_that_differs_from_the_grade_is_the_label(
    project: LabelProject, capsys: Captured
) -> None:
    project.graded("cc")
    project.accept(project.back(answered("cc"), says=lambda record: INCORRECT))
    assert {row["label"] for row in rows_in(project.labels)} == {INCORRECT}
    assert "the judge agrees with 0 of 2" in capsys.readouterr().out


def test_too_few_labels_of_a_class_end_in_6(
    project: LabelProject, capsys: Captured
) -> None:
    """They are written all the same, and the line says which class is short."""
    project.graded("cci")
    back = project.back(answered("cci"), says=lambda record: CORRECT)
    assert project.accept(back) == 6
    assert "2 of 3 labels; still needed: 1 × INCORRECT: qagate label" in (
        capsys.readouterr().out
    )
    assert len(rows_in(project.labels)) == 3


def test_an_unclear_answer_gets_no_label(
    project: LabelProject, capsys: Captured
) -> None:
    project.graded("ci")
    back = project.back(
        answered("ci"),
        says=lambda record: "UNCLEAR" if record.id == "i0" else by_its_letter(record),
    )
    project.accept(back)
    assert len(rows_in(project.labels)) == 1
    assert "left out: 1 answer that somebody found unclear" in capsys.readouterr().out


# Two people


def test_two_people_are_two_columns_and_their_agreement_is_said(
    project: LabelProject, capsys: Captured
) -> None:
    letters = "ccccciiiii"
    project.graded(letters)
    anna = project.back(answered(letters))
    jan = project.back(
        answered(letters),
        "Jan",
        says=lambda record: CORRECT if record.id == "i9" else by_its_letter(record),
    )
    project.accept(anna, jan)
    out = capsys.readouterr().out
    assert "10 answers seen by more than one: agreement 0.900" in out
    assert "Anna and Jan: kappa 0.800" in out
    rows = rows_in(project.labels)
    assert all(row["raters"] == ["Anna", "Jan"] for row in rows)
    (tied,) = [row for row in rows if row["label"] == "TIED"]
    assert (tied["label_1"], tied["label_2"]) == (INCORRECT, CORRECT)
    assert "1 on which people differ" in out


def test_a_second_person_may_come_later(project: LabelProject) -> None:
    """The first one's labels stay, each in its own column."""
    project.graded("ci")
    anna = project.back(answered("ci"))
    jan = project.back(answered("ci"), "Jan", says=lambda record: INCORRECT)
    project.accept(anna)
    project.accept(jan)
    labels = {
        row["predicted_answer"]: (row["label_1"], row["label_2"])
        for row in rows_in(project.labels)
    }
    assert labels == {"c: 0": (CORRECT, INCORRECT), "i: 1": (INCORRECT, INCORRECT)}


def test_raters_keep_their_columns_where_one_saw_less(project: LabelProject) -> None:
    project.graded("ci")
    anna = project.back(answered("ci"))
    labelling = project.labelling(answered("ci"))
    seen = next(iter(labelling.by_id))
    project.accept(anna, saved(project.root / "jan.json", "Jan", {seen: CORRECT}))
    by_jan = [row.get("label_2") for row in rows_in(project.labels)]
    assert sorted(by_jan, key=str) == [CORRECT, None]


@pytest.mark.parametrize(
    ("labels", "agreed"),
    [
        ([CORRECT], CORRECT),
        ([CORRECT, INCORRECT, INCORRECT], INCORRECT),
        ([CORRECT, INCORRECT], "TIED"),
        (["6", "8"], "7"),
    ],
)
def test_raters_agree_by_most_grades_or_the_mean_rating(
    labels: list[str], agreed: str
) -> None:
    assert agreed_label(labels) == agreed


# Going on


def test_labels_that_there_are_count_in_the_next_page(
    project: LabelProject, capsys: Captured
) -> None:
    run = project.graded(MANY)
    back = project.back(answered(MANY), says=by_its_letter)
    first = json.loads(back.read_text("utf-8"))
    first["rows"] = first["rows"][:20]
    back.write_text(json.dumps(first), encoding="utf-8")
    assert project.accept(back) == 6
    assert main(["label", str(run)]) == 0
    assert "facts:en: 20 of 70 labels" in capsys.readouterr().out


def test_enough_labels_are_no_reason_for_a_page(
    project: LabelProject, capsys: Captured
) -> None:
    run = project.graded("ci")
    project.accept(project.back(answered("ci")))
    assert main(["label", str(run)]) == 4
    assert (
        "nothing to label: each class of facts:en has enough labels"
        in capsys.readouterr().err
    )


def test_rows_of_somebodys_own_stay(project: LabelProject) -> None:
    own = {"question": "q", "answer": "a", "predicted_answer": "p", "label": CORRECT}
    project.labels.parent.mkdir()
    project.labels.write_text(f"{json.dumps(own)}\n\n", encoding="utf-8")
    project.graded("ci")
    project.accept(project.back(answered("ci")))
    assert rows_in(project.labels)[0] == own


def test_another_language_is_listed_beside_the_first(project: LabelProject) -> None:
    project.declare(
        "kind: graded\nrubric: simpleqa\ncluster: topic\nlanguages:\n"
        "  en: {file: en.csv}\n  pl: {file: pl.csv}\n"
    )
    project.graded("ci")
    project.accept(project.back(answered("ci")))
    declaration = project.labels.with_name("dataset.yaml")
    text = declaration.read_text("utf-8")
    of_polish = text.replace('  en: {file: "en', '  pl: {file: "pl')
    declaration.write_text(of_polish, encoding="utf-8")
    project.labels.rename(project.labels.with_name("pl.jsonl"))
    project.accept(project.back(answered("ci")))
    assert list(load_dataset(declaration).slices) == ["pl", "en"]
    assert load_dataset(declaration).slices["en"].cluster == "topic"


def test_a_declaration_of_somebodys_own_is_left_as_it_is(
    project: LabelProject, capsys: Captured
) -> None:
    declaration = project.labels.with_name("dataset.yaml")
    declaration.parent.mkdir()
    text = "kind: judged\nlanguages: {pl: {file: pl.jsonl}}\n"
    declaration.write_text(text, encoding="utf-8")
    project.graded("ci")
    assert project.accept(project.back(answered("ci"))) == 4
    assert "list the language there yourself (en: {file:" in capsys.readouterr().err
    assert declaration.read_text("utf-8") == text


# The rubric


def test_labels_by_a_rubric_of_the_data_sets_own_measure_its_judge(
    project: LabelProject,
) -> None:
    """Named by a path or by its name: both are seen from the folder of the labels."""
    template = "Grade {question} {target} {predicted_answer} with A, B or C.\n"
    (project.root / "facts" / "mine.en.txt").write_text(template, encoding="utf-8")
    project.declare(DECLARATIONS["graded"].replace("simpleqa", "'mine.{lang}.txt'"))
    project.graded("ci")
    assert project.accept(project.back(answered("ci"))) == 0
    labels = load_dataset(project.labels.with_name("dataset.yaml")).slices["en"]
    assert labels.rubric is not None
    assert labels.rubric.name == "mine"


REGISTER = """\
name: register
language: en
version: "1"
protocol: tool
labels: [{labels}]
passing: [{passing}]
user: "Task: {{question}} Letter: {{predicted_answer}}"
"""


def own_labels(project: LabelProject, *labels: str) -> None:
    """Let the rubric have labels of its own, of which the first passes."""
    text = REGISTER.format(labels=", ".join(labels), passing=labels[0])
    path = project.root / "facts" / "register.en.yaml"
    path.write_text(text, encoding="utf-8")
    project.declare(DECLARATIONS["graded"].replace("simpleqa", "register"))
    scores = dict.fromkeys(labels, 0.5)
    project.rubric = replace(
        RUBRIC, labels=labels, passing=labels[:1], scores=scores, name="register"
    )


def test_labels_of_a_rubrics_own_have_digits_as_keys(project: LabelProject) -> None:
    """Each is a class; the rubric stands beside the data set, and is found from its labels."""
    own_labels(project, "formal", "mixed", "informal")
    records = [
        replace(record, grade=grade)
        for record, grade in zip(
            answered("cci"), ("formal", "formal", "mixed"), strict=True
        )
    ]
    project.write(records)
    sheet = project.sheet(records)
    (question,) = sheet.items[0].questions
    assert question.keys == {
        "formal": "1",
        "mixed": "2",
        "informal": "3",
        "UNCLEAR": "u",
    }
    goals = [(goal.name, goal.wanted) for goal in sheet.goals["facts:en"]]
    assert goals == [("formal", 2), ("mixed", 1), ("informal", 0)]
    back = project.back(records, says=lambda record: record.grade or "")
    assert project.accept(back) == 0
    labels = load_dataset(project.labels.with_name("dataset.yaml")).slices["en"]
    assert labels.labels == ("formal", "mixed", "informal")


def test_a_rubric_with_more_labels_than_keys_is_refused(
    project: LabelProject, capsys: Captured
) -> None:
    own_labels(project, *(f"l{number}" for number in range(10)))
    project.write([replace(record, grade="l0") for record in answered("c")])
    assert main(["label", str(project.root / "r1")]) == 4
    assert "10 labels, and there are keys for 9" in capsys.readouterr().err


def test_check_finds_nothing_wrong_with_labels_that_were_drawn(
    project: LabelProject, capsys: Captured
) -> None:
    """Their questions are asked in the data set, as they are its answers."""
    letters = "c" * 35 + "i" * 35 + "n" * 35
    project.graded(letters)
    project.accept(project.back(answered(letters)))
    capsys.readouterr()
    main(["check", str(project.labels.parent)])
    out = capsys.readouterr().out
    assert "0 errors, 0 warnings" in out


def test_labels_by_another_rubric_are_said_to_measure_nothing(
    project: LabelProject, capsys: Captured
) -> None:
    project.graded("ci")
    back = project.back(answered("ci"))
    project.accept(back)
    declaration = project.labels.with_name("dataset.yaml")
    text = declaration.read_text("utf-8")
    declaration.write_text(text.replace('"simpleqa"', '"simpleqa_strict"'), "utf-8")
    assert project.accept(back) == 4
    assert "they do not measure the judge of facts:en" in capsys.readouterr().err


# Ratings


@pytest.fixture
def rating(tmp_path: Path, monkeypatch: Patch) -> LabelProject:
    monkeypatch.chdir(tmp_path)
    return LabelProject(tmp_path, "rated")


def test_ratings_are_labelled_near_the_bar(
    rating: LabelProject, capsys: Captured
) -> None:
    """The judge agrees where its rating lies on the same side of the bar."""
    records = rated_records([8, 6, 9, 5])
    rating.rated([8, 6, 9, 5])

    def says(record: Record) -> str:
        return {"i0": "7", "i1": "7", "i2": "8", "i3": "6"}[record.id]

    assert rating.accept(rating.back(records, says=says)) == 6
    out = capsys.readouterr().out
    assert "3 of 4 labels; still needed: 1 × 5-6" in out
    assert "the judge agrees with 3 of 4" in out
    labels = load_dataset(rating.labels.with_name("dataset.yaml")).slices["en"]
    assert (labels.rates, labels.pass_bar) == (True, 7)
    assert rows_in(rating.labels)[0]["drawn_grade"] in ("7-9", "5-6")


# Two runs


def test_answers_of_both_runs_are_labelled(
    project: LabelProject, capsys: Captured
) -> None:
    new = project.graded("cc")
    old = [replace(record, answer=f"i: {record.id}") for record in answered("ii")]
    project.write(old, "r0")
    words = ["label", str(new), "--baseline=r0"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "facts:en: 0 of 4 labels" in out
    assert "--baseline=r0 --accept FILE" in out
    labelling = project.labelling(answered("cc"))
    ids = [*labelling.by_id, *project.labelling(old).by_id]
    verdicts = dict.fromkeys(ids, CORRECT)
    back = saved(project.root / "anna.json", "Anna", verdicts)
    assert project.accept(back) == 4
    assert "give the run, and the --baseline," in capsys.readouterr().err
    project.accept(back, words=["--baseline=r0"])
    assert Counter(row["drawn_from"] for row in rows_in(project.labels)) == {
        "r1": 2,
        "r0": 2,
    }


# Where the data set is


def test_a_language_that_only_items_named_is_labelled_too(
    project: LabelProject,
) -> None:
    """The data set's ``languages.default`` served it, and its labels are served alike."""
    project.declare(
        "kind: graded\nrubric: simpleqa\nlanguages:\n"
        "  pl: {file: pl.csv}\n  default: {rubric_language: en}\n"
    )
    run = project.graded("ci")
    assert main(["label", str(run)]) == 0
    page = (run / "label.html").read_text("utf-8")
    ids = re.findall(r"facts-en-i\d@\w+", page)
    verdicts = dict.fromkeys(ids, CORRECT)
    project.accept(saved(project.root / "anna.json", "Anna", verdicts))
    labels = load_dataset(project.labels.with_name("dataset.yaml")).slices["en"]
    assert labels.rubric is not None
    assert labels.rubric.language == "en"


def test_labels_of_a_bundled_set_are_kept_elsewhere(
    tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """An upgrade of the package would take them away."""
    monkeypatch.chdir(tmp_path)
    records = [
        replace(record, dataset="smoke", key=f"smoke-en-{record.id}")
        for record in answered("ci")
    ]
    part = graded_slice(dataset="smoke")
    dataset = facts_dataset(part, name="smoke")
    run = written(run_of(records, dataset), tmp_path / "run")
    assert main(["label", str(run)]) == 4
    assert "smoke comes with this package" in capsys.readouterr().err
    assert main(["label", str(run), "--to", "mine"]) == 0


# What is refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--terminal", "--accept", "x.json"], "give one of the two"),
        (["--name", "Anna"], "only for --terminal"),
        (["--languages", "pl"], "--languages pl:"),
        (["--data", "elsewhere"], "no dataset.yaml of facts is found"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    project: LabelProject, words: list[str], message: str, capsys: Captured
) -> None:
    (project.root / "elsewhere").mkdir()
    run = project.graded("c")
    assert main(["label", str(run), *words]) == 4
    assert message in capsys.readouterr().err


def test_a_run_without_grades_is_refused(
    project: LabelProject, capsys: Captured
) -> None:
    assert main(["label", str(project.graded("ee"))]) == 4
    assert "no answer of facts:en has a grade" in capsys.readouterr().err


def test_files_without_a_label_are_refused(
    project: LabelProject, capsys: Captured
) -> None:
    project.graded("c")
    assert project.accept(saved(project.root / "x.json", "Anna", {})) == 4
    assert "no label in these files" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["{", "[]"])
def test_a_broken_file_of_labels_is_named_with_its_line(
    project: LabelProject, line: str, capsys: Captured
) -> None:
    project.labels.parent.mkdir()
    project.labels.write_text(line, encoding="utf-8")
    assert main(["label", str(project.graded("c"))]) == 4
    assert "en.jsonl:1" in capsys.readouterr().err


def test_labels_may_go_elsewhere(project: LabelProject) -> None:
    project.graded("ci")
    project.accept(project.back(answered("ci")), words=["--to", "mine"])
    assert (project.root / "mine" / "en.jsonl").is_file()

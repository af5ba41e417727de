"""Recorded answers in a file of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.answer_files import check_shared_files
from qagate.cases.dataset import Slice
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from tests.support.declaring import made

ITEMS = "id,Question,Answers,Predicted answers\nq1,Which city?,Sofia,old\nq2,Who?,Vazov,old\n"


def joined(
    folder: Path, answers: str, items: str = ITEMS, kind: str = "graded"
) -> list[Case]:
    """Return the cases of items with these answers beside them."""
    (folder / "items.csv").write_text(items, encoding="utf-8")
    (folder / "answers.csv").write_text(answers, encoding="utf-8")
    slice_ = replace(made(folder / "items.csv", kind), recorded=folder / "answers.csv")
    return load_cases(slice_)


@pytest.mark.parametrize(
    "answers",
    [
        "Question,Model Answer\nWho?,Vazov.\n Which  city? ,Sofia.\n",
        "id,output\nq2,Vazov.\nq1,Sofia.\n",
        "qid,question,Predicted answers\nq2,other text,Vazov.\nq1,,Sofia.\n",
    ],
)
def test_answers_are_joined_by_id_or_question(tmp_path: Path, answers: str) -> None:
    assert [case.recorded for case in joined(tmp_path, answers)] == ["Sofia.", "Vazov."]


def test_an_item_that_the_file_does_not_answer_has_no_answer(tmp_path: Path) -> None:
    """Not even the one that stands with the item: it is another model's."""
    cases = joined(tmp_path, "question,response\nWho?,\n")
    assert [case.recorded for case in cases] == [None, ""]


def test_options_are_no_part_of_the_question_that_joins(tmp_path: Path) -> None:
    items = "question,options,answer\nWhich city?,Sofia | Ruse,A\n"
    [case] = joined(tmp_path, "question,model_answer\nWhich city?,A\n", items, "choice")
    assert case.recorded == "A"


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (
            "question,model_answer\nAnother?,x\n",
            "none of its 1 answers has the question of",
        ),
        ("id,output\nq9,x\n", "none of its 1 answers has the id of"),
        ("question,text\nWho?,x\n", "no column of answer"),
        ("number,output\n1,x\n", "no column of id or question"),
        ("question,output\nWho?,x\nWho? ,y\n", "'Who?' has another answer before"),
    ],
)
def test_a_file_that_cannot_be_joined_is_refused(
    tmp_path: Path, answers: str, said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        joined(tmp_path, answers)
    assert said in str(caught.value)
    assert "answers.csv" in str(caught.value)


def test_an_answer_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(ITEMS, encoding="utf-8")
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": "q1", "output": null}', encoding="utf-8")
    slice_ = replace(made(tmp_path / "items.csv"), recorded=path)
    with pytest.raises(UsageError, match="text is needed, not null"):
        load_cases(slice_)


TRANSLATED = "id,question,answer\nq1,Кой град?,София\nq2,Кой?,Вазов\n"


def both_languages(folder: Path, answers: str) -> list[tuple[Slice, list[Case]]]:
    """Return two slices whose items share their ids, with the answers of one file."""
    (folder / "answers.csv").write_text(answers, encoding="utf-8")
    slices = []
    for language, items in (("en", ITEMS), ("bg", TRANSLATED)):
        path = folder / f"{language}.csv"
        path.write_text(items, encoding="utf-8")
        slice_ = replace(
            made(path, "graded"), language=language, recorded=folder / "answers.csv"
        )
        slices.append((slice_, load_cases(slice_)))
    return slices


def test_an_answer_to_two_questions_is_refused(tmp_path: Path) -> None:
    """One language's answers given for another: nothing of the other would be measured."""
    slices = both_languages(tmp_path, "id,output\nq1,Sofia\nq2,Vazov\n")
    with pytest.raises(UsageError, match=r"its answer to 'q1' is given for .*:en and"):
        check_shared_files(slices)


def test_one_file_may_answer_both_languages_by_their_questions(tmp_path: Path) -> None:
    check_shared_files(
        both_languages(tmp_path, "question,output\nWho?,Vazov\nКой?,Вазов\n")
    )


def test_one_file_may_answer_different_ids(tmp_path: Path) -> None:
    [english, bulgarian] = both_languages(tmp_path, "id,output\nq1,Sofia\nq2,Vazov\n")
    first, second = english[1][:1], bulgarian[1][1:]
    check_shared_files([(english[0], first), (bulgarian[0], second)])

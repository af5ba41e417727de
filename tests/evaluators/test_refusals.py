"""The lexical judge on refusals as people word them, and on answers that only look like them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case, Verdict
from evaluators.judges.lexical.lexical_judge import grade
from evaluators.reading import load_yaml

SHEET = cast(
    "Mapping[str, Mapping[str, Any]]", load_yaml(Path(__file__).with_name("refusals.yaml"))
)
FULL = ("en", "bg", "pl", "hu", "be")  # Czech has a few, to show that its lists are read
MANY, ENOUGH = 25, 12


def verdicts(language: str, kind: str) -> Iterator[tuple[str, Verdict]]:
    sheet = SHEET[language]
    for row in sheet[kind]:
        ((asked, answer),) = row.items()
        question = sheet["questions"][asked]
        item = Case(
            id="x",
            dataset="d",
            language=language,
            row=1,
            question=question["question"],
            golds=(question["gold"],),
        )
        yield answer, grade(item, answer)


def others(language: str, kind: str, expected: str) -> list[str]:
    return [answer for answer, verdict in verdicts(language, kind) if verdict.grade != expected]


@pytest.mark.parametrize("language", SHEET)
def test_refusals_in_free_words_are_not_attempted(language: str) -> None:
    """Whoever lacks knowledge, will not guess or would have to look it up attempts nothing."""
    assert others(language, "refusals", NOT_ATTEMPTED) == []


@pytest.mark.parametrize("language", SHEET)
def test_a_wrong_answer_beside_such_words_stays_wrong(language: str) -> None:
    """No doubt, no need to look it up, or a thing known beside the answer: it is an answer."""
    assert others(language, "wrong", INCORRECT) == []


@pytest.mark.parametrize("language", SHEET)
def test_a_right_answer_beside_such_words_stays_right(language: str) -> None:
    """A refusal beside the gold does not take it back."""
    assert others(language, "right", CORRECT) == []


@pytest.mark.parametrize("language", FULL)
def test_there_are_enough_of_each(language: str) -> None:
    """A language has at least 25 refusals and 12 answers that look like them."""
    sheet = SHEET[language]
    assert len(sheet["refusals"]) >= MANY
    assert len(sheet["wrong"]) + len(sheet["right"]) >= ENOUGH


@pytest.mark.parametrize(
    ("language", "answer"),
    [
        ("en", "I'm sorry, Karl Bitter"),
        ("pl", "Nie mogę się mylić: Karl Bitter"),
        ("bg", "Съжалявам, Карл Битър"),
        ("hu", "Elnézést, 1921"),
        ("be", "Прабачце, 1921"),
    ],
)
def test_a_name_or_figure_beside_a_refusal_leaves_it_unsure(language: str, answer: str) -> None:
    """However short a refusal is, what may be an answer beside it is for a model to weigh."""
    item = Case(id="x", dataset="d", language=language, row=1, question="?", golds=("Taft",))
    assert not grade(item, answer).sure


def test_what_is_only_so_may_well_correct_a_false_premise() -> None:
    """ "It is only in the other club" may deny the premise: it is not INCORRECT beyond doubt."""
    item = Case(
        id="x",
        dataset="d",
        language="en",
        row=1,
        question="In which year did Norway join the customs union?",
        golds=("FALSE PREMISE: Norway has never joined the customs union",),
    )
    assert not grade(item, "It is only in the EEA.").sure
    assert grade(item, "It joined in 1972.").sure

"""The linter finds golds that let wrong answers pass."""

import pytest

from cases.check.gold_checks import coarse_golds, function_words
from tests.support.linting import found, item, subject


@pytest.mark.parametrize(
    ("language", "gold", "told"),
    [
        ("pl", "Po", True),
        ("bg", "Po", True),  # judges read по and Po alike
        ("en", "The Who", True),
        ("be", "па", True),
        ("hu", "az", False),  # an article alone is left to the judges
        ("en", "May", False),
        ("en", "A", False),
        ("pl", "polon", False),
        ("en", "Of Mice and Men", False),
    ],
)
def test_a_gold_that_stands_in_every_sentence_is_told(
    language: str, gold: str, *, told: bool
) -> None:
    """One function word of the language, as judges fold it; months and single letters are not."""
    own = subject(item(3, "Which?", "fine", gold), language=language)
    assert found(function_words, own) == [("warning", 3)] * told


def test_yes_and_no_are_no_function_words() -> None:
    """Yes/no items have nothing else."""
    assert not found(function_words, subject(item(1, "Is it?", "on"), kind="yes_no"))


@pytest.mark.parametrize(
    ("language", "question", "gold", "told"),
    [
        ("en", "On what date was it signed?", "March 1878", True),
        ("en", "On what date was it signed?", "1878", True),
        ("en", "On what date was it signed?", "3 March 1878", False),
        ("en", "On which day of 1878 was it signed?", "3 March", False),
        ("en", "On which day of the week in 1878 was it signed?", "1878", False),
        ("en", "In what year was it signed?", "1878", False),
        ("bg", "На коя дата е подписан договорът?", "март 1878 г.", True),
        ("pl", "Którego dnia podpisano traktat?", "marzec 1878", True),
        ("pl", "Którego dnia podpisano traktat?", "3 marca 1878", False),
        ("hu", "Melyik napon írták alá?", "1878. március", True),
        ("be", "Якога дня быў падпісаны дагавор?", "1878", True),
        ("be", "У якім годзе быў падпісаны дагавор?", "1878", False),
        ("xx", "On what date was it signed?", "1878", False),
    ],
)
def test_a_month_is_too_coarse_where_a_day_is_asked_for(
    language: str, question: str, gold: str, *, told: bool
) -> None:
    """In every bundled language; a weekday or a year that is asked for is fine."""
    own = subject(item(2, question, gold, language=language), language=language)
    assert found(coarse_golds, own) == [("warning", 2)] * told


def test_a_land_is_too_coarse_where_a_town_is_asked_for() -> None:
    """The land is known from a gold such as "Toruń, Poland" anywhere in the slice."""
    rows = [
        item(1, "In which city was Copernicus born?", "Toruń, Poland", "Toruń"),
        item(2, "In which small town is the castle?", "Malbork", "poland"),
        item(3, "In which country is the castle?", "Poland"),
        item(4, "In which city is it?", "Sofia", "March 3, 1878"),
    ]
    assert found(coarse_golds, subject(*rows)) == [("warning", 2)]

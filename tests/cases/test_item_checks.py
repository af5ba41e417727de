"""The linter finds items that stand twice, contradict each other, or tell their answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.check.item_checks import (
    SIMILAR,
    _alike,
    _candidates,
    conflicts,
    duplicates,
    leaked_golds,
    near_duplicates,
    word_weights,
)
from tests.support.linting import found, item, said, subject

CAPITAL = "What is the capital of Bulgaria?"
NOVEL = "Who wrote the historical novel Under the Yoke in exile in Odessa?"
BAGS = st.lists(st.frozensets(st.sampled_from("abcdefgh"), min_size=1), max_size=20)


def test_the_same_question_twice_is_an_error() -> None:
    """Case, outer marks and spaces make no other question; the first row stays unmarked."""
    twice = subject(item(1, CAPITAL, "Sofia"), item(2, "what is the capital of  Bulgaria", "Sofia"))
    assert found(duplicates, twice) == [("error", 2)]
    assert found(conflicts, twice) == []
    assert "the same item as row 1" in said(duplicates, twice)


def test_marks_inside_a_word_make_another_question() -> None:
    """C++ is not C."""
    assert not found(duplicates, subject(item(1, "What is C?"), item(2, "What is C++?")))


def test_questions_without_words_are_compared_as_they_stand() -> None:
    """Two different rows of signs are two questions."""
    assert not found(duplicates, subject(item(1, "?"), item(2, "!")))


def test_another_passage_makes_another_question() -> None:
    """The same words about another context are no repeat."""
    one, two = (item(row, "Is it so?", context=f"Passage {row}.") for row in (1, 2))
    assert not found(duplicates, subject(one, two))


def test_one_question_with_two_golds_is_a_conflict() -> None:
    """Golds that share no form contradict; an article more is the same gold."""
    conflict = subject(item(1, CAPITAL, "Sofia"), item(2, CAPITAL, "Plovdiv"))
    assert found(conflicts, conflict) == [("error", 2)]
    assert "'Plovdiv' here and 'Sofia' there" in said(conflicts, conflict)
    assert not found(conflicts, subject(item(1, CAPITAL, "the Sofia"), item(2, CAPITAL, "Sofia.")))


def test_golds_of_signs_are_compared_as_they_stand() -> None:
    """A plus is not a minus, though neither is a word."""
    assert found(conflicts, subject(item(1, CAPITAL, "+"), item(2, CAPITAL, "-")))
    assert not found(conflicts, subject(item(1, CAPITAL, "+"), item(2, CAPITAL, "+")))


def test_yes_and_no_to_one_question_is_a_conflict() -> None:
    """For yes/no items the labels are compared."""
    both = subject(item(1, "Is it?", label="YES"), item(2, "Is it?", label="NO"), kind="yes_no")
    assert found(conflicts, both) == [("error", 2)]


def test_judged_items_may_repeat_a_question() -> None:
    """Only the same answer to the same question is a repeat; another label is a conflict."""
    first = item(1, CAPITAL, "Sofia", recorded="Sofia", label="CORRECT")
    other = item(2, CAPITAL, "Sofia", recorded="Varna", label="INCORRECT")
    again = item(3, CAPITAL, "Sofia", recorded="sofia.", label="CORRECT")
    wrong = item(4, CAPITAL, "Sofia", recorded="Sofia", label="INCORRECT")
    assert found(duplicates, subject(first, other, again, kind="judged")) == [("error", 3)]
    assert found(conflicts, subject(first, other, wrong, kind="judged")) == [("error", 4)]
    assert not found(near_duplicates, subject(first, other, again, kind="judged"))


def test_the_same_words_in_another_order_are_nearly_a_repeat() -> None:
    """A near repeat with the same gold is a warning, told once."""
    reworded = "In exile in Odessa, who wrote the historical novel Under the Yoke?"
    items = (item(1, NOVEL, "Vazov"), item(2, reworded, "Vazov"), item(3, "Who?", "Vazov"))
    assert found(near_duplicates, subject(*items)) == [("warning", 2)]
    shorter = item(4, "Who wrote the historical novel Under the Yoke, exile in Odessa?", "Vazov")
    assert found(near_duplicates, subject(*items, shorter)) == [("warning", 2), ("warning", 4)]


@pytest.mark.parametrize(
    ("question", "gold"),
    [
        (NOVEL.replace("Under the Yoke", "War and Peace"), "Vazov"),
        (NOVEL + " In which year, by the old calendar?", "Vazov"),
        (NOVEL[:-1] + " 2?", "Vazov"),
        (NOVEL[:-1] + " so?", "Botev"),
    ],
)
def test_another_name_figure_or_gold_is_no_near_repeat(question: str, gold: str) -> None:
    """Rare words weigh more than common ones, and figures must be equal."""
    others = [item(row, f"Who wrote novel number {row}?") for row in range(3, 9)]
    both = subject(item(1, NOVEL, "Vazov"), item(2, question, gold), *others)
    assert not [row for _, row in found(near_duplicates, both) if row == 2]


def test_similar_rated_questions_are_near_repeats_whatever_their_golds() -> None:
    """Experts word one answer in two ways; another context is another question."""
    reworded = NOVEL.replace("Who wrote", "Who, then, wrote")
    both = (item(1, NOVEL, "Vazov did."), item(2, reworded, "It was Vazov."))
    assert found(near_duplicates, subject(*both, kind="rated")) == [("warning", 2)]
    other = item(2, reworded, "It was Vazov.", context="In 1888.")
    assert not found(near_duplicates, subject(both[0], other, kind="rated"))


@given(BAGS)
def test_no_similar_pair_is_lost(bags: list[frozenset[str]]) -> None:
    """Comparing only bags with a rare word in common finds every pair that is similar."""
    weights = word_weights(bags)
    every = {
        (i, j) for j in range(len(bags)) for i in range(j) if _alike(bags[i], bags[j], weights)
    }
    assert every <= set(_candidates(bags, weights))
    assert 0 < SIMILAR < 1


def test_a_gold_in_its_question_is_a_leak() -> None:
    """Whole words are looked for, without articles and whatever the case."""
    leaky = subject(item(1, "Which river is the Danube?", "a river", "The Danube"))
    assert found(leaked_golds, leaky) == [("warning", 1)]
    assert "'a river' stands in the question" in said(leaked_golds, leaky)


@pytest.mark.parametrize(
    ("question", "gold", "language"),
    [
        ("Is the Danube or the Rhine the longer river?", "the Danube", "en"),
        ("Кой е по-дълъг: Дунав или Рейн?", "Дунав", "bg"),
        ("Which Danubian town is it?", "Danube", "en"),
        ("Who scored in 1953?", "1953", "en"),
        ("What does the abbreviation Po mean?", "Po", "en"),
        ("What is it?", "?", "en"),
    ],
)
def test_choices_short_golds_and_parts_of_words_are_no_leak(
    question: str, gold: str, language: str
) -> None:
    """A question that offers the answer, and one that shares a piece of a word, are fine."""
    assert not found(leaked_golds, subject(item(1, question, gold), language=language))


def test_yes_and_no_leak_nothing() -> None:
    """Yes/no items are not looked at."""
    assert not found(leaked_golds, subject(item(1, "Is it true?", "true"), kind="yes_no"))

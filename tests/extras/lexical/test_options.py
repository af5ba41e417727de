"""Options and orders that a question names, and what an answer strikes out, marks or takes back."""

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.bundled import CASES
from qagate.evaluators.core import CORRECT, INCORRECT, Case
from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.judge import grade
from qagate.evaluators.reading import load_yaml
from tests.support.scripted import make_case

ANSWERS = cast("Mapping[str, Any]", load_yaml(Path(__file__).with_name("options.yaml")))
LANGUAGES = ("en", "bg", "pl", "hu", "be")
NAMES = ("Balvan", "Dobri Dyal", "Novo Selo", "Shemshevo", "Kovachite", "Selo")
EVERY = 5
"""Of the bundled questions that list options, how many there are to one that is tried."""


def case(gold: str, question: str, language: str = "en") -> Case:
    return make_case(language=language, question=question, golds=(gold,))


def questions_with_options(language: str) -> Iterator[tuple[Case, list[str]]]:
    """Yield bundled "which of four" questions with their three wrong options."""
    path = CASES / "simpleqa" / "simpleqa_hard" / f"{language}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if _asks_which(row)]
    assert rows
    for row in rows[::EVERY]:
        options = re.split(
            rf", | {ANSWERS[language]['or']} ",
            row["Question"].rpartition(":")[2].strip(" ?"),
        )
        options.remove(row["Answers"])
        yield case(row["Answers"], row["Question"], language), options


def _asks_which(row: Mapping[str, str]) -> bool:
    return row["kind"].startswith("which of four") and ":" in row["Question"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_gold_beside_a_chosen_option_is_wrong(language: str) -> None:
    """Whoever names another option first, or leaves two open, is INCORRECT in every wording."""
    passed = []
    for item, (wrong, other, *_) in questions_with_options(language):
        for frame in ANSWERS[language]["wrong"]:
            answer = frame.format(g=item.golds[0], w=wrong, x=other)
            if grade(item, answer).grade != INCORRECT:
                passed.append(answer)
    assert passed == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_gold_that_is_chosen_is_right_but_not_surely(language: str) -> None:
    """Other options may follow the gold; beside one it is never sure."""
    for item, (wrong, other, *_) in questions_with_options(language):
        for frame in ANSWERS[language]["right"]:
            answer = frame.format(g=item.golds[0], w=wrong, x=other)
            verdict = grade(item, answer)
            assert (verdict.grade, verdict.sure) == (CORRECT, False), answer


named = st.lists(st.sampled_from(NAMES), min_size=2, max_size=6, unique=True)
joiners = st.sampled_from(
    [", ", "; ", ". ", " > ", " and ", " or ", "\n", " ahead of ", ", then "]
)


@given(named, joiners, st.data())
def test_the_first_option_named_is_the_choice(
    options: list[str], joiner: str, data: st.DataObject
) -> None:
    """Of any options in any order, a gold that is not the first is INCORRECT, and none is sure."""
    gold = data.draw(st.sampled_from(options))
    question = f"Which village is larger: {', '.join(options[:-1])} or {options[-1]}?"
    said = data.draw(st.permutations(options))
    verdict = grade(case(gold, question), joiner.join(said))
    assert not (verdict.grade == CORRECT and verdict.sure)
    if said[0] != gold:
        assert verdict.grade == INCORRECT


def test_a_name_inside_another_is_not_named() -> None:
    """The option Selo is not named by "Novo Selo"."""
    question = "Which is larger: Selo, Novo Selo or Balvan?"
    assert grade(case("Novo Selo", question), "Novo Selo").grade == CORRECT
    assert grade(case("Selo", question), "Novo Selo").grade == INCORRECT
    answer = Answer(case("Balvan", question), "Novo Selo, Selo, Balvan")
    assert [mention.number for mention in answer.other_options] == [1, 0]


ITEMS = ("Vranyak", "Banitsa", "Butan", "Lesura")
ORDER_QUESTION = (
    "In which order (written as four digits without spaces) do these villages come, the largest "
    "first: 1) Vranyak, 2) Banitsa, 3) Butan, 4) Lesura?"
)
orders = st.permutations("1234").map("".join)


def layouts(order: str) -> list[str]:
    """Return an order written in the ways that people and models write it."""
    names = [ITEMS[int(digit) - 1] for digit in order]
    return [
        order,
        f"The order is {order}.",
        ", ".join(order),
        ">".join(order),
        "-".join(order),
        " ".join(order),
        ", ".join(names),
        " > ".join(names),
        "\n".join(f"{rank}. {name}" for rank, name in enumerate(names, start=1)),
        ", ".join(f"{digit}) {name}" for digit, name in zip(order, names, strict=True)),
        f"{order} ({', '.join(names)})",
    ]


@given(orders, orders)
def test_an_order_is_read_however_it_is_written(gold: str, said: str) -> None:
    """Signs between the digits, or names in place of digits, change nothing."""
    item = case(gold, ORDER_QUESTION)
    wanted = CORRECT if said == gold else INCORRECT
    for answer in layouts(said):
        assert grade(item, answer).grade == wanted, answer


@given(orders)
def test_two_orders_are_no_answer(gold: str) -> None:
    """Whoever gives the order and another one has left it open."""
    answer = f"{gold} or {gold[::-1]}"
    assert grade(case(gold, ORDER_QUESTION), answer).grade == INCORRECT


@pytest.mark.parametrize(
    "answer",
    [
        "~~Sofia~~ Vienna",
        "<del>Sofia</del> <ins>Vienna</ins>",
        "Sofia. Final answer: Vienna",
        "A) Vienna\nB) Sofia\nC) Rome\nAnswer: A",
        "Sofia: ✗\nVienna: ✓",
        "Vienna. Sofia is where the treaty was prepared.",
    ],
)
def test_what_is_not_offered_in_the_end_does_not_count(answer: str) -> None:
    """Struck out, marked wrong, named after the answer, or another label chosen."""
    item = case("Sofia", "In which city was the treaty signed?")
    assert grade(item, answer).grade != CORRECT


@pytest.mark.parametrize(
    "answer",
    [
        "~~Vienna~~ Sofia",
        "Vienna? No. Final answer: Sofia",
        "A) Vienna\nB) Sofia\nC) Rome\nAnswer: B",
        "A) Vienna B) Sofia C) Rome. Answer: B",
        "Vienna: ✗\nSofia: ✓",
        "Sofia. Vienna is where the treaty was prepared.",
    ],
)
def test_what_is_offered_in_the_end_counts(answer: str) -> None:
    """The same forms with the gold as the answer."""
    item = case("Sofia", "In which city was the treaty signed?")
    assert grade(item, answer).grade == CORRECT


@given(
    st.from_regex(r"[A-Z][a-z]{0,5}-", fullmatch=True),
    st.integers(2, 999),
    st.integers(2, 999),
    st.sampled_from(["", "B", "MD", "f"]),
)
def test_designations_are_met_whole(
    letters: str, number: int, other: int, tail: str
) -> None:
    """T-72B is no T-73B and no T-72; digits are never slips of the pen."""
    item = case(f"{letters}{number}{tail}", "What is it called?")
    assert grade(item, f"It is the {letters}{number}{tail}.").grade == CORRECT
    assert grade(item, f"{letters}{number}{tail}2").grade != CORRECT
    if other != number:
        assert grade(item, f"It is the {letters}{other}{tail}.").grade != CORRECT
    if tail:
        assert grade(item, f"{letters}{number}").grade != CORRECT


@pytest.mark.parametrize(
    "said",
    [
        "2019/877",
        "2018/876",
        "876/2019",
        "2019/8761",
        "Regulation (EU) 2019/877",
        "EU",
    ],
)
def test_numbers_with_a_stroke_are_met_whole(said: str) -> None:
    """Another number, another year and the reverse are other acts, of the same Union too."""
    item = case("Regulation (EU) 2019/876", "Which regulation amended it?")
    assert grade(item, said).grade != CORRECT
    assert grade(item, "Regulation 2019/876").grade == CORRECT


@pytest.mark.parametrize("said", ["Windows 3", "Windows 3.11", "Windows 1"])
def test_no_part_of_a_number_is_the_gold_in_fewer_words(said: str) -> None:
    """An answer with fewer words than the gold says all of its numbers, or none."""
    item = case("Windows 3.1 for workgroups", "Which version came first?")
    assert grade(item, said).grade != CORRECT
    assert grade(item, "Windows 3.1").grade == CORRECT


@given(st.integers(1000, 2100))
def test_a_year_that_the_question_has_is_the_answer_where_it_is_the_gold(
    year: int,
) -> None:
    """The question may name a thing by the year that it asks for."""
    item = case(f"{year}", f"In which year was the law of {year} changed?")
    for answer in (f"{year}", f"In {year}.", f"It was changed in {year}."):
        assert grade(item, answer).grade == CORRECT
    other = case(f"{year + 1}", item.question)
    assert grade(other, f"In {year}.").grade != CORRECT


@given(st.integers(0, 2100))
def test_a_number_is_an_answer_even_where_the_question_has_it(number: int) -> None:
    """Whoever says it has answered, with the wrong thing."""
    item = case("Nadia", f"Which gymnast won in the year {number} with 1 mistake?")
    assert grade(item, f"The answer is: {number}").grade == INCORRECT
    assert grade(item, "1").grade == INCORRECT

"""The lexical judge on units, numerals, nicknames, shorter golds, and golds met in passing."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, INCORRECT, Case
from evaluators.judges.lexical.folding import fold, read
from evaluators.judges.lexical.language_tables import tables
from evaluators.judges.lexical.lexical_judge import grade
from evaluators.judges.lexical.numbers import find_quantities, find_romans, roman


def graded(*golds: str, answer: str, language: str = "en", question: str = "What is it?") -> str:
    item = Case(id="x", dataset="d", language=language, row=1, question=question, golds=golds)
    return str(grade(item, answer).grade)


SAME: Mapping[str, tuple[str, str, str]] = {
    "feet": ("1,280 m", "4,200 feet", "en"),
    "kilometres": ("1014 m", "1,014 km", "hu"),
    "degrees": ("100 °C", "212 °F", "pl"),
    "degrees in words": ("0 °C", "32 degrees Fahrenheit", "en"),
    "minutes": ("2 години и 5", "2 години и 5", "bg"),
    "pounds": ("5 kg", "11 pounds", "en"),
    "metres of Belarusian": ("2 км", "2000 м", "be"),
    "feet and inches": ("5 ft 6 in", "5 feet 6 inches", "en"),
    "a share and per cent": ("5%", "5%, or 0.05", "en"),
    "a decimal less": ("1.328", "1.33", "en"),
    "decimals less": ("38 575,48", "38 575", "cs"),
    "open upwards": ("18", "You must be 18 or older.", "en"),
    "Roman for a century": ("w XIX wieku", "19", "pl"),
    "Roman alone": ("79", "LXXIX", "en"),
    "Roman both": ("XIV", "w XIV", "pl"),
    "ordinal": ("10", "dziesiątego", "pl"),
    "a hundred": ("sto", "100", "pl"),
    "era": ("691 CE", "691 AD", "en"),
    "season": ("the 1979–80 season", "1979-1980 season", "en"),
    "version": ("7.22f", "It was version 7.22f.", "en"),
    "two dimensions": ("30x60 m", "30x60 m", "en"),
    "plus": ("A+", "It is A+.", "en"),
    "one week": ("a week", "It took one week.", "en"),
    "short vowel": ("Kuba", "z Kuby", "cs"),
    "run together": ("Ricky Nelson", "played byRicky Nelsonin 1959", "en"),
    "derived": ("Sharecropping", "sharecroppers", "en"),
    "denies another": ("Beorn", "It's Beorn, not a bear.", "en"),
    "fewer words": ("the disputed 1824 presidential election", "the 1824 election", "en"),
    "head of a gold": ("RAF Coningsby in Lincolnshire", "RAF Coningsby", "en"),
    "one word less": ("a virtual reality simulator", "a virtual reality world", "en"),
}


@pytest.mark.parametrize(("gold", "answer", "language"), SAME.values(), ids=SAME)
def test_other_dress(gold: str, answer: str, language: str) -> None:
    """A value in another unit or numeral, and a gold in fewer words, is CORRECT."""
    assert graded(gold, answer=answer, language=language) == CORRECT


OTHER: Mapping[str, tuple[str, str, str]] = {
    "another length": ("1,280 m", "4,000 feet", "en"),
    "a mass for a length": ("5 m", "5 kg", "en"),
    "money is no foot": ("100 Ft", "30,48 m", "hu"),
    "too round": ("−273.15", "−273", "en"),
    "a whole number is exact": ("1,435", "1,440", "en"),
    "another version": ("7.22f", "version 7.22", "en"),
    "another patch": ("1.4.4", "version 1.4.1", "en"),
    "an isotope": ("rubidium-85", "astatine-85", "en"),
    "many weeks": ("a week", "741 weeks", "en"),
    "number of people": ("a week", "It was number one there.", "en"),
    "minus for plus": ("A+", "A-", "en"),
    "older than that": ("16 or older", "18 or older", "en"),
    "another Roman": ("XIX", "XVIII", "pl"),
    "a list is no person": ("Arsenal and Manchester United", "Manchester United", "en"),
    "half a name": ("New York University", "York University", "en"),
    "other winner": ("4–2 to England", "West Germany won it 4–2.", "en"),
    "no school alike": ("University of Miami Medical School", "Duke University School", "en"),
    "denied at the end": ("Paris", "Paris, not", "en"),
}


@pytest.mark.parametrize(("gold", "answer", "language"), OTHER.values(), ids=OTHER)
def test_other_thing(gold: str, answer: str, language: str) -> None:
    """Another value, unit, version or name is INCORRECT however much of it is shared."""
    assert graded(gold, answer=answer, language=language) == INCORRECT


PEOPLE: Mapping[str, tuple[str, str, str]] = {
    "short given name": ("William Davis", "Bill Davis", CORRECT),
    "full given name": ("Larry Page", "Lawrence Page", CORRECT),
    "another given name": ("William Davis", "Bob Davis", INCORRECT),
    "which of the family": ("Robert Gillespie Adamson IV", "Robert Adamson", CORRECT),
    "another king": ("Henry Tudor VII", "Henry Tudor VIII", INCORRECT),
}


@pytest.mark.parametrize(("gold", "answer", "wanted"), PEOPLE.values(), ids=PEOPLE)
def test_given_names_have_short_forms(gold: str, answer: str, wanted: str) -> None:
    """A nickname stands for its name, and a sign of the family may be left out of a long one."""
    assert graded(gold, answer=answer, question="Who was it?") == wanted


FILL = " ".join(f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(70))


def test_a_gold_in_passing_does_not_count() -> None:
    """A gold after another date, after much else, or in the question's own words is no answer."""
    asked = "Who sang it first?"
    assert graded("1970", answer="It was 1957; however, some say it was in 1970.") == INCORRECT
    assert graded("7", answer="There are 172 steps. However, with the yard it is 7.") == INCORRECT
    assert graded("Crosby", answer=f"{FILL} is Crosby") == CORRECT
    late = f"Nobody did not. {' '.join(FILL.split()[:30])} Crosby"
    assert graded("Crosby", answer=late) == INCORRECT
    listed = f"It was Vallee, Crosby, and others. {' '.join(FILL.split()[:25])}"
    assert graded("Crosby", answer=listed, question=asked) == INCORRECT
    echo = graded("MarginOfErr", answer="No margin of err in it.", question="Which margin of err?")
    assert echo == INCORRECT


def test_a_question_for_several_wants_half_of_them() -> None:
    """A talkative answer with fewer than half of several golds does not answer for them."""
    golds = ("Corn", "Hay", "Cotton", "Wheat", "Rice")
    asked = "What are the main crops?"
    rest = "according to offices that count fields barns mills roads ports"
    assert graded(*golds, answer=f"Corn {rest}", question=asked) == INCORRECT
    assert graded(*golds, answer=f"Corn, hay, rice {rest}", question=asked) == CORRECT
    assert graded(*golds, answer="Corn", question=asked) == CORRECT
    long = f"Farms there are old. {' '.join(FILL.split()[:20])}. Some grow corn."
    assert graded(*golds, answer=long, question="What grows?") == INCORRECT


def test_an_order_in_the_question_is_none() -> None:
    """Words of the question are no order to the judge when the answer repeats them."""
    asked = "When did the fifth grader show first air?"
    assert graded("2007", answer="The grader show aired in 2007.", question=asked) == CORRECT


@pytest.mark.parametrize(
    ("word", "value"),
    [("ii", 2), ("iv", 4), ("xix", 19), ("lxxix", 79), ("xc", 90), ("mix", None), ("x", None),
     ("iiii", None), ("vx", None), ("", None)],
)  # fmt: skip
def test_numerals(word: str, value: int | None) -> None:
    """A well-formed numeral of two letters or more has a value, another word has none."""
    assert roman(word) == value


@given(st.text("ivxlc", max_size=6))
def test_numerals_stay_below_a_hundred(word: str) -> None:
    """Whatever the letters, a value is from 2 to 99."""
    value = roman(word)
    assert value is None or 2 <= value < 100


def test_only_capitals_are_numerals() -> None:
    """A numeral counts where it was written in capitals."""
    text = read("the xi and the XII")
    assert [one.values for one in find_romans(text, frozenset({"xii"}))] == [(12.0,)]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("1979-80", "1979-1980"),
        ("2009/10", "2009/2010"),
        ("1999-12-31", "1999-12-31"),
        ("1980-79", "1980-79"),
    ],
)
def test_seasons_are_written_out(text: str, folded: str) -> None:
    """The second year of a season gets four digits; a calendar day is left alone."""
    assert fold(text) == folded


@pytest.mark.parametrize("language", ["en", "bg", "pl", "hu", "be", "cs"])
def test_measures_are_known_in_every_language(language: str) -> None:
    """Each language has units of length, mass, time and temperature that can be converted."""
    known = tables(language)
    assert {one.kind for one in known.conversions.values()} == {
        "length", "mass", "time", "temperature"
    }  # fmt: skip
    for key in ("several", "open_ends", "bounds", "degrees"):
        assert fold(str(known.data[0][key])).split(), key


def test_a_letter_makes_a_name_of_a_figure() -> None:
    """7.22f is no quantity; 5 m and 5 km are."""
    known = tables("en")
    assert find_quantities(read("7.22f"), known) == []
    assert [one.unit for one in find_quantities(read("5m 5km"), known)] == ["meter", "kilometer"]


def test_many_golds_and_a_long_answer_stay_cheap() -> None:
    """Sixty golds against an answer that repeats one of them are graded like any other."""
    golds = [
        f"Name{chr(97 + i % 26)}{chr(97 + i // 26)} Family{chr(97 + i % 26)}" for i in range(60)
    ]
    answer = "Nameaa Familya and others went to town. " * 800
    assert graded(*golds, answer=answer, question="Who are the ten?") == INCORRECT

"""The rooms of the lexical judge: folding, numbers, dates, language data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Case
from evaluators.judges.lexical.dates import Date, find_dates
from evaluators.judges.lexical.folding import fold, plain, read, sound, without
from evaluators.judges.lexical.language_tables import tables
from evaluators.judges.lexical.lexical_judge import grade
from evaluators.judges.lexical.numbers import find_quantities


def graded(gold: str, answer: str, language: str = "en", question: str = "How many?") -> str:
    item = Case(id="x", dataset="d", language=language, row=1, question=question, golds=(gold,))
    return str(grade(item, answer).grade)


def values(text: str, language: str = "en") -> list[float]:
    return [found.values[0] for found in find_quantities(read(text), tables(language))]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ŁÓDŹ", "lodz"),
        ("София", "sofiya"),
        ("O’Brien’s", "obrien"),
        ("ﬁve", "five"),
        ("a\u200bb", "ab"),
        ("Straße", "strasse"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    """Case, marks, script, ligatures and invisible characters are folded away."""
    assert fold(text) == folded


def test_plain_keeps_the_letters() -> None:
    """The strict form keeps marks and script, and loses case, outer marks and spaces."""
    assert plain("  “Łódź”.  ") == "łódź"


@given(st.text(max_size=100))
def test_words_and_gaps_make_the_text(text: str) -> None:
    """Nothing of a folded text is lost when it is taken apart."""
    parts = read(text)
    joined = parts.gaps[0] + "".join(
        word + gap for word, gap in zip(parts.words, parts.gaps[1:], strict=True)
    )
    assert joined == fold(text)


def test_a_text_of_articles_stays() -> None:
    """Taking all words away takes none."""
    assert without(read("the a"), frozenset({"the", "a"})).words == ("the", "a")


@pytest.mark.parametrize(("one", "other"), [("uesli", "wesley"), ("varnar", "warner")])
def test_sounds_meet_across_scripts(one: str, other: str) -> None:
    """A transliterated and an English spelling of a name sound the same."""
    assert sound(one) == sound(other)


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_symmetric(one: str, other: str) -> None:
    """The distance of two words does not depend on their order, and is 0 for equal ones only."""
    assert OSA.distance(one, other) == OSA.distance(other, one)
    assert (OSA.distance(one, other) == 0) is (one == other)


def test_distance_counts_a_swap_once() -> None:
    """Two swapped letters are one error."""
    assert OSA.distance("ahmed", "amhed") == 1


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("1,234.5", "en", [1234.5]),
        ("1.234,5", "bg", [1234.5]),
        ("1 234 567", "pl", [1234567]),
        ("1,234", "en", [1234]),
        ("1,234", "pl", [1.234]),
        ("1,2,3", "en", []),
        ("1 23", "en", [1, 23]),
        ("$5m", "en", [5e6]),
        ("5m", "en", [5]),
        ("120k", "en", [120000]),
        ("1.2 million", "en", [1.2e6]),
        ("65%", "en", [65]),
        ("-7", "en", [-7]),
        ("2-3", "en", [2, 3]),
        ("the 1830s", "en", []),
        ("1" * 30, "en", []),
        ("twenty-three", "en", [23]),
        ("two hundred thousand five", "en", [200005]),
        ("two million", "en", [2e6]),
        ("one two", "en", [1, 2]),
        ("двеста хиляди", "bg", [200000]),
        ("öt", "hu", [5]),
    ],
)
def test_numbers_are_read(text: str, language: str, wanted: list[float]) -> None:
    """Figures and number words are read by the custom of the language."""
    assert values(text, language) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("120k", "120,000", CORRECT),
        ("120k", "124k", CORRECT),
        ("120k", "115k", CORRECT),
        ("120k", "100k", INCORRECT),
        ("120k", "113k", INCORRECT),
        ("120k", "125k", INCORRECT),
        ("120k", "around 100k", NOT_ATTEMPTED),
        ("120k", "more than 50k", NOT_ATTEMPTED),
        ("120k", "more than 150k", INCORRECT),
        ("120k", "less than 500k", NOT_ATTEMPTED),
        ("120k", "about 120k", CORRECT),
        ("120k", "about 900k", INCORRECT),
        ("120k (acceptable range: anything between 118k and 122k)", "118.5k", CORRECT),
        ("120k (acceptable range: anything between 118k and 122k)", "123k", INCORRECT),
        ("120k (acceptable range: 118k)", "120,100", CORRECT),
        ("1.73 m", "1.734 meters", CORRECT),
        ("1.73 m", "1.8 m", INCORRECT),
        ("350 pounds", "351 pounds", INCORRECT),
        ("350 pounds", "350", CORRECT),
        ("350 pounds", "350 kg", INCORRECT),
        ("0", "zero", CORRECT),
        ("0", "1", INCORRECT),
        ("three", "3", CORRECT),
        ("3rd", "the third inning", CORRECT),
        ("5", "between 5 and 9", NOT_ATTEMPTED),
        ("9", "between 5 and 9", NOT_ATTEMPTED),
        ("7", "between 5 and 9", NOT_ATTEMPTED),
        ("3", "between 5 and 9", INCORRECT),
        ("5", "more than 5", INCORRECT),
        ("5", "at least 5", NOT_ATTEMPTED),
        ("more than 5", "more than 5", CORRECT),
        ("5 dollars", "5 dollars or 40 cents each", CORRECT),
        ("5 dollars", "5 dollars or 6 dollars", NOT_ATTEMPTED),
        ("60-100", "72", CORRECT),
        ("60-100", "60-100", CORRECT),
        ("60-100", "120", INCORRECT),
        ("100-60", "72", INCORRECT),
        ("−5", "5", INCORRECT),
        ("1939-1945", "1941", INCORRECT),
        ("5", "5 to 9", CORRECT),
        ("4", "5\n4", INCORRECT),
        ("4", "4\n5", CORRECT),
        ("1435 m", "1,435 meters", CORRECT),
    ],
)
def test_numbers_agree_to_the_last_significant_figure(gold: str, answer: str, wanted: str) -> None:
    """A number is right when it rounds to the gold; a vague one is not an attempt."""
    assert graded(gold, answer) == wanted


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("5 March 1989", "en"),
        ("March 5th, 1989", "en"),
        ("the 5th of March, 1989", "en"),
        ("1989-03-05", "en"),
        ("3/5/1989", "en"),
        ("05.03.1989 г.", "bg"),
        ("5 март 1989 г.", "bg"),
        ("5 marca 1989 r.", "pl"),
        ("1989. március 5-én", "hu"),
        ("5 сакавіка 1989 года", "be"),
        ("5. března 1989", "cs"),
        ("March 5, 198912", "en"),
        ("5 III 1989 r.", "pl"),
        ("1989. III. 5-én", "hu"),
    ],
)
def test_a_day_is_the_same_in_any_form(text: str, language: str) -> None:
    """Every way to write a day is read as that day."""
    found = [date.parts for date in find_dates(read(text), tables(language))]
    assert (1989, 3, 5) in found
    assert graded("5 March 1989", text, language, "When?") == CORRECT


@pytest.mark.parametrize(
    ("gold", "answer", "wanted"),
    [
        ("5 March 1989", "March 1989", INCORRECT),
        ("5 March 1989", "1989", INCORRECT),
        ("5 March 1989", "6 March 1989", INCORRECT),
        ("March 1989", "5 March 1989", CORRECT),
        ("1989", "5 March 1989", CORRECT),
        ("since 1989", "1989", CORRECT),
        ("1989", "19890", INCORRECT),
        ("1989", "1,989", INCORRECT),
        ("1989", "1989,123", INCORRECT),
        ("the 1980s", "1983", INCORRECT),
        ("the 1980s", "in the 1980s", CORRECT),
        ("1989", "between 1985 and 1989", NOT_ATTEMPTED),
        ("31 January 2022", "31 October 2022", INCORRECT),
        ("5 March", "March 5", CORRECT),
    ],
)
def test_dates_are_compared_at_the_precision_of_the_gold(
    gold: str, answer: str, wanted: str
) -> None:
    """An answer may be finer than the gold, never coarser, and not another day."""
    assert graded(gold, answer, question="When?") == wanted


@pytest.mark.parametrize("text", ["13/13/1989", "may be", "1/2", "45/03/1989", "May 1989/12"])
def test_no_day_is_made_up(text: str) -> None:
    """What cannot be a calendar day is not read as one."""
    dates = find_dates(read(text), tables("en"))
    assert all(date.day is None for date in dates)


def test_a_date_knows_its_place() -> None:
    """A date carries the positions of its words."""
    assert find_dates(read("on March 5, 1989 it"), tables("en")) == [
        Date(year=1989, month=3, day=5, start=1, end=4)
    ]


@pytest.mark.parametrize("language", ["en", "bg", "pl", "hu", "be", "cs"])
def test_every_language_is_complete(language: str) -> None:
    """Each data file has twelve months, number words up to twenty, and phrases of refusal."""
    known = tables(language)
    assert set(known.months.values()) == set(range(1, 13))
    assert {float(number) for number in range(1, 21)} <= set(known.numbers.values())
    for key in ("refusals", "hedges", "orders", "more", "less", "units", "year_questions"):
        assert known.data[0][key], key
    for key in ("function", "openers", "negations", "alternatives", "joiners", "endings"):
        assert known.words(key), key

"""The parts of the lexical judge: folded text, numbers, dates, and what is known of languages."""

from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, Case
from evaluators.judges.lexical.analysis import Answer
from evaluators.judges.lexical.judge import grade
from evaluators.judges.lexical.match import Tolerance
from evaluators.judges.lexical.numbers import Date, find_dates, find_quantities, in_figures
from evaluators.judges.lexical.tables import (
    FOLDER,
    fold,
    has_tables,
    plain,
    read,
    sound,
    tables,
    without,
)
from evaluators.reading import Map, load_yaml
from tests.support.tables import tabled

LANGUAGES = ("en", "bg", "pl", "hu", "be", "cs")


def case(gold: str, language: str = "en", question: str = "?") -> Case:
    return Case(id="x", dataset="d", language=language, row=1, question=question, golds=(gold,))


@tabled("text", "folded")
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
    pairs = zip(parts.words, parts.gaps[1:], strict=True)
    assert parts.gaps[0] + "".join(word + gap for word, gap in pairs) == fold(text)


def test_a_text_of_articles_stays() -> None:
    """Taking all words away takes none."""
    assert without(read("the a"), frozenset({"the", "a"})).words == ("the", "a")


@pytest.mark.parametrize(("one", "other"), [("uesli", "wesley"), ("varnar", "warner")])
def test_sounds_meet_across_scripts(one: str, other: str) -> None:
    """A transliterated and an English spelling of a name sound the same."""
    assert sound(one) == sound(other)


@given(st.text("abcd", min_size=8, max_size=8), st.text("abcd", min_size=8, max_size=8))
def test_typing_errors_do_not_depend_on_the_order_of_words(one: str, other: str) -> None:
    """A name misspelt as another is that other one misspelt; a word is alike to itself."""
    names = Tolerance(tables=tables("zz"), names=True)
    assert names.alike(one, one)
    assert names.alike("x" + one, "x" + other) == names.alike("x" + other, "x" + one)


def test_two_swapped_letters_are_one_error() -> None:
    """A swap is forgiven where one error is, a swap and a wrong letter are not."""
    names = Tolerance(tables=tables("en"), names=True)
    assert names.alike("ahmedova", "amhedova")
    assert not names.alike("ahmedova", "amhedxva")


@tabled("text", "language", "wanted")
def test_numbers_are_read(text: str, language: str, wanted: list[float]) -> None:
    """Figures, number words and Roman numerals are read by the custom of the language."""
    known = tables(language)
    found = find_quantities(in_figures(read(text), known), known)
    assert [quantity.values[0] for quantity in found] == pytest.approx(wanted)


@tabled("text", "language", "unit")
def test_units_are_those_of_cldr(text: str, language: str, unit: str | None) -> None:
    """A unit is known by its sign and by its words in every form; others are no unit."""
    (found,) = find_quantities(read(text), tables(language))
    assert (found.unit or None) == unit


@tabled("text", "language")
def test_a_day_is_the_same_in_any_form(text: str, language: str) -> None:
    """Every way to write a day is read as that day."""
    known = tables(language)
    assert (1989, 3, 5) in [date.parts for date in find_dates(in_figures(read(text), known), known)]
    assert grade(case("5 March 1989", language, "When?"), text).grade == CORRECT


@pytest.mark.parametrize("text", ["13/13/1989", "may be", "1/2", "45/03/1989", "May 1989/12"])
def test_no_day_is_made_up(text: str) -> None:
    """What cannot be a calendar day is not read as one."""
    assert all(date.day is None for date in find_dates(read(text), tables("en")))


def test_a_date_knows_its_place() -> None:
    """A date carries the positions of its words."""
    assert find_dates(read("on March 5, 1989 it"), tables("en")) == [
        Date(year=1989, month=3, day=5, start=1, end=4)
    ]


def test_a_denial_about_others_is_no_refusal() -> None:
    """ "He could not recall" tells of somebody else; a denial ends with its clause."""
    assert Answer(case("x"), "He could not at that time recall it").refusals == []
    assert Answer(case("x"), "I do not. Recall it").refusals == []
    assert Answer(case("x"), "I do not recall it").refusals != []


def test_capitals_of_later_sentences_do_not_make_names() -> None:
    """A word counts as a name where it has a capital of its own, not that of a sentence."""
    assert Answer(case("x"), "Paris is it. Later «London» was.").capitals == {"paris", "london"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_is_complete(language: str) -> None:
    """Each file has the keys of the English one, and number words up to twenty."""
    own, english = (
        cast("Mapping[str, object]", load_yaml(FOLDER / f"{name}.yaml"))
        for name in (language, "en")
    )
    assert own.keys() >= english.keys() - {"impersonal", "speakers", "compounds"}
    assert {str(number) for number in range(1, 21)} <= {*cast("Map", own["numbers"])}


def test_a_language_that_nobody_knows_is_read_as_english() -> None:
    """Neither a file nor CLDR is needed."""
    known = tables("zz")
    assert not has_tables("zz")
    assert (known.decimal, known.months.get("march")) == (".", 3)

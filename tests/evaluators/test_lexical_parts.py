"""The parts of the lexical judge: folded text, words, numbers, dates, stance, language data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, Case
from evaluators.judges.lexical.answer_analysis import analyse, last_word, refusals
from evaluators.judges.lexical.dates import Date, find_dates
from evaluators.judges.lexical.folding import fold, plain, read, sound, without
from evaluators.judges.lexical.language_tables import tables
from evaluators.judges.lexical.lexical_judge import grade
from evaluators.judges.lexical.number_words import in_figures
from evaluators.judges.lexical.numbers import find_quantities, find_romans, roman
from evaluators.judges.lexical.word_matching import Tolerance

LANGUAGES = ("en", "bg", "pl", "hu", "be", "cs")


def case(gold: str, language: str = "en", question: str = "?") -> Case:
    return Case(id="x", dataset="d", language=language, row=1, question=question, golds=(gold,))


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ŁÓDŹ", "lodz"),
        ("София", "sofiya"),
        ("O’Brien’s", "obrien"),
        ("ﬁve", "five"),
        ("a\u200bb", "ab"),
        ("Straße", "strasse"),
        ("1979-80", "1979-1980"),
        ("2009/10", "2009/2010"),
        ("1999-12-31", "1999-12-31"),
        ("1980-79", "1980-79"),
    ],
)
def test_folding(text: str, folded: str) -> None:
    """Case, marks, script, ligatures and invisible characters are folded away.

    The second year of a season gets four digits; a calendar day is left alone.
    """
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
    found = find_quantities(read(text), tables(language))
    assert [quantity.values[0] for quantity in found] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("dwustu trzydziestoma", "pl", 230),
        ("dziewięciuset", "pl", 900),
        ("czworo", "pl", 4),
        ("trzynastą", "pl", 13),
        ("шестима", "bg", 6),
        ("осемнайсет", "bg", 18),
        ("шейсет", "bg", 60),
        ("деветстотин", "bg", 900),
        ("двайсет и пет", "bg", 25),
        ("второто", "bg", 2),
        ("двухсот", "be", 200),
        ("пяццю", "be", 5),
        ("сямідзесяці", "be", 70),
        ("трэцяй", "be", 3),
        ("huszonhárom", "hu", 23),
        ("háromszáztizenkettő", "hu", 312),
        ("kétezret", "hu", None),
        ("egyetem", "hu", None),
        ("huszonharmadik", "hu", 23),
        ("one hundred and five", "en", 105),
        ("devíti sty", "cs", 9),
    ],
)
def test_number_words_are_read(text: str, language: str, wanted: float | None) -> None:
    """Number words to a thousand are read in every case form, grown together or joined."""
    known = tables(language)
    found = find_quantities(in_figures(read(text), known), known)
    assert [quantity.values[0] for quantity in found] == ([] if wanted is None else [wanted])


@pytest.mark.parametrize(
    ("text", "language", "wanted"),
    [
        ("W tysiąc czterysta dziesiątym", "pl", (1410, None, None)),
        ("piętnastego lipca tysiąc czterysta dziesiątego roku", "pl", (1410, 7, 15)),
        ("на трети март хиляда осемстотин седемдесет и осма", "bg", (1878, 3, 3)),
        ("дваццаць пятага сакавіка тысяча дзевяцьсот васемнаццатага", "be", (1918, 3, 25)),
        ("ezernyolcszáznyolcvanhatban", "hu", (1886, None, None)),
        ("ezerkilencszázötvenhat. október huszonharmadikán", "hu", (1956, 10, 23)),
        ("május elsején, 1890-ben", "hu", (1890, 5, 1)),
        ("in nineteen hundred and five", "en", (1905, None, None)),
        ("v roce tisíc devět set osmdesát devět", "cs", (1989, None, None)),
    ],
)
def test_dates_in_words_are_read(
    text: str, language: str, wanted: tuple[int | None, int | None, int | None]
) -> None:
    """A year, a month and a day in words are read like those in figures."""
    known = tables(language)
    found = find_dates(in_figures(read(text), known), known)
    assert [date.parts for date in found] == [wanted]


def test_a_month_is_no_doubt() -> None:
    """„май“ is the month in a date and after a preposition, and says "it seems" elsewhere."""
    assert analyse(case("6 май 1954 г.", "bg"), "На 6 май 1954 г.").hedges == set()
    assert analyse(case("май", "bg"), "през май").hedges == set()
    assert analyse(case("София", "bg"), "май е София").hedges == {0}


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


def test_a_letter_makes_a_name_of_a_figure() -> None:
    """7.22f is no quantity; 5 m and 5 km are."""
    known = tables("en")
    assert find_quantities(read("7.22f"), known) == []
    assert [one.unit for one in find_quantities(read("5m 5km"), known)] == ["meter", "kilometer"]


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
    assert grade(case("5 March 1989", language, "When?"), text).grade == CORRECT


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


def test_a_denial_about_others_is_no_refusal() -> None:
    """ "He could not recall" tells of somebody else; the answer beside it is an attempt."""
    text = read("He could not at that time recall it")
    assert refusals(text, tables("en")) == []
    assert refusals(read("I do not. Recall it"), tables("en")) == []


@given(st.text(max_size=60), st.sampled_from(LANGUAGES))
def test_the_last_word_is_an_end_of_the_text(text: str, language: str) -> None:
    """Whatever the text, what is kept is its end, and never nothing of something."""
    said = read(text)
    kept = last_word(said, tables(language), frozenset())
    assert said.words[len(said.words) - len(kept.words) :] == kept.words
    assert bool(kept.words) is bool(said.words)


def test_capitals_of_later_sentences_do_not_make_names() -> None:
    """A word counts as a name where it has a capital of its own, not that of a sentence."""
    assert analyse(case("x"), "Paris is it. Later «London» was.").capitals == {"paris", "london"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_is_complete(language: str) -> None:
    """Each data file has twelve months, number words up to twenty, and phrases of refusal."""
    known = tables(language)
    assert set(known.months.values()) == set(range(1, 13))
    assert {float(number) for number in range(1, 21)} <= set(known.numbers.values())
    for key in ("refusals", "hedges", "orders", "more", "less", "units", "year_questions"):
        assert known.data[0][key], key
    for key in ("function", "openers", "negations", "alternatives", "joiners", "endings"):
        assert known.words(key), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_measures_are_known_in_every_language(language: str) -> None:
    """Each language has units of length, mass, time and temperature that can be converted."""
    known = tables(language)
    assert {one.kind for one in known.conversions.values()} == {
        "length", "mass", "time", "temperature"
    }  # fmt: skip
    for key in ("several", "open_ends", "bounds", "degrees"):
        assert fold(str(known.data[0][key])).split(), key

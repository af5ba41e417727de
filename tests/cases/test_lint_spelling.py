"""The linter notices texts that are not in their slice's language."""

import pytest

from cases.tools.check.languages import known, language_of
from cases.tools.check.spelling import alphabet, language, orthography
from tests.support.linting import asked, found, item, said, subject

LONG_POLISH = "Ile lat mial Kopernik, gdy zaczal badac ruchy planet, a ile, gdy wydano jego prace? "
BELARUSIAN = "Ці маглі сяляне ў той вёсцы вырошчваць бульбу?"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Коя е столицата на страны?", "bg"),
        ("Кой е автор на мајка?", "bg"),
        ("Вельми добра жывуць людзі?", "be"),
        ("Ці ёсць у лесе ещё зубры?", "be"),
        ("Кой е Крылов?", "bg"),
    ],
)
def test_a_letter_the_language_lacks_is_an_error(text: str, code: str) -> None:
    """Bulgarian and Belarusian write even foreign words in their own letters."""
    assert found(alphabet, asked(text, code)) == [("error", 1)]


def test_quotations_and_capitals_in_foreign_letters_are_a_warning_there() -> None:
    """A Russian title in a Bulgarian question may be meant, and a numeral is no word."""
    assert found(alphabet, asked("Кой пише „мы и вы“?", "bg")) == [("warning", 1)]
    assert found(alphabet, asked("Кой е Фердинанд І?", "bg")) == [("warning", 1)]


def test_foreign_small_words_in_latin_script_are_a_warning() -> None:
    """Polish has no ä, ö, ü, ß, and Hungarian no õ; the message shows the words."""
    assert found(alphabet, asked("Co znaczy für?", "pl")) == [("warning", 1)]
    assert "'nõ'" in said(alphabet, asked("Ki volt az elsõ nõ?", "hu"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Kto to Müller z Köln?", "pl"),
        ("Kto napisał „für elise”?", "pl"),
        ("Árvíztűrő tükörfúrógép?", "hu"),
        ("Зажѝта ли е съща́та къща?", "bg"),
        ("Ці мои\u0306 гэта дом?", "be"),
        ("Кой е Müller от „Köln“?", "bg"),
        ("Was für ein naïve façade?", "en"),
        ("¿Qué es für?", "es"),
    ],
)
def test_own_letters_names_and_free_alphabets_are_fine(text: str, code: str) -> None:
    """Names, quotations and stress marks; English and unknown languages admit any letter."""
    assert not found(alphabet, asked(text, code))


@pytest.mark.parametrize(
    "word", ["Сьвет", "зьмена", "ня", "жыцьцё", "песьня", "плянаў", "радасьць"]
)
def test_the_other_belarusian_orthography_is_noticed(word: str) -> None:
    """A word of it is enough for a warning that shows it."""
    one = asked(f"Гэтая {word}?", "be")
    assert found(orthography, one) == [("warning", 1)]
    assert repr(word) in said(orthography, one)


@pytest.mark.parametrize(
    "word", ["Калісьці", "пісьмо", "восьмы", "тэлефон", "гэтыя", "дзьмуць", "Юньнань"]
)
def test_official_words_are_not_taken_for_it(word: str) -> None:
    """The official orthography has soft signs of its own."""
    assert not found(orthography, asked(f"Гэта {word}?", "be"))


def test_a_long_text_without_the_languages_letters_is_a_warning() -> None:
    """Polish without its marks was typed on another keyboard; a short text proves nothing."""
    assert found(orthography, asked(LONG_POLISH * 2, "pl")) == [("warning", 1)]
    assert not found(orthography, asked(LONG_POLISH[:40], "pl"))
    assert not found(orthography, asked(LONG_POLISH * 2 + "ł", "pl"))
    assert not found(orthography, asked(LONG_POLISH * 2, "es"))


def test_many_short_questions_are_judged_together() -> None:
    """What one question cannot show, the slice does."""
    rows = [item(row, LONG_POLISH[:60]) for row in (1, 2, 3)]
    assert found(orthography, subject(*rows, language="pl")) == [("warning", 0)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Where is the town?", "bg"),
        ("Kude se namira toi?", "bg"),
        ("Къде е този град?", "en"),
    ],
)
def test_a_text_without_one_letter_of_its_script_is_an_error(text: str, code: str) -> None:
    """An untranslated question, or one typed in the other script."""
    assert found(language, asked(text, code)) == [("error", 1)]
    assert not found(language, asked(text.split(maxsplit=1)[0], code))


@pytest.mark.parametrize(
    ("text", "code", "guess"),
    [
        ("Какой город является столицей этой большой страны и где он находится?", "bg", "ru"),
        ("Які місто є столицею цієї великої країни і де воно знаходиться?", "bg", "uk"),
        ("Кой град е столица на тази страна и къде се намира той?", "be", "bg"),
        ("Kteří skladatelé se narodili v tomto městě a kde se nachází jejich dům?", "pl", "cs"),
        ("Melyik város volt az ország fővárosa és hol található ma?", "pl", "hu"),
        ("Które miasto jest stolicą kraju, a kto był w nim przed rokiem?", "en", "pl"),
        ("Which town is the capital of the country and where is it?", "hu", "en"),
        (BELARUSIAN.replace("?", ", якая расла там?"), "bg", "be"),
    ],
)
def test_the_language_is_guessed_by_frequent_words(text: str, code: str, guess: str) -> None:
    """A question in another language is an error where none of its words is the own language's."""
    assert found(language, asked(text, code)) == [("error", 1)]
    assert f"looks like {guess!r}" in said(language, asked(text, code))


def test_a_doubtful_guess_is_a_warning() -> None:
    """Some frequent words of the own language leave a doubt."""
    text = "Kto napisał the song which is on that first album?"
    assert found(language, asked(text, "pl")) == [("warning", 1)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("do u need a gun license to go to a shooting range", "en"),
        ("Koho hraje Beanie Feldstein v seriálu What We Do in the Shadows?", "cs"),
        ("Kto napisał powieść „The Man Who Was and Is in the House”?", "pl"),
        ("What is it?", "hu"),
        ("¿Cuál es la capital de la República de Bulgaria?", "es"),
        (BELARUSIAN, "be"),
    ],
)
def test_doubtful_and_own_texts_are_left_alone(text: str, code: str) -> None:
    """Shared words, titles, quotations, short texts, unknown languages."""
    assert not found(language, asked(text, code))


def test_the_context_is_looked_at_too() -> None:
    """A passage in another language is the usual accident of translated files."""
    passage = "The town is on the river, and it was the capital of the country."
    assert "the context" in said(language, asked("Ki?", "hu", context=passage))


def test_every_language_entry_is_whole() -> None:
    """Frequent words are written in the language's own letters, and none is given twice."""
    for code, entry in known().items():
        letters = set("".join(entry.stops)) - {"'"}
        assert letters <= (entry.letters or letters), code
        assert entry.expected <= entry.letters, code
        assert len(entry.stops) > 60, code


def test_regions_share_a_language_and_orthographies_do_not() -> None:
    """``en-GB`` is English; Belarusian in the other orthography has no entry."""
    assert language_of("en-GB") is language_of("en")
    assert language_of("be-tarask") is None
    assert language_of("xx") is None

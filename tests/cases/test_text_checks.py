"""Checks find letters of the wrong script, careless typing, and texts in another language."""

import pytest

from cases.check.alphabets import known, language_of
from cases.check.text_checks import (
    alphabet,
    invisible,
    language,
    look_alikes,
    mixed_scripts,
    normal_form,
    orthography,
    quotes,
    spaces,
)
from tests.support.linting import asked, found, item, said, subject

CYRILLIC_A, CYRILLIC_O, LATIN_E = "\u0430", "\u043e", "e"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (f"Къде {LATIN_E}стествено живее той?", "bg"),
        ("Кo\u0433а беше това?", "bg"),
        (f"What is the c{CYRILLIC_A}pital of Bulgaria?", "en"),
        ("Which \u0397ungarian town is it?", "hu"),
        ("Що е бор\u00e1?", "bg"),
        ("Τι είναι η Aθήνα;", "el"),
    ],
)
def test_a_look_alike_letter_inside_a_word_is_an_error(text: str, language: str) -> None:
    """Latin in Cyrillic, Cyrillic and Greek in Latin: the word is not what it seems."""
    assert found(mixed_scripts, asked(text, language)) == [("error", 1)]


def test_the_odd_letter_is_named() -> None:
    """The message says which letter is out of place; a tie goes to the text's own script."""
    assert "U+0430 (CYRILLIC SMALL LETTER A)" in said(
        mixed_scripts, asked(f"Is t{CYRILLIC_A} a word?", "en")
    )
    assert "U+0070 (LATIN SMALL LETTER P)" in said(mixed_scripts, asked("Кафpri ли е?", "bg"))
    assert "U+0061 (LATIN SMALL LETTER A)" in said(mixed_scripts, asked("Това тa ли е?", "bg"))


def test_a_plain_foreign_letter_in_a_word_is_a_warning() -> None:
    """``PDFът`` may be meant: nobody takes ъ for a Latin letter."""
    assert found(mixed_scripts, asked("Къде е PDFът?", "bg")) == [("warning", 1)]


def test_golds_are_looked_at_and_recorded_answers_are_not() -> None:
    """A gold no model can match is the file's fault, a model's answer is its own."""
    word = f"S{CYRILLIC_O}fia"
    assert found(mixed_scripts, subject(item(1, "Where?", "Sofia", word))) == [("error", 1)]
    assert not found(mixed_scripts, subject(item(1, "Where?", "Sofia", recorded=word)))


@pytest.mark.parametrize(
    "text",
    ["What does TNFα do?", "Is it κB or αB?", "What is the ΔT of ββX?", "Τι είναι αυτό;", "Café?"],
)
def test_symbols_and_unmixed_words_are_fine(text: str) -> None:
    """Greek letters that look like nothing else are symbols."""
    assert not found(mixed_scripts, asked(text, "en"))


@pytest.mark.parametrize("text", ["IT-компанията на Apple", "3D-принтер и Wi-Fi", "MP3-ът"])
def test_scripts_on_two_sides_of_a_hyphen_are_fine(text: str) -> None:
    """A hyphen parts words."""
    assert not found(mixed_scripts, asked(text, "bg"))


def test_a_whole_word_in_disguise_is_a_warning() -> None:
    """A Latin letter that reads as a Bulgarian word, a Cyrillic word that reads as Latin."""
    assert found(look_alikes, asked("Кой e авторът?", "bg")) == [("warning", 1)]
    assert found(look_alikes, asked("Is it the \u0440\u0430\u0441\u0435 car?", "en"))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Кой превежда „The man in a hat“ и група A?", "bg"),
        ("Кой е XX век?", "bg"),
        ("Who wrote Война и мир?", "en"),
        ("Is it a Café?", "en"),
        ("Is it?", "en"),
        ("什么？Ａ", "zh"),
    ],
)
def test_honest_foreign_words_are_fine(text: str, language: str) -> None:
    """Quotations, numerals, names in another script, and languages without an entry."""
    assert not found(look_alikes, asked(text, language))


def test_letters_of_fancy_type_are_a_warning() -> None:
    """Mathematical and full-width letters, ligatures."""
    assert found(look_alikes, asked("What is 𝑁 in an oﬃce?", "en")) == [("warning", 1)] * 2


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u202e", "\x07"])
def test_what_draws_nothing_is_an_error(mark: str) -> None:
    """Zero width, soft hyphen, bidi and control characters."""
    assert found(invisible, asked(f"What is{mark} it?", "en")) == [("error", 1)]
    assert f"U+{ord(mark):04X}" in said(invisible, asked(f"What is{mark} it?", "en"))


def test_a_language_that_may_need_joiners_is_warned() -> None:
    """Persian writes a zero width non-joiner."""
    assert found(invisible, asked("می\u200cخواهم", "fa")) == [("warning", 1)]


def test_a_picture_is_no_fault_but_hides_none() -> None:
    """The selector after a symbol makes it a picture; what comes later is still found."""
    assert not found(invisible, asked("Is ❤\ufe0f a heart?", "en"))
    assert found(invisible, asked("Is ❤\ufe0f a\u200b heart?", "en"))
    assert found(invisible, asked("\ufe0fIs it?", "en"))


def test_split_letters_are_a_warning() -> None:
    """Text that is not in NFC does not equal what it looks like, blanks included."""
    assert "'Cafe\u0301'" in said(normal_form, asked("Cafe\u0301 or bar?", "en"))
    assert found(normal_form, asked("a\u2000b", "en")) == [("warning", 1)]
    assert not found(normal_form, asked("Café or bar?", "en"))


@pytest.mark.parametrize("text", [" What?", "What? ", "What  is it?", "What\u00a0 is it?"])
def test_needless_spaces_are_a_warning(text: str) -> None:
    """Before, after, and two in a row."""
    assert found(spaces, asked(text, "en")) == [("warning", 1)]


@pytest.mark.parametrize("text", ["It ends.  What?", "What?\n", "299\u00a0792 what?", "Is\n  it?"])
def test_habits_of_spacing_are_fine(text: str) -> None:
    """Two spaces after a stop, a last line end, one no-break space, an indented line."""
    assert not found(spaces, asked(text, "en"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('Who wrote "It?', "an odd number of straight quotes"),
        ('Who wrote „It"?', "an odd number of straight quotes"),
        ("Who wrote „It?", "1 of „ and 0 of “ or ”"),
        ("Who wrote “It?", "1 of “ and 0 of ”"),
        ("Who wrote «It?", "1 of « and 0 of »"),
    ],
)
def test_quotes_that_do_not_close_are_a_warning(text: str, what: str) -> None:
    """Whatever their kind; the message counts them."""
    assert what in said(quotes, asked(text, "en"))


@pytest.mark.parametrize(
    "text",
    ["„Под игото“?", "„Lalka”?", "“It”?", "«Яна»?", '"Steel 1"?', "Is he 5'10\" tall?", "It's?"],
)
def test_quotes_that_close_are_fine(text: str) -> None:
    """Each language's own pair; inches are no quotes."""
    assert not found(quotes, asked(text, "en"))


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

"""The linter finds letters of the wrong script, invisible characters and careless typing."""

import pytest

from cases.tools.check.homoglyphs import look_alikes, mixed_scripts
from cases.tools.check.typography import invisible, normal_form, quotes, spaces
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

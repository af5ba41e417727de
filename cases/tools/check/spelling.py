"""Whether texts are in their slice's language: its letters, its orthography, its common words."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache

from cases.tools.check.findings import Note, Subject, asked, error, warning
from cases.tools.check.languages import Language, known, language_of
from cases.tools.check.scripts import RANGES, has, words
from evaluators.text import listed, shown

LONG = 100
"""From how many letters on a text is expected to have some of its language's own."""
FEWEST_WORDS = 6
CLEAR = 4
"""How many frequent words of another language settle it where there is none of the own."""

_QUOTED = re.compile('[„“«»"(][^„“”«»"()]{0,200}[“”«»")]')
_MARKS = re.compile("[\u0300-\u036f]")


def alphabet(subject: Subject) -> Iterator[Note]:
    """Yield the texts with letters that the language does not have.

    Words of other scripts are left alone, and so are names and quotations where a language
    writes foreign ones as they are. Where it does not (``strict``), quotations and words in
    capitals, such as Roman numerals, are a warning and the rest is an error.
    """
    language = language_of(subject.slice_.language)
    if language is None or not language.letters:
        return
    for case in subject.cases:
        for field, text in asked(case):
            odd = _foreign_words(text, language)
            own = set(_foreign_words(_QUOTED.sub(" ", text), language))
            plain = [word for word in odd if word in own and _is_plain(word, language)]
            told = odd if language.strict else plain
            if told:
                say = error if language.strict and plain else warning
                yield say(case.row, _letters_message(field, told, language))


def _is_plain(word: str, language: Language) -> bool:
    return not word.isupper() if language.strict else word[0].islower()


def _letters_message(field: str, told: list[str], language: Language) -> str:
    letters = sorted({letter for word in told for letter in _foreign(language).findall(word)})
    return (
        f"the {field} has {listed(letters)}, no letters of {language.code!r}: "
        f"{listed(told[:5])}; correct them, or is it another language?"
    )


def _foreign_words(text: str, language: Language) -> list[str]:
    found = _foreign(language)
    text = unicodedata.normalize("NFC", text)  # a split letter is another check's affair
    if not found.search(text):
        return []
    bare = (_MARKS.sub("", word) for word in words(text))
    return list(dict.fromkeys(word for word in bare if found.search(word)))


@cache
def _foreign(language: Language) -> re.Pattern[str]:
    """Return the letters of the language's script that it does not have itself."""
    letters = "".join(sorted(language.letters))
    return re.compile(f"(?![{letters}{letters.upper()}])[{RANGES[language.script]}]")


def orthography(subject: Subject) -> Iterator[Note]:
    """Yield the texts in another orthography of the language, and those without its letters."""
    language = language_of(subject.slice_.language)
    if language is None:
        return
    whole = " ".join(case.question for case in subject.cases)
    if len(subject.cases) > 1 and _lacks_letters(whole, language):
        yield warning(0, f"all questions together have {_lack(language)}")
    for case in subject.cases:
        for field, text in asked(case):
            if _lacks_letters(text, language):
                yield warning(case.row, f"the {field} has {_lack(language)}")
            found = language.respelling and language.respelling.pattern.search(text)
            if found and language.respelling:
                yield warning(case.row, _respelt(field, text, found, language))


def _lacks_letters(text: str, language: Language) -> bool:
    if not language.expected or language.expected & set(text.casefold()):
        return False
    return sum(letter.isalpha() for letter in text) >= LONG


def _lack(language: Language) -> str:
    letters = " ".join(sorted(language.expected))
    return f"none of the letters {letters} of {language.code!r}; restore them"


def _respelt(field: str, text: str, found: re.Match[str], language: Language) -> str:
    near = next((word for word in words(text) if found[0] in word), found[0])
    told = language.respelling
    name, hint = (told.name, told.hint) if told else ("", "")
    return f"the {field} seems to be in {name}: {shown(near)}; {hint}"


def language(subject: Subject) -> Iterator[Note]:
    """Yield the texts that seem to be in another language, by script and by frequent words."""
    own = language_of(subject.slice_.language)
    if own is None:
        return
    for case in subject.cases:
        for field, text in asked(case):
            note = _wrong_script(case.row, field, text, own) or _guess(case.row, field, text, own)
            if note:
                yield note


def _wrong_script(row: int, field: str, text: str, own: Language) -> Note | None:
    if own.script == "Latin" and text.isascii():
        return None
    if has(own.script, text) or len(words(text)) < 3:
        return None
    message = f"the {field} has no {own.script} letter: {shown(text)}; is it in {own.code!r}?"
    return error(row, message)


def _guess(row: int, field: str, text: str, own: Language) -> Note | None:
    found = words(_QUOTED.sub(" ", text))
    if len(found) < FEWEST_WORDS:
        return None
    small = {word for word in found if not word[0].isupper()}  # titles are often left as they are
    told = {
        code: _telling(small | {found[0].casefold()}, own, other) for code, other in known().items()
    }
    best = max(told, key=lambda code: told[code][1] - told[code][0])
    mine, theirs = told[best]
    if theirs < max(3, mine + 2):
        return None
    message = (
        f"the {field} looks like {best!r}: {theirs} frequent words of that language alone against "
        f"{mine} of {own.code!r} in {shown(text)}; put it in the right file"
    )
    return (error if mine == 0 and theirs >= CLEAR else warning)(row, message)


def _telling(found: set[str], own: Language, other: Language) -> tuple[int, int]:
    """Return how many words are frequent in one of the two languages and not in the other."""
    return len(found & own.stops - other.stops), len(found & other.stops - own.stops)

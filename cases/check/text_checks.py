"""Checks of how texts are written: scripts, typing, spelling, and whether it is the language."""

import re
import unicodedata
from collections.abc import Iterator

from cases.check.alphabets import (
    RANGES,
    TWINNED,
    TWINS,
    Language,
    has,
    known,
    language_of,
    mixed_words,
    scripts,
    words,
)
from cases.check.findings import Note, Subject, asked, error, warning, written
from evaluators.text import INVISIBLE, listed, shown

LONG = 100
"""From how many letters on a text is expected to have some of its language's own."""
FEWEST_WORDS = 6
CLEAR = 4
"""How many frequent words of another language settle it where there is none of the own."""

_QUOTED = re.compile('[„“«»"(][^„“”«»"()]{0,200}[“”«»")]')
_DOUBLE = re.compile(r"(?<=[^\s.!?:;])[^\S\n\r]{2,}(?=\S)")
_STRAIGHT = re.compile(r'(?<!\d)"')
_AROUND = 12
# Letters that are the same drawing in small type; к and k, for instance, are not.
_SMALL = str.maketrans("aceopxyijs", "асеорхуіјѕ")
_MARKS = re.compile("[\u0300-\u036f]")
_FANCY = re.compile("[\uff21-\uff3a\uff41-\uff5a\ufb00-\ufb06\U0001d400-\U0001d7ff]")


def mixed_scripts(subject: Subject) -> Iterator[Note]:
    """Yield the words that mix Latin, Cyrillic and Greek letters; an error where they look alike.

    A word such as ``PDFа``, with a letter that can be told from Latin ones, is a warning.
    """
    language = language_of(subject.slice_.language)
    home = language.script if language else "Latin"
    for row, field, text in written(subject):
        for word, odd in mixed_words(text, home):
            bare = set(_MARKS.sub("", unicodedata.normalize("NFD", odd)))
            same = bare <= TWINS or bare <= TWINNED
            message = (
                f"word {shown(word)} in the {field} mixes scripts: {_named(odd[0])}; "
                "retype the word on one keyboard"
            )
            yield (error if same else warning)(row, message)


def look_alikes(subject: Subject) -> Iterator[Note]:
    """Yield whole words of another script that read as words of the text's own language."""
    language = language_of(subject.slice_.language)
    if language is None:
        return
    disguised = _twins_in_latin if language.script == "Latin" else _latin_among
    for row, field, text in asked(subject):
        for word in disguised(text, language):
            yield warning(row, f"word {shown(word)} in the {field} is {_named(word[0])}; retype it")
        for letter in sorted(set(_FANCY.findall(text))):
            yield warning(row, f"the {field} has {_named(letter)}; write the plain letters")


def _twins_in_latin(text: str, _: Language) -> list[str]:
    """Return the words that look Latin and are not, where no word is plainly of another script."""
    found = [] if text.isascii() else words(text)
    others = [word for word in found if not has("Latin", word) and scripts(word)]
    suspect = [word for word in others if set(word) <= TWINS]
    return suspect if len(suspect) == len(others) else []


def _latin_among(text: str, language: Language) -> Iterator[str]:
    """Yield Latin words between two of the language's own that look like its frequent words."""
    found = words(text)
    for before, word, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        alone = not (has("Latin", before) or has("Latin", after))
        if alone and word.isascii() and word.translate(_SMALL) in language.stops:
            yield word


def _named(letter: str) -> str:
    return f"U+{ord(letter):04X} ({unicodedata.name(letter, 'no name')})"


def invisible(subject: Subject) -> Iterator[Note]:
    """Yield the texts with characters that draw nothing.

    An error where the language is known to need none; others join letters with some of them.
    """
    say = error if language_of(subject.slice_.language) else warning
    for row, field, text in written(subject):
        marks = INVISIBLE.finditer(text)
        found = next((mark for mark in marks if not _is_emoji(text, mark.start())), None)
        if found:
            name = unicodedata.name(found[0], "a control character")
            what = f"the invisible U+{ord(found[0]):04X} ({name}) near {_near(found)}"
            yield say(row, f"the {field} holds {what}; delete it")


def _near(match: re.Match[str]) -> str:
    return shown(match.string[max(0, match.start() - _AROUND) : match.end() + _AROUND])


def _is_emoji(text: str, index: int) -> bool:
    """Return whether this is what makes the symbol before it a picture."""
    symbol = index > 0 and unicodedata.category(text[index - 1]) in ("So", "Sk", "Po", "Sm")
    return text[index] in "\ufe0e\ufe0f\u200d" and symbol


def normal_form(subject: Subject) -> Iterator[Note]:
    """Yield the texts that are not in Unicode's form NFC: they differ from their own look."""
    normal = unicodedata.is_normalized
    for row, field, text in written(subject):
        if not normal("NFC", text):
            part = next((word for word in text.split() if not normal("NFC", word)), text)
            message = f"the {field} is not in normal form NFC at {shown(part)}; save it as NFC"
            yield warning(row, message)


def spaces(subject: Subject) -> Iterator[Note]:
    """Yield the texts with a space before, after, or doubled (after a full stop it is a habit)."""
    for row, field, text in written(subject):
        if text.strip("\r\n") != text.strip():
            yield warning(row, f"the {field} begins or ends with a space; delete it")
        if double := _DOUBLE.search(text):
            yield warning(row, f"the {field} has two spaces near {_near(double)}; leave one")


def quotes(subject: Subject) -> Iterator[Note]:
    """Yield the questions and golds whose quotation marks do not close as they opened."""
    for row, field, text in written(subject):
        if field != "context" and (what := _unbalanced(text)):
            message = f"the {field} has {what} in {shown(text)}; close each quote as it opened"
            yield warning(row, message)


def _unbalanced(text: str) -> str:
    """Return which marks are left over; a straight one after a digit is an inch or a second."""
    counted = {mark: text.count(mark) for mark in "„“”«»"}
    low, left, right = (counted[mark] for mark in "„“”")
    if text.count('"') % 2 and len(_STRAIGHT.findall(text)) % 2:
        return "an odd number of straight quotes"
    if counted["«"] != counted["»"]:
        return f"{counted['«']} of « and {counted['»']} of »"
    if low and low != left + right:
        return f"{low} of „ and {left + right} of “ or ”"
    if not low and left != right:
        return f"{left} of “ and {right} of ”"
    return ""


def alphabet(subject: Subject) -> Iterator[Note]:
    """Yield the texts with letters that the language does not have.

    Words of other scripts are left alone, and so are names and quotations where a language
    writes foreign ones as they are. Where it does not (``strict``), quotations and words in
    capitals, such as Roman numerals, are a warning and the rest is an error.
    """
    language = language_of(subject.slice_.language)
    if language is None or not language.letters:
        return
    own_letters = "".join(sorted(language.letters))
    others = f"(?![{own_letters}{own_letters.upper()}])[{RANGES[language.script]}]"
    letters = re.compile(others)  # of the language's script, without its own
    for row, field, text in asked(subject):
        odd = _foreign_words(text, letters)
        unquoted = set(_foreign_words(_QUOTED.sub(" ", text), letters)).intersection(odd)
        small = {word for word in unquoted if word[0].islower()}
        plain = {word for word in unquoted if not word.isupper()} if language.strict else small
        foreign = [word for word in odd if language.strict or word in plain]
        if foreign:
            found = sorted({letter for word in foreign for letter in letters.findall(word)})
            message = (
                f"the {field} has {listed(found)}, no letters of {language.code!r}: "
                f"{listed(foreign[:5])}; correct them, or is it another language?"
            )
            yield (error if language.strict and plain else warning)(row, message)


def _foreign_words(text: str, letters: re.Pattern[str]) -> list[str]:
    text = unicodedata.normalize("NFC", text)  # a split letter is another check's affair
    if not letters.search(text):
        return []
    bare = (_MARKS.sub("", word) for word in words(text))
    return list(dict.fromkeys(word for word in bare if letters.search(word)))


def orthography(subject: Subject) -> Iterator[Note]:
    """Yield the texts in another orthography of the language, and those without its letters."""
    language = language_of(subject.slice_.language)
    if language is None:
        return
    expected = " ".join(sorted(language.expected))
    lack = f"none of the letters {expected} of {language.code!r}; restore them"
    whole = " ".join(case.question for case in subject.cases)
    if len(subject.cases) > 1 and _lacks_letters(whole, language):
        yield warning(0, f"all questions together have {lack}")
    other = language.respelling
    for row, field, text in asked(subject):
        if _lacks_letters(text, language):
            yield warning(row, f"the {field} has {lack}")
        if other and (found := other.pattern.search(text)):
            near = next((word for word in words(text) if found[0] in word), found[0])
            what = f"the {field} seems to be in {other.name}: {shown(near)}; {other.hint}"
            yield warning(row, what)


def _lacks_letters(text: str, language: Language) -> bool:
    if not language.expected or language.expected & set(text.casefold()):
        return False
    return sum(letter.isalpha() for letter in text) >= LONG


def language(subject: Subject) -> Iterator[Note]:
    """Yield the texts that seem to be in another language, by script and by frequent words."""
    own = language_of(subject.slice_.language)
    if own is None:
        return
    for row, field, text in asked(subject):
        ascii_latin = own.script == "Latin" and text.isascii()
        if not (ascii_latin or has(own.script, text) or len(words(text)) < 3):
            what = f"no {own.script} letter: {shown(text)}; is it in {own.code!r}?"
            yield error(row, f"the {field} has {what}")
            continue
        best, mine, theirs = _likeliest_other(text, own)
        if theirs >= max(3, mine + 2):
            message = (
                f"the {field} looks like {best!r}: {theirs} frequent words of that language alone "
                f"against {mine} of {own.code!r} in {shown(text)}; put it in the right file"
            )
            yield (error if mine == 0 and theirs >= CLEAR else warning)(row, message)


def _likeliest_other(text: str, own: Language) -> tuple[str, int, int]:
    """Return a language's code, and how many words are frequent in ``own`` alone and in it alone.

    No word is counted in a short text.
    """
    found = words(_QUOTED.sub(" ", text))
    if len(found) < FEWEST_WORDS:
        return "", 0, 0
    small = {word for word in found if not word[0].isupper()}  # titles are often left as they are
    small.add(found[0].casefold())
    counts = (
        (code, len(small & own.stops - other.stops), len(small & other.stops - own.stops))
        for code, other in known().items()
    )
    return max(counts, key=lambda count: count[2] - count[1])

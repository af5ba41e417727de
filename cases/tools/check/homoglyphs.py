"""Letters of another script: inside a word, or as a whole word that only looks right."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from cases.tools.check.findings import Note, Subject, asked, error, warning, written
from cases.tools.check.languages import Language, language_of
from cases.tools.check.scripts import TWINNED, TWINS, has, mixed_words, scripts, words
from evaluators.text import shown

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
    for case in subject.cases:
        for field, text in written(case):
            for word, odd in mixed_words(text, home):
                bare = set(_MARKS.sub("", unicodedata.normalize("NFD", odd)))
                same = bare <= TWINS or bare <= TWINNED
                message = (
                    f"word {shown(word)} in the {field} mixes scripts: {_named(odd[0])}; "
                    "retype the word on one keyboard"
                )
                yield (error if same else warning)(case.row, message)


def look_alikes(subject: Subject) -> Iterator[Note]:
    """Yield whole words of another script that read as words of the text's own language."""
    language = language_of(subject.slice_.language)
    if language is None:
        return
    for case in subject.cases:
        for field, text in asked(case):
            for word in _disguised(text, language):
                message = f"word {shown(word)} in the {field} is {_named(word[0])}; retype it"
                yield warning(case.row, message)
            for letter in sorted(set(_FANCY.findall(text))):
                message = f"the {field} has {_named(letter)}; write the plain letters"
                yield warning(case.row, message)


def _disguised(text: str, language: Language) -> Iterable[str]:
    if language.script == "Latin":
        return () if text.isascii() else _twins_in_latin(words(text))
    return _latin_among(words(text), language)


def _twins_in_latin(found: list[str]) -> list[str]:
    """Return the words that look Latin and are not, where no word is plainly of another script."""
    others = [word for word in found if not has("Latin", word) and scripts(word)]
    suspect = [word for word in others if set(word) <= TWINS]
    return suspect if len(suspect) == len(others) else []


def _latin_among(found: list[str], language: Language) -> Iterator[str]:
    """Yield Latin words between two of the language's own that look like its frequent words."""
    for before, word, after in zip(["", *found], found, [*found[1:], ""], strict=False):
        alone = not (has("Latin", before) or has("Latin", after))
        if alone and word.isascii() and word.translate(_SMALL) in language.stops:
            yield word


def _named(letter: str) -> str:
    return f"U+{ord(letter):04X} ({unicodedata.name(letter, 'no name')})"

"""One folded form of every text: case, marks, script and apostrophes no longer differ."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import cast

from evaluators.reading import load_yaml
from evaluators.text import without_invisible

FOLDER = Path(__file__).parent
_STACK = re.compile(r"[^\w\s\x00-\x7f]{32,}")
_MARKS = re.compile("[\u0300-\u036f]")
_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_APOSTROPHE = re.compile(r"(?<=\w)'(?=\w)")
_GLUED = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_SEASON = re.compile(r"(?<![\d.,/-])(1\d|20)(\d\d)(\s?[-–—/]\s?)(\d\d)(?![\d/]|[-–.,]\d)")
_SQUARED = re.compile(r"(?<=[mм])(?:²|2\b)")  # of km², one word with its unit
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_LATIN = re.compile("[A-Za-z]")
_VOWELS = frozenset("aeiouy")
_WORD = re.compile(r"([^\W\d_]+|\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text as words and what is between them. ``gaps[i]`` is before ``words[i]``; one gap more.

    ``cyrillic`` and ``latin`` say which letters the text was written in.
    """

    words: tuple[str, ...]
    gaps: tuple[str, ...]
    cyrillic: bool = False
    latin: bool = True


def plain(text: str) -> str:
    """Return the text in compatibility form without case, outer marks and doubled spaces."""
    words = _compatible(text).casefold().split()
    return " ".join(words).strip(" .,;:!?\"'*`“”„«»")


def fold(text: str) -> str:
    """Return the text without case, marks, Cyrillic letters and apostrophes inside words.

    A second year of two digits gets all four: 1979-80 is 1979-1980.
    """

    def spell_out(season: re.Match[str]) -> str:
        century, first, sign, second = season.groups()
        return f"{century}{first}{sign}{century}{second}" if first < second else season[0]

    text = _SQUARED.sub("kv", text)
    text = _SEASON.sub(spell_out, _GLUED.sub(" ", text))
    if not text.isascii():
        text = _compatible(text).casefold().translate(_letters())
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    text = text.casefold()
    if "'" in text:
        text = _APOSTROPHE.sub("", _POSSESSIVE.sub("", text))
    return text


def _compatible(text: str) -> str:
    """Return the text in NFKC without invisible characters.

    Normalising sorts the marks on one letter in quadratic time, so a tower of them is cut first.
    """
    text = text.replace("Â\u00a0", " ")  # a no-break space that was read in the wrong encoding
    short = _STACK.sub(lambda tower: tower[0][:32], without_invisible(text))
    return unicodedata.normalize("NFKC", short)


def read(text: str) -> Text:
    """Return the folded text with its words: runs of letters, and runs of digits."""
    parts = _WORD.split(fold(text))
    cyrillic = not text.isascii() and _CYRILLIC.search(text) is not None
    latin = not cyrillic or _LATIN.search(text) is not None
    return Text(words=tuple(parts[1::2]), gaps=tuple(parts[0::2]), cyrillic=cyrillic, latin=latin)


def without(text: Text, dropped: frozenset[str]) -> Text:
    """Return the text without these words, their gaps joined; unchanged if none would be left.

    A word before a full stop, a hyphen or a plus stays: "A." is an initial, "p-a-d" spells.
    """
    if dropped.issuperset(text.words):
        return text
    words: list[str] = []
    gaps = [text.gaps[0]]
    for word, gap in zip(text.words, text.gaps[1:], strict=True):
        glued = bool(words) and not gaps[-1]  # the letter of "3a"
        if word in dropped and not glued and not gap.startswith((".", "-", "+")):
            gaps[-1] += gap
        else:
            words.append(word)
            gaps.append(gap)
    return replace(text, words=tuple(words), gaps=tuple(gaps))


@cache
def sound(word: str) -> str:
    """Return what is left of a folded word when spelling habits and inner vowels are taken out.

    Two spellings of one name in two scripts mostly agree in it; it is used for nothing else.
    """
    if word[:1] == "u" and word[1:2] in _VOWELS:
        word = "v" + word[1:]
    for spelling, spoken in _pairs("sounds"):
        word = word.replace(spelling, spoken)
    first = "a" if word[:1] in _VOWELS else word[:1]
    rest = "".join(letter for letter in word[1:] if letter not in _VOWELS)
    return re.sub(r"(.)\1+", r"\1", first + rest)


@cache
def sounds(word: str) -> frozenset[str]:
    """Return the sound of a folded word, and of its second reading."""
    other = word
    for spelling, spoken in _pairs("readings"):
        other = other.replace(spelling, spoken)
    return frozenset({sound(word), sound(other)})


@cache
def _letters() -> dict[int, str]:
    data = cast("Mapping[str, Mapping[str, str]]", load_yaml(FOLDER / "letters.yaml"))
    return str.maketrans({**data["latin"], **data["cyrillic"]})


@cache
def _pairs(key: str) -> tuple[tuple[str, str], ...]:
    data = cast("Mapping[str, list[str]]", load_yaml(FOLDER / "letters.yaml"))
    pairs = (line.split() for line in data[key])
    return tuple((pair[0], pair[1] if len(pair) > 1 else "") for pair in pairs)

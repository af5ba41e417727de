"""Folded text: case, diacritics, script and apostrophes no longer differ."""

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
LIMIT = 32_000
"""Characters of an answer that are read."""
_EXPANSION = 18  # characters that one can become in NFKC
_STACK = re.compile(r"[^\w\s\x00-\x7f]{32,}")
_MARKS = re.compile("[\u0300-\u036f]")
_APOSTROPHE = re.compile(r"(?<=\w)'s\b|(?<=\w)'(?=\w)")
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_VOWELS = frozenset("aeiouy")
_WORD = re.compile(r"([\u3040-\u30ff\u3400-\u9fff]|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A folded text as words and what stands between them."""

    words: tuple[str, ...]
    """Runs of letters and runs of digits; a Chinese or Japanese character is a word."""
    gaps: tuple[str, ...]
    """``gaps[i]`` is before ``words[i]``; there is one gap more than words."""
    cyrillic: bool = False


def within_limit(text: str) -> str:
    """Return the beginning of a text that is read: at most 32,000 characters, in NFKC too."""
    cut = text[:LIMIT]
    grown = not cut.isascii() and len(unicodedata.normalize("NFKC", cut)) > LIMIT
    return cut[: LIMIT // _EXPANSION] if grown else cut


def plain(text: str) -> str:
    """Return the text in compatibility form without case, outer marks and doubled spaces."""
    return " ".join(_compatible(text).casefold().split()).strip(" .,;:!?\"'*`“”„«»")


def fold(text: str) -> str:
    """Return the text without case, diacritics, Cyrillic letters and apostrophes inside words."""
    text = _CAMEL.sub(" ", text)
    if not text.isascii():
        text = _compatible(text).casefold().translate(_letters())
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return _APOSTROPHE.sub("", text.casefold())


def _compatible(text: str) -> str:
    """Return the text in NFKC without invisible characters.

    Normalising sorts the marks on one letter in quadratic time, so a tower of them is cut first.
    """
    text = text.replace("Â\u00a0", " ")  # a no-break space that was read in the wrong encoding
    short = _STACK.sub(lambda tower: tower[0][:32], without_invisible(text))
    return unicodedata.normalize("NFKC", short)


def read(text: str) -> Text:
    """Return the folded text with its words."""
    parts = _WORD.split(fold(text))
    cyrillic = not text.isascii() and _CYRILLIC.search(text) is not None
    return Text(words=tuple(parts[1::2]), gaps=tuple(parts[0::2]), cyrillic=cyrillic)


def without(text: Text, dropped: frozenset[str]) -> Text:
    """Return the text without these words, their gaps joined; unchanged if none would be left."""
    words: list[str] = []
    gaps = [text.gaps[0]]
    for word, gap in zip(text.words, text.gaps[1:], strict=True):
        part = gap.startswith((".", "-", "+")) or (words and not gaps[-1])  # "A.", "3a"
        if word in dropped and not part:
            gaps[-1] += gap
        else:
            words.append(word)
            gaps.append(gap)
    return replace(text, words=tuple(words), gaps=tuple(gaps)) if words else text


@cache
def sound(word: str) -> str:
    """Return a folded word without spelling habits and inner vowels.

    Two spellings of one name in two scripts mostly agree in it.
    """
    if word[:1] == "u" and word[1:2] in _VOWELS:
        word = "v" + word[1:]
    for spelling, spoken in _table()["sounds"].items():
        word = word.replace(spelling, spoken)
    first = "a" if word[:1] in _VOWELS else word[:1]
    rest = "".join(letter for letter in word[1:] if letter not in _VOWELS)
    return re.sub(r"(.)\1+", r"\1", first + rest)


@cache
def _table() -> Mapping[str, Mapping[str, str]]:
    return cast("Mapping[str, Mapping[str, str]]", load_yaml(FOLDER / "letters.yaml"))


@cache
def _letters() -> dict[int, str]:
    table = _table()
    marks = dict.fromkeys(table["apostrophes"], "'")
    return str.maketrans({**marks, **table["latin"], **table["cyrillic"]})

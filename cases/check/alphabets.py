"""Scripts, letters that look the same in two of them, and what is known of each language."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from cases.columns import LOOK_ALIKES
from evaluators.reading import load_yaml

FILE = Path(__file__).parent / "languages.yaml"
RANGES = {
    "Latin": "A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u0481\u048a-\u052f\u1c80-\u1c88",
    "Greek": "\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u03ff\u1f00-\u1fff",
}
"""The letters of the scripts that look alike, as parts of a regular expression's class."""

# A word is letters, each with the marks that stand on it.
_WORD = re.compile("(?:[^\\W\\d_][\u0300-\u036f]*+)+")
_OF = {script: re.compile(f"[{letters}]") for script, letters in RANGES.items()}
_NOT_LATIN = re.compile(f"[{RANGES['Cyrillic']}{RANGES['Greek']}]")

# Small Greek letters stand in Latin words as symbols; only these cannot be told from Latin ones.
_GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
TWINS = frozenset(filter(_OF["Cyrillic"].match, map(chr, LOOK_ALIKES))) | set(_GREEK)
"""Cyrillic and Greek letters that are drawn like Latin ones."""
TWINNED = frozenset("".join(TWINS).translate(LOOK_ALIKES))
"""Latin letters that are drawn like Cyrillic or Greek ones."""


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters with their marks."""
    return _WORD.findall(text)


def scripts(word: str) -> Counter[str]:
    """Return how many letters of each script a word has; other scripts are not counted."""
    return Counter(script for letter in word for script in _OF if _OF[script].match(letter))


def has(script: str, text: str) -> bool:
    """Return whether a text has a letter of this script."""
    return _OF[script].search(text) is not None


def mixed_words(text: str, home: str) -> Iterator[tuple[str, str]]:
    """Yield the words that hold letters of two scripts, with the letters that are out of place.

    Those are the fewer ones; where they are as many, those not of ``home``, the text's script.
    Greek letters that look like nothing else are symbols (``TNFα``) and no fault.
    """
    if text.isascii() or not _NOT_LATIN.search(text):
        return
    for word in words(text):
        if sum(has(script, word) for script in _OF) > 1:
            odd = _odd(word, scripts(word), home)
            if odd:
                yield word, odd


def _odd(word: str, found: Counter[str], home: str) -> str:
    """Return a word's letters of its rarer script, nothing where they are symbols."""
    host, guest = (script for script, _ in found.most_common(2))
    if found[host] == found[guest] and guest == home:
        host, guest = guest, host
    odd = "".join(letter for letter in word if _OF[guest].match(letter))
    if "Greek" not in (host, guest):
        return odd
    symbols = not set(odd) <= TWINS | TWINNED or (host == "Greek" and found[host] < 3)
    return "" if symbols else odd


@dataclass(frozen=True, slots=True)
class Respelling:
    """Another orthography of a language: how to notice it, its name, and what to do."""

    pattern: re.Pattern[str]
    name: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. ``letters`` is its alphabet in small letters, empty where any may stand.

    ``strict`` says that even names are written in these letters; every long text has at least
    one letter of ``expected``, where there are any; ``stops`` are frequent words. ``day`` and
    ``town`` are found in questions that ask for one.
    """

    code: str
    script: str
    letters: frozenset[str]
    stops: frozenset[str]
    strict: bool = False
    expected: frozenset[str] = frozenset()
    respelling: Respelling | None = None
    day: re.Pattern[str] | None = None
    town: re.Pattern[str] | None = None


def language_of(code: str) -> Language | None:
    """Return what is known of a language; ``en-GB`` is ``en``, but ``be-tarask`` is not ``be``."""
    name, _, subtag = code.partition("-")
    return known().get(name if len(subtag) == 2 else code)


@cache
def known() -> Mapping[str, Language]:
    """Return every known language by its code."""
    found = {}
    for code, entry in cast("Mapping[str, Mapping[str, Any]]", load_yaml(FILE)).items():
        respelling = None
        if respelt := entry.get("respelt"):
            pattern = re.compile("|".join(respelt["patterns"]), re.IGNORECASE)
            respelling = Respelling(pattern, respelt["name"], respelt["hint"])
        asked = {key: re.compile(entry[key], re.I) for key in ("day", "town") if key in entry}
        found[code] = Language(
            code=code,
            script=entry["script"],
            letters=frozenset(entry["letters"]),
            stops=frozenset(entry["stops"].split()),
            strict=entry.get("strict") == "true",
            expected=frozenset(entry.get("expected", "")),
            respelling=respelling,
            **asked,
        )
    return found

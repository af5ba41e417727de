"""Scripts, letters that look the same in two of them, and what is known of each language."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from cases.rows import LOOK_ALIKES
from evaluators.reading import load_yaml

FILE = Path(__file__).parent / "languages.yaml"

# A word is letters, each with the marks that stand on it.
_WORD = re.compile("(?:[^\\W\\d_][\u0300-\u036f]*+)+")
_LETTERS = {
    "Latin": re.compile("[A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"),
    "Cyrillic": re.compile("[\u0400-\u0481\u048a-\u052f\u1c80-\u1c88]"),
    "Greek": re.compile(
        "[\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u03ff\u1f00-\u1fff]"
    ),
}

# Small Greek letters stand in Latin words as symbols; only these cannot be told from Latin ones.
_GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
TWINS = frozenset(filter(_LETTERS["Cyrillic"].match, map(chr, LOOK_ALIKES))) | set(_GREEK)
"""Cyrillic and Greek letters that are drawn like Latin ones."""
TWINNED = frozenset("".join(TWINS).translate(LOOK_ALIKES))
"""Latin letters that are drawn like Cyrillic or Greek ones."""


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters with their marks."""
    return _WORD.findall(text)


def has(script: str, text: str) -> bool:
    """Return whether a text has a letter of this script."""
    return _LETTERS[script].search(text) is not None


def mixed_words(text: str, home: str) -> Iterator[tuple[str, str]]:
    """Yield the words with letters of two scripts, and the letters that are out of place.

    Those are of the rarer script of the word; in a tie, not of ``home``, the script of the text.
    Greek letters that look like nothing else are symbols (``TNFα``) and no fault.
    """
    for word in () if text.isascii() else words(text):
        found = Counter(script for letter in word for script in _LETTERS if has(script, letter))
        if len(found) < 2:
            continue
        host, guest = (script for script, _ in found.most_common(2))
        if found[host] == found[guest] and guest == home:
            host, guest = guest, host
        odd = "".join(letter for letter in word if has(guest, letter))
        symbols = not set(odd) <= TWINS | TWINNED or (host == "Greek" and found[host] < 3)
        if "Greek" not in found or not symbols:
            yield word, odd


@dataclass(frozen=True, slots=True)
class Respelling:
    """Another orthography of a language, and how to notice it."""

    pattern: re.Pattern[str]
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """What is known of one language."""

    code: str
    script: str
    letters: frozenset[str]
    """Its alphabet in small letters; empty where any letter may stand."""
    stops: frozenset[str]
    """Frequent words."""
    either: frozenset[str]
    """The words for *or*."""
    expected: frozenset[str]
    """Every long text has at least one of these letters, where there are any."""
    respelling: Respelling | None = None


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
            respelling = Respelling(pattern, respelt["name"])
        found[code] = Language(
            code=code,
            script=entry["script"],
            letters=frozenset(entry["letters"]),
            stops=frozenset(entry["stops"].split()),
            either=frozenset(entry["or"].split()),
            expected=frozenset(entry.get("expected", "")),
            respelling=respelling,
        )
    return found

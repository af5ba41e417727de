"""What is known of a language, and whether an answer is in it: scripts, letters, frequent words."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from qagate.bundled import EVALUATORS
from qagate.evaluators.reading import load_yaml

LANGUAGES_FILE = EVALUATORS / "languages.yaml"

# A word is letters, each with the marks that stand on it.
_WORD = re.compile("(?:[^\\W\\d_][\u0300-\u036f]*+)+")
SCRIPTS = {
    "Latin": re.compile(
        "[A-Za-zªº\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]"
    ),
    "Cyrillic": re.compile("[\u0400-\u0481\u048a-\u052f\u1c80-\u1c88]"),
    "Greek": re.compile(
        "[\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u03ff\u1f00-\u1fff]"
    ),
}
"""The letters of each script."""
_QUOTED = re.compile(r"[\"“”„«»][^\"“”„«»]*[\"“”„«»]")
_PLAIN = frozenset(
    "abcdefghijklmnopqrstuvwxyz"
)  # of a language whose letters are not listed


def words(text: str) -> list[str]:
    """Return the words of a text: runs of letters with their marks."""
    return _WORD.findall(text)


def has(script: str, text: str) -> bool:
    """Return whether a text has a letter of this script."""
    return SCRIPTS[script].search(text) is not None


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
    empty: tuple[str, ...] = ()
    """Sentences that answer nothing."""
    respelt: re.Pattern[str] | None = None
    """Tells words of another orthography, the ``spelling``."""
    spelling: str = ""

    def speaks(self, word: str, other: "Language") -> bool:
        """Return whether a word, in small letters, is one of this language and not of the other."""
        frequent = word in self.stops and word not in other.stops
        return frequent or (self._spells(word) and not other._spells(word))

    def rival(self, found: Collection[str]) -> tuple[str, int, int]:
        """Return the likeliest other language, and the numbers of words frequent in one alone."""
        counts = []
        for code, other in sorted(known().items()):
            mine, theirs = self.stops - other.stops, other.stops - self.stops
            counts.append(
                (code, sum(w in mine for w in found), sum(w in theirs for w in found))
            )
        return max(counts, key=lambda count: count[2] - count[1])

    def _spells(self, word: str) -> bool:
        return (self.letters or _PLAIN).issuperset(word)


def language_of(code: str) -> Language | None:
    """Return what is known of a language; ``en-GB`` is ``en``, but ``be-tarask`` is not ``be``."""
    name, _, subtag = code.partition("-")
    return known().get(name if len(subtag) == 2 else code)


@cache
def known() -> Mapping[str, Language]:
    """Return every known language by its code."""
    found = {}
    for code, entry in cast(
        "Mapping[str, Mapping[str, Any]]", load_yaml(LANGUAGES_FILE)
    ).items():
        respelt = entry.get("respelt")
        found[code] = Language(
            code=code,
            script=entry["script"],
            letters=frozenset(entry["letters"]),
            stops=frozenset(entry["stops"].split()),
            either=frozenset(entry["or"].split()),
            expected=frozenset(entry.get("expected", "")),
            empty=tuple(entry.get("empty", ())),
            respelt=respelt
            and re.compile("|".join(respelt["patterns"]), re.IGNORECASE),
            spelling=respelt["name"] if respelt else "another spelling",
        )
    return found


def is_in(text: str, code: str) -> bool | None:
    """Return whether a text is in a language; None where nothing in it can tell.

    A word in small letters speaks for a language if only its alphabet has all of its letters, or if
    only its frequent words have it. Names and quotations may be in any language.
    """
    own, found = language_of(code), words(_QUOTED.sub(" ", text))
    first = [word.casefold() for word in found[:1]]
    opening = [
        word for word in first if any(word in one.stops for one in known().values())
    ]
    small = opening + [word for word in found[len(opening) :] if word.islower()]
    if own is None or not any(len(word) > 2 for word in small):  # "de Gasparis", "m/s"
        return None
    if 2 * sum(has(own.script, word) for word in small) < len(small):
        return False
    others = [
        one for one in known().values() if one.script == own.script and one is not own
    ]
    leads = [
        sum(own.speaks(word, one) - one.speaks(word, own) for word in small)
        for one in others
    ]
    lead = min(leads, default=0)
    return lead > 0 if lead else None

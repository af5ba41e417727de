"""What is known of a language, and whether an answer is in it: scripts, letters, frequent words.

``languages.yaml`` has an entry for each known language. A word speaks for a language against
another if it is one of its frequent words alone, or if only its alphabet has all the letters. A
text is in a language if its words speak for it against every other language of the same script.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from qagate.bundled import EVALUATORS
from qagate.evaluators.reading import load_yaml

LANGUAGES_FILE = EVALUATORS / "languages.yaml"

_WORD = re.compile("(?:[^\\W\\d_][\u0300-\u036f]*+)+")
"""A word is letters, each with the marks that stand on it."""

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
_PLAIN_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
"""The alphabet of a language whose letters are not listed."""


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
        if word in self.stops and word not in other.stops:
            return True
        return self._spells(word) and not other._spells(word)

    def rival(self, text_words: Collection[str]) -> tuple[str, int, int]:
        """Return the likeliest other language of a text, from its words in small letters.

        The numbers say how many words are frequent in this language and not in the other, and how
        many the other way round.
        """
        counts = []
        for code, other in sorted(known().items()):
            only_own = self.stops - other.stops
            only_other = other.stops - self.stops
            count_own = len([word for word in text_words if word in only_own])
            count_other = len([word for word in text_words if word in only_other])
            counts.append((code, count_own, count_other))
        return max(counts, key=lambda count: count[2] - count[1])

    def lead(self, other: "Language", text_words: Iterable[str]) -> int:
        """Return how many more words speak for this language than for the other."""
        lead = 0
        for word in text_words:
            if self.speaks(word, other):
                lead += 1
            if other.speaks(word, self):
                lead -= 1
        return lead

    def _spells(self, word: str) -> bool:
        letters = self.letters or _PLAIN_LETTERS
        return letters.issuperset(word)


def language_of(code: str) -> Language | None:
    """Return what is known of a language; ``en-GB`` is ``en``, but ``be-tarask`` is not ``be``."""
    name, _, subtag = code.partition("-")
    is_country = len(subtag) == 2
    return known().get(name if is_country else code)


@cache
def known() -> Mapping[str, Language]:
    """Return every known language by its code."""
    entries = cast("Mapping[str, Mapping[str, Any]]", load_yaml(LANGUAGES_FILE))
    return {code: _language(code, entry) for code, entry in entries.items()}


def _language(code: str, entry: Mapping[str, Any]) -> Language:
    respelt = None
    spelling = "another spelling"
    if entry.get("respelt"):
        patterns = "|".join(entry["respelt"]["patterns"])
        respelt = re.compile(patterns, re.IGNORECASE)
        spelling = entry["respelt"]["name"]
    return Language(
        code=code,
        script=entry["script"],
        letters=frozenset(entry["letters"]),
        stops=frozenset(entry["stops"].split()),
        either=frozenset(entry["or"].split()),
        expected=frozenset(entry.get("expected", "")),
        empty=tuple(entry.get("empty", ())),
        respelt=respelt,
        spelling=spelling,
    )


def is_in(text: str, code: str) -> bool | None:
    """Return whether a text is in a language; None where nothing in it can tell.

    A word in small letters speaks for a language if only its alphabet has all of its letters, or if
    only its frequent words have it. Names and quotations may be in any language.
    """
    language = language_of(code)
    small_words = _small_words(_QUOTED.sub(" ", text))
    has_long_word = any(len(word) > 2 for word in small_words)  # not "de", "m/s"
    if language is None or not has_long_word:
        return None
    in_script = [word for word in small_words if has(language.script, word)]
    if 2 * len(in_script) < len(small_words):
        return False
    leads = [
        language.lead(other, small_words)
        for other in known().values()
        if other.script == language.script and other is not language
    ]
    smallest_lead = min(leads, default=0)
    if smallest_lead == 0:
        return None
    return smallest_lead > 0


def _small_words(text: str) -> list[str]:
    """Return the words of a text that are no names: those in small letters.

    The first word has a capital anyway; it counts if it is a frequent word of any language.
    """
    all_words = words(text)
    if not all_words:
        return []
    first = all_words[0].casefold()
    is_frequent = any(first in language.stops for language in known().values())
    if is_frequent:
        return [first, *(word for word in all_words[1:] if word.islower())]
    return [word for word in all_words if word.islower()]

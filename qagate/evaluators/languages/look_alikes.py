"""Words in letters of two scripts, as a wrong keyboard makes them.

A Cyrillic ``а`` in a Latin word looks right and is another letter: no search and no comparison
finds the word. Greek is special, because its letters also stand in Latin words as symbols
(``TNFα``).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from qagate.evaluators.languages.detection import SCRIPTS, has, words

LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТХУаеѕіјкмнорстхуԁԛԝɡıΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχ",
    "ABESIJKMHOPCTXYaesijkmhopctxydqwgiABEZHIKMNOPTYXaiknoptux",
)
"""Letters of the scripts on the users' keyboards that look like Latin ones, for ``translate``."""
# Small Greek letters stand in Latin words as symbols; only these cannot be told from Latin ones.
_LATIN_LIKE_GREEK = "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο"
_LATIN_LIKE_CYRILLIC = [
    letter for letter in map(chr, LOOK_ALIKES) if has("Cyrillic", letter)
]
LATIN_LIKE = frozenset([*_LATIN_LIKE_CYRILLIC, *_LATIN_LIKE_GREEK])
"""Cyrillic and Greek letters that are drawn like Latin ones."""
FOREIGN_LIKE = frozenset("".join(LATIN_LIKE).translate(LOOK_ALIKES))
"""Latin letters that are drawn like Cyrillic or Greek ones."""
FEWEST_GREEK_LETTERS = 3
"""A word with fewer is no Greek word with odd letters in it, but a symbol with an index."""
_MARKS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True, slots=True)
class MixedWord:
    """A word with letters of two scripts."""

    word: str
    odd: str
    """Its letters that are out of place, one or more."""


def mixed_words(text: str, home: str) -> Iterator[MixedWord]:
    """Yield the words of a text that mix scripts.

    Out of place are the letters of the rarer script in the word; in a tie those that are not of
    ``home``, the script of the text. Greek letters that look like nothing else are symbols, and
    no fault.
    """
    if text.isascii():
        return
    for word in words(text):
        counts = _letters_by_script(word)
        if len(counts) < 2:
            continue
        host, guest = (script for script, _ in counts.most_common(2))
        if counts[host] == counts[guest] and guest == home:
            host, guest = guest, host
        odd = "".join(letter for letter in word if has(guest, letter))
        if "Greek" in counts:
            is_symbol_with_index = (
                host == "Greek" and counts[host] < FEWEST_GREEK_LETTERS
            )
            if is_symbol_with_index or not set(odd) <= LATIN_LIKE | FOREIGN_LIKE:
                continue
        yield MixedWord(word, odd)


def _letters_by_script(word: str) -> Counter[str]:
    counts = Counter[str]()
    for letter in word:
        for script in SCRIPTS:
            if has(script, letter):
                counts[script] += 1
    return counts


def look_like_others(letters: str) -> bool:
    """Return whether no reader can tell that these letters are of another script."""
    bare = set(_MARKS.sub("", unicodedata.normalize("NFD", letters)))
    return bare <= LATIN_LIKE or bare <= FOREIGN_LIKE

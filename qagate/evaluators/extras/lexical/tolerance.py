"""How freely words are compared: inflected ends, and in names typing errors and sounds."""

from dataclasses import dataclass
from itertools import islice

from qagate.evaluators.languages.word_lists import VOWELS, Tables, Text, sound

_DISTINCT = 3000
"""Distinct words of an answer that are compared one by one."""
_STEM = 4
"""Letters from which a word may take an ending."""
_ENDING = 3
"""Letters before the first difference that may belong to the endings."""
_SPELT = 5
"""Letters from which a word may be mistyped."""
_LONG = 9
"""Letters from which a word may be mistyped twice."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Compares folded words."""

    tables: Tables
    names: bool = False
    """Whether typing errors and spellings by sound are forgiven."""
    capitals: frozenset[str] = frozenset()
    """The words that may be names; empty where every word may."""
    shortest_sound: int = 4
    """Letters of a sound that tells words apart: of three, Paris and Prague sound alike."""

    def alike(self, wanted: str, word: str) -> bool:
        """Return whether two words are forms or spellings of one; digits are never mistyped."""
        if wanted == word or wanted.isdecimal() or word.isdecimal():
            return wanted == word
        if self.capitals and word not in self.capitals:
            return False
        if _inflected(wanted, word, self.tables.endings):
            return True
        if not self.names:
            return False
        return _mistyped(wanted, word) or self._sound_alike(wanted, word)

    def _sound_alike(self, one: str, other: str) -> bool:
        shortest = min(len(sound(one)), len(sound(other)))
        return shortest >= self.shortest_sound and _mistyped(sound(one), sound(other))

    def places_of(self, wanted: str, text: Text) -> list[int]:
        """Return the places of words alike to the wanted one; equal ones alone if there are any."""
        close = {wanted}
        if wanted not in text.words:
            distinct = islice(dict.fromkeys(text.words), _DISTINCT)
            close = {word for word in distinct if self.alike(wanted, word)}
        return [place for place, word in enumerate(text.words) if word in close]


def _inflected(one: str, other: str, endings: frozenset[str]) -> bool:
    shortest = min(len(one), len(other))
    if shortest < _STEM or one[:3] != other[:3]:
        return False
    if one[:-1] == other[:-1] and shortest == len(other) == _STEM:
        return one[-1] in endings & VOWELS and other[-1] in VOWELS  # Kuba, Kuby
    common = shortest
    while one[:common] != other[:common]:
        common -= 1
    for stem in range(common, max(3, common - _ENDING), -1):
        if one[stem:] in endings and other[stem:] in endings:
            return True
    return False


def _mistyped(one: str, other: str) -> bool:
    """Return whether words of five letters differ by one error, or two where they are long."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415  # 40 ms, and few answers need it

    if one == other:
        return True
    shortest = min(len(one), len(other))
    if shortest < _SPELT or one[0] != other[0] or abs(len(one) - len(other)) > 2:
        return False
    if one.startswith(other) or other.startswith(one):
        return False  # another ending is another word
    return OSA.distance(one, other) <= (1 if shortest < _LONG else 2)

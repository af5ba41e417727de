"""Where words of a gold are in an answer, exactly or in a tolerated form; names of persons."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from evaluators.judges.lexical.folding import Text, sounds
from evaluators.judges.lexical.language_tables import Tables

Span = tuple[int, int]  # word positions, end excluded

_INNER = frozenset(".,:-/\u2010\u2011")  # between the figures of one number
_PLACES = 8  # occurrences looked at; an answer that repeats a gold more often adds nothing
_GLUED = 4  # letters of a name above which a small word run into it cannot be its ending
_SHORT = 4  # letters of a word of which only a closing vowel may change
_VOWELS = frozenset("aeiouy")
_DISTINCT = 3000  # distinct words of an answer that are compared one by one
_FULL = 3  # words of a name with a family name in it, before a sign such as "III"
_BETWEEN = 3  # words that may be between a given name and the family name


def find_run(wanted: tuple[str, ...], answer: Text) -> Iterator[Span]:
    """Yield places where the words follow each other, however they are split into words."""
    needle, joined = "".join(wanted), "".join(answer.words)
    if needle not in joined:
        return
    starts: dict[int, int] = {}
    offset = 0
    for place, word in enumerate(answer.words):
        starts[offset] = place
        offset += len(word)
    starts[offset] = len(answer.words)
    left = _PLACES
    at = joined.find(needle)
    while at >= 0 and left:
        start, end = starts.get(at), starts.get(at + len(needle))
        if start is not None and end is not None and _is_run(wanted, answer, start, end):
            left -= 1
            yield start, end
        at = joined.find(needle, at + 1)


def _is_run(wanted: tuple[str, ...], answer: Text, start: int, end: int) -> bool:
    return not _is_cut(answer, start, end) and _may_join(wanted, answer.words[start:end])


def _is_cut(answer: Text, start: int, end: int) -> bool:
    """Say whether figures at an edge go on beyond it: 1.4.4 of 1.4.4.1, 049 of 049B."""
    words, gaps = answer.words, answer.gaps
    before, after = "".join(words[max(0, start - 1) : start]), "".join(words[end : end + 1])
    if words[start].isdecimal() and before.isdecimal() and gaps[start] in _INNER:
        return True
    if not words[end - 1].isdecimal():
        return False
    return (after.isdecimal() and gaps[end] in _INNER) or (len(after) == 1 and not gaps[end])


def _may_join(wanted: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Say whether differently split words may be one: never digits, and not scraps of words."""
    if wanted == run:
        return True
    digits = [word for word in run if word.isdecimal()]
    if digits and digits != [word for word in wanted if word.isdecimal()]:
        return False
    long = sum(map(len, wanted)) >= 4
    return long or all(len(word) == 1 for word in run) or all(len(word) == 1 for word in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How freely words are compared: inflected ends, typing errors in names, other script."""

    tables: Tables
    names: bool = False
    scripts: bool = False

    def alike(self, wanted: str, word: str) -> bool:
        """Say whether two folded words are forms or spellings of one word."""
        if wanted == word:
            return True
        if wanted.isdecimal() or word.isdecimal():
            return False
        if _inflected(wanted, word, self.tables.endings):
            return True
        glued = self.names and len(wanted) > _GLUED and word.startswith(wanted)
        if glued and word[len(wanted) :] in self.tables.words("function"):
            return True  # a small word run into the end of a name: "Ricky Nelsonin"
        if wanted in self.tables.units:
            return self.tables.units[wanted] == self.tables.units.get(word)
        by_sound = self.scripts and len(wanted) > 2 and _sound_alike(wanted, word)
        return by_sound or (self.names and _mistyped(wanted, word))

    def places_of(self, wanted: str, answer: Text) -> list[int]:
        """Return the positions of words alike to the wanted one; only equal ones if any is."""
        equal = [place for place, word in enumerate(answer.words) if word == wanted]
        if equal:
            return equal
        distinct = islice(dict.fromkeys(answer.words), _DISTINCT)
        close = {word for word in distinct if self.alike(wanted, word)}
        return [place for place, word in enumerate(answer.words) if word in close]


def _sound_alike(one: str, other: str) -> bool:
    """Say whether two words sound like one; in longer sounds a letter may be silent."""
    return any(
        left == right or (min(len(left), len(right)) > 3 and _distance(left, right) == 1)
        for left in sounds(one)
        for right in sounds(other)
    )


def _distance(one: str, other: str) -> int:
    """Return how many letters to insert, delete, replace or swap with the next."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415  # 40 ms, and few answers need it

    return OSA.distance(one, other)


def _inflected(one: str, other: str, endings: frozenset[str]) -> bool:
    shortest = min(len(one), len(other))
    if shortest < 4 or one[:3] != other[:3]:
        return False
    shared = 3
    while shared < shortest and one[shared] == other[shared]:
        shared += 1
    if one[:-1] == other[:-1] and shortest == len(other) == _SHORT:
        return one[-1] in endings & _VOWELS and other[-1] in _VOWELS  # Kuba, Kuby
    return any(
        one[cut:] in endings and other[cut:] in endings
        for cut in range(shared, max(3, shared - 3), -1)
    )


def _mistyped(one: str, other: str) -> bool:
    shortest = min(len(one), len(other))
    if shortest < 5 or one[0] != other[0] or abs(len(one) - len(other)) > 2:
        return False
    if one.startswith(other) or other.startswith(one):
        return False  # another ending makes another word
    return _distance(one, other) <= (1 if shortest < 9 else 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonName:
    """A person's name: given names may be left out, shortened or added, the family name may not.

    ``own_words`` are the words of the answer's own, empty where the question does not ask for a
    person: then the first name must be the gold's. ``kin`` says that the question asks for somebody
    of a family, so that a given name alone is enough.
    """

    words: tuple[str, ...]
    own_words: tuple[str, ...]
    tolerance: Tolerance
    kin: bool = False

    def full(self, answer: Text) -> Iterator[Span]:
        """Yield where the person is named by a given and the family name.

        Where the language puts the family name first, the western order counts as well.
        """
        for name in self._orders(answer):
            given = name[:-1] if self.own_words else name[:1]
            for place in self.tolerance.places_of(name[-1], answer):
                start = self._first_given(given, name[1:-1], place, answer)
                if start is not None:
                    yield start, place + 1

    def alone(self, answer: Text) -> Iterator[Span]:
        """Yield the family name where the answer says nothing else; a common word is none."""
        name = self._orders(answer)[-1]
        family = name[-1]
        if len(self.own_words) != 1 or len(name) < 2 or len(family) < 3:
            return
        if self.kin and self.own_words[0] in name:
            yield from ((p, p + 1) for p in self.tolerance.places_of(self.own_words[0], answer))
            return
        if family not in self.tolerance.tables.words("generic"):
            for place in self.tolerance.places_of(family, answer):
                if answer.words[place] == self.own_words[0]:
                    yield place, place + 1

    def _orders(self, answer: Text) -> list[tuple[str, ...]]:
        """Return the name with the family name last, in each order that the language allows.

        A full name may do without the "III" at its end where the answer has no such sign at all;
        a shorter name keeps it: it tells kings apart.
        """
        name, suffixes = self.words, self.tolerance.tables.words("suffixes")
        if len(name) > _FULL and name[-1] in suffixes and suffixes.isdisjoint(answer.words):
            name = name[:-1]
        swapped = self.tolerance.tables.family_first and len(name) > 1
        return [name, (*name[1:], name[0])] if swapped else [name]

    def _first_given(
        self, names: tuple[str, ...], middles: tuple[str, ...], place: int, answer: Text
    ) -> int | None:
        """Return where a given name of the gold is before the family name."""
        for start in range(place - 1, max(-1, place - 2 - _BETWEEN), -1):
            for index, given in enumerate(names):
                if self._is_given(given, answer.words[start]):
                    between = answer.words[start + 1 : place]
                    return start if _middles_agree(middles[index:], between) else None
        return None

    def _is_given(self, given: str, word: str) -> bool:
        """Compare full given names; an initial on either side is a full name of that letter."""
        if len(given) == 1 or len(word) == 1:
            return len(given) != len(word) and given[0] == word[0]
        nicknames = self.tolerance.tables.nicknames.get(given, ())
        return word in nicknames or self.tolerance.alike(given, word)


def _middles_agree(gold: tuple[str, ...], between: tuple[str, ...]) -> bool:
    """Say whether middle names do not contradict: none said, or initials in the gold's order."""
    initials = [word[0] for word in between]
    if not initials or not gold:
        return True
    if any(len(word) == 1 for word in gold):
        return initials == [word[0] for word in gold]
    letters = iter(word[0] for word in gold)
    return all(letter in letters for letter in initials)

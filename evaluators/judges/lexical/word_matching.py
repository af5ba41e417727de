"""Where the words of a gold stand in an answer, exactly or in a tolerated form."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from evaluators.judges.lexical.folding import Text, sounds
from evaluators.judges.lexical.language_tables import Tables

_PLACES = 8  # occurrences looked at; an answer that repeats a gold more often adds nothing
_GLUED = 4  # letters of a name above which a small word run into it cannot be its ending
_SHORT = 4  # letters of a word of which only a closing vowel may change
_VOWELS = frozenset("aeiouy")
_DISTINCT = 3000  # distinct words of an answer that are compared one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Where a gold was found: word positions, end excluded, and the rule in plain words."""

    start: int
    end: int
    rule: str
    exact: bool = False


def find_run(words: tuple[str, ...], said: Text) -> Iterator[Match]:
    """Yield places where the words stand in a row, however they are split into words."""
    needle = "".join(words)
    joined = "".join(said.words)
    if needle not in joined:
        return
    starts: dict[int, int] = {}
    offset = 0
    for place, word in enumerate(said.words):
        starts[offset] = place
        offset += len(word)
    starts[offset] = len(said.words)
    yield from islice(_places(needle, joined, starts, (words, said.words)), _PLACES)


def _places(
    needle: str, joined: str, starts: dict[int, int], both: tuple[tuple[str, ...], tuple[str, ...]]
) -> Iterator[Match]:
    wanted, said = both
    at = joined.find(needle)
    while at >= 0:
        start, end = starts.get(at), starts.get(at + len(needle))
        if start is not None and end is not None and _may_join(wanted, said[start:end]):
            yield Match(start=start, end=end, rule="the gold stands in the answer", exact=True)
        at = joined.find(needle, at + 1)


def _may_join(wanted: tuple[str, ...], run: tuple[str, ...]) -> bool:
    """Say whether differently split words may be one: never digits, and not scraps of words."""
    if wanted == run:
        return True
    if any(word.isdecimal() for word in run) and not _same_digits(wanted, run):
        return False
    long = sum(map(len, wanted)) >= 4
    return long or all(len(word) == 1 for word in run) or all(len(word) == 1 for word in wanted)


def _same_digits(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return [w for w in one if w.isdecimal()] == [w for w in other if w.isdecimal()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How freely words are compared: inflected ends, typing errors in names, other script."""

    tables: Tables
    names: bool = False
    scripts: bool = False


def alike(wanted: str, word: str, tolerance: Tolerance) -> bool:
    """Say whether two folded words are forms or spellings of one word."""
    if wanted == word:
        return True
    if wanted.isdecimal() or word.isdecimal():
        return False
    if _inflected(wanted, word, tolerance.tables.endings) or _runs_on(wanted, word, tolerance):
        return True
    if wanted in tolerance.tables.units:
        return tolerance.tables.units[wanted] == tolerance.tables.units.get(word)
    heard = tolerance.scripts and len(wanted) > 2 and _sound_alike(wanted, word)
    return heard or (tolerance.names and _mistyped(wanted, word))


def _runs_on(wanted: str, word: str, tolerance: Tolerance) -> bool:
    """Say whether a small word is run into the end of a name, as in "Ricky Nelsonin"."""
    glued = tolerance.names and len(wanted) > _GLUED and word.startswith(wanted)
    return glued and word[len(wanted) :] in tolerance.tables.words("function")


def _sound_alike(one: str, other: str) -> bool:
    """Say whether two words sound like one; in longer sounds a letter may be silent."""
    return any(
        left == right or (min(len(left), len(right)) > 3 and distance(left, right) == 1)
        for left in sounds(one)
        for right in sounds(other)
    )


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
    if shortest < 6 or one[0] != other[0] or abs(len(one) - len(other)) > 2:
        return False
    if one.startswith(other) or other.startswith(one):
        return False  # another ending makes another word
    return distance(one, other) <= (1 if shortest < 9 else 2)


def distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with the next.

    Optimal string alignment; for words, so the quadratic table is small.
    """
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, left in enumerate(one, start=1):
        current = [row]
        for column, top in enumerate(other, start=1):
            cost = above[column - 1] + (left != top)
            cost = min(cost, above[column] + 1, current[-1] + 1)
            swapped = row > 1 and column > 1 and left == other[column - 2] and top == one[row - 2]
            current.append(min(cost, before[column - 2] + 1) if swapped else cost)
        before, above = above, current
    return above[-1]


def places_of(wanted: str, said: Text, tolerance: Tolerance) -> list[int]:
    """Return the positions of words alike to the wanted one; only equal ones if there are any."""
    equal = [place for place, word in enumerate(said.words) if word == wanted]
    if equal:
        return equal
    distinct = islice(dict.fromkeys(said.words), _DISTINCT)
    close = {word for word in distinct if alike(wanted, word, tolerance)}
    return [place for place, word in enumerate(said.words) if word in close]


FULL_NAME = "given and family name are the gold's"
_FULL = 3  # words of a name with a family name in it, before a sign such as "III"
_BETWEEN = 3  # words that may stand between a given name and the family name


def find_person(
    name: tuple[str, ...], own: tuple[str, ...], said: Text, tolerance: Tolerance
) -> Iterator[Match]:
    """Yield places where the person is named by a given and the family name.

    ``own`` is what the answer says of its own, empty where the question does not ask for a person:
    then the first name must be the gold's. The family name alone is enough where ``own`` is nothing
    else. Where the language puts the family name first, the western order counts as well.
    """
    first = tolerance.tables.family_first
    name = _bare(name, said, tolerance.tables.words("suffixes"))
    orders = [name, (*name[1:], name[0])] if first and len(name) > 1 else [name]
    for order in orders:
        yield from _full(order, own, said, tolerance)
    yield from _alone(orders[-1], own, said, tolerance)


def _bare(name: tuple[str, ...], said: Text, suffixes: frozenset[str]) -> tuple[str, ...]:
    """Return a full name without the "III" at its end, where the answer has no such sign at all.

    A shorter name keeps it: it tells kings apart.
    """
    long = len(name) > _FULL and name[-1] in suffixes
    return name[:-1] if long and suffixes.isdisjoint(said.words) else name


def _full(
    name: tuple[str, ...], own: tuple[str, ...], said: Text, tolerance: Tolerance
) -> Iterator[Match]:
    given = name[:-1] if own else name[:1]
    for place in places_of(name[-1], said, tolerance):
        start = _given(given, name[1:-1], place, (said, tolerance))
        if start is not None:
            yield Match(start=start, end=place + 1, rule=FULL_NAME)


def _alone(
    name: tuple[str, ...], own: tuple[str, ...], said: Text, tolerance: Tolerance
) -> Iterator[Match]:
    """Yield the family name where the answer says nothing else; a common word is none."""
    family = name[-1]
    if len(own) != 1 or len(name) < 2 or len(family) < 3:
        return
    if family not in tolerance.tables.words("generic"):
        for place in places_of(family, said, tolerance):
            if said.words[place] == own[0]:
                yield Match(start=place, end=place + 1, rule="the answer is the family name alone")


def _given(
    names: tuple[str, ...], middles: tuple[str, ...], place: int, where: tuple[Text, Tolerance]
) -> int | None:
    """Return where a given name of the gold stands before the family name."""
    said, tolerance = where
    for start in range(place - 1, max(-1, place - 2 - _BETWEEN), -1):
        word = said.words[start]
        for index, given in enumerate(names):
            if _is_given(given, word, tolerance):
                between = said.words[start + 1 : place]
                return start if _middles_agree(middles[index:], between) else None
    return None


def _is_given(given: str, word: str, tolerance: Tolerance) -> bool:
    """Compare full given names; an initial on either side stands for a full name of that letter."""
    if len(given) == 1 and len(word) == 1:
        return False
    if len(given) == 1 or len(word) == 1:
        return given[0] == word[0]
    if word in tolerance.tables.nicknames.get(given, ()):
        return True
    return alike(given, word, tolerance)


def _middles_agree(gold: tuple[str, ...], said: tuple[str, ...]) -> bool:
    """Say whether middle names do not contradict: none said, or initials in the gold's order."""
    initials = [word[0] for word in said]
    if not initials or not gold:
        return True
    if any(len(word) == 1 for word in gold):
        return initials == [word[0] for word in gold]
    rest = iter(word[0] for word in gold)
    return all(letter in rest for letter in initials)

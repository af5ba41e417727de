"""Names of persons: given names may be left out, shortened or added, the family name may not."""

from collections.abc import Iterator

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.matching import Match, Tolerance, alike, places_of

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

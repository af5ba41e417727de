"""Lists of candidates: what else an answer offers in the same breath as the gold."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.judges.lexical.folding import Text

_SEPARATOR = re.compile(r"[,;/|\n•]")
_STOP = re.compile(r"[.!?:()\"“”]")
_ITEM = 4  # words that one item of a list may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """``joiners`` join the items of a list; ``loose`` words do not stand inside an item.

    ``names`` are words with a capital: an item that begins with one goes on in such words only.
    """

    joiners: frozenset[str]
    loose: frozenset[str]
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a list, its words from the gold outwards; ``joined`` by a word, not by a sign."""

    words: tuple[str, ...]
    joined: bool


def beside(start: int, end: int, said: Text, grammar: Grammar) -> list[Item]:
    """Return the other items of the list in which the words from start to end are an item."""
    return [*_items(start, said, grammar, -1), *_items(end - 1, said, grammar, +1)]


def _items(edge: int, said: Text, grammar: Grammar, step: int) -> Iterator[Item]:
    """Walk away from the gold's edge, an item at a time, until the list is over."""
    place = edge + step
    while _numbers_the_gold(place, said, grammar, step):
        place += step
    while _separated(place, said, grammar, step):
        item: list[str] = []
        joined = said.words[place - step] in grammar.joiners
        while len(item) <= _ITEM and _inside(place, said, grammar, step, first=not item):
            item.append(said.words[place])
            place += step
        if len(item) > _ITEM or not grammar.loose.isdisjoint(item):
            return
        named = tuple(word for word in item if not word.isdecimal())
        if named:
            yield Item(words=named, joined=joined)
        while 0 <= place < len(said.words) and said.words[place] in grammar.joiners:
            place += step


def _numbers_the_gold(place: int, said: Text, grammar: Grammar, step: int) -> bool:
    """Say whether a digit before the gold is only its number in the list."""
    inside = 0 <= place < len(said.words) and said.words[place].isdecimal()
    return inside and step < 0 and not _separated(place, said, grammar, step)


def _gap(place: int, said: Text, step: int) -> str:
    """Return what stands between a word and the one before it on the walk."""
    return said.gaps[place if step > 0 else place + 1]


def _separated(place: int, said: Text, grammar: Grammar, step: int) -> bool:
    """Say whether a new item begins here: after a separator or a joining word."""
    if not 0 <= place < len(said.words):
        return False
    behind = said.words[place - step]
    here = said.words[place]
    joined = here in grammar.joiners or behind in grammar.joiners
    return joined or bool(_SEPARATOR.search(_gap(place, said, step)))


def _inside(place: int, said: Text, grammar: Grammar, step: int, *, first: bool) -> bool:
    if not 0 <= place < len(said.words) or said.words[place] in grammar.joiners:
        return False
    behind, here = said.words[place - step], said.words[place]
    if not first and behind in grammar.names and here not in grammar.names:
        return False
    gap = _gap(place, said, step)
    number = here.isdecimal() or behind.isdecimal()
    return first or not (_SEPARATOR.search(gap) or (_STOP.search(gap) and not number))

"""How far one gets without reading: rules that see the question alone, tried across folds.

A dataset whose answers a first word gives away measures that word. Each rule learns the commoner
answer per value of one feature on four fifths of the items and answers the rest.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from hashlib import sha256

from cases.tools.builder.items import Item
from cases.tools.check.scripts import words
from evaluators.core import YES

FOLDS = 5
Feature = Callable[[str], Hashable]


def features(negations: frozenset[str]) -> Mapping[str, Feature]:
    """Return what a rule may look at in a question, by name."""

    def denial(question: str) -> Hashable:
        return any(word in negations for word in question.casefold().rstrip("?").split())

    return {
        "first word": lambda question: _first(question, 1),
        "first two words": lambda question: _first(question, 2),
        "word of denial": denial,
        "length": lambda question: len(question) // 20,
        "figure": lambda question: any(letter.isdigit() for letter in question),
    }


def shares(items: Sequence[Item], negations: frozenset[str]) -> dict[str, float]:
    """Return the share of items that each rule answers rightly; empty for no items.

    ``majority`` is the share of the commoner answer, with nothing to learn.
    """
    if not items:
        return {}
    majority = max(Counter(item.answer for item in items).values()) / len(items)
    found = features(negations)
    return {"majority": majority} | {
        name: _share(items, feature) for name, feature in found.items()
    }


def _share(items: Sequence[Item], feature: Feature) -> float:
    values = [feature(item.question) for item in items]
    folds = [sha256(item.id.encode()).digest()[0] % FOLDS for item in items]
    every: dict[tuple[int, Hashable], Counter[str]] = defaultdict(Counter)
    for item, value, fold in zip(items, values, folds, strict=True):
        for other in range(FOLDS):
            if other != fold:
                every[other, value][item.answer] += 1
                every[other, _ANY][item.answer] += 1
    right = 0
    for item, value, fold in zip(items, values, folds, strict=True):
        learnt = every.get((fold, value)) or every[fold, _ANY]
        right += max(sorted(learnt), key=lambda word: learnt[word], default=YES) == item.answer
    return right / len(items)


_ANY = object()
"""In place of a feature's value: all items."""


def _first(question: str, count: int) -> tuple[str, ...]:
    return tuple(word.casefold() for word in words(question)[:count])

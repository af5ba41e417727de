"""Roman numerals, where they stand alone: a century, a volume, a place in a row."""

import re

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.numbers import Quantity

_SHAPE = re.compile(r"(?=..)(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_WORTH = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


def roman(word: str) -> int | None:
    """Return the value of a folded numeral of two letters or more, below 100; None for a word."""
    if not _SHAPE.fullmatch(word):
        return None
    worths = [_WORTH[letter] for letter in word]
    following = [*worths[1:], 0]
    return sum(one if one >= after else -one for one, after in zip(worths, following, strict=True))


def find_romans(text: Text, capitals: frozenset[str]) -> list[Quantity]:
    """Return the numerals among the words of a text that are written in capitals."""
    values = ((place, roman(word)) for place, word in enumerate(text.words) if word in capitals)
    return [
        Quantity(values=(float(value),), step=1.0, unit="", start=place, end=place + 1, digits=1)
        for place, value in values
        if value
    ]

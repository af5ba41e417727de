"""How golds are written: ranges, numbers with a tolerance, and marks of what has no answer."""

import re
from decimal import Decimal

from evaluators.judges.lexical.numbers import PERCENT, Quantity, find_quantities
from evaluators.judges.lexical.tables import read, tables
from evaluators.kinds import MARKS
from evaluators.text import shown

_FIGURE = re.compile(r"\d(?:[\d.,'\u00a0\u202f ]*\d)?")
_RANGE = re.compile(r"(?<=\d)\s*\.\.\s*(?=[-\u2212]?\d)")
_MARK = re.compile(r"\s*(?:(false\s+premise)|unanswerable)\s*:", re.IGNORECASE)
_WANTED = "want a number, with the gold's unit or without: '5', '5 m'; or a share: '2 %'"


def check_gold(gold: str, language: str) -> None:
    """Raise ValueError for a malformed mark, or a range unlike ``1637..1642 m``."""
    if marked := _MARK.match(gold):
        mark = MARKS[not marked[1]]
        if not gold.startswith(mark):
            what = f"{shown(gold)}: the mark is {mark!r}, exactly so and at the beginning"
            raise ValueError(what)
        if not gold.removeprefix(mark).strip():
            raise ValueError(f"only the mark {mark!r}; say after it what is true")
    elif _RANGE.search(gold):
        parts = _RANGE.split(gold)
        ends = [_quantities(part, language) for part in parts]
        if [len(end) for end in ends] != [1, 1] or "..".join(parts) != gold:
            what = "is no range; write two numbers and their unit: '1637..1642 m'"
            raise ValueError(f"{shown(gold)} {what}")
        if _value(ends[0][0]) > _value(ends[1][0]):
            what = "the low end is the higher one; write the smaller number first"
            raise ValueError(f"{shown(gold)}: {what}")


def with_tolerance(gold: str, tolerance: str, language: str) -> str:
    """Return the range of what is accepted, ``2920..2930 m`` for ``2,925 m`` and ``5 m``.

    The range is exact in decimals, without thousands separators, and has the decimal mark of the
    language and the text around the gold's number. Raises ValueError for a gold that is not one
    number in digits, and for a tolerance that is neither a number above 0, in the gold's unit or
    without one, nor a percentage of the gold.
    """
    figures, found = list(_FIGURE.finditer(gold)), _quantities(gold, language)
    if len(figures) != 1 or len(found) != 1:
        raise ValueError(f"a tolerance needs a gold with one number, in digits; got {shown(gold)}")
    figure, quantity = figures[0], found[0]
    value = _value(quantity)
    if abs(value) != _value(_quantities(figure[0], language)[0]):
        raise ValueError(f"a tolerance needs a gold in digits alone, as 2500000; got {shown(gold)}")
    reach = _reach(tolerance, quantity, language)
    before = gold[: figure.start()][: -1 if value < 0 else None]
    mark = tables(language).decimal
    low, high = (_plain(end).replace(".", mark) for end in (value - reach, value + reach))
    return f"{before}{low}..{high}{gold[figure.end() :]}"


def _reach(tolerance: str, gold: Quantity, language: str) -> Decimal:
    """Return how far from the gold an answer may be, in the gold's unit."""
    found, words = _quantities(tolerance, language), read(tolerance).words
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(words)):
        raise ValueError(f"got {shown(tolerance)}; {_WANTED}")
    one, percent = found[0], PERCENT
    if _value(one) <= 0:
        raise ValueError(f"got {shown(tolerance)}; it must be above 0: {_WANTED}")
    if one.unit == percent and gold.unit != percent:
        return abs(_value(gold)) * _value(one) / 100
    if one.unit == percent:
        what = f"{shown(tolerance)} of a percentage may be points or a share; write a bare number"
        raise ValueError(what)
    if not one.shares_unit(gold):
        raise ValueError(f"{shown(tolerance)} is not in the gold's unit; {_WANTED}")
    return _value(one)


def _quantities(text: str, language: str) -> list[Quantity]:
    return find_quantities(read(text), tables(language))


def _value(quantity: Quantity) -> Decimal:
    """Return the first reading as written; a float keeps 15 digits of it."""
    return Decimal(str(quantity.values[0]))


def _plain(value: Decimal) -> str:
    digits = f"{value:f}"
    return digits.rstrip("0").rstrip(".") if "." in digits else digits

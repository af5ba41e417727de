"""Quantities in running text, and when one agrees with another to its last significant figure."""

import re
from dataclasses import dataclass

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language_tables import Tables
from evaluators.judges.lexical.number_words import continues, spoken

_SIGNS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound"}
_CLOSE = {"", " ", "-", "\u2011", "\u2013"}
_LONGEST = 18  # digits; longer runs are identifiers, not quantities
_GROUPS = 8  # digit groups of one figure; bounds the work on "1,1,1,1 …"
_LOOSE = 0.25  # how far "about" may reach, as a share of the value
_CONVERTED = 0.01  # the most that rounding in another unit may forgive, as a share of the value
_FIGURES = 3  # significant figures from which a rounded value still names the gold
_LETTERS = frozenset("acdefgijlnopquvwyz")  # that make a name of a figure; not k, m, b: scales
_MEASURED = frozenset({"length", "mass", "temperature"})
_DEGREES = {"c": "celsius", "f": "fahrenheit"}
_SLACK = 0.05  # the most that rounding may forgive, as a share of the value
_ROMAN = re.compile(r"(?=..)(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})")
_WORTH = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number with its unit. ``values`` holds every reading of an ambiguous separator.

    ``step`` is the worth of the last significant figure; ``digits`` counts the significant ones;
    ``whole`` says that none of them are decimals; ``start`` and ``end`` are word positions, end
    excluded.
    """

    values: tuple[float, ...]
    step: float
    unit: str
    start: int
    end: int
    digits: int
    whole: bool = True

    def rounds_to(self, gold: "Quantity") -> bool:
        """Say whether a reading of this rounds to the gold at the gold's last figure."""
        value = gold.values[0]
        half = min(gold.step / 2, abs(value) * _SLACK) if value else gold.step / 2
        edge = half * 1e-6
        return any(-half - edge <= reading - value < half - edge for reading in self.values)

    def measures(self, gold: "Quantity", tables: Tables) -> bool:
        """Say whether a measured gold of three figures is met within two units of the last one."""
        unit = tables.conversions.get(gold.unit)
        if unit is None or unit.kind not in _MEASURED or gold.digits < _FIGURES:
            return False
        room = 2 * gold.step * (1 + 1e-6)
        return any(abs(reading - gold.values[0]) <= room for reading in self.values)

    def shortens(self, gold: "Quantity") -> bool:
        """Say whether this is the gold without some decimals, with four figures or more left.

        With three figures left, only one may be missing.
        A gold without decimals is exact, so that 1,440 is not 1,435.
        """
        close = gold.digits - self.digits == 1 and self.digits >= _FIGURES
        if gold.whole or gold.step >= self.step or not (close or self.digits > _FIGURES):
            return False
        half = self.step / 2 * (1 + 1e-6)
        return any(abs(reading - gold.values[0]) <= half for reading in self.values)

    def converts_to(self, gold: "Quantity", tables: Tables) -> bool:
        """Say whether both are one value in two units, to the coarser of their last figures."""
        converted, ratio = self.in_unit(gold.unit, tables)
        half = max(gold.step, self.step * ratio) / 2
        half = min(half, max(gold.step / 2, abs(gold.values[0]) * _CONVERTED)) * (1 + 1e-6)
        return any(abs(value - gold.values[0]) <= half for value in converted)

    def in_unit(self, unit: str, tables: Tables) -> tuple[list[float], float]:
        """Return the readings in another unit of the same kind, and its ratio; none for others."""
        own, other = tables.conversions.get(self.unit), tables.conversions.get(unit)
        if not own or not other or own.kind != other.kind or self.unit == unit:
            return [], 1.0
        ratio = own.factor / other.factor
        return [(reading + own.shift) * ratio - other.shift for reading in self.values], ratio

    def is_near(self, gold: "Quantity") -> bool:
        """Say whether a loose figure could still mean the gold: within a quarter of it."""
        value = gold.values[0]
        return any(abs(reading - value) <= abs(value) * _LOOSE for reading in self.values)

    def shares_unit(self, other: "Quantity") -> bool:
        """Say whether two units do not contradict each other; a missing one never does."""
        return not self.unit or not other.unit or self.unit == other.unit


def find_quantities(text: Text, tables: Tables) -> list[Quantity]:
    """Return the quantities of a text in order of place, in digits or in words."""
    quantities = []
    place = 0
    while place < len(text.words):
        quantity = _in_digits(text, place, tables) or _in_words(text, place, tables)
        if quantity:
            quantities.append(quantity)
        place = quantity.end if quantity else _figure_end(text, place)
    return quantities


def _in_digits(text: Text, place: int, tables: Tables) -> Quantity | None:
    if not text.words[place].isdecimal():
        return None
    end = _figure_end(text, place)
    groups = text.words[place:end]
    readings = _readings(groups, text.gaps[place + 1 : end], tables.decimal)
    glued = "" if text.gaps[end] else "".join(text.words[end : end + 1])
    named = glued == "s" or glued in _LETTERS - tables.units.keys()  # the 1830s, version 7.22f
    if named or not readings or sum(map(len, groups)) > _LONGEST:
        return None
    gap = text.gaps[place]
    minus = gap[-1:] in {"-", "\u2212"} and (place == 0 or gap[-2:-1].isspace() or ".." in gap)
    currency = _SIGNS.get(gap[-1:], "")
    factor, unit, last = _tail(text, end, tables, money=bool(currency))
    value, digits = readings[0], "".join(groups).lstrip("0")
    whole = value == int(value)
    return Quantity(
        values=tuple((-factor if minus else factor) * reading for reading in readings),
        step=factor * (_whole_step(value, factor) if whole else 10.0 ** -len(groups[-1])),
        unit=unit or tables.units.get(currency, currency),
        start=place,
        end=last,
        digits=_significant(digits) if whole and value >= 1000 else max(1, len(digits)),
        whole=whole,
    )


def _figure_end(text: Text, place: int) -> int:
    """Return the position after the digit groups that make one figure, or after the one word."""
    end = place + 1
    if not text.words[place].isdecimal():
        return end
    last = min(len(text.words), place + _GROUPS)
    while end < last and text.words[end].isdecimal():
        gap = text.gaps[end]
        spaced = gap in {" ", "'", "\u202f"} and len(text.words[end]) == 3
        if not (gap in {".", ","} or (spaced and len(text.words[end - 1]) <= 3)):
            break
        end += 1
    return end


def _readings(groups: tuple[str, ...], marks: tuple[str, ...], decimal: str) -> list[float]:
    """Return the values a figure may have: by its language first, then by the other custom.

    The last mark may be the decimal one where the marks before it are of another kind.
    """
    whole = [float("".join(groups))] if _may_group(groups) else []
    decimals = bool(marks) and marks[-1] in {".", ","} and marks[-1] not in marks[:-1]
    pointed = []
    if decimals and _may_group(groups[:-1]):
        pointed = [float("".join(groups[:-1]) + "." + groups[-1])]
    return pointed + whole if marks and marks[-1] == decimal else whole + pointed


def _may_group(groups: tuple[str, ...]) -> bool:
    """Say whether digit groups may be the thousands of one number."""
    later = all(len(group) == 3 for group in groups[1:])
    return len(groups) == 1 or (len(groups[0]) <= 3 and later)


def _tail(text: Text, end: int, tables: Tables, *, money: bool) -> tuple[float, str, int]:
    """Read scale words and a unit after a figure; return factor, unit and where they end.

    "5m" are millions of money and metres of anything else.
    """
    factor = 1.0
    if text.gaps[end].strip()[:1] == "%":
        return factor, tables.units.get("percent", "percent"), end
    degrees = _DEGREES.get("".join(text.words[end : end + 1]))
    if degrees and text.gaps[end].strip() == "°":
        return factor, tables.units.get(degrees, degrees), end + 1
    while end < len(text.words) and text.gaps[end] in _CLOSE:
        word = text.words[end]
        if word in tables.words("degrees"):
            end += 1
        elif word in tables.scales and (money or word not in tables.units):
            factor *= tables.scales[word]
            end += 1
        elif word in tables.units:
            return factor, tables.units[word], end + 1
        else:
            break
    return factor, "", end


def _whole_step(value: float, factor: float) -> float:
    """Return the worth of the last significant figure of a whole number, in units of ``factor``.

    Closing noughts are not significant from 1,000 on; a smaller count such as 350 is exact.
    """
    digits = str(int(value))
    return 10.0 ** (len(digits) - _significant(digits)) if value * factor >= 1000 else 1.0


def _significant(digits: str) -> int:
    """Return how many digits are left without the closing noughts, at least one."""
    return max(1, len(digits.rstrip("0")))


def _in_words(text: Text, place: int, tables: Tables) -> Quantity | None:
    if text.words[place] not in tables.numbers:
        return None
    end = place + 1
    while end < len(text.words) and continues(text.words[end - 1], text.words[end], tables):
        end += 1
    value = spoken(text.words[place:end], tables)
    _, unit, last = _tail(text, end, tables, money=False)
    digits = str(int(value)).lstrip("0")
    return Quantity(
        values=(value,),
        step=_whole_step(value, 1.0),
        unit=unit,
        start=place,
        end=last,
        digits=_significant(digits) if value >= 1000 else max(1, len(digits)),
    )


def roman(word: str) -> int | None:
    """Return the value of a folded numeral of two letters or more, below 100; None for a word."""
    if not _ROMAN.fullmatch(word):
        return None
    worths = [_WORTH[letter] for letter in word]
    following = [*worths[1:], 0]
    return sum(one if one >= after else -one for one, after in zip(worths, following, strict=True))


def find_romans(text: Text, capitals: frozenset[str]) -> list[Quantity]:
    """Return the Roman numerals among the words of a text that are written in capitals."""
    values = ((place, roman(word)) for place, word in enumerate(text.words) if word in capitals)
    return [
        Quantity(values=(float(value),), step=1.0, unit="", start=place, end=place + 1, digits=1)
        for place, value in values
        if value
    ]

"""Quantities in running text, and when one agrees with another to its last significant figure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language_tables import Tables

_SIGNS = {"%": "percent", "$": "dollar", "€": "euro", "£": "pound"}
_CLOSE = {"", " ", "-", "\u2011", "\u2013"}
_LONGEST = 18  # digits; longer runs are identifiers, not quantities
_GROUPS = 8  # digit groups of one figure; bounds the work on "1,1,1,1 …"
_LOOSE = 0.25  # how far "about" may reach, as a share of the value
_TURNED = 0.01  # the most that rounding in another unit may forgive, as a share of the value
_FIGURES = 3  # significant figures from which a rounded value still names the gold
_LETTERS = frozenset("acdefgijlnopquvwyz")  # that make a name of a figure; not k, m, b: scales
_DEGREES = {"c": "celsius", "f": "fahrenheit"}
_SLACK = 0.05  # the most that rounding may forgive, as a share of the value


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


def same(found: Quantity, gold: Quantity) -> bool:
    """Say whether a reading of ``found`` rounds to the gold at the gold's last figure."""
    value = gold.values[0]
    half = min(gold.step / 2, abs(value) * _SLACK) if value else gold.step / 2
    edge = half * 1e-6
    return any(-half - edge <= reading - value < half - edge for reading in found.values)


def rounded(found: Quantity, gold: Quantity) -> bool:
    """Say whether ``found`` is the gold without some decimals, with four figures or more left.

    With three figures left, only one may be missing.
    A gold without decimals is exact, so that 1,440 is not 1,435.
    """
    close = gold.digits - found.digits == 1 and found.digits >= _FIGURES
    if gold.whole or gold.step >= found.step or not (close or found.digits > _FIGURES):
        return False
    half = found.step / 2 * (1 + 1e-6)
    return any(abs(reading - gold.values[0]) <= half for reading in found.values)


def equal(found: Quantity, gold: Quantity, tables: Tables) -> bool:
    """Say whether two figures are one value in two units, to the coarser of their last figures."""
    one, other = tables.measures.get(found.unit), tables.measures.get(gold.unit)
    if not one or not other or one.kind != other.kind or found.unit == gold.unit:
        return False
    ratio = one.factor / other.factor
    half = max(gold.step, found.step * ratio) / 2
    half = min(half, max(gold.step / 2, abs(gold.values[0]) * _TURNED)) * (1 + 1e-6)
    turned = ((reading + one.shift) * ratio - other.shift for reading in found.values)
    return any(abs(value - gold.values[0]) <= half for value in turned)


def near(found: Quantity, gold: Quantity) -> bool:
    """Say whether a loose figure could still mean the gold: within a quarter of it."""
    value = gold.values[0]
    return any(abs(reading - value) <= abs(value) * _LOOSE for reading in found.values)


def units_agree(found: Quantity, gold: Quantity) -> bool:
    """Say whether two units do not contradict each other; a missing one never does."""
    return not found.unit or not gold.unit or found.unit == gold.unit


def find_quantities(text: Text, tables: Tables) -> list[Quantity]:
    """Return the quantities of a text in order of place, in digits or in words."""
    found = []
    place = 0
    while place < len(text.words):
        quantity = _in_digits(text, place, tables) or _in_words(text, place, tables)
        if quantity:
            found.append(quantity)
        place = quantity.end if quantity else _figure_end(text, place)
    return found


def _in_digits(text: Text, place: int, tables: Tables) -> Quantity | None:
    if not text.words[place].isdecimal():
        return None
    end = _figure_end(text, place)
    groups, marks = text.words[place:end], text.gaps[place + 1 : end]
    if text.words[end : end + 1] == ("s",) and not text.gaps[end]:
        return None  # the 1830s
    if sum(map(len, groups)) > _LONGEST:
        return None
    readings = _readings(groups, marks, tables.decimal)
    if not readings:
        return None
    sign = -1 if _is_minus(text.gaps[place], place) else 1
    currency = _SIGNS.get(text.gaps[place][-1:], "")
    if not text.gaps[end] and "".join(text.words[end : end + 1]) in _LETTERS - tables.units.keys():
        return None  # a version such as 7.22f
    factor, unit, last = _tail(text, end, tables, money=bool(currency))
    unit = unit or currency
    return Quantity(
        values=tuple(sign * reading * factor for reading in readings),
        step=_step(groups, readings[0], factor),
        unit=tables.units.get(unit, unit),
        start=place,
        end=last,
        digits=_significant(groups, readings[0]),
        whole=readings[0] == int(readings[0]),
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
    """Return the values a figure may have: by its language first, then by the other custom."""
    grouped, pointed = _grouped(groups), _pointed(groups, marks)
    if not marks:
        return grouped
    ambiguous = grouped and pointed
    if ambiguous and marks[-1] == decimal:
        return pointed + grouped
    return grouped + pointed


def _grouped(groups: tuple[str, ...]) -> list[float]:
    if len(groups) > 1 and (len(groups[0]) > 3 or any(len(group) != 3 for group in groups[1:])):
        return []
    return [float("".join(groups))]


def _pointed(groups: tuple[str, ...], marks: tuple[str, ...]) -> list[float]:
    """Read the last mark as the decimal one; the marks before it must be of another kind."""
    if not marks or marks[-1] not in {".", ","} or marks[-1] in marks[:-1]:
        return []
    whole = _grouped(groups[:-1])
    return [float("".join(groups[:-1]) + "." + groups[-1])] if whole or len(groups) == 2 else []


def _is_minus(gap: str, place: int) -> bool:
    return gap[-1:] in {"-", "\u2212"} and (place == 0 or gap[-2:-1].isspace())


def _tail(text: Text, end: int, tables: Tables, *, money: bool) -> tuple[float, str, int]:
    """Read scale words and a unit after a figure; return factor, unit and where they end.

    "5m" are millions of money and metres of anything else.
    """
    factor = 1.0
    if text.gaps[end].strip()[:1] == "%":
        return factor, "percent", end
    if text.gaps[end].strip() == "°" and "".join(text.words[end : end + 1]) in _DEGREES:
        return factor, _DEGREES[text.words[end]], end + 1
    while end < len(text.words) and text.gaps[end] in _CLOSE:
        word = text.words[end]
        if word in tables.words("degrees"):
            end += 1
            continue
        if word in tables.scales and (money or word not in tables.units):
            factor *= tables.scales[word]
            end += 1
        else:
            return (factor, word, end + 1) if word in tables.units else (factor, "", end)
    return factor, "", end


def _significant(groups: tuple[str, ...], value: float) -> int:
    """Return how many significant figures are written; closing noughts count below 1,000."""
    digits = "".join(groups).lstrip("0")
    shown = digits if value < 1000 or value != int(value) else digits.rstrip("0")
    return max(1, len(shown))


def _step(groups: tuple[str, ...], value: float, factor: float) -> float:
    """Return the worth of the last significant figure as it is written.

    Closing noughts are not significant from 1,000 on; a smaller count such as 350 is exact.
    """
    if value != int(value):
        return factor * 10.0 ** -len(groups[-1])
    if value * factor < 1000:
        return factor
    digits = str(int(value))
    return factor * 10.0 ** (len(digits) - len(digits.rstrip("0")))


def _in_words(text: Text, place: int, tables: Tables) -> Quantity | None:
    if text.words[place] not in tables.numbers:
        return None
    end = place + 1
    while end < len(text.words) and _continues(text.words[end - 1], text.words[end], tables):
        end += 1
    value = _spoken(text.words[place:end], tables)
    _, unit, last = _tail(text, end, tables, money=False)
    step = _step((str(int(value)),), value, 1.0)
    unit = tables.units.get(unit, unit)
    digits = _significant((str(int(value)),), value)
    return Quantity(values=(value,), step=step, unit=unit, start=place, end=last, digits=digits)


def _continues(word: str, following: str, tables: Tables) -> bool:
    """Say whether a number word goes on in the next one, as in twenty-three or three hundred."""
    if following in tables.scales:
        return True
    value = tables.numbers.get(following)
    return value is not None and (word in tables.scales or tables.numbers[word] >= 20 > value)


def _spoken(words: tuple[str, ...], tables: Tables) -> float:
    """Return the value of number words in a row: two hundred three thousand, and so on."""
    total = current = 0.0
    for word in words[:8]:
        if word in tables.numbers:
            current += tables.numbers[word]
        elif tables.scales[word] < 1000:
            current = max(current, 1.0) * tables.scales[word]
        else:
            total += max(current, 1.0) * tables.scales[word]
            current = 0.0
    return total + current


def spans(quantities: list[Quantity]) -> Iterator[int]:
    """Yield every word position that a quantity covers."""
    for quantity in quantities:
        yield from range(quantity.start, quantity.end)


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

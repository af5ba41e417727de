"""Numbers, quantities with units, and calendar dates in running text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from qagate.evaluators.languages.word_lists import Tables, Text, table

DASHES = frozenset("-–—\u2010\u2011")
PERCENT = "concentr-percent"
"""CLDR's name of the unit."""
_SIGNS = {"%": PERCENT, "$": "$", "€": "€", "£": "£"}
_DEGREES = {"c": "temperature-celsius", "f": "temperature-fahrenheit"}
_LONGEST = 24  # characters; longer runs are identifiers
_GROUPS = 8  # digit groups of one number, and words of one spelt number
_UNIT = 3  # words of a unit
_SLACK = 0.05  # the most that rounding forgives, as a share of the value
_CONVERTED = 0.01  # the same between two units
_EXACT = 3  # significant figures from which a measurement may differ by source
_REACH = 3  # words between the parts of one date
_MARKS = ({"-"}, {"."}, {"/"}, {""})  # between the numbers of one date
_FIGURE = re.compile(r"(?:\d{1,3}(?:[ '\u202f]\d{3}(?!\d)){1,8}|\d+)(?:[.,]\d+){0,8}")
_WHOLE = re.compile(r"\d+|\d{1,3}(?:([.,' \u202f])\d{3})(?:\1\d{3})*")
_POINTED = re.compile(r"(?P<whole>.+)(?P<mark>[.,])(?P<rest>\d+)")
YEAR = re.compile(r"[12]\d{3}")
"""A year of our era with four digits."""
_NOTED_YEAR = re.compile(r"[12]\d{3,5}")  # perhaps with a footnote glued to it
_DAY, _MONTH = re.compile(r"0?[1-9]|[12]\d|3[01]"), re.compile(r"0?[1-9]|1[0-2]")
_MEASURED = ("length", "mass", "temperature")


def in_figures(text: Text, tables: Tables) -> Text:
    """Return the text with number words and Roman numerals in figures."""
    words, gaps, place = list[str](), [text.gaps[0]], 0
    while place < len(text.words):
        place, figures = _spelt(text, place, tables)
        words.append(figures)
        gaps.append(text.gaps[place])
    return Text(tuple(words), tuple(gaps))


def _spelt(text: Text, place: int, tables: Tables) -> tuple[int, str]:
    """Return where the number that begins here ends, and it in figures; else the word itself."""

    def value_of(word: str) -> int | None:
        value = tables.numbers.get(word)
        return tables.scales.get(word) if value is None and len(word) > 2 else value

    word, end = text.words[place], place + 1
    values = [value_of(word)] if value_of(word) is not None else []
    if not values or (
        place and text.words[place - 1].isdecimal() and word in tables.units
    ):
        return end, word  # "5 second"
    while end < len(text.words) and len(values) < _GROUPS:
        joined = text.words[end] in tables.words["joiners"] and end + 1 < len(
            text.words
        )
        last, following = values[-1] or 0, value_of(text.words[end + joined])
        apart = any(gap.strip(" -") for gap in text.gaps[end : end + 1 + joined])
        if following is None or apart or (joined and following >= 100):
            break
        scale, ones = (
            following >= 1000 or (following == 100 > last),
            last >= 20 and following < 10,
        )
        if not (scale or ones or last >= 1000 or last >= 100 > following):
            break
        values.append(following)
        end += 1 + joined
    if word in tables.scales and len(values) == 1:
        return end, word  # "million" multiplies what is before it
    total = current = 0
    for value in filter(None, values):
        if value >= 1000:
            total, current = total + max(current, 1) * value, 0
        else:
            current = max(current, 1) * value if value == 100 else current + value
    return end, str(total + current)


class Quantity(NamedTuple):
    """A number with its unit."""

    values: tuple[float, ...]
    """Every reading of an ambiguous separator, that of the language first."""
    step: float
    """What one unit of the last significant figure is worth."""
    unit: str
    """CLDR's name of the unit, a currency sign, or "" for none."""
    start: int
    end: int
    """Word positions, ``end`` excluded."""
    digits: int
    """Significant figures."""
    limits: tuple[float, float] | None = None
    """Both ends of a range that a gold states."""

    def meets(self, gold: "Quantity") -> bool:
        """Return whether this number, read in an answer, says the same as ``gold``.

        If the gold has a range, one of the readings must lie in it. Otherwise one must lie within
        ``half`` of the gold's value: lower end included, upper end not, as in rounding. ``half`` is
        half the gold's ``step``, at most 5 % of its value. Units of one kind are converted; then
        ``half`` may grow to half the answer's step, though to no more than 1 % of the value.

        From three figures on, a length, a mass or a temperature may differ by 2.5 steps. An answer
        of three figures or more may round the decimals of any gold.
        """
        gold_value = gold.values[0]
        readings = self.values
        step = self.step
        half = gold.step / 2
        if gold_value != 0:
            half = min(half, abs(gold_value) * _SLACK)

        if not self.shares_unit(gold):
            ratio = self._ratio_to(gold.unit)
            if ratio is None:
                return False
            readings = tuple(ratio * reading for reading in readings)
            step = ratio * step
            half = max(half, min(step / 2, abs(gold_value) * _CONVERTED))

        if gold.limits:
            low, high = gold.limits
            return any(low <= reading <= high for reading in readings)

        is_measured = gold.digits >= _EXACT and gold.unit.startswith(_MEASURED)
        gold_has_more_decimals = gold.step < min(1, step)
        if is_measured:
            half = max(half, 2.5 * gold.step)  # heights and weights differ by source
        if gold_has_more_decimals and self.digits >= _EXACT:
            # A tie may be rounded either way: beyond ``edge``, both ends are included.
            half = max(half, step / 2 * (1 + 2e-6))
        edge = half * 1e-6  # an end that floats miss by a little is still that end
        return any(
            -half - edge <= reading - gold_value < half - edge for reading in readings
        )

    def _ratio_to(self, unit: str) -> float | None:
        """Return how many of another unit make one of this; None if they do not convert."""
        base_units = table("units")  # of those that convert, what each is worth
        kind = self.unit.partition("-")[0]
        if kind != unit.partition("-")[0]:
            return None
        if self.unit not in base_units or unit not in base_units:
            return None
        return float(base_units[self.unit]) / float(base_units[unit])

    def shares_unit(self, other: "Quantity") -> bool:
        """Return whether two units do not contradict each other; a missing one never does."""
        return not self.unit or not other.unit or self.unit == other.unit


def find_quantities(text: Text, tables: Tables) -> list[Quantity]:
    """Return the quantities of a text, its number words in figures, in order of place."""
    quantities: list[Quantity] = []
    place, pieces = 0, [*map("".join, zip(text.words, text.gaps[1:], strict=True))]
    while place < len(pieces):
        met = _FIGURE.match("".join(pieces[place : place + _GROUPS]))
        end = place + (len(re.findall(r"\d+", met[0])) if met else 1)
        if met and (found := _quantity(text, place, end, met[0], tables)):
            quantities.append(found)
            end = found.end
        place = end
    return quantities


def _quantity(
    text: Text, place: int, end: int, raw: str, tables: Tables
) -> Quantity | None:
    gap, digits = text.gaps[place], re.sub(r"\D", "", raw)
    readings = [float(digits)] if _WHOLE.fullmatch(raw) else []
    met = _POINTED.fullmatch(raw)
    if met and met["mark"] not in met["whole"] and _WHOLE.fullmatch(met["whole"]):
        pointed = float(re.sub(r"\D", "", met["whole"]) + "." + met["rest"])
        readings.insert(
            0 if met["mark"] == tables.decimal else 1, pointed
        )  # by its language first
    glued = "" if text.gaps[end] else "".join(text.words[end : end + 1])
    named = len(glued) == 1 and glued not in tables.units and glued not in tables.scales
    if named or not readings or len(raw) > _LONGEST:
        return None  # the 1830s, version 7.22f
    minus = gap[-1:] in {"-", "\u2212"} and (
        place == 0 or gap[-2:-1].isspace() or ".." in gap
    )
    currency = _SIGNS.get(gap[-1:], "")
    factor, unit, last = _tail(text, end, tables, money=bool(currency))
    value, digits = readings[0], digits.lstrip("0")
    whole = value == int(value)
    significant = max(
        1, len(digits.rstrip("0") if whole and value * factor >= 1000 else digits)
    )
    decimals = len(re.split(r"\D", raw)[-1])
    step = 10.0 ** (len(str(int(value))) - significant) if whole else 10.0**-decimals
    values = tuple((-factor if minus else factor) * reading for reading in readings)
    return Quantity(values, factor * step, unit or currency, place, last, significant)


def _tail(
    text: Text, end: int, tables: Tables, *, money: bool
) -> tuple[float, str, int]:
    """Return the factor and unit behind a number, and their end; "5m" of money are millions."""
    factor = 1.0
    if text.gaps[end].strip()[:1] == "%":
        return factor, PERCENT, end
    while end < len(text.words):
        word = text.words[end]
        gap = text.gaps[end].strip()
        if gap == "°" and word in _DEGREES:
            return factor, _DEGREES[word], end + 1
        if gap == "°":
            return factor, "", end
        if gap and gap not in DASHES and not (gap == "." and factor > 1):
            break
        if len(word) == 1 and text.gaps[end] and not money:
            break  # a single letter is a scale only where it is glued on, or of money
        if word in tables.units and not money:
            break
        scale = tables.scales.get(word)
        if not scale:
            break
        factor *= scale
        end += 1
    for last in range(min(end + _UNIT, len(text.words)), end, -1):
        unit = tables.units.get(" ".join(text.words[end:last]))
        if unit and text.gaps[end].strip() in DASHES | {"", "."}:
            return factor, unit, last
    return factor, "", end


class Date(NamedTuple):
    """A date as far as it was given."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    start: int = 0
    end: int = 0
    """Word positions, ``end`` excluded."""

    def covers(self, other: "Date") -> bool:
        """Return whether this date has every part of the other one, and the same."""
        pairs = zip(self[:3], other[:3], strict=True)
        return all(want is None or have == want for have, want in pairs)

    def agrees(self, other: "Date") -> bool:
        """Return whether two dates share a part, and none that both have differs."""
        return {
            a == b for a, b in zip(self[:3], other[:3], strict=True) if a and b
        } == {True}


def find_dates(text: Text, tables: Tables) -> list[Date]:
    """Return the dates of a text in order of place; bare years are dates too."""
    months = (place for place, word in enumerate(text.words) if word in tables.months)
    named = (_around(text, place, tables) for place in months)
    dates = [*(date for date in named if date.day or date.year), *_numeric(text)]
    taken = {place for date in dates for place in range(date.start, date.end)}
    free = (pair for pair in enumerate(text.words) if pair[0] not in taken)
    years = [
        Date(int(word), None, None, i, i + 1)
        for i, word in free
        if YEAR.fullmatch(word)
    ]
    return sorted(dates + years, key=lambda date: date.start)


def _around(text: Text, place: int, tables: Tables) -> Date:
    """Return the date whose month stands here, past small words and weekdays on either side."""
    fillers = tables.words["date_fillers"] | tables.words["articles"]
    day = year = None
    start, end = place, place + 1
    for step in (-1, +1):
        for spot in range(place + step, place + step * (_REACH + 1), step):
            word = text.words[spot] if 0 <= spot < len(text.words) else ""
            if (
                day is None
                and (year is None or start < place < spot)
                and _DAY.fullmatch(word)
            ):
                day = int(word)  # after a month also where the year came first
            elif year is None and _NOTED_YEAR.fullmatch(word):
                year = int(word[:4])
            elif word in fillers or word in tables.weekdays:
                continue
            else:
                break
            start, end = min(start, spot), max(end, spot + 1)
            if step < 0:
                break
    return Date(year, tables.months.get(text.words[place]), day, start, end)


def _numeric(text: Text) -> Iterator[Date]:
    """Yield every reading of three numbers as a date; day and month may change places."""
    for place in range(len(text.words) - 2):
        one, middle, last = text.words[place : place + 3]
        if (
            one.isdecimal()
            and {gap.strip() for gap in text.gaps[place + 1 : place + 3]} in _MARKS
        ):
            orders = [(one, middle, last), (last, middle, one), (last, one, middle)]
            for year, month, day in dict.fromkeys(orders):
                if (
                    YEAR.fullmatch(year)
                    and _DAY.fullmatch(day)
                    and _MONTH.fullmatch(month)
                ):
                    yield Date(int(year), int(month), int(day), place, place + 3)

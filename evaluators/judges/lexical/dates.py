"""Calendar dates in running text: a year, a month of a year, a day."""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language_tables import Tables

_YEAR = 4  # digits
_NOTE = 2  # digits of a footnote that may be glued to the year of a full date
_MARKS = frozenset({"-", ".", "/", ""})
_ROMAN = {  # a month; a lone I is too often a word
    name: number
    for number, name in enumerate(
        ["ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"], start=2
    )
}
_TENS = (20, 30)
_REACH = 3  # words between the parts of one date, fillers included


@dataclass(frozen=True, slots=True, kw_only=True)
class Date:
    """A date as far as it was given. ``start`` and ``end`` are word positions, end excluded."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    start: int = 0
    end: int = 0

    @property
    def parts(self) -> tuple[int | None, int | None, int | None]:
        """Year, month and day."""
        return self.year, self.month, self.day


def covers(found: Date, wanted: Date) -> bool:
    """Say whether the found date has every part of the wanted one, and the same."""
    pairs = zip(found.parts, wanted.parts, strict=True)
    return all(want is None or have == want for have, want in pairs)


def agrees(found: Date, wanted: Date) -> bool:
    """Say whether no part that both dates have differs, and they share one."""
    shared = [(a, b) for a, b in zip(found.parts, wanted.parts, strict=True) if a and b]
    return bool(shared) and all(a == b for a, b in shared)


def find_dates(text: Text, tables: Tables) -> list[Date]:
    """Return the dates of a text in order of place; bare years are dates too."""
    found = [*_named(text, tables), *_numeric(text)]
    taken = {place for date in found for place in range(date.start, date.end)}
    years = (
        Date(year=int(word), start=place, end=place + 1)
        for place, word in enumerate(text.words)
        if place not in taken
        and is_year(word)
        and not _in_figure(text, place)
        and not _is_decade(text, place)
    )
    return sorted([*found, *years], key=lambda date: date.start)


def _named(text: Text, tables: Tables) -> Iterator[Date]:
    months = tables.months
    for place, word in enumerate(text.words):
        if word in months:
            date = _around(text, place, tables)
            if date.day or date.year:
                yield date


def _around(text: Text, place: int, tables: Tables) -> Date:
    """Read the day and the year on either side of a month's name."""
    before = _neighbours(text, place, -1, tables)
    after = _neighbours(text, place, +1, tables)
    day = year = None
    start, end = place, place + 1
    for spot in (*before[:1], *after):
        word = text.words[spot]
        named = tables.days.get(word)
        if day is None and named:
            day, first = _in_words(text, spot, int(named), tables)
            start, end = min(start, first), max(end, spot + 1)
        elif day is None and year is None and _is_day(word):
            day, start, end = int(word), min(start, spot), max(end, spot + 1)
        elif year is None and is_year(word[:_YEAR]) and len(word) <= _YEAR + _NOTE:
            year, start, end = int(word[:_YEAR]), min(start, spot), max(end, spot + 1)
        elif day is None and start < place < spot and _is_day(word):  # the year came first
            day, end = int(word), max(end, spot + 1)
    return Date(year=year, month=tables.months[text.words[place]], day=day, start=start, end=end)


def _in_words(text: Text, place: int, ones: int, tables: Tables) -> tuple[int, int]:
    """Return a day in words with the tens before it, and where it begins: "twenty-first" is 21."""
    before = place - 1
    while before > 0 and text.words[before] in tables.words("joiners"):
        before -= 1
    word = text.words[before] if before >= 0 else ""
    tens = int(tables.days.get(word) or tables.numbers.get(word, 0))
    return (tens + ones, before) if tens in _TENS and ones < 10 else (ones, place)


def _neighbours(text: Text, place: int, step: int, tables: Tables) -> list[int]:
    """Return up to two places of figures next to a month, fillers between them passed over."""
    found: list[int] = []
    fillers = tables.words("date_fillers") | tables.words("articles")
    spot = place + step
    while 0 <= spot < len(text.words) and abs(spot - place) <= _REACH and len(found) < 2:
        if text.words[spot].isdecimal() or text.words[spot] in tables.days:
            found.append(spot)
        elif text.words[spot] not in fillers:
            break
        spot += step
    return found


def _numeric(text: Text) -> Iterator[Date]:
    for place in range(len(text.words) - 2):
        first, second = (gap.strip() for gap in text.gaps[place + 1 : place + 3])
        one, middle, last = text.words[place : place + 3]
        if middle in _ROMAN and first in _MARKS and second in _MARKS:
            yield from _three((one, str(_ROMAN[middle]), last), place)
        elif first == second and first in _MARKS - {""}:
            yield from _three((one, middle, last), place)


def _three(words: tuple[str, ...], place: int) -> Iterator[Date]:
    """Yield every reading of three numbers as a date; day and month may change places."""
    first, second, third = words
    orders = [(first, second, third), (third, second, first), (third, first, second)]
    for year, month, day in dict.fromkeys(orders):
        if is_year(year) and _is_day(day) and _is_day(month) and int(month) <= 12:
            start, end = place, place + 3
            yield Date(year=int(year), month=int(month), day=int(day), start=start, end=end)


def is_year(word: str) -> bool:
    """Say whether a word can be a year of our era with four digits."""
    return len(word) == 4 and word.isdecimal() and word[0] in "12"


def _is_day(word: str) -> bool:
    return len(word) <= 2 and word.isdecimal() and 1 <= int(word) <= 31


def _is_decade(text: Text, place: int) -> bool:
    return text.words[place + 1 : place + 2] == ("s",) and not text.gaps[place + 1].strip("'’")


def _in_figure(text: Text, place: int) -> bool:
    """Say whether a digit group belongs to a longer number such as 1,234,567 or 12.1999."""
    before = place and text.words[place - 1].isdecimal() and text.gaps[place] in {",", "."}
    after = (
        place + 1 < len(text.words)
        and text.words[place + 1].isdecimal()
        and text.gaps[place + 1] in {",", "."}
    )
    return bool(before or after)

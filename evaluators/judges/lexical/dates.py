"""Calendar dates in running text: a year, a month of a year, a day."""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language_tables import Tables

_YEAR = 4  # digits
_NOTE = 2  # digits of a footnote that may be glued to the year of a full date
_MARKS = frozenset({"-", ".", "/"})
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

    def covers(self, other: "Date") -> bool:
        """Say whether this date has every part of the other one, and the same."""
        pairs = zip(self.parts, other.parts, strict=True)
        return all(want is None or have == want for have, want in pairs)

    def agrees(self, other: "Date") -> bool:
        """Say whether no part that both dates have differs, and they share one."""
        shared = [(a, b) for a, b in zip(self.parts, other.parts, strict=True) if a and b]
        return bool(shared) and all(a == b for a, b in shared)

    def contradicts(self, other: "Date") -> bool:
        """Say whether some part that both dates have differs."""
        return any(a != b for a, b in zip(self.parts, other.parts, strict=True) if a and b)


def find_dates(text: Text, tables: Tables) -> list[Date]:
    """Return the dates of a text in order of place; bare years are dates too."""
    months = (place for place, word in enumerate(text.words) if word in tables.months)
    named = (_around(text, place, tables) for place in months)
    dates = [*(date for date in named if date.day or date.year), *_numeric(text)]
    taken = {place for date in dates for place in range(date.start, date.end)}
    years = (
        Date(year=int(word), start=place, end=place + 1)
        for place, word in enumerate(text.words)
        if is_year(word) and place not in taken and not _is_part(text, place)
    )
    return sorted([*dates, *years], key=lambda date: date.start)


def _around(text: Text, place: int, tables: Tables) -> Date:
    """Read the day and the year on either side of a month's name."""
    before = _neighbours(text, place, -1, tables)
    after = _neighbours(text, place, +1, tables)
    day = year = None
    start, end = place, place + 1
    for spot in (*before[:1], *after):
        word, first = text.words[spot], spot
        ordinal = tables.days.get(word)
        if day is None and ordinal:
            day, first = _in_words(text, spot, int(ordinal), tables)
        elif day is None and (year is None or start < place < spot) and _is_day(word):
            day = int(word)  # after a month also where the year came first
        elif year is None and is_year(word[:_YEAR]) and len(word) <= _YEAR + _NOTE:
            year = int(word[:_YEAR])
        else:
            continue
        start, end = min(start, first), max(end, spot + 1)
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
    places: list[int] = []
    fillers = tables.words("date_fillers") | tables.words("articles")
    spot = place + step
    while 0 <= spot < len(text.words) and abs(spot - place) <= _REACH and len(places) < 2:
        if text.words[spot].isdecimal() or text.words[spot] in tables.days:
            places.append(spot)
        elif text.words[spot] not in fillers:
            break
        spot += step
    return places


def _numeric(text: Text) -> Iterator[Date]:
    """Yield every reading of three numbers as a date; day and month may change places."""
    for place in range(len(text.words) - 2):
        marks = {gap.strip() for gap in text.gaps[place + 1 : place + 3]}
        one, middle, last = text.words[place : place + 3]
        if middle in _ROMAN and marks <= {*_MARKS, ""}:
            middle = str(_ROMAN[middle])
        elif len(marks) > 1 or not marks <= _MARKS:
            continue
        orders = [(one, middle, last), (last, middle, one), (last, one, middle)]
        for year, month, day in dict.fromkeys(orders):
            if is_year(year) and _is_day(day) and _is_day(month) and int(month) <= 12:
                parts = {"year": int(year), "month": int(month), "day": int(day)}
                yield Date(**parts, start=place, end=place + 3)


def is_year(word: str) -> bool:
    """Say whether a word can be a year of our era with four digits."""
    return len(word) == 4 and word.isdecimal() and word[0] in "12"


def _is_day(word: str) -> bool:
    return len(word) <= 2 and word.isdecimal() and 1 <= int(word) <= 31


def _is_part(text: Text, place: int) -> bool:
    """Say whether a digit group is part of a number such as 1,234,567 or 12.1999, or a decade."""
    words, gaps = text.words, text.gaps
    before, after = "".join(words[max(0, place - 1) : place]), "".join(words[place + 1 : place + 2])
    decade = after == "s" and not gaps[place + 1].strip("'’")
    joined = (before.isdecimal() and gaps[place] in {",", "."}) or (
        after.isdecimal() and gaps[place + 1] in {",", "."}
    )
    return decade or joined

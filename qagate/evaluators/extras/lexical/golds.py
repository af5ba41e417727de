"""What a gold accepts: its forms, each with what the rules need to know of it.

A gold such as "Ottawa (Canada); it has been the capital since 1857" is met by less than itself.
It is taken as several forms, the fullest first: the whole text, the text without its aside, and
without its explanation. Numbers and dates are read once here, and compared by value later.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from qagate.evaluators.languages import numbers
from qagate.evaluators.languages.numbers import DASHES, YEAR, Date, Quantity, in_figures
from qagate.evaluators.languages.word_lists import Tables, Text, fold, read, without

_ASIDE = re.compile(r"\s*\(([^()]*)\)")
_STATED_RANGE = re.compile(r"\(acceptable range[^()]*\)", re.IGNORECASE)
_EXPLANATION = re.compile(
    r"(?<=\w\w\w\w)\.\s+(?=[^\Wa-zа-я])|;\s+|(?<=[^\W\d_])\s[-–—]\s"
)
_TOWN_AND_LAND = re.compile(r"([^,]+)(?:,\s[^\W\d_a-z][^,]*){1,3}")
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,7}")
_BESIDE_FIRST = re.compile(
    r"(?:(?<!\w)([^\W\d_]{3,})\s)?(?<!\w)[IІ](?![\w'’])(?:\.?\s([^\W\d_]{3,}))?"
)
_DESIGNATION = re.compile(
    r"(?<![\w/])"
    r"(?:[^\W\d_]+[-‐‑–]?\d[\w-]*"  # T-72B, Kepler-186f
    r"|\d+/\d+"  # 2019/876
    r"|\d[\d.]*\d)"  # 1.4.4, and any other number, which is left out later
)
_DIGITS_OF_A_GROUP = 3
"""Digits in each group of 1.234.567 but its first."""
_HIGHEST_NUMERAL = 39
_OTHER_WORDS_OF_A_NUMBER = 3
"""With more of them, a gold is more than its number."""


class Form(NamedTuple):
    """One accepted form of a gold."""

    text: Text
    """Number words in figures, without articles."""
    content: tuple[str, ...]
    """The words that mean something."""
    common: frozenset[str]
    """The words in small letters."""
    named: bool
    """Whether it looks like a name: every meaning word has a capital."""
    quantity: Quantity | None = None
    """The number, where the form is little else; a stated range is in its ``limits``."""
    date: Date | None = None
    """The date, where the form is nothing else."""
    place: bool = False
    """Whether it is the part before the comma of "town, land"."""
    listed: bool = False
    """Whether it is a list of names."""
    numerals: frozenset[tuple[str, int]] = frozenset()
    """Its words that stand next to a numeral, with its value: the first Elizabeth is no second."""
    designations: tuple[tuple[str, ...], ...] = ()
    """Its marks such as "T-72B", "2019/876" or "1.4.4", as words: met whole or not at all."""

    @property
    def bare_number(self) -> float | None:
        """The number or year, where the form is nothing else; None with a unit or other words."""
        quantity, date = self.quantity, self.date
        if quantity and not quantity.unit:
            is_whole = quantity.end - quantity.start == len(self.text.words)
            return quantity.values[0] if is_whole else None
        if date and not date.month:
            return date.year
        return None


@lru_cache(maxsize=8192)
def forms(gold: str, tables: Tables) -> tuple[Form, ...]:
    """Return a gold's forms, the fullest first; none for a gold without words.

    No form leaves out a designation: "Regulation (EU) 2019/876" is not met by "EU".
    """
    limits = _stated_limits(gold, tables)
    bare = _STATED_RANGE.sub("", gold)
    without_asides = _ASIDE.sub("", bare)
    designations = set(_designations(without_asides, tables))
    accepted = []
    for variant in dict.fromkeys(_variants(bare, tables)):
        form = _form(variant, tables, limits)
        if designations.issubset(form.designations):
            accepted.append(form)
    town = _TOWN_AND_LAND.fullmatch(without_asides.strip(" ."))
    if town:
        accepted.append(_form(town[1], tables, None)._replace(place=True))
    return tuple(form for form in accepted if form.text.words)


def _stated_limits(gold: str, tables: Tables) -> tuple[float, float] | None:
    """Return the ends of "(acceptable range: anything between 118k and 122k)"."""
    stated = _STATED_RANGE.search(gold)
    if not stated:
        return None
    quantities = numbers.find_quantities(read(stated[0]), tables)
    if len(quantities) != 2:
        return None
    low, high = sorted(quantity.values[0] for quantity in quantities)
    return low, high


def _variants(gold: str, tables: Tables) -> Iterator[str]:
    """Yield the gold itself, then what is left without asides and explanations."""
    yield gold
    head = _ASIDE.sub("", gold).strip()
    if head:
        yield head
        for aside in _ASIDE.findall(gold):
            if _ACRONYM.fullmatch(aside):
                yield aside
    explanation = _EXPLANATION.search(head)
    if explanation:
        head = head[: explanation.start()]
        yield head
    yield from _without_description(head, tables)


def _without_description(head: str, tables: Tables) -> Iterator[str]:
    """Yield "George Huntington" of "physician George Huntington"."""
    words = head.split()
    described = 0
    while described < len(words) and words[described][:1].islower():
        described += 1
    if described == 0 or described == len(words):
        return
    has_capital = words[described][:1].isupper()
    if has_capital and not tables.any_of("function", map(fold, words)):
        yield " ".join(words[described:])


def _form(raw: str, tables: Tables, limits: tuple[float, float] | None) -> Form:
    text = in_figures(read(raw), tables)
    text = without(text, tables.words["articles"].difference(text.words[-1:]))
    designations = _designations(raw, tables)
    quantity = None if designations else _only_quantity(raw, text, tables)
    if quantity and limits:
        quantity = quantity._replace(limits=limits)
    date = _only_date(text, tables)
    if quantity and quantity.limits:
        date = None
    light = tables.words["function"] | tables.words["titles"]
    content = tuple(word for word in text.words if word not in light)
    small = [word for word in raw.split() if word[:1].islower()]
    named = _is_name(raw, light | tables.words["joiners"])
    return Form(
        text=text,
        content=content or text.words,
        common=frozenset(read(" ".join(small)).words),
        named=named,
        quantity=None if date else quantity,
        date=date,
        listed=named and tables.any_of("joiners", text.words[1:-1]),
        numerals=numerals(raw, text),
        designations=designations,
    )


def _is_name(raw: str, light: frozenset[str]) -> bool:
    heavy = [word for word in raw.split() if fold(word) not in light]
    has_capitals = [word[:1].isupper() or not word[:1].isalnum() for word in heavy]
    return bool(heavy) and all(has_capitals)


def _designations(raw: str, tables: Tables) -> tuple[tuple[str, ...], ...]:
    """Return the marks of letters and a number, of two numbers with a stroke, and of a version."""
    marks = [mark for mark in _DESIGNATION.findall(raw) if not _is_plain_number(mark)]
    return tuple(in_figures(read(mark), tables).words for mark in marks)


def _is_plain_number(mark: str) -> bool:
    """Say whether it is a number, as 1983, 2.5 and 1.234.567 are and version 1.4.4 is not."""
    first, *groups = mark.split(".")
    if not mark.replace(".", "").isdecimal():
        return False
    if len(groups) < 2 or not all(groups):
        return True
    is_grouped = all(len(group) == _DIGITS_OF_A_GROUP for group in groups)
    return is_grouped and len(first) <= _DIGITS_OF_A_GROUP


def numerals(raw: str, text: Text) -> frozenset[tuple[str, int]]:
    """Return each word that stands next to a numeral, as in "Elizabeth I", with its value."""
    # Folded, the capital I of a name is a pronoun or "and": it is looked for in the raw text.
    found = set()
    for neighbours in _BESIDE_FIRST.findall(raw):
        for word in neighbours:
            if word:
                found.add((fold(word), 1))
    words = text.words
    for place in range(1, len(words)):
        if text.gaps[place].strip(" ."):
            continue
        before, after = words[place - 1], words[place]
        for name, figure in ((before, after), (after, before)):
            if name.isdecimal() or not figure.isdecimal() or len(figure) > 2:
                continue
            if 1 < int(figure) <= _HIGHEST_NUMERAL:
                found.add((name, int(figure)))
    return frozenset(found)


def _only_date(text: Text, tables: Tables) -> Date | None:
    """Return the date of a text that says nothing else."""
    dates = numbers.find_dates(text, tables)
    if len(dates) != 1:
        return None
    of_date = set(text.words[dates[0].start : dates[0].end])
    spare = _spare_words(tables)
    others = {word for word in text.words if word not in spare}
    others = {word for word in others if word not in tables.weekdays}
    return dates[0] if others <= of_date else None


def _only_quantity(raw: str, text: Text, tables: Tables) -> Quantity | None:
    """Return the quantity of a text that is little else, or nothing but a range: "60-100"."""
    quantities = numbers.find_quantities(text, tables)
    if len(quantities) == 2:
        return _range(quantities[0], quantities[1], text)
    if len(quantities) != 1 or _is_year(quantities[0], text):
        return None
    quantity = quantities[0]
    around = {*text.words[: quantity.start], *text.words[quantity.end :]}
    others = around - _spare_words(tables)
    capitals = " ".join(word for word in raw.split() if word[:1].isupper())
    is_name = not others.isdisjoint(read(capitals).words)
    has_other_number = any(word.isdecimal() for word in others)
    is_part_of_name = quantity.start > 0 and text.gaps[quantity.start] in DASHES
    if is_name or has_other_number or is_part_of_name:  # "iron-56"
        return None
    return quantity if len(others) <= _OTHER_WORDS_OF_A_NUMBER else None


def _range(low: Quantity, high: Quantity, text: Text) -> Quantity | None:
    """Return the higher end of "60-100" or "60..100 m" with both ends as its limits."""
    after = text.words[high.end :]
    low_value, high_value = low.values[0], high.values[0]
    if low.start > 0 or len(after) > _OTHER_WORDS_OF_A_NUMBER or low_value > high_value:
        return None
    gap = text.gaps[high.start]
    is_dashed = low.end == high.start and not DASHES.isdisjoint(gap) and not after
    are_years = _is_year(low, text) and _is_year(high, text)
    if ".." in gap or (is_dashed and not are_years):
        return high._replace(limits=(low_value, high_value))
    return None


def _is_year(quantity: Quantity, text: Text) -> bool:
    is_one_word = quantity.end - quantity.start == 1  # 1710.51 is none
    word = text.words[quantity.start]
    return is_one_word and not quantity.unit and bool(YEAR.fullmatch(word))


def _spare_words(tables: Tables) -> frozenset[str]:
    """Return the words beside a number or a date that add nothing to it."""
    words = tables.words
    return words["function"] | words["date_fillers"] | words["approximate"]

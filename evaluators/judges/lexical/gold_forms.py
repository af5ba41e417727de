"""The forms in which a gold is accepted, and what each of them is made of."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from evaluators.judges.lexical.dates import Date, find_dates, is_year
from evaluators.judges.lexical.folding import Text, fold, read, without
from evaluators.judges.lexical.language_tables import Tables, tables
from evaluators.judges.lexical.number_words import in_figures
from evaluators.judges.lexical.numbers import Quantity, find_quantities, find_romans

_PARENTHESIS = re.compile(r"\s*\(([^()]*)\)")
_RANGE = re.compile(r"\(acceptable range[^()]*\)", re.IGNORECASE)
_STOP = re.compile(r"(?<=\w\w\w\w)\.\s+|(?<=\d)\.\s+|;\s+|(?<=[^\W\d_])\s[-–—]\s")
_TOWN = re.compile(r"([^,]+)((?:,\s[^\W\d_a-z][^,]*){1,3})")
_SIGNS = frozenset("+-\u2212")
_HYPHENS = frozenset("-\u2010\u2011")
_SPAN = ".."  # between the ends of a range that the data states
DASHES = frozenset("-–—\u2010\u2011")
_IDENTIFIER = re.compile(r"\d[-\u2010\u2011/:]\d+[^\W\d_]\b")
_LETTER = re.compile(r"(?<![\w.°'’])(?![a-zа-яI])[^\W\d_](?![\w.'’])")
_NUMBERED = re.compile(r"([^:]*(?:\d|\b[IVXL]+\b)[^:]*):\s+([^:]*[^\W\d_][^:]*)")
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,7}")

Limits = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """One accepted form of a gold.

    ``content`` are its words that mean something, ``common`` those of them in small letters;
    ``named`` says that it looks like a name. ``quantity`` or ``date`` is set when it is nothing
    else; ``limits`` is a stated range. ``place`` marks the part before the comma of "town, land",
    which is enough only where the question asks for a place; ``roman`` says that ``quantity`` was
    written in Roman numerals; ``items`` are the words of each thing that a list of names has;
    ``land`` those behind the comma of "town, land"; ``light`` that the form is nothing but small
    words ("The Who"); ``lettered`` that a letter tells it from its like ("vitamin C"), an initial
    does not.
    """

    text: Text
    content: tuple[str, ...]
    common: frozenset[str]
    named: bool
    quantity: Quantity | None = None
    limits: Limits | None = None
    date: Date | None = None
    place: bool = False
    roman: bool = False
    items: tuple[tuple[str, ...], ...] = ()
    land: tuple[str, ...] = ()
    light: bool = False
    lettered: bool = False

    @property
    def signed(self) -> bool:
        """Whether a plus or minus closes it, as in a blood group."""
        return self.text.gaps[-1][:1] in _SIGNS

    @property
    def single(self) -> bool:
        """Whether a second candidate beside it contradicts it; a common noun may have synonyms."""
        return self.named or self.quantity is not None or self.date is not None


@lru_cache(maxsize=8192)
def forms(gold: str, language: str) -> tuple[Form, ...]:
    """Return a gold's forms, the fullest first; none for a gold without words."""
    known = tables(language)
    limits = None
    if stated := _RANGE.search(gold):
        ends = [figure.values[0] for figure in find_quantities(read(stated[0]), known)]
        limits = (min(ends), max(ends)) if len(ends) == 2 else None
    bare = _RANGE.sub("", gold)
    accepted = [_form(raw, known, limits) for raw in dict.fromkeys(_variants(bare, known))]
    if town := _TOWN.fullmatch(_PARENTHESIS.sub("", bare).strip(" .")):
        land = read(town[2]).words
        accepted.append(replace(_form(town[1], known, None), place=True, land=land))
    return tuple(form for form in accepted if form.text.words)


def _variants(gold: str, known: Tables) -> Iterable[str]:
    """Yield the gold itself, then what is left when asides and explanations are taken away."""
    yield gold
    head = _PARENTHESIS.sub("", gold)
    if fold(head).strip():
        yield head
        yield from (aside for aside in _PARENTHESIS.findall(gold) if _ACRONYM.fullmatch(aside))
    if numbered := _NUMBERED.fullmatch(head.strip()):
        yield from numbered.groups()
    titles = known.words("titles")
    for stop in _STOP.finditer(head):
        if titles.issuperset(read(head[: stop.start()]).words):
            continue  # of "Prof. Dr. Weber" a title alone is no form
        if "." not in stop[0] or head[stop.end() :][:1].isupper():
            head = head[: stop.start()]
            break
    yield head
    yield from _alternatives(head, known)
    yield from _described(head, known)


def _alternatives(head: str, known: Tables) -> Iterable[str]:
    """Yield the two sides of "X or Y", and what comes before ", who …"."""
    words = head.split()
    for place, word in enumerate(words[1:-1], start=1):
        before = " ".join(words[:place])
        if fold(word) in known.words("alternatives"):
            after = " ".join(words[place + 1 :])
            if before[-1:].isdecimal() == after[:1].isdecimal():  # not "16 or older"
                yield before
                yield after
        elif fold(word) in known.words("relatives") and before.endswith(","):
            yield before


def _described(head: str, known: Tables) -> Iterable[str]:
    """Yield the name after plain words that only describe it: "the physician …"."""
    words = head.split()
    small = [place for place, word in enumerate(words) if word[:1].islower()]
    first = next((place for place, word in enumerate(words) if not word[:1].islower()), 0)
    sorts = known.words("persons") | known.words("generic") | known.words("articles")
    if small and fold(words[small[-1]]) in sorts - known.words("neutral"):
        first = small[-1] + 1  # "English rock band the Outfield"
    name = " ".join(words[first:])
    if first and name[:1].isupper() and _is_name(name, known):
        light = known.words("function") - known.words("articles")
        if not any(fold(word) in light for word in words):
            yield name


def _form(raw: str, known: Tables, limits: Limits | None) -> Form:
    text = in_figures(read(raw), known)
    text = without(text, known.words("articles") - _letters(text, known))
    figure = _only_quantity(raw, text, known)
    if not (limits or _IDENTIFIER.search(raw)) and (stated := _stated_range(text, known)):
        figure, limits = stated
    numeral = None if figure else _only_roman(raw, text, known)
    date = _only_date(text, known)
    light = known.words("function") | known.words("titles") | known.words("particles")
    return Form(
        text=text,
        content=tuple(word for word in text.words if word not in light) or text.words,
        common=_words_where(str.islower, raw),
        named=_is_name(raw, known),
        quantity=None if date else figure or numeral,
        roman=bool(numeral) and not date,
        limits=limits,
        date=date,
        items=_items(text, known) if _is_name(raw, known) else (),
        light=(known.words("function") | known.words("articles")).issuperset(text.words),
        lettered=any(
            letter.isupper() and fold(letter) in text.words for letter in _LETTER.findall(raw)
        ),
    )


def _letters(text: Text, known: Tables) -> frozenset[str]:
    """Return the articles that are names of letters there: at the end, and before "minor"."""
    keys, words = known.words("keys"), text.words
    after = zip(words, (*words[1:], ""), strict=False)
    return frozenset(word for word, following in after if not following or following in keys)


def _items(text: Text, known: Tables) -> tuple[tuple[str, ...], ...]:
    """Return the items of a list such as "X, Y and Z"; none where nothing joins them."""
    joiners = known.words("joiners")
    if joiners.isdisjoint(text.words):
        return ()
    items: list[list[str]] = [[]]
    for place, word in enumerate(text.words):
        if word in joiners or ("," in text.gaps[place] and items[-1]):
            items.append([])
        if word not in joiners:
            items[-1].append(word)
    return tuple(tuple(item) for item in items if item)


def _words_where(test: Callable[[str], bool], raw: str) -> frozenset[str]:
    """Return the folded words of which the first letter, as it was written, passes a test."""
    return frozenset(read(" ".join(word for word in raw.split() if test(word[:1]))).words)


def _is_name(raw: str, known: Tables) -> bool:
    """Say whether every meaning word begins with a capital, as names do."""
    small = known.words("function") | known.words("particles")
    meaning = [word for word in raw.split() if fold(word) not in small]
    return bool(meaning) and all(word[:1].isupper() or word[:1] in "\"'(“„«" for word in meaning)


def _stated_range(text: Text, known: Tables) -> tuple[Quantity, Limits] | None:
    """Return a figure and its limits where the text is nothing but a range such as "60-100"."""
    figures = find_quantities(text, known)
    if len(figures) != 2 or figures[0].start or figures[0].end != figures[1].start:
        return None
    low, high = (figure.values[0] for figure in figures)
    gap = text.gaps[figures[1].start]
    spanned = _SPAN in gap
    dash = spanned or not DASHES.isdisjoint(gap)
    if not dash or low >= high or figures[1].end != len(text.words):
        return None
    years = all(is_year(text.words[figure.start]) for figure in figures)
    return None if years and not spanned else (figures[1], (low, high))


def _only_date(text: Text, known: Tables) -> Date | None:
    """Return the date of a text that is nothing but a date."""
    dates = find_dates(text, known)
    if len(dates) != 1:
        return None
    rest = text.words[: dates[0].start] + text.words[dates[0].end :]
    light = known.words("function") | known.words("date_fillers") | known.words("approximate")
    return dates[0] if light.issuperset(rest) else None


def _only_roman(raw: str, text: Text, known: Tables) -> Quantity | None:
    """Return the value of a numeral with nothing but small words beside it: "w XIX wieku"."""
    capitals = read(" ".join(word for word in raw.split() if word.isupper())).words
    numerals = find_romans(text, frozenset(capitals))
    light = known.words("function") | known.words("articles")
    heavy = [word for word in text.words if word not in light]
    named = any(word[:1].isupper() and not word.isupper() for word in raw.split())
    return numerals[0] if len(numerals) == 1 and len(heavy) <= 2 and not named else None


def _only_quantity(raw: str, text: Text, known: Tables) -> Quantity | None:
    """Return the quantity of a text that is little else; "a week" is one week, "euro" is a word."""
    figures = find_quantities(text, known)
    if not figures and len(raw.split()) > 1 and len(text.words) == 1:
        unit = known.units.get(text.words[0])
        one = Quantity(values=(1.0,), step=1.0, unit=unit or "", start=0, end=1, digits=0)
        figures = [one] if unit else []
    if len(figures) != 1 or _IDENTIFIER.search(raw):
        return None
    figure = figures[0]
    year = is_year(text.words[figure.start]) and not figure.unit
    if year or (figure.start and text.gaps[figure.start] in _HYPHENS):
        return None  # a date, or part of a name such as iron-56
    rest = text.words[: figure.start] + text.words[figure.end :]
    light = known.words("function") | known.words("approximate") | known.words("eras")
    heavy = [word for word in rest if word not in light]
    if len(heavy) > 3 or any(word.isdecimal() for word in heavy):
        return None
    return figure if _words_where(str.isupper, raw).isdisjoint(heavy) else None

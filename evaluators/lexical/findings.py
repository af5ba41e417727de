"""Every way in which a gold form may stand in an answer, from the strictest to the loosest."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from evaluators.lexical.dates import Date, agrees, covers
from evaluators.lexical.exam import Exam
from evaluators.lexical.golds import Form
from evaluators.lexical.matching import Finding, Tolerance, find_run, places_of
from evaluators.lexical.names import find_person
from evaluators.lexical.numbers import Quantity, same, units_agree

_NAMES = 6  # words that a person's name may have
_ROOM = 4  # words that may stand between the words of one name


def findings(form: Form, exam: Exam) -> Iterator[Finding]:
    """Yield the places where the form stands in the answer."""
    if form.place and not exam.asks_one_place:
        return
    if form.date:
        yield from _dates(form.date, exam)
    elif form.quantity:
        yield from _quantities(form.quantity, form, exam)
    else:
        yield from find_run(form.text.words, exam.said)
        yield from _loose(form, exam)


def _dates(gold: Date, exam: Exam) -> Iterator[Finding]:
    """Yield dates that have all of the gold's parts and do not contradict a finer gold form."""
    wanted = replace(gold, month=None, day=None) if gold.year and exam.asks_only_year else gold
    others = (form.date for form in exam.forms)
    finer = [date for date in others if date and _refines(date, gold)]
    for date in exam.dates:
        kept = not finer or any(agrees(date, fine) for fine in finer)
        if covers(date, wanted) and kept:
            yield Finding(start=date.start, end=date.end, rule="the date is the gold's", exact=True)


def _refines(date: Date, coarse: Date) -> bool:
    return covers(date, coarse) and not covers(coarse, date)


def _quantities(gold: Quantity, form: Form, exam: Exam) -> Iterator[Finding]:
    asked = set(pairwise(exam.asked.words))
    for found in exam.quantities:
        if _fits(found, gold, form.limits) and not _echoed(found, exam, asked):
            exact = found.values == gold.values
            rule = "the number agrees to the gold's last significant figure"
            yield Finding(start=found.start, end=found.end, rule=rule, exact=exact)


def _echoed(found: Quantity, exam: Exam, asked: set[tuple[str, str]]) -> bool:
    """Say whether a number only repeats the question: there too, beside the same word."""
    near = exam.said.words[max(0, found.start - 1) : found.start + 2]
    return not asked.isdisjoint(pairwise(near))


def _fits(found: Quantity, gold: Quantity, limits: tuple[float, float] | None) -> bool:
    if not units_agree(found, gold):
        return False
    if limits:
        return any(limits[0] <= value <= limits[1] for value in found.values)
    return same(found, gold)


def _loose(form: Form, exam: Exam) -> Iterator[Finding]:
    said = exam.said
    crossed = (form.text.cyrillic and said.latin) or (form.text.latin and said.cyrillic)
    tolerance = Tolerance(tables=exam.tables, names=form.named, scripts=crossed)
    implied = exam.sort | (form.common & exam.echoed) | _class_words(form, exam)
    needed = [word for word in form.content if word not in implied]
    if needed and not exam.echoed.issuperset(needed):
        yield from _together(needed, exam, tolerance, "every word of the gold stands in the answer")
    if form.named and len(form.content) <= _NAMES:
        own = exam.own if exam.asks("persons") else ()
        for found in find_person(form.content, own, said, tolerance):
            if not exam.echoed.issuperset(said.words[found.start : found.end]):
                yield found


def _class_words(form: Form, exam: Exam) -> frozenset[str]:
    """Return the words beside a proper name that only say what sort of thing it names."""
    nameless = form.common.issuperset(form.content)
    return frozenset() if nameless else form.common & exam.tables.words("generic")


def _together(
    needed: Iterable[str], exam: Exam, tolerance: Tolerance, rule: str
) -> Iterator[Finding]:
    """Yield the narrowest stretch that holds all the words, if it is narrow enough."""
    groups = []
    for word in needed:
        places = places_of(word, exam.said, tolerance)
        if not places:
            return
        groups.append(places)
    start, end = _narrowest(groups)
    if end - start <= len(groups) * 3 + _ROOM:
        yield Finding(start=start, end=end, rule=rule)


def _narrowest(groups: list[list[int]]) -> tuple[int, int]:
    """Return the shortest stretch of positions with one of every group; linear in positions."""
    merged = sorted((place, kind) for kind, places in enumerate(groups) for place in places)
    last: dict[int, int] = {}
    best = (0, 1 << 60)
    for place, kind in merged:
        last[kind] = place
        if len(last) == len(groups):
            start = min(last.values())
            if place + 1 - start < best[1] - best[0]:
                best = (start, place + 1)
    return best

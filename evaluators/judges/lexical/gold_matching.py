"""Every way in which a gold form may stand in an answer, from the strictest to the loosest."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise, takewhile

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.dates import Date, agrees, covers
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.numbers import Quantity, equal, rounded, same, units_agree
from evaluators.judges.lexical.word_matching import (
    Match,
    Tolerance,
    alike,
    find_person,
    find_run,
    places_of,
)

TOGETHER = "every word of the gold stands in the answer"
_NAMES = 6  # words that a person's name may have
_VERSION = 2  # figures from which a row of them must stand as it is: 1.4.4 is not 1.4.1
_MANY = 3  # plain words of a gold of which one may be missing
_SHORT = 8  # own words of an answer in which that is enough
_PARTS = 2  # words of a gold that an answer in fewer words must have
_ROOM = 4  # words that may stand between the words of one name


def find_matches(form: Form, exam: AnswerAnalysis) -> Iterator[Match]:
    """Yield the places where the form stands in the answer."""
    if form.place and not exam.asks_one_place:
        return
    if form.date:
        yield from _dates(form.date, exam)
    elif form.quantity:
        yield from _quantities(form.quantity, form, exam)
    else:
        found = find_run(form.text.words, exam.said)
        yield from (one for one in found if _same_sign(one, form, exam))
        if not form.signed:
            yield from _loose(form, exam)


def _same_sign(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the sign at the gold's end stands in the answer too: A+ is not A-."""
    sign = form.text.gaps[-1][:1]
    return not form.signed or exam.said.gaps[finding.end].startswith(sign)


def _dates(gold: Date, exam: AnswerAnalysis) -> Iterator[Match]:
    """Yield dates that have all of the gold's parts and do not contradict a finer gold form."""
    wanted = replace(gold, month=None, day=None) if gold.year and exam.asks_only_year else gold
    others = (form.date for form in exam.forms)
    finer = [date for date in others if date and _refines(date, gold)]
    for date in exam.dates:
        kept = not finer or any(agrees(date, fine) for fine in finer)
        if covers(date, wanted) and kept:
            yield Match(start=date.start, end=date.end, rule="the date is the gold's", exact=True)


def _refines(date: Date, coarse: Date) -> bool:
    return covers(date, coarse) and not covers(coarse, date)


def _quantities(gold: Quantity, form: Form, exam: AnswerAnalysis) -> Iterator[Match]:
    asked = set(pairwise(exam.asked.words))
    for found in exam.quantities:
        if _fits(found, gold, form.limits, exam) and not _echoed(found, exam, asked):
            exact = found.values == gold.values
            rule = "the number agrees to the gold's last significant figure"
            yield Match(start=found.start, end=found.end, rule=rule, exact=exact)


def _echoed(found: Quantity, exam: AnswerAnalysis, asked: set[tuple[str, str]]) -> bool:
    """Say whether a number only repeats the question: there too, beside the same word."""
    near = exam.said.words[max(0, found.start - 1) : found.start + 2]
    return not asked.isdisjoint(pairwise(near))


def _fits(
    found: Quantity, gold: Quantity, limits: tuple[float, float] | None, exam: AnswerAnalysis
) -> bool:
    if not gold.digits and found.unit != gold.unit:
        return False  # "a week" needs the word
    if not units_agree(found, gold):
        return not limits and equal(found, gold, exam.tables)
    if limits:
        return any(limits[0] <= value <= limits[1] for value in found.values)
    return same(found, gold) or rounded(found, gold)


def _loose(form: Form, exam: AnswerAnalysis) -> Iterator[Match]:
    said = exam.said
    crossed = (form.text.cyrillic and said.latin) or (form.text.latin and said.cyrillic)
    tolerance = Tolerance(tables=exam.tables, names=form.named, scripts=crossed)
    if not exam.asks("persons"):
        yield from _inside(form, exam)
    implied = exam.sort | (form.common & exam.echoed) | _class_words(form, exam)
    needed = [word for word in form.content if word not in implied]
    version = len(needed) > _VERSION and all(word.isdecimal() for word in needed)
    if needed and not version and not exam.echoed.issuperset(needed):
        yield from _together(needed, exam, tolerance, TOGETHER)
        yield from _nearly(needed, form, exam, tolerance)
    if form.named and len(form.content) <= _NAMES and not _is_thing(form, exam):
        own = exam.own if exam.asks("persons") else ()
        for found in find_person(form.content, own, said, tolerance):
            if not exam.echoed.issuperset(said.words[found.start : found.end]):
                yield found


def _inside(form: Form, exam: AnswerAnalysis) -> Iterator[Match]:
    """Yield the whole answer where it is a gold without some words that only describe it.

    What is left must hold the gold's last word ("1824 election" of "the disputed 1824 election") or
    be its head before a small word ("RAF Coningsby" of "RAF Coningsby in Lincolnshire").
    """
    if _is_list(form, exam) or not exam.own or len(form.content) < _PARTS:
        return
    tolerance = Tolerance(tables=exam.tables, names=form.named)
    said, content = exam.said.words, form.content
    if not all(any(alike(word, one, tolerance) for word in content) for one in exam.own):
        return
    met = [any(alike(word, one, tolerance) for one in said) for word in content]
    ended = met[-1] and not form.named  # York University is not New York University
    if sum(met) >= _PARTS and (ended or all(met[: len(_head(form))])):
        yield Match(start=0, end=len(said), rule="the answer is the gold in fewer words")


def _is_list(form: Form, exam: AnswerAnalysis) -> bool:
    joining = exam.tables.words("joiners") | exam.tables.words("alternatives")
    return not joining.isdisjoint(form.text.words) or any("," in gap for gap in form.text.gaps)


def _nearly(
    needed: list[str], form: Form, exam: AnswerAnalysis, tolerance: Tolerance
) -> Iterator[Match]:
    """Yield a short answer that has all but one of three or more plain words of the gold."""
    if form.named or len(needed) < _MANY or len(exam.own) > _SHORT or _is_list(form, exam):
        return
    missed = [word for word in needed if not places_of(word, exam.said, tolerance)]
    strict = exam.tables.words("negations") | exam.tables.numbers.keys()
    kept = [word for word in needed if word not in missed]
    worded = sum(not word.isdecimal() for word in kept) >= _PARTS
    if len(missed) == 1 and worded and form.common - strict >= {*missed}:
        rule = "all but one word of the gold stand in the answer"
        yield from _together(kept, exam, tolerance, rule)


def _head(form: Form) -> tuple[str, ...]:
    """Return the words of a gold before the first small word in it; all of them without one."""
    heads = takewhile(lambda word: word in form.content, form.text.words)
    return tuple(heads)


def _is_thing(form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a name holds a word that no person's has: "school", or the "and" of a list."""
    words = exam.tables.words("generic") | exam.tables.words("joiners")
    return not words.isdisjoint(form.text.words)


def _class_words(form: Form, exam: AnswerAnalysis) -> frozenset[str]:
    """Return the words beside a proper name that only say what sort of thing it names."""
    nameless = form.common.issuperset(form.content)
    return frozenset() if nameless else form.common & exam.tables.words("generic")


def _together(
    needed: Iterable[str], exam: AnswerAnalysis, tolerance: Tolerance, rule: str
) -> Iterator[Match]:
    """Yield the narrowest stretch that holds all the words, if it is narrow enough."""
    groups = []
    for word in needed:
        places = places_of(word, exam.said, tolerance)
        if not places:
            return
        groups.append(places)
    start, end = _narrowest(groups)
    if end - start <= len(groups) * 3 + _ROOM:
        yield Match(start=start, end=end, rule=rule)


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

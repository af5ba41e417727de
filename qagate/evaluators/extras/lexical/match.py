"""Where a gold form stands in an answer, from the strictest reading to the loosest.

A date or a number is compared by value. Any other form is looked for word by word: first in a row,
then its words in other forms or another order, then by the name of a person. Whether a place that
was found is what the answer says is asked in ``objections.py``.
"""

from collections.abc import Iterator
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from qagate.evaluators.extras.lexical.analysis import Answer
from qagate.evaluators.extras.lexical.golds import Form
from qagate.evaluators.extras.lexical.options import spans_alike
from qagate.evaluators.extras.lexical.tolerance import Tolerance
from qagate.evaluators.languages.numbers import DASHES, Date, Quantity
from qagate.evaluators.languages.word_lists import Text

_PLACES = 8
"""Mentions of one gold that are looked at."""
_INSIDE_NUMBER = frozenset(".,:-/\u2010\u2011")
"""Signs between the digits of one number."""
_ROOM_BETWEEN = 4
"""Words that may stand between the words of one gold."""
_WORDS_OF_NAME = 6
"""Of a person, at most."""
_HEAD_OF_QUESTION = 4
"""Words of a question that say what sort of thing it asks for."""
_MIDDLE_NAMES = 3
"""Words between a given name and the family name."""


class Match(NamedTuple):
    """A place of an answer that may be a gold: word positions, ``end`` excluded."""

    form: Form
    start: int
    end: int
    rule: str
    """Why it is taken for the gold; a key of ``reasons.yaml``."""
    exact: bool = False
    """Whether nothing differs."""


def find_matches(form: Form, answer: Answer) -> Iterator[Match]:
    """Yield the places where the form stands in the answer, from the strictest to the loosest."""
    if form.place and not answer.asks("places"):
        return
    if form.date:
        yield from _dates(form, form.date, answer)
    elif form.quantity:
        yield from _quantities(form, form.quantity, answer)
    else:
        yield from _in_a_row(form, answer.text)
        if _has_designations(form, answer):
            yield from _loose(form, answer)


def _dates(form: Form, gold: Date, answer: Answer) -> Iterator[Match]:
    """Yield dates that have all parts of the gold; of one asked for by its year, the year."""
    wanted = gold
    asked, units = answer.question.words, answer.tables.units
    asks_year = any(answer.tables.phrases["years"].spans(asked))
    asks_finer = any(
        units.get(word) in ("duration-day", "duration-month") for word in asked
    )
    if gold.year and asks_year and not asks_finer:
        wanted = gold._replace(month=None, day=None)  # they are extra
    for date in answer.dates:
        if not date.covers(wanted) or not date.agrees(gold):
            continue
        exact = date[:3] == gold[:3]
        yield Match(form, date.start, date.end, "the date is the gold's", exact)


def _quantities(form: Form, gold: Quantity, answer: Answer) -> Iterator[Match]:
    """Yield quantities that agree with the gold's and do not repeat the question."""
    rule = "the number agrees to the gold's last significant figure"
    asked = set(pairwise(answer.question.words))
    words, gaps = answer.text.words, answer.text.gaps
    quantities = answer.quantities
    for quantity, following in zip_longest(quantities, quantities[1:]):
        if not quantity.meets(gold):
            continue
        is_dashed = (
            following is not None
            and following.start == quantity.end
            and gaps[following.start].strip() in DASHES
        )
        if is_dashed and gold.limits and not following.meets(gold):
            continue
        around = words[max(0, quantity.start - 1) : quantity.start + 2]
        if not asked.isdisjoint(pairwise(around)):
            continue
        exact = quantity[:3] == gold[:3]
        yield Match(form, quantity.start, quantity.end, rule, exact)


def _in_a_row(form: Form, text: Text) -> Iterator[Match]:
    """Yield places where the words follow each other; digits stay whole: 1.4 is not in 1.4.1."""
    for start, end in islice(_spans(form.text.words, text), _PLACES):
        if _is_cut_out(start, end, text):
            continue
        if form.designations and _is_glued(end, text):
            continue
        yield Match(form, start, end, "the gold stands in the answer", exact=True)


def _spans(wanted: tuple[str, ...], text: Text) -> Iterator[tuple[int, int]]:
    words, size = text.words, len(wanted)
    for start, word in enumerate(words):
        if word == wanted[0] and words[start : start + size] == wanted:
            yield start, start + size


def _is_cut_out(start: int, end: int, text: Text) -> bool:
    """Return whether a number at either end goes on: in 1.4.1, 7.22f and Apollo 11."""
    words, gaps = text.words, text.gaps
    before = words[start - 1] if start else ""
    after = words[end] if end < len(words) else ""
    if (
        words[start].isdecimal()
        and before.isdecimal()
        and gaps[start] in _INSIDE_NUMBER
    ):
        return True
    if not words[end - 1].isdecimal():
        return False
    is_longer_number = after.isdecimal() and gaps[end] in _INSIDE_NUMBER
    is_lettered = len(after) == 1 and not gaps[end]
    return is_longer_number or is_lettered


def _is_glued(end: int, text: Text) -> bool:
    """Return whether letters or digits go on without a gap: T-72 in T-72BM, or in T-72-3."""
    if end == len(text.words):
        return False
    gap = text.gaps[end]
    return not gap or (text.words[end].isdecimal() and gap in DASHES)


def _has_designations(form: Form, answer: Answer) -> bool:
    """Return whether each designation of the form stands in the answer whole."""
    alike = Tolerance(answer.tables, names=True).alike
    for designation in form.designations:
        spans = spans_alike(designation, answer.text, alike)
        if all(_goes_on(start, end, answer.text) for start, end in spans):
            return False
    return True


def _goes_on(start: int, end: int, text: Text) -> bool:
    return _is_cut_out(start, end, text) or _is_glued(end, text)


def _loose(form: Form, answer: Answer) -> Iterator[Match]:
    """Yield places that hold the gold's words in other forms, in another order, or fewer."""
    if _is_score(form.text):
        return
    names = answer.capitals if form.named else frozenset[str]()
    # A short sound is evidence beside another word of the name only.
    shortest_sound = 3 if len(form.content) > 1 else 4
    tolerance = Tolerance(
        tables=answer.tables,
        names=form.named,
        capitals=names,
        shortest_sound=shortest_sound,
    )
    yield from _every_word(form, answer, tolerance)
    if _says_less(form, answer, tolerance):
        rule = "the answer is the gold in fewer words"
        yield Match(form, 0, len(answer.text.words), rule)
    if form.named and not form.listed and 1 < len(form.content) <= _WORDS_OF_NAME:
        yield from _person(form, answer, tolerance)


def _is_score(text: Text) -> bool:
    """Return whether the order of its numbers counts: "38–35", "2:1"."""
    for place in range(1, len(text.words)):
        are_numbers = (
            text.words[place - 1].isdecimal() and text.words[place].isdecimal()
        )
        if are_numbers and text.gaps[place] in DASHES | {":"}:
            return True
    return False


def _every_word(form: Form, answer: Answer, tolerance: Tolerance) -> Iterator[Match]:
    """Yield places where every word of the gold stands close by, but for what the question says."""
    head = answer.question.words[:_HEAD_OF_QUESTION]
    implied = {*head} | (form.common & answer.question_words)
    needed = [word for word in form.content if word not in implied]
    if all(word.isdecimal() for word in needed):
        return
    if answer.question_words.issuperset(needed):
        return
    places_by_word = [tolerance.places_of(word, answer.text) for word in needed]
    if not all(places_by_word):
        return
    widest = len(needed) * 3 + _ROOM_BETWEEN
    for anchor in min(places_by_word, key=len)[:_PLACES]:
        near = [
            min(places, key=lambda place: abs(place - anchor))
            for places in places_by_word
        ]
        if max(near) - min(near) < widest:
            rule = "every word of the gold stands in the answer"
            yield Match(form, min(near), max(near) + 1, rule)


def _says_less(form: Form, answer: Answer, tolerance: Tolerance) -> bool:
    """Return whether the answer says some words of the gold, and nothing else.

    Of its numbers it says all or none: "Windows 3" is not "Windows 3.1" in fewer words.
    """
    if form.named or len(answer.own_words) < 2:
        return False
    numbers = {word for word in form.content if word.isdecimal()}
    numbers_said = numbers.intersection(answer.text.words)
    if numbers_said and numbers_said != numbers:
        return False
    for said in answer.own_words:
        if not any(tolerance.alike(word, said) for word in form.content):
            return False
    return True


def _person(form: Form, answer: Answer, tolerance: Tolerance) -> Iterator[Match]:
    """Yield where the family name stands with a given name, or is all that the answer says."""
    words = answer.text.words
    asks_who = answer.asks("persons")
    name = form.content
    orders = [name]
    if answer.tables.family_first:
        orders.append((*name[1:], name[0]))
    for *given_names, family in orders:
        looked_for = given_names if asks_who else given_names[:1]
        for place in tolerance.places_of(family, answer.text)[:_PLACES]:
            start = _start_of_name(looked_for, place, answer, tolerance)
            is_asked = answer.question_words.issuperset(words[start : place + 1])
            if start < place and not is_asked:
                rule = "given and family name are the gold's"
                yield Match(form, start, place + 1, rule)
            if asks_who and answer.own_words == [words[place]] and len(family) > 2:
                rule = "the answer is the family name alone"
                yield Match(form, place, place + 1, rule)


def _start_of_name(
    given_names: list[str], family: int, answer: Answer, tolerance: Tolerance
) -> int:
    """Return where a name begins whose family name stands at a place: at a given name near it."""
    words = answer.text.words
    for place in range(family - 1, max(-1, family - 2 - _MIDDLE_NAMES), -1):
        for name in given_names:
            is_initial = 1 in (len(name), len(words[place]))
            if is_initial and name[0] == words[place][0]:
                return place
            if tolerance.alike(name, words[place]):
                return place
    return family

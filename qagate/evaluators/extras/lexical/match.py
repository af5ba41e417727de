"""Where a gold form stands in an answer, and why it may still not be what the answer says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from qagate.evaluators.extras.lexical.analysis import BREAK, Answer, Form
from qagate.evaluators.languages.numbers import DASHES, Date, Quantity
from qagate.evaluators.languages.word_lists import VOWELS, Tables, Text, sound

_PLACES = 8  # mentions of one gold that are looked at
_DISTINCT = 3000  # distinct words of an answer that are compared one by one
_INNER = frozenset(".,:-/\u2010\u2011")  # between the digits of one number
_ROOM = 4  # words that may stand between the words of one gold
_NAME = 6  # words of a person's name
_HEAD = 4  # words of a question that say what sort of thing it asks for
_BETWEEN = 3  # words between a given name and the family name
_REACH = 3  # words over which a negation reaches
_MANY = 3  # rivals that make a list of guesses
_LISTED = 0.6  # share of the answer's own words from which it is a list
_TURN = 6  # words after "but" within which another candidate stands
_STOP = re.compile(r"[.;!?\n…]")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How freely words are compared: inflected ends; in names typing errors and sounds too."""

    tables: Tables
    names: bool = False
    capitals: frozenset[str] = (
        frozenset()
    )  # words that may be names; none where every word may

    def alike(self, wanted: str, word: str) -> bool:
        """Return whether two folded words are forms or spellings of one word."""
        digits = wanted.isdecimal() or word.isdecimal()
        if wanted == word or digits or (self.capitals and word not in self.capitals):
            return wanted == word
        if _inflected(wanted, word, self.tables.endings):
            return True
        heard = min(map(len, (wanted, word, sound(wanted) + "."))) > 3
        return self.names and (
            _mistyped(wanted, word) or (heard and _mistyped(sound(wanted), sound(word)))
        )

    def places_of(self, wanted: str, answer: Text) -> list[int]:
        """Return the positions of words alike to the wanted one; only equal ones if any is."""
        close = {wanted}
        if wanted not in answer.words:
            distinct = islice(dict.fromkeys(answer.words), _DISTINCT)
            close = {word for word in distinct if self.alike(wanted, word)}
        return [place for place, word in enumerate(answer.words) if word in close]


def _inflected(one: str, other: str, endings: frozenset[str]) -> bool:
    cut = shortest = min(len(one), len(other))
    if shortest < 4 or one[:3] != other[:3]:
        return False
    if one[:-1] == other[:-1] and shortest == len(other) == 4:
        return one[-1] in endings & VOWELS and other[-1] in VOWELS  # Kuba, Kuby
    while one[:cut] != other[:cut]:
        cut -= 1
    cuts = range(cut, max(3, cut - 3), -1)
    return any(one[place:] in endings and other[place:] in endings for place in cuts)


def _mistyped(one: str, other: str) -> bool:
    """Return whether words of five letters differ by one error, or two where they are long."""
    from rapidfuzz.distance import OSA  # noqa: PLC0415  # 40 ms, and few answers need it

    shortest = min(len(one), len(other))
    if (
        one == other
        or shortest < 5
        or one[0] != other[0]
        or abs(len(one) - len(other)) > 2
    ):
        return one == other
    prefixed = one.startswith(other) or other.startswith(
        one
    )  # another ending, another word
    return not prefixed and OSA.distance(one, other) <= (1 if shortest < 9 else 2)


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
        yield from _dated(form, form.date, answer)
    elif form.quantity:
        yield from _counted(form, form.quantity, answer)
    else:
        yield from _in_order(form, answer.text)
        yield from _loose(form, answer)


def _dated(form: Form, gold: Date, answer: Answer) -> Iterator[Match]:
    """Yield dates that have all parts of the gold; of one asked for by its year, the year."""
    wanted, asked, units = gold, answer.question.words, answer.tables.units
    finer = not {"duration-day", "duration-month"}.isdisjoint(map(units.get, asked))
    if gold.year and any(answer.tables.phrases["years"].spans(asked)) and not finer:
        wanted = gold._replace(
            month=None, day=None
        )  # the gold's month and day are extra
    for date in answer.dates:
        if date.covers(wanted):
            exact = date[:3] == gold[:3]
            yield Match(form, date.start, date.end, "the date is the gold's", exact)


def _counted(form: Form, gold: Quantity, answer: Answer) -> Iterator[Match]:
    """Yield quantities that agree with the gold's and do not repeat the question."""
    rule = "the number agrees to the gold's last significant figure"
    asked = set(pairwise(answer.question.words))
    words, figures, gaps = answer.text.words, answer.quantities, answer.text.gaps
    for found, after in zip_longest(figures, figures[1:]):
        near = words[max(0, found.start - 1) : found.start + 2]
        dashed = (
            after and after.start == found.end and gaps[after.start].strip() in DASHES
        )
        fits = found.meets(gold) and (
            not dashed or not gold.limits or after.meets(gold)
        )
        if fits and asked.isdisjoint(pairwise(near)):
            exact = found[:3] == gold[:3]
            yield Match(form, found.start, found.end, rule, exact)


def _in_order(form: Form, answer: Text) -> Iterator[Match]:
    """Yield places where the words follow each other; digits stay whole: 1.4 is not in 1.4.1."""
    words, gaps, wanted, size = (
        answer.words,
        answer.gaps,
        form.text.words,
        len(form.text.words),
    )
    starts = (place for place, word in enumerate(words) if word == wanted[0])
    spans = (
        (start, start + size)
        for start in starts
        if words[start : start + size] == wanted
    )
    for start, end in islice(spans, _PLACES):
        before, after = (
            "".join(words[max(0, start - 1) : start]),
            "".join(words[end : end + 1]),
        )
        cut = wanted[0].isdecimal() and before.isdecimal() and gaps[start] in _INNER
        goes_on = after.isdecimal() and gaps[end] in _INNER
        lettered = len(after) == 1 and not gaps[end]
        if not cut and not (wanted[-1].isdecimal() and (goes_on or lettered)):
            yield Match(form, start, end, "the gold stands in the answer", exact=True)


def _loose(form: Form, answer: Answer) -> Iterator[Match]:
    """Yield places that hold the gold's words in other forms, in another order, or fewer."""
    joined = zip(form.text.words, form.text.gaps[1:], form.text.words[1:], strict=False)
    if any(
        a.isdecimal() and b.isdecimal() and gap in DASHES | {":"}
        for a, gap, b in joined
    ):
        return  # a score: the order of its numbers counts
    text, own = answer.text, answer.own_words
    tolerance = Tolerance(
        answer.tables, form.named, answer.capitals if form.named else frozenset()
    )
    implied = {*answer.question.words[:_HEAD]} | (form.common & answer.question_words)
    needed = [word for word in form.content if word not in implied]
    figures = all(word.isdecimal() for word in needed)
    if not figures and not answer.question_words.issuperset(needed):
        groups = [tolerance.places_of(word, text) for word in needed]
        for anchor in min(groups, key=len)[:_PLACES] if all(groups) else ():
            near = [
                min(places, key=lambda place: abs(place - anchor)) for places in groups
            ]
            if max(near) - min(near) < 3 * len(groups) + _ROOM:
                rule = "every word of the gold stands in the answer"
                yield Match(form, min(near), max(near) + 1, rule)
    fewer = ((tolerance.alike(word, said) for word in form.content) for said in own)
    if not form.named and len(own) > 1 and all(map(any, fewer)):
        yield Match(form, 0, len(text.words), "the answer is the gold in fewer words")
    if form.named and not form.listed and 1 < len(form.content) <= _NAME:
        yield from _person(form, answer, tolerance)


def _person(form: Form, answer: Answer, tolerance: Tolerance) -> Iterator[Match]:
    """Yield where the family name stands with a given name, or is all that the answer says."""

    def is_given(name: str, word: str) -> bool:
        initial = 1 in (len(name), len(word)) and name[0] == word[0]
        return initial or tolerance.alike(name, word)

    words, who, name = answer.text.words, answer.asks("persons"), form.content
    orders = [name, (*name[1:], name[0])] if answer.tables.family_first else [name]
    for *names, family in orders:
        for place in tolerance.places_of(family, answer.text)[:_PLACES]:
            near = range(place - 1, max(-1, place - 2 - _BETWEEN), -1)
            given = names if who else names[:1]
            starts = (i for i in near if any(is_given(one, words[i]) for one in given))
            start = next(starts, place)
            if start < place and not answer.question_words.issuperset(
                words[start : place + 1]
            ):
                yield Match(
                    form, start, place + 1, "given and family name are the gold's"
                )
            if who and answer.own_words == [words[place]] and len(family) > 2:
                yield Match(
                    form, place, place + 1, "the answer is the family name alone"
                )


def objection(match: Match, answer: Answer) -> str:
    """Return why a match is not what the answer says, a key of ``reasons.yaml``; else nothing."""
    if _is_denied(match, answer):
        return "the answer denies the gold"
    if _has_other_numeral(answer):
        return "the answer does not hold the gold"
    if _is_one_of_several(match, answer) or _is_overturned(match, answer):
        return "the gold is only one of several candidates"
    return ""


def _is_denied(match: Match, answer: Answer) -> bool:
    """Return whether a negation stands close before, or "is not", "is wrong" right after."""
    words, gaps, known = answer.text.words, answer.text.gaps, answer.tables
    negations, start = known.phrases["negations"], match.start
    while match.start - start < _REACH and start and not BREAK.search(gaps[start]):
        start -= 1
        if words[start] in known.words["contrasts"]:
            break
    if any(negations.spans(words[start : match.start])):
        return not any(negations.spans(answer.question.words))
    after = (
        words[match.end : match.end + 2] if not BREAK.search(gaps[match.end]) else ()
    )
    near = after if known.any_of("function", after[:1]) else after[:1]
    return known.any_of("faults", near) or any(negations.spans(near))


def _has_other_numeral(answer: Answer) -> bool:
    """Return whether the gold's names have another numeral: Elizabeth II is not Elizabeth I."""
    alike = Tolerance(answer.tables).alike
    golds = {pair for form in answer.forms for pair in form.numerals}
    pairs = (
        (one, other)
        for one in golds
        for other in answer.numerals
        if alike(one[0], other[0])
    )
    return {one[1] == other[1] for one, other in pairs} == {False}


def _is_overturned(match: Match, answer: Answer) -> bool:
    """Return whether another name follows after "but": it is usually said to be X, but it is Y."""
    words, gaps, tables = answer.text.words, answer.text.gaps, answer.tables
    own = set(answer.own_words)
    end = next(
        (i for i in range(match.end, len(words)) if _STOP.search(gaps[i])), len(words)
    )
    turn = next(
        (i for i in range(match.end, end) if words[i] in tables.words["contrasts"]), end
    )
    others = (answer.capitals & own) - tables.words["speakers"] - answer.gold_words
    turned = not others.isdisjoint(words[turn : min(end, turn + _TURN)])
    return turned and not own.isdisjoint(words[: match.start])


def _is_one_of_several(match: Match, answer: Answer) -> bool:
    """Return whether the gold is joined by "or", or listed with what is not the gold's."""
    words, known = answer.text.words, answer.tables
    near = words[match.end : match.end + _ROOM]
    ends = [match.end + end for _, end in known.phrases["concessions"].spans(near)]
    granted = (word for end in ends for word in words[end : end + _ROOM])
    if any(word.isdecimal() or word in answer.capitals for word in granted):
        return not answer.asks("alternatives")
    first = match.start
    if known.any_of("function", words[match.start - 1 : match.start]):
        first -= 1
    around = words[max(0, first - 1) : match.start] + words[match.end : match.end + 1]
    rivals = sum(_rivals(match, answer, step) for step in (-1, +1))
    if not rivals or known.any_of("alternatives", around):
        return bool(rivals) and not answer.asks("alternatives")
    listed = match.end - match.start + rivals >= _LISTED * len(answer.own_words)
    joined = known.any_of("joiners", around) and (
        match.form.named or not answer.is_open
    )
    return listed and (joined or (rivals >= _MANY and not answer.is_open))


def _rivals(match: Match, answer: Answer, step: int) -> int:
    """Return how many words, next to a name or number names and numbers, are listed with it."""
    words, tables = answer.text.words, answer.tables
    gold_words = {word for form in answer.forms for word in form.content}
    joining_words = tables.words["joiners"] | tables.words["alternatives"]
    words_of_answer = set(answer.own_words)
    form = match.form
    is_telling = form.quantity or form.date or (form.named and not form.listed)
    place = match.end if step > 0 else match.start - 1
    rivals = 0
    is_separated = False
    while 0 <= place < len(words) and words[place] not in gold_words:
        word = words[place]
        # The gap on the side of the match: gaps[i] is before word i.
        gap = answer.text.gaps[place if step > 0 else place + 1]
        joins = word in joining_words
        if joins or any(sign in gap for sign in ",;/|\n•"):
            is_separated = True
        is_rival = word in words_of_answer and (
            word in answer.capitals or word.isdecimal() or not is_telling
        )
        # "and the", "or a": the word that joins stands before it.
        follows_joiner = (
            is_telling
            and tables.any_of("function", [word])
            and words[place - 1] in joining_words
        )
        is_listed = is_separated and "." not in gap and (is_rival or joins)
        if not is_listed and not follows_joiner:
            break
        if is_rival:
            rivals += 1
        place += step
    return rivals

"""When a verdict of the rules is beyond doubt, so that no model need look at the answer again.

A right answer is one where nothing is left that could make it wrong: it says the gold and, beside
it, only the question's own words; a date or a figure may have more around it, but no other date or
figure. Whatever says more may be right as well; a model decides.
"""

import re
from itertools import pairwise

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.dates import Date, is_year
from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.gold_matching import TOGETHER, Match
from evaluators.judges.lexical.language_tables import Tables
from evaluators.judges.lexical.numbers import Quantity
from evaluators.judges.lexical.rival_answers import is_weighed
from evaluators.judges.lexical.word_matching import Tolerance

_CLOSED = re.compile(r"[\"”»]?\s?[.,;(!?\n]|[\"”»]?$")
_ORDINAL = frozenset({"-", ". ", ".-"})  # between a figure and the word or ending behind it
_BRIEF = 12  # own words of an answer that says one thing
_OPEN = 20  # own words of a sentence about it, where other answers hold as well
_FULL = 40  # own words of a sentence or two about it
_NEAR = 4  # words from the gold within which a doubt would touch it
_COUNTED = 4  # words beside a figure that may be neither its own nor the question's
_PARTS = 2  # words of a name by which another person is known


def is_firm(analysis: AnswerAnalysis) -> bool:
    """Say whether an answer is whole, and neither hedges nor denies nor weighs anywhere."""
    return _is_plain(analysis, analysis.answer.words, counted=True)


def is_surely_right(match: Match) -> bool:
    """Say whether a firm answer gives the gold itself, and nothing that could be another answer."""
    form, analysis = match.form, match.analysis
    counted = form.quantity is not None or form.date is not None
    end = match.end + _NEAR if counted else max(match.end + _NEAR, _head(match))
    near = analysis.answer.words[max(0, match.start - _NEAR) if counted else 0 : end]
    if not _is_plain(analysis, near, counted=counted):
        return False
    if analysis.asks_more or _is_shared(match) or is_weighed(match) or _asks_back(match):
        return False
    if counted and _is_of_another_era(match):
        return False
    if form.date:
        return match.exact and _fits_the_room(match) and _is_the_date(match, form.date)
    if form.quantity:
        return match.exact and _fits_the_room(match) and _is_the_figure(match, form.quantity)
    return _is_whole(match) and not _extras(match) and not _is_turned(match)


def _is_plain(analysis: AnswerAnalysis, words: tuple[str, ...], *, counted: bool) -> bool:
    """Say whether an answer is whole and certain, and these words of it weigh or deny nothing."""
    if analysis.truncated or analysis.hedges or analysis.refusals or analysis.doubts:
        return False
    if analysis.tables.any_of("faults", analysis.answer.words):
        return False
    approximate = counted and analysis.tables.any_of("approximate", words)
    keys = ("negations", "alternatives", "contrasts")
    return not approximate and not any(analysis.tables.any_of(key, words) for key in keys)


def _asks_back(match: Match) -> bool:
    return any("?" in gap for gap in match.analysis.answer.gaps[: match.end + 2])  # "189 cc?"


def _is_of_another_era(match: Match) -> bool:
    """Say whether only one of the gold and the answer is before Christ."""
    eras = match.analysis.tables.phrases("before_christ")
    said, wanted = eras.find(match.analysis.answer.words), eras.find(match.form.text.words)
    return (said is None) != (wanted is None)


def _is_shared(match: Match) -> bool:
    """Say whether the gold is the question's own word, or part of a list or of a longer name."""
    form, analysis = match.form, match.analysis
    joiners = analysis.tables.words("joiners").difference(form.text.words)
    for side in (match.before(2)[::-1], match.after(2)):  # "and" beside the gold, a name beyond
        shared = not form.named or any(map(analysis.is_own_name, side[1:]))
        if shared and not joiners.isdisjoint(side[:1]):
            return True
    gap = analysis.answer.gaps[match.end]
    continued = gap == "-" or (gap == " " and any(map(analysis.is_own_name, match.after(1))))
    if form.named and match.after(1) and continued:
        return True
    return analysis.question_words.issuperset(form.content) and not analysis.asks("alternatives")


def _fits_the_room(match: Match) -> bool:
    """Say whether the answer is short, or gives the gold in the first of a few sentences."""
    analysis, size = match.analysis, len(match.analysis.own_words)
    room = _BRIEF if analysis.asks_several else _OPEN if analysis.open_ended else _FULL
    return size <= _BRIEF or (analysis.sentences[match.start] == 0 and size <= room)


def _is_the_date(match: Match, gold: Date) -> bool:
    """Say whether every date of the answer agrees with the gold, and none of them is a bound."""
    analysis = match.analysis
    if _is_bound(match) or _unsaid(match, "date_fillers"):
        return False
    if analysis.asks("counts") and not analysis.asks_only_year:
        return False  # "In 1812, 93 soldiers died", of 1812 soldiers
    idle = analysis.idle_words | analysis.tables.words("date_fillers") | analysis.question_words
    if analysis.answer.gaps[match.end] == " " and not idle.issuperset(match.after(1)):
        return False  # "the 1989 season", "1989 BC"
    known, words = analysis.question_words, analysis.answer.words
    others = [date for date in analysis.dates if not known.issuperset(words[date.start : date.end])]
    found = [date for date in others if date.start == match.start]
    return all(map(gold.agrees, found)) and not any(map(gold.contradicts, others))


def _is_the_figure(match: Match, gold: Quantity) -> bool:
    """Say whether the answer has no other figure of that kind, and says what the figure counts."""
    analysis, words = match.analysis, match.analysis.answer.words
    extras = _extras(match)
    beside = {*match.before(_NEAR), *match.after(1)}
    if len(extras) > _COUNTED or not beside.isdisjoint(extras):
        return False
    if _is_bound(match) or _has_unsaid_words(match):
        return False
    known = analysis.tables
    if _is_ordinal(analysis.answer, match.start, known) != _is_ordinal(
        match.form.text, gold.start, known
    ):
        return False
    dated = {place for date in analysis.dates for place in range(date.start, date.end)}
    for other in analysis.quantities:
        echo = analysis.question_words.issuperset(words[other.start : other.end])
        echo = echo or (other.start in dated and not is_year(str(int(gold.values[0]))))
        if not echo and other.shares_unit(gold) and not _is_same(other, match):
            return False
    found = next((one for one in analysis.quantities if one.start == match.start), gold)
    if found.step != gold.step and not match.form.limits:
        return False  # 3.10 is not 3.1 where sections are counted
    return found.unit == gold.unit or _has_its_unit(analysis, found, gold)


def _is_ordinal(text: Text, place: int, tables: Tables) -> bool:
    """Say whether a number is one of a row: "third", "3rd", "3-та", "3. żona"."""
    if place >= len(text.words):
        return False
    word, gap = text.words[place], text.gaps[place + 1]
    if not word.isdecimal():
        return word in tables.ordinals
    after = "".join(text.words[place + 1 : place + 2])
    glued = gap == "" and 0 < len(after) <= _PARTS and after not in tables.units
    return glued or (gap in _ORDINAL and after.isalpha() and after not in tables.units)


def _is_same(figure: Quantity, match: Match) -> bool:
    """Say whether a figure is the gold's, or within its limits."""
    limits, gold = match.form.limits, match.form.quantity
    if limits:
        return limits[0] <= figure.values[0] <= limits[1]
    return gold is not None and figure.values == gold.values


def _is_bound(match: Match) -> bool:
    """Say whether "before", "more than" or the like is beside the date or figure."""
    known, before = match.analysis.tables, match.before(_NEAR)
    after = match.after(1) if match.analysis.answer.gaps[match.end] in {" ", "-"} else ()
    beside = {*before[-1:], *after} - {*match.form.text.words}
    keys = ("more", "less", "excluding", "inclusive")
    return known.any_of("bounds", beside) or any(known.has_phrase(key, before) for key in keys)


def _has_its_unit(analysis: AnswerAnalysis, found: Quantity, gold: Quantity) -> bool:
    """Say whether the unit that only the gold or only the answer names is the question's."""
    asked = {analysis.tables.units.get(word) for word in analysis.question.words}
    return (found.unit or gold.unit) in asked


def _unsaid(match: Match, key: str) -> bool:
    """Say whether a word of the gold such as "late", "BC" or "gold" is missing in the answer."""
    analysis = match.analysis
    known = {*analysis.answer.words} | analysis.question_words | analysis.idle_words
    return any(
        word not in known for word in match.form.text.words
        if word in analysis.tables.words(key) and len(word) > _PARTS
    )  # fmt: skip


def _has_unsaid_words(match: Match) -> bool:
    """Say whether a word beside the gold's figure, such as "BC", is missing in the answer."""
    analysis, known = match.analysis, match.analysis.tables
    said = {*analysis.answer.words} | analysis.question_words | known.words("articles")
    light = said | known.words("date_fillers") | known.units.keys() | known.numbers.keys()
    light |= known.scales.keys() | known.words("approximate")
    return any(not word.isdecimal() and word not in light for word in match.form.text.words)


def _extras(match: Match) -> list[str]:
    """Return the words of the answer that are neither of a gold nor of the question.

    Where the question names the candidates itself, its words are as good as any other name.
    """
    analysis = match.analysis
    words = analysis.answer.words[: _head(match)]
    idle = analysis.idle_words | analysis.tables.words("neutral")
    known = {word for form in analysis.forms for word in form.text.words}.union(match.words, idle)
    marks = analysis.tables.phrases("choices").places(words)
    if not analysis.asks("alternatives"):
        known |= analysis.question_words
    extras = [word for i, word in enumerate(words) if word not in known and i not in marks]
    if analysis.asks("alternatives") or len(extras) > _FULL:
        return extras
    alike = Tolerance(tables=analysis.tables).alike
    return [word for word in extras if not any(alike(w, word) for w in analysis.question_words)]


def _head(match: Match) -> int:
    """Return where the part of the answer ends in which nothing may stand beside the gold.

    That is all of it, unless its first sentence repeats the question and gives the gold: then it
    ends with the gold, where the gold closes its clause, or else with the sentence.
    """
    analysis, words = match.analysis, match.analysis.answer.words
    gaps, idle = analysis.answer.gaps, analysis.idle_words
    asked = analysis.question_words - idle
    if analysis.sentences[match.start] or analysis.asks("alternatives"):
        return len(words)
    end = match.end
    closed = _CLOSED.match(gaps[end]) and not any(map(analysis.is_own_name, match.after(1)))
    if not (closed and not asked.isdisjoint(match.before(match.start))):
        while end < len(words) and analysis.sentences[end] == 0:
            end += 1
    beside = words[: match.start] + words[match.end : end]
    echoes = not asked.isdisjoint(beside)
    return end if echoes and not _turns(analysis, words[end:]) else len(words)


def _turns(analysis: AnswerAnalysis, words: tuple[str, ...]) -> bool:
    """Say whether what follows the answer may take it back."""
    known = analysis.tables
    return any(known.any_of(key, words) for key in ("negations", "contrasts")) or any(
        known.has_phrase(key, words) for key in ("turns", "mistakes", "reversals", "weighing")
    )


def _is_whole(match: Match) -> bool:
    """Say whether a name stands there word for word; a list may stand in another order.

    An inflected or misspelt word may be somebody else's name: Ivanov, Ivanova.
    """
    small = match.analysis.tables.words("function")
    wanted = sorted(word for word in match.form.text.words if word not in small)
    listed = len(match.form.items) >= _PARTS and match.rule == TOGETHER
    met = sorted(word for word in match.words if word not in small)
    return match.exact or (listed and met == wanted)


def _is_turned(match: Match) -> bool:
    """Say whether a name of the question stands where the gold should: "A beat B" for B beat A.

    Where a person is asked for, it has to follow the same word as in the question.
    """
    analysis, small = match.analysis, match.analysis.tables.words("function")
    before, last = match.before(match.start), match.before(1)
    names = analysis.capitals & analysis.question_words
    plain = analysis.answer.gaps[match.start] == " " and bool(last) and small.isdisjoint(last)
    if plain and not names.isdisjoint(before[:-1]):
        return True
    who = analysis.tables.words("persons") & analysis.tables.words("interrogatives")
    if who.isdisjoint(analysis.question.words[:2]):
        return False
    asked = set(pairwise(("", *analysis.question.words)))
    said = pairwise(("", *analysis.answer.words[: _head(match)]))
    return any(pair not in asked for pair in said if pair[1] in names)

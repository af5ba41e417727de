"""Other candidates beside the gold: in one list with it, before it, or weighed against it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.gold_matching import Match
from evaluators.judges.lexical.numbers import Quantity
from evaluators.judges.lexical.word_matching import Span, Tolerance

_SEPARATOR = re.compile(r"[,;/|\n•]")
_ITEM_STOP = re.compile(r"[.!?:()\"“”]")
_CLAUSE = re.compile(r"[.,;:!?\n()—–]")
_STOP = re.compile(r"[.;!?\n]")
_COMMA = re.compile(r",\s*$")
_SIGNS = ("one_side", "other_side", "provisional", "mistakes", "weighing")
_ITEM = 4  # words that one item of a list may have
_MANY = 3  # items beside the gold that make a list of guesses
_MOST = 0.6  # of the answer's words; below it the list may well explain the gold
_ALONE = 0.9  # the same where capitals cannot tell the items from the rest
_BRIEF = 2  # words of an item where capitals cannot tell
_ROW = 4  # bare words that one name may well have
_FEW = 8  # own words of an answer that is little more than its candidates
_REACH = 3  # words from the gold within which a figure is beside it
_LONG = 20  # own words above which an answer tells a story rather than a name
_NAME = 2  # words of a longer name between "rather than" and the part that matched
_TERSE = 6  # words of a sentence that may well be the answer itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of a list, its words from the gold outwards; ``joined`` by a word, not by a sign."""

    words: tuple[str, ...]
    joined: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """The list in an answer of which a match is one item.

    ``joiners`` join the items; ``loose`` words are never inside an item; ``names`` are words with
    a capital: an item that begins with one goes on in such words only.
    """

    answer: Text
    joiners: frozenset[str]
    loose: frozenset[str]
    names: frozenset[str] = frozenset()

    def others(self, match: Match) -> list[Item]:
        """Return the other items of the list."""
        return [*self._items(match.start, -1), *self._items(match.end - 1, +1)]

    def _items(self, edge: int, step: Literal[-1, 1]) -> Iterator[Item]:
        """Walk away from the gold's edge, an item at a time, until the list is over."""
        words, place = self.answer.words, edge + step
        if step < 0:  # digits before the gold are only its number in the list
            while place >= 0 and words[place].isdecimal() and not self._separated(place, step):
                place += step
        while self._separated(place, step):
            item: list[str] = []
            joined = words[place - step] in self.joiners
            while len(item) <= _ITEM and self._goes_on(place, step, first=not item):
                item.append(words[place])
                place += step
            if len(item) > _ITEM or not self.loose.isdisjoint(item):
                return
            if named := tuple(word for word in item if not word.isdecimal()):
                yield Item(words=named, joined=joined)
            while 0 <= place < len(words) and words[place] in self.joiners:
                place += step

    def _gap(self, place: int, step: int) -> str:
        """Return what is between a word and the one before it on the walk."""
        return self.answer.gaps[place if step > 0 else place + 1]

    def _separated(self, place: int, step: int) -> bool:
        """Say whether a new item begins here: after a separator or a joining word."""
        words = self.answer.words
        if not 0 <= place < len(words):
            return False
        joined = words[place] in self.joiners or words[place - step] in self.joiners
        return joined or bool(_SEPARATOR.search(self._gap(place, step)))

    def _goes_on(self, place: int, step: int, *, first: bool) -> bool:
        words = self.answer.words
        if not 0 <= place < len(words) or words[place] in self.joiners:
            return False
        if first:
            return True
        last, here, gap = words[place - step], words[place], self._gap(place, step)
        if (last in self.names and here not in self.names) or _SEPARATOR.search(gap):
            return False
        return here.isdecimal() or last.isdecimal() or not _ITEM_STOP.search(gap)


def one_of_several(match: Match) -> bool:
    """Say whether another candidate is beside the gold; for common nouns "or" may explain."""
    gaps, known = match.analysis.answer.gaps, match.analysis.tables
    bracketed = "(" in gaps[match.end] or "(" in gaps[max(0, match.start - 1)]
    aside = bracketed or known.any_of("open_ends", match.after(2)[1:])
    return _has_alternative(match) and match.form.single and not aside and not _other_unit(match)


def several_and_unsure(match: Match) -> bool:
    """Say whether "or" is beside the gold and the answer says that it cannot choose."""
    analysis = match.analysis
    unsure = bool(analysis.refusals or analysis.doubts) and len(analysis.own_words) <= _FEW
    return unsure and _has_alternative(match)


def left_open(match: Match) -> bool:
    """Say whether a later sentence begins with "or" and names another candidate."""
    analysis, words = match.analysis, match.analysis.answer.words
    alternatives = analysis.tables.words("alternatives")
    if len(analysis.own_words) > _LONG:
        return False
    for place in range(match.end, len(words)):
        if words[place] in alternatives and _STOP.search(analysis.answer.gaps[place]):
            return any(map(analysis.is_own_name, words[place + 1 : place + 1 + _REACH]))
    return False


def _has_alternative(match: Match) -> bool:
    beside = match.before(1) + match.after(1)
    analysis = match.analysis
    return analysis.tables.any_of("alternatives", beside) and not analysis.asks("alternatives")


def _other_unit(match: Match) -> bool:
    """Say whether the nearest figures beside the gold's are all of another known unit."""
    gold = match.form.quantity
    if not gold:
        return False
    near = [
        other
        for other in match.analysis.quantities
        if other.end <= match.start <= other.end + _REACH
        or other.start - _REACH <= match.end <= other.start
    ]
    return bool(near) and not any(_contradicts(other, gold) for other in near)


def _contradicts(other: Quantity, gold: Quantity) -> bool:
    """Say whether a figure contradicts the gold; 0.05 and 5 % are one."""
    share = {"percent", ""} == {other.unit, gold.unit}
    ratio = other.values[0] / gold.values[0] if gold.values[0] else 0.0
    one = share and any(abs(ratio - factor) < 1e-9 for factor in (0.01, 100.0))
    return other.shares_unit(gold) and not one and not other.rounds_to(gold)


def one_of_many(match: Match) -> bool:
    """Say whether the answer is little more than a list in which the gold is one item of many."""
    form, analysis, answer = match.form, match.analysis, match.analysis.answer
    if not form.single:
        return False
    bare = len(answer.words) > _ROW and len(analysis.own_words) == len(answer.words)
    if bare and len(form.content) == 1 and not any(gap.strip() for gap in answer.gaps):
        return True  # a row of words with nothing to hold them together
    joiners = analysis.tables.words("joiners") | analysis.tables.words("alternatives")
    loose = analysis.tables.words("function")
    others = _List(answer=answer, joiners=joiners, loose=loose).others(match)
    wanted = {word for other in analysis.forms for word in other.content} | analysis.question_words
    strange = [item for item in others if wanted.isdisjoint(item.words)]
    if analysis.open_ended and len(others) > len(strange):
        return False
    listed = len(match.words) + sum(len(item.words) for item in others)
    share = listed / max(1, sum(not word.isdecimal() for word in answer.words))
    return len(strange) >= _MANY and share > _MOST


def one_of_many_or(match: Match) -> bool:
    """Say whether such a list is one of alternatives, between which the answer does not choose."""
    analysis = match.analysis
    return analysis.tables.any_of("alternatives", analysis.answer.words) and one_of_many(match)


def one_too_many(match: Match) -> bool:
    """Say whether a joining word puts another name on the same level as the gold."""
    analysis, function = match.analysis, match.analysis.tables.words("function")
    joiners = analysis.tables.words("joiners")
    named = analysis.capitals.issuperset(frozenset(match.words) - function - joiners)
    names = analysis.capitals if named else frozenset[str]()
    loose = function | analysis.descriptions
    row = _List(answer=analysis.answer, joiners=joiners, loose=loose, names=names)
    others = row.others(match)
    if not any(item.joined for item in others) or analysis.wants_several:
        return False
    if not any(_is_strange(item, names, analysis) for item in others):
        return False
    listed = len(match.words) + sum(len(item.words) for item in others)
    if match.form.single and names:
        return listed >= _MOST * len(analysis.own_words)
    brief = all(len(item.words) <= _BRIEF for item in others)
    return brief and listed >= _ALONE * len(analysis.own_words)


def _is_strange(item: Item, names: frozenset[str], analysis: AnswerAnalysis) -> bool:
    """Say whether an item names something that is neither gold nor question."""
    wanted = {word for form in analysis.forms for word in form.content} | analysis.question_words
    alike = Tolerance(tables=analysis.tables).alike
    met = any(alike(word, said) for word in wanted for said in item.words)
    return not met and (not names or item.words[0] in names)


def trails(match: Match) -> bool:
    """Say whether a long answer names another person just before the gold, in one list with it."""
    analysis = match.analysis
    long = len(analysis.own_words) > _LONG and match.form.named
    if not long or not analysis.asks("persons") or analysis.open_ended:
        return False
    listed = _COMMA.search(analysis.answer.gaps[match.start]) is not None
    return listed and any(map(analysis.is_own_name, match.before(1)))


def dismissed(match: Match) -> bool:
    """Say whether "rather than" or the like leads up to the gold."""
    spans = match.analysis.tables.phrases("dismissals").spans(match.analysis.answer.words)
    near = range(max(_clause(match)[0], match.start - _NAME), match.start + 1)
    return any(end in near for _, end in spans)


def superseded(match: Match) -> bool:
    """Say whether the gold is what once was so or is wrongly held, and another name follows.

    Where the question asks for such a thing itself, the gold may well be it.
    """
    analysis, words = match.analysis, match.analysis.answer.words
    start, end = _clause(match)
    if analysis.tables.has_phrase("provisional", analysis.question.words):
        return False
    if analysis.tables.has_phrase("mistakes", words[start:end]):
        return _has_rival(match, end, len(words))
    former = analysis.tables.has_phrase("provisional", words[start:end])
    turn = analysis.tables.phrases("turns").find(words[end:]) if former else None
    return turn is not None and _has_rival(match, end + turn, len(words))


def one_side(match: Match) -> bool:
    """Say whether the gold is what some say, or what others do, and no more is said of it."""
    known, answer = match.analysis.tables, match.analysis.answer
    first = known.phrases("one_side").find(answer.words)
    sides = [start for start, _ in known.phrases("other_side").spans(answer.words)]
    if first is None or not sides or not first < match.start or sides[-1] < first:
        return False
    end = sides[-1] + 1  # of the other side's sentence; a contrast leads on to the answer itself
    while end < len(answer.words) and not (
        answer.words[end] in known.words("contrasts") or _STOP.search(answer.gaps[end])
    ):
        end += 1
    return match.start < end and _has_rival(match, first, end)


def is_weighed(match: Match) -> bool:
    """Say whether a terse sentence before the gold's has another candidate, or a word weighs it."""
    words, gaps = match.analysis.answer.words, match.analysis.answer.gaps
    first = next((i for i in range(1, match.start + 1) if _STOP.search(gaps[i])), 0)
    if first <= _TERSE and _has_rival(match, 0, first):
        return True
    weighs = any(match.analysis.tables.has_phrase(key, words) for key in _SIGNS)
    return weighs and _has_rival(match, 0, len(words))


def _clause(match: Match) -> Span:
    """Return the first word of the match's clause, and the place after the last.

    A clause that begins with "that" is part of the one before it: "many think, that it is X".
    """
    words, gaps = match.analysis.answer.words, match.analysis.answer.gaps
    linking = match.analysis.tables.words("subordinators")
    start, end = match.start, match.end
    while start and (not _CLAUSE.search(gaps[start]) or words[start] in linking):
        start -= 1
    while end < len(words) and not _CLAUSE.search(gaps[end]):
        end += 1
    return start, end


def _has_rival(match: Match, start: int, end: int) -> bool:
    """Say whether a stretch holds a name or figure that neither gold nor question has."""
    analysis = match.analysis
    gold = {word for form in analysis.forms for word in form.text.words}.union(match.words)
    return any(
        word not in gold and word in analysis.own_words
        for word in analysis.answer.words[start:end]
        if word in analysis.capitals or word.isdecimal()
    )

"""Why a gold that stands in an answer may still not be what the answer says."""

import re
from collections.abc import Callable

from evaluators.core import INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.numbers import Quantity, same, units_agree
from evaluators.judges.lexical.passing import (
    comes_late,
    falls_short,
    overtaken,
    repeats,
    trails,
)
from evaluators.judges.lexical.rival_answers import Grammar, beside
from evaluators.judges.lexical.weighing import dismissed, one_side, superseded
from evaluators.judges.lexical.word_matching import Match, Tolerance, alike

_BREAK = re.compile(r"[.,;:!?\n()\"”“„«»]")
_ASIDE = re.compile(r"[,(–—]")
_MANY = 3  # items beside the gold that make a list of guesses
_MOST = 0.6  # of the answer's words; below it the list may well explain the gold
_ALONE = 0.9  # the same where capitals cannot tell the items from the rest
_BRIEF = 2  # words of an item where capitals cannot tell
_ROW = 4  # bare words that one name may well have
_FEW = 8  # own words of an answer that is little more than its candidates
_BEFORE = 4  # words before a number in which a bound may stand
_RANGE = 5  # words between the opening of a range and its second end
_REACH = 3  # words over which a negation reaches


def reject_reason(finding: Match, form: Form, exam: AnswerAnalysis) -> Verdict | None:
    """Return the verdict on a finding that does not count, or None where nothing speaks against."""
    return next((verdict for verdict, holds in DOUBTS if holds(finding, form, exam)), None)


def _negated(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    words, gaps = exam.said.words, exam.said.gaps
    for place in range(finding.start - 1, max(-1, finding.start - 1 - _REACH), -1):
        if _BREAK.search(gaps[place + 1]):
            return False
        if words[place] in exam.tables.words("contrasts"):
            return False  # "not Graz but Vienna" denies what stands before
        if words[place] in exam.tables.words("negations"):
            undone = words[place + 1] in exam.tables.words("undoing")
            return not undone and not exam.asks("negations")
    return False


def _denied(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a negation follows at once, as in "X is not"."""
    words, gaps, known = exam.said.words, exam.said.gaps, exam.tables
    after = words[finding.end : finding.end + 2]
    if _ASIDE.search(gaps[finding.end]) and len(words) > finding.end + 1:
        return False  # "Vienna, not Graz" denies what follows
    linked = bool(after) and (after[0] in known.words("function"))
    return not known.words("negations").isdisjoint(after if linked else after[:1])


def _one_of_several(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether another candidate stands beside the gold; for common nouns "or" may explain."""
    said, alternatives = exam.said, exam.tables.words("alternatives")
    before = said.words[finding.start - 1 : finding.start]
    after = said.words[finding.end : finding.end + 1]
    aside = "(" in said.gaps[finding.end] or "(" in said.gaps[max(0, finding.start - 1)]
    aside = aside or not exam.tables.words("open_ends").isdisjoint(
        said.words[finding.end + 1 : finding.end + 2]
    )
    rival = not alternatives.isdisjoint(before + after) and not _other_unit(finding, form, exam)
    return rival and not aside and not exam.asks("alternatives") and form.single


def _other_unit(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the nearest figures beside the gold's are all of another known unit."""
    if not form.quantity:
        return False
    near = [
        other
        for other in exam.quantities
        if other.end <= finding.start <= other.end + _REACH
        or other.start - _REACH <= finding.end <= other.start
    ]
    return bool(near) and not any(_rivals(other, form.quantity) for other in near)


def _rivals(other: Quantity, gold: Quantity) -> bool:
    """Say whether a figure contradicts the gold; 0.05 and 5 % are one."""
    share = {"percent", ""} == {other.unit, gold.unit}
    ratio = other.values[0] / gold.values[0] if gold.values[0] else 0.0
    one = same(other, gold) or (share and any(abs(ratio - way) < 1e-9 for way in (0.01, 100.0)))
    return units_agree(other, gold) and not one


def _one_of_many(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the answer is little more than a list in which the gold is one item of many."""
    if _is_heap(exam) and form.single and len(form.content) == 1:
        return True
    grammar = Grammar(
        joiners=exam.tables.words("joiners") | exam.tables.words("alternatives"),
        loose=exam.tables.words("function"),
    )
    others = [item.words for item in beside(finding.start, finding.end, exam.said, grammar)]
    wanted = {word for other in exam.forms for word in other.content} | exam.echoed
    strange = [item for item in others if wanted.isdisjoint(item)]
    if exam.open_ended and len(others) > len(strange):
        return False
    listed = finding.end - finding.start + sum(map(len, others))
    share = listed / max(1, sum(not word.isdecimal() for word in exam.said.words))
    return form.single and len(strange) >= _MANY and share > _MOST


def _one_of_many_or(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether such a list is one of alternatives, between which the answer does not choose."""
    alternatives = exam.tables.words("alternatives")
    return not alternatives.isdisjoint(exam.said.words) and _one_of_many(finding, form, exam)


def _one_too_many(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a joining word puts another name on the same level as the gold."""
    said = exam.said
    names = exam.capitals if exam.capitals.issuperset(_inner(finding, exam)) else frozenset()
    loose = exam.tables.words("function") | exam.described
    grammar = Grammar(joiners=exam.tables.words("joiners"), loose=loose, names=names)
    others = beside(finding.start, finding.end, said, grammar)
    if not any(item.joined for item in others):
        return False
    strange = [item for item in others if _is_strange(item.words, names, exam)]
    listed = finding.end - finding.start + sum(len(item.words) for item in others)
    if not strange or exam.open_ended:
        return False
    if form.single and names:
        return listed >= _MOST * len(exam.own)
    brief = all(len(item.words) <= _BRIEF for item in others)
    return brief and listed >= _ALONE * len(exam.own)


def _inner(finding: Match, exam: AnswerAnalysis) -> frozenset[str]:
    light = exam.tables.words("function") | exam.tables.words("joiners")
    return frozenset(exam.said.words[finding.start : finding.end]) - light


def _is_strange(item: tuple[str, ...], names: frozenset[str], exam: AnswerAnalysis) -> bool:
    """Say whether an item names something that is neither gold nor question."""
    wanted = {word for form in exam.forms for word in form.content} | exam.echoed
    tolerance = Tolerance(tables=exam.tables)
    met = any(alike(word, said, tolerance) for word in wanted for said in item)
    return not met and (not names or item[0] in names)


def _is_heap(exam: AnswerAnalysis) -> bool:
    """Say whether the answer is a row of bare words, with nothing to hold them together."""
    said = exam.said
    return (
        len(said.words) > _ROW
        and len(exam.own) == len(said.words)
        and not any(gap.strip() for gap in said.gaps)
    )


def _range_end(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a number or date is only one end of "between this and that"."""
    words, joins = exam.said.words, exam.tables.words("range_joins")
    if not form.quantity and not form.date:
        return False
    before = words[max(0, finding.start - _RANGE) : finding.start]
    joined = words[finding.end : finding.end + 1] + before[-1:]
    return not (joins.isdisjoint(joined) or exam.tables.words("ranges").isdisjoint(before))


def _second_figure(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether an earlier line of the answer gives another figure."""
    gold = form.quantity
    if not gold:
        return False
    others = (other for other in exam.quantities if other.end <= finding.start)
    return any(
        other.unit == gold.unit
        and not same(other, gold)
        and any("\n" in gap for gap in exam.said.gaps[other.end : finding.start + 1])
        for other in others
    )


def _granted(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the gold is only granted beside the candidate that the answer prefers."""
    words, gaps = exam.said.words, exam.said.gaps
    start, end = finding.start, finding.end
    while start and not _BREAK.search(gaps[start]):
        start -= 1
    while end < len(words) and not _BREAK.search(gaps[end]):
        end += 1
    granted = exam.tables.phrases("concessions").find(words[start:end]) is not None
    return granted and any(word in exam.own for word in words[:start])


def _excluded(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether "more than" or "less than" stands before the very number of the gold."""
    return _bound("excluding", finding, form, exam)


def _included(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether "at least" or "at most" does."""
    return _bound("inclusive", finding, form, exam)


def _bound(key: str, finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether such a phrase leads up to the number, and the gold has none itself."""
    before = exam.said.words[max(0, finding.start - _BEFORE) : finding.start]
    phrases = exam.tables.phrases(key)
    leads = any(end == len(before) for _, end in phrases.spans(before))
    return leads and form.quantity is not None and phrases.find(form.text.words) is None


def _or_unknown(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether "or" stands beside the gold and the answer says that it cannot choose."""
    alternatives = exam.tables.words("alternatives")
    beside = exam.said.words[finding.start - 1 : finding.start]
    beside += exam.said.words[finding.end : finding.end + 1]
    rival = not alternatives.isdisjoint(beside) and not exam.asks("alternatives")
    return rival and len(exam.own) <= _FEW and bool(exam.refused or exam.unsure)


_DENIED = Verdict(grade=INCORRECT, reason="the answer denies the gold")
_RANGE_END = Verdict(grade=NOT_ATTEMPTED, reason="the gold is only the end of a range")
_UNCHOSEN = Verdict(grade=NOT_ATTEMPTED, reason="the gold is only one of several candidates")
_OTHER = Verdict(grade=INCORRECT, reason="the gold is only one of several candidates")
_LISTED = Verdict(grade=INCORRECT, reason="the gold is only one item of a list")
_ADDED = Verdict(grade=INCORRECT, reason="another is put beside the gold as equally true")
_GRANTED = Verdict(grade=INCORRECT, reason="the gold is only granted beside another candidate")
_EXCLUDED = Verdict(grade=INCORRECT, reason="the bound rules the gold out")
_REPEATED = Verdict(grade=INCORRECT, reason="the gold only repeats the question")
_OVERTAKEN = Verdict(grade=INCORRECT, reason="another candidate stands before the gold")
_TRAILING = Verdict(grade=INCORRECT, reason="the gold is only a later item of a list")
_SHORT = Verdict(grade=INCORRECT, reason="fewer than half of the accepted answers are given")
_LATE = Verdict(grade=INCORRECT, reason="the gold comes late, after something else was said")
_SIDE = Verdict(grade=NOT_ATTEMPTED, reason="the gold is only what some say")
_SUPERSEDED = Verdict(grade=INCORRECT, reason="the gold is only what was once or wrongly held")
_LOOSE = Verdict(grade=NOT_ATTEMPTED, reason="the bound leaves the number open")

DOUBTS: tuple[tuple[Verdict, Callable[[Match, Form, AnswerAnalysis], bool]], ...] = (
    (_DENIED, _negated),
    (_DENIED, _denied),
    (_DENIED, dismissed),
    (_SIDE, one_side),
    (_SUPERSEDED, superseded),
    (_RANGE_END, _range_end),
    (_UNCHOSEN, _one_of_several),
    (_UNCHOSEN, _or_unknown),
    (_OTHER, _second_figure),
    (_UNCHOSEN, _one_of_many_or),
    (_LISTED, _one_of_many),
    (_ADDED, _one_too_many),
    (_GRANTED, _granted),
    (_EXCLUDED, _excluded),
    (_LOOSE, _included),
    (_REPEATED, repeats),
    (_OVERTAKEN, overtaken),
    (_TRAILING, trails),
    (_SHORT, falls_short),
    (_LATE, comes_late),
)

"""Why a gold that stands in an answer may still not be what the answer says."""

import re
from collections.abc import Callable

from evaluators.lexical.candidates import Grammar, beside
from evaluators.lexical.exam import Exam
from evaluators.lexical.golds import Form
from evaluators.lexical.matching import Finding
from evaluators.lexical.numbers import same

_BREAK = re.compile(r"[.,;:!?\n()\"”“„«»]")
_MANY = 3  # items beside the gold that make a list of guesses
_MOST = 0.6  # of the answer's words; below it the list may well explain the gold
_ROW = 4  # bare words that one name may well have
_RANGE = 5  # words between the opening of a range and its second end
_REACH = 3  # words over which a negation reaches


def doubt(finding: Finding, form: Form, exam: Exam) -> str:
    """Return why the finding does not count, in plain words, or an empty text."""
    return next((why for why, holds in DOUBTS if holds(finding, form, exam)), "")


def _negated(finding: Finding, form: Form, exam: Exam) -> bool:
    words, gaps = exam.said.words, exam.said.gaps
    for place in range(finding.start - 1, max(-1, finding.start - 1 - _REACH), -1):
        if _BREAK.search(gaps[place + 1]):
            return False
        if words[place] in exam.tables.words("negations"):
            undone = words[place + 1] in exam.tables.words("undoing")
            return not undone and not exam.asks("negations")
    return False


def _denied(finding: Finding, form: Form, exam: Exam) -> bool:
    """Say whether a negation follows at once, as in "X is not"."""
    words, known = exam.said.words, exam.tables
    after = words[finding.end : finding.end + 2]
    linked = bool(after) and (after[0] in known.words("function"))
    return not known.words("negations").isdisjoint(after if linked else after[:1])


def _one_of_several(finding: Finding, form: Form, exam: Exam) -> bool:
    """Say whether another candidate stands beside the gold; for common nouns "or" may explain."""
    said, alternatives = exam.said, exam.tables.words("alternatives")
    before = said.words[finding.start - 1 : finding.start]
    after = said.words[finding.end : finding.end + 1]
    aside = "(" in said.gaps[finding.end] or "(" in said.gaps[max(0, finding.start - 1)]
    rival = not alternatives.isdisjoint(before + after)
    return rival and not aside and not exam.asks("alternatives") and form.single


def _one_of_many(finding: Finding, form: Form, exam: Exam) -> bool:
    """Say whether the answer is little more than a list in which the gold is one item of many."""
    if _is_heap(exam) and form.single and len(form.content) == 1:
        return True
    grammar = Grammar(
        joiners=exam.tables.words("joiners") | exam.tables.words("alternatives"),
        loose=exam.tables.words("function"),
    )
    others = beside(finding.start, finding.end, exam.said, grammar)
    wanted = {word for other in exam.forms for word in other.content} | exam.echoed
    strange = [item for item in others if wanted.isdisjoint(item)]
    listed = finding.end - finding.start + sum(map(len, others))
    share = listed / max(1, sum(not word.isdecimal() for word in exam.said.words))
    return form.single and len(strange) >= _MANY and share > _MOST


def _is_heap(exam: Exam) -> bool:
    """Say whether the answer is a row of bare words, with nothing to hold them together."""
    said = exam.said
    return (
        len(said.words) > _ROW
        and len(exam.own) == len(said.words)
        and not any(gap.strip() for gap in said.gaps)
    )


def _range_end(finding: Finding, form: Form, exam: Exam) -> bool:
    """Say whether a number or date is only one end of "between this and that"."""
    words, joins = exam.said.words, exam.tables.words("range_joins")
    if not form.quantity and not form.date:
        return False
    before = words[max(0, finding.start - _RANGE) : finding.start]
    joined = words[finding.end : finding.end + 1] + before[-1:]
    return not (joins.isdisjoint(joined) or exam.tables.words("ranges").isdisjoint(before))


def _second_figure(finding: Finding, form: Form, exam: Exam) -> bool:
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


DOUBTS: tuple[tuple[str, Callable[[Finding, Form, Exam], bool]], ...] = (
    ("the answer denies the gold", _negated),
    ("the answer denies the gold", _denied),
    ("the gold is only the end of a range", _range_end),
    ("the gold is only one of several candidates", _one_of_several),
    ("the gold is only one of several candidates", _second_figure),
    ("the gold is only one item of a list", _one_of_many),
)

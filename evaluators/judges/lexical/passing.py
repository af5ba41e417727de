"""Golds that an answer mentions in passing: after another candidate, or as the question's own."""

import re
from functools import lru_cache

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.gold_matching import find_matches
from evaluators.judges.lexical.numbers import same
from evaluators.judges.lexical.word_matching import Match

_BRIEF = 8  # own words of an answer that may well give one example of several
_SEVERAL = 3  # different golds that make a list
_LATE = 30  # words before a gold that answer something else, where they deny something
_LONG = 20  # own words above which an answer tells a story rather than a name
_COMMA = re.compile(r",\s*$")


def repeats(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether words of the question only run into the gold, or stand in a late sentence."""
    words = exam.said.words[finding.start : finding.end]
    if not exam.echoed.issuperset(words) or exam.asks("alternatives"):
        return False
    split = finding.exact and len(words) > len(form.text.words)
    return split or (form.quantity is None and exam.sentences[finding.start] > 0)


def overtaken(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether another figure or date stands first, and a contrast leads over to the gold's."""
    first = _first_rival(finding, form, exam)
    if first is None:
        return False
    return not exam.tables.words("contrasts").isdisjoint(exam.said.words[first : finding.start])


def _first_rival(finding: Match, form: Form, exam: AnswerAnalysis) -> int | None:
    """Return where the first figure or date ends that contradicts the gold and stands before it."""
    if form.date:
        wanted = form.date.year
        dates = (date for date in exam.dates if date.year and date.year != wanted)
        return next((date.end for date in dates if date.end <= finding.start), None)
    gold = form.quantity
    others = (other for other in exam.quantities if gold and other.unit == gold.unit)
    rivals = (other.end for other in others if gold and not same(other, gold))
    return next((end for end in rivals if end <= finding.start), None)


def comes_late(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the gold comes after a long run-up that denies something."""
    before = exam.said.words[: finding.start]
    denies = not exam.tables.words("negations").isdisjoint(before) and not exam.asks("negations")
    return len(before) > _LATE and denies


def falls_short(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a talkative answer has fewer than half of several different golds.

    Where the question asks for one thing, only a late mention in a long answer is so little.
    """
    late = len(exam.own) > _LONG and exam.sentences[finding.start] > 0
    if len(exam.own) <= _BRIEF or not (exam.asks_several or late):
        return False
    wanted, met = _met(exam)
    return wanted >= _SEVERAL and met * 2 < wanted


@lru_cache(maxsize=1)
def _met(exam: AnswerAnalysis) -> tuple[int, int]:
    """Return how many different things the golds name, and how many of them the answer holds."""
    wanted = _distinct(exam)
    return len(wanted), sum(any(True for _ in find_matches(one, exam)) for one in wanted)


def _distinct(exam: AnswerAnalysis) -> list[Form]:
    """Return the forms that name different things: none holds the words of another."""
    chosen: list[Form] = []
    for form in exam.forms:
        words = {*form.content}
        if not any(words <= {*one.content} or words >= {*one.content} for one in chosen):
            chosen.append(form)
    return chosen


def trails(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether a long answer names another person just before the gold, in one list with it."""
    if len(exam.own) <= _LONG or not form.named or not exam.asks("persons") or exam.open_ended:
        return False
    before = exam.said.words[finding.start - 1 : finding.start]
    listed = _COMMA.search(exam.said.gaps[finding.start])
    return bool(listed) and bool(before) and before[0] in exam.own and before[0] in exam.capitals

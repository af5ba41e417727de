"""Answers that decline, and questions that rest on something false or have no answer."""

from collections.abc import Sequence

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.judges.lexical.analysis import Answer

FALSE_PREMISE, UNANSWERABLE = "FALSE PREMISE:", "UNANSWERABLE:"
"""Marks of golds that a correction meets, and that declining to answer meets too."""
_BARE = 12  # own words of a bare refusal


def declines(answer: Answer) -> bool:
    """Return whether an answer declines or doubts, and does not offer anything in doubt."""
    counted = any(form.counted for form in answer.forms)
    named = all(form.named for form in answer.forms)
    fits = (
        word.isdecimal() if counted or word.isdecimal() else word in answer.capitals or not named
        for word in _beside(answer)
    )
    return bool(answer.refusals or answer.hedges) and not (answer.hedges and any(fits))


def is_bare(answer: Answer) -> bool:
    """Return whether a refusal names nothing and counts nothing that could be an answer."""
    known, words = answer.tables, answer.text.words
    offers = any(word.isdecimal() or word in answer.capitals for word in _beside(answer))
    turns = any(known.any_of(key, words) for key in ("contrasts", "alternatives"))
    brief = len(answer.own_words) <= _BARE and not answer.truncated
    return brief and not offers and not turns and not answer.hedges


def _beside(answer: Answer) -> list[str]:
    """Return the answer's own words that are no part of a refusal, its first word left out."""
    declined = {place for span in answer.refusals for place in range(*span)} | {0}
    words, own = enumerate(answer.text.words), set(answer.own_words)
    return [word for i, word in words if i not in declined and word in own]


def premise(golds: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return the mark of golds without an ordinary answer, and what is true instead."""
    for mark in (FALSE_PREMISE, UNANSWERABLE):
        truths = [gold.strip() for gold in golds if gold.strip().upper().startswith(mark)]
        if truths:
            return mark, tuple(truth[len(mark) :].strip() for truth in truths)
    return "", ()


def grade_premise(answer: Answer, mark: str) -> Verdict:
    """Return the verdict on an answer whose forms say what is true instead.

    It is sure only of an explicit denial that names and counts nothing of its own.
    """
    words, known, asked = answer.text.words, answer.tables, answer.question_words
    if not words or known.phrases["clarifications"].within(words):
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing")
    explicit, denied = (
        any(not asked.issuperset(words[slice(*span)]) for span in known.phrases[key].spans(words))
        for key in ("premise_denials", "negations")
    )
    truth = {word for form in answer.forms for word in form.text.words}
    offered = {word for word in words[1:] if word.isdecimal() or word in answer.capitals}
    if explicit or (denied and not declines(answer)):
        doubtful = answer.hedges or answer.refusals or answer.truncated
        sure = explicit and not doubtful and offered <= truth | asked | answer.idle_words
        return Verdict(grade=CORRECT, reason="the answer denies the premise", sure=sure)
    if declines(answer):
        reason = "the answer declines and does not give the gold"
        met = CORRECT if mark == UNANSWERABLE else NOT_ATTEMPTED
        return Verdict(grade=met, reason=reason)
    plain = {word for form in answer.forms for word in form.text.words if word not in form.common}
    if not plain.difference(asked, answer.idle_words).isdisjoint(words):
        return Verdict(grade=CORRECT, reason="the answer says what is true instead")
    return Verdict(grade=INCORRECT, reason="the answer takes the false premise for true")

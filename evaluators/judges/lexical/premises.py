"""Questions on a false premise: right is what corrects it, denies it, or declines to answer."""

from collections.abc import Sequence

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.certainty import is_firm

MARK = "FALSE PREMISE:"
_TERSE = 8  # own words of an answer that is nothing but what was asked for
_NEGATIVE = 2  # letters of a prefix that denies a verb, where the language has one


def denied_premise(golds: Sequence[str]) -> tuple[str, ...]:
    """Return what is true instead, where the golds say that the question rests on a falsehood."""
    marked = (gold.strip() for gold in golds if gold.strip().upper().startswith(MARK))
    return tuple(gold[len(MARK) :].strip() for gold in marked)


def grade_premise(analysis: AnswerAnalysis, *, declines: bool) -> Verdict:
    """Return the verdict on an answer; the analysis has what is true as its golds.

    Sure of CORRECT where nothing is named or counted that could be an answer; sure of INCORRECT
    where a terse answer names or counts something and denies nothing at all.
    """
    told = {word for form in analysis.forms for word in form.text.words} | analysis.question_words
    figures = {word for word in analysis.own_words if word.isdecimal()}
    names = analysis.capitals.intersection(analysis.own_words) - {*analysis.answer.words[:1]}
    offered = (figures | names) - told
    if not analysis.answer.words:
        return Verdict(grade=NOT_ATTEMPTED, reason="the answer says nothing", sure=True)
    if declines:
        sure = not (offered or analysis.hedges or analysis.truncated)
        return Verdict(grade=CORRECT, reason="the answer does not accept the premise", sure=sure)
    if _denies(analysis):
        sure = not (offered or analysis.hedges or analysis.truncated or analysis.doubts)
        return Verdict(grade=CORRECT, reason="the answer denies the premise", sure=sure)
    if _corrects(analysis):
        return Verdict(grade=CORRECT, reason="the answer says what is true instead")
    limits = analysis.tables.any_of("undoing", analysis.answer.words)  # "it is only in the EEA"
    terse = len(analysis.own_words) <= _TERSE and is_firm(analysis) and not limits
    reason = "the answer takes the false premise for true"
    return Verdict(grade=INCORRECT, reason=reason, sure=terse and bool(offered))


def _denies(analysis: AnswerAnalysis) -> bool:
    """Say whether a word of denial is in the answer that the question does not have itself."""
    known, words = analysis.tables, analysis.answer.words
    spans = [*known.phrases("premise_denials").spans(words)]
    single = {word for word in words if word in known.words("negations")}
    prefix = known.words("negative_prefixes")
    single |= {word for word in words if len(word) > _NEGATIVE * 2 and word[:_NEGATIVE] in prefix}
    denied = single - analysis.question_words
    return bool(denied) or any(
        not analysis.question_words.issuperset(words[start:end]) for start, end in spans
    )


def _corrects(analysis: AnswerAnalysis) -> bool:
    """Say whether a name or figure of what is true, not of the question, is in the answer."""
    asked, answer = analysis.question_words | analysis.idle_words, {*analysis.answer.words}
    for form in analysis.forms:
        plain = {word for word in form.text.words if word not in form.common}
        if not answer.isdisjoint(plain - asked):
            return True
    return False

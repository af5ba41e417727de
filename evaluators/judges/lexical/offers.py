"""What an answer offers in spite of its doubts: a wrong answer, or several without a choice."""

from evaluators.judges.lexical.exam import AnswerAnalysis
from evaluators.judges.lexical.stance import segments

_SHORT = 6  # words of a stretch that can be an answer without a word of belief in it
_LONG = 12  # words of a stretch that can be one, with a word of belief
_FEW = 8  # own words of an answer that is nothing but candidates


def declines(exam: AnswerAnalysis) -> bool:
    """Say whether the answer declines, or is unsure, and offers nothing all the same."""
    if not exam.refused and not exam.unsure:
        return False
    return not offers(exam)


def offers(exam: AnswerAnalysis) -> bool:
    """Say whether some stretch of the answer offers a thing of the kind that the gold is.

    Beside a refusal it takes a word of belief ("I think"); beside mere doubt a short one is enough.
    """
    said, marks = exam.said, {*exam.hedged}
    for start, end in segments(said, exam.tables, [*exam.refused, *exam.unsure]):
        stretch = [place for place in range(start, end) if place not in marks]
        believed = len(stretch) < end - start <= _LONG
        brief = not exam.refused and len(stretch) <= _SHORT
        if (believed or brief) and any(_is_offer(said.words[place], exam) for place in stretch):
            return True
    return False


def _is_offer(word: str, exam: AnswerAnalysis) -> bool:
    """Say whether a word is the answer's own, and of the gold's kind: a figure, a name, a noun."""
    if word not in exam.own:
        return False
    if any(form.quantity or form.date for form in exam.forms):
        return word.isdecimal() or word in exam.tables.numbers
    return word in exam.capitals or not all(form.named for form in exam.forms)


def undecided(exam: AnswerAnalysis) -> bool:
    """Say whether the answer is little more than candidates with "or" between them."""
    words, alternatives = exam.said.words, exam.tables.words("alternatives")
    named = all(form.named for form in exam.forms)
    if len(exam.own) > _FEW or exam.asks("alternatives") or not named:
        return False
    names = exam.capitals.intersection(exam.own)
    return any(
        words[place] in alternatives and {words[place - 1], words[place + 1]} <= names
        for place in range(1, len(words) - 1)
    )

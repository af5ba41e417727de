"""Golds that an answer weighs against another candidate: as once so, as an error, as one side."""

import re
from collections.abc import Iterator

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.gold_forms import Form
from evaluators.judges.lexical.word_matching import Match

_BREAK = re.compile(r"[.,;:!?\n()—–]")
_STOP = re.compile(r"[.;!?\n]")
_SIGNS = ("one_side", "other_side", "provisional", "mistakes", "weighing")
_REACH = 2  # words of a longer name between "rather than" and what was found of it
_TERSE = 6  # words of a sentence that may well be the answer itself


def dismissed(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether "rather than" or the like leads up to the gold."""
    spans = exam.tables.phrases("dismissals").spans(exam.said.words)
    start, _ = _clause(finding, exam)
    near = range(max(start, finding.start - _REACH), finding.start + 1)
    return any(end in near for _, end in spans)


def superseded(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the gold is what once was so or is wrongly held, and another name follows.

    Where the question asks for such a thing itself, the gold may well be it.
    """
    words = exam.said.words
    start, end = _clause(finding, exam)
    if exam.tables.phrases("provisional").find(exam.asked.words) is not None:
        return False
    if exam.tables.phrases("mistakes").find(words[start:end]) is not None:
        return any(_rivals(finding, exam, end, len(words)))
    held = exam.tables.phrases("provisional").find(words[start:end]) is not None
    turn = exam.tables.phrases("turns").find(words[end:]) if held else None
    return turn is not None and any(_rivals(finding, exam, end + turn, len(words)))


def one_side(finding: Match, form: Form, exam: AnswerAnalysis) -> bool:
    """Say whether the gold is what some say, or what others do, and no more is said of it."""
    said = exam.said
    first = exam.tables.phrases("one_side").find(said.words)
    sides = [start for start, _ in exam.tables.phrases("other_side").spans(said.words)]
    if first is None or not sides or not first < finding.start or sides[-1] < first:
        return False
    end = _side_end(sides[-1], exam)
    return finding.start < end and any(_rivals(finding, exam, first, end))


def _side_end(place: int, exam: AnswerAnalysis) -> int:
    """Return where the sentence of the other side ends, or a contrast leads on to the answer."""
    words, contrasts = exam.said.words, exam.tables.words("contrasts")
    for after in range(place + 1, len(words)):
        if words[after] in contrasts or _STOP.search(exam.said.gaps[after]):
            return after
    return len(words)


def is_weighed(finding: Match, exam: AnswerAnalysis) -> bool:
    """Say whether a terse sentence before the gold's has another candidate, or a word weighs it."""
    words, gaps = exam.said.words, exam.said.gaps
    first = next((i for i in range(1, finding.start + 1) if _STOP.search(gaps[i])), 0)
    if first <= _TERSE and any(_rivals(finding, exam, 0, first)):
        return True
    signs = (exam.tables.phrases(key).find(words) for key in _SIGNS)
    return any(sign is not None for sign in signs) and any(_rivals(finding, exam, 0, len(words)))


def _clause(finding: Match, exam: AnswerAnalysis) -> tuple[int, int]:
    """Return the first word of the finding's clause, and the place after the last.

    A clause that begins with "that" is part of the one before it: "many think, that it is X".
    """
    words, linking = exam.said.words, exam.tables.words("subordinators")
    start = finding.start
    while start and (not _BREAK.search(exam.said.gaps[start]) or words[start] in linking):
        start -= 1
    return start, _clause_end(finding.end, exam)


def _clause_end(place: int, exam: AnswerAnalysis) -> int:
    while place < len(exam.said.words) and not _BREAK.search(exam.said.gaps[place]):
        place += 1
    return place


def _rivals(finding: Match, exam: AnswerAnalysis, start: int, end: int) -> Iterator[str]:
    """Yield the names and figures of a stretch that neither gold nor question has."""
    gold = {word for form in exam.forms for word in form.text.words}
    gold.update(exam.said.words[finding.start : finding.end])
    for word in exam.said.words[start:end]:
        if word in exam.own and word not in gold and (word in exam.capitals or word.isdecimal()):
            yield word

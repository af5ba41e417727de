"""Prose with one marked verdict, or with the verdict alone on its last line.

A verdict that is quoted, reported, negated or conditional is not the judge's own. Whatever may be
a second, different verdict leaves no single reading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.replies.expression import Expression, Words, leading, whole, words_of
from evaluators.replies.lexicon import Lexicon
from evaluators.replies.reply_text import Invalid

_QUOTED = re.compile(
    r"\"[^\"]*+\"|“[^“”\"]*+[”\"]|„[^„“”\"]*+[“”\"]|«[^«»]*+»|‘[^‘’]*+’|`[^`]*+`"
    r"|(?<!\w)'[^'\n]*+'(?!\w)"
)
_STAND_IN = "\ufffc"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CLAUSE = re.compile(r"(?<=[.!?,;–—→])\s+")
_CLAUSE_END = re.compile(r"[.!?;,:\n–—]+")
_SENTENCE_END = re.compile(r"[.!?:\n]")
_TWO = "two different grades"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An expression in a text, from ``start`` to ``end``; or ``alone`` on its line."""

    expression: Expression
    start: int
    end: int
    alone: bool


def read_prose(text: str, lexicon: Lexicon) -> str | Invalid:
    """Return the one grade of a text of several sentences or lines."""
    own = _own_words(text, lexicon)
    found = list(_verdicts(own, lexicon))
    closing = bool(found) and found[-1].alone and not own[found[-1].end :].strip()
    if not closing and not any(verdict.expression.marked for verdict in found):
        return Invalid("no verdict is marked, and none stands alone on the last line")
    grades = {verdict.expression.grade for verdict in found}
    grade = grades.pop()
    if grades or grade is None:
        return Invalid(_TWO)
    return _unless_contradicted(grade, own[: found[-1].start], own[found[-1].end :], lexicon)


def beside(grade: str, before: str, after: str, lexicon: Lexicon) -> str | Invalid:
    """Return a grade that stands in JSON, unless the prose before or behind it says otherwise."""
    before, after = _own_words(before, lexicon), _own_words(after, lexicon)
    if not _introduced(before, lexicon):
        return Invalid("the verdict is quoted, or not announced as the judge's own")
    others = [*_verdicts(before, lexicon), *_verdicts(after, lexicon)]
    if any(verdict.expression.grade != grade for verdict in others):
        return Invalid(_TWO)
    return _unless_contradicted(grade, before, after, lexicon)


def mentions_other(grade: str, text: str, lexicon: Lexicon) -> bool:
    """Whether a text names a grade other than this one, as a letter or as a label word."""
    words = words_of(text)
    corrected = any(words.phrase(at, lexicon.corrections) for at in range(len(words.found)))
    index = 0
    while index < len(words.found):
        letter = lexicon.letters.get(words.found[index][0], "")
        count = words.phrase(index, lexicon.labels)
        named = lexicon.labels[words.key(index, count)] if count else letter
        meant = (
            _predicative(words, index, count, lexicon) if count else _capital(words, index, lexicon)
        )
        if named not in (grade, "") and (meant or (count and corrected)):
            return True
        index += count or 1
    return False


def _unless_contradicted(grade: str, before: str, after: str, lexicon: Lexicon) -> str | Invalid:
    if _concludes_other(grade, before, lexicon) or mentions_other(grade, after, lexicon):
        return Invalid(_TWO)
    hedge = words_of(after[:60])
    if hedge.phrase(0, lexicon.hedges) and not _SENTENCE_END.search(hedge.gap(0)):
        return Invalid("the verdict is hedged")
    return grade


def _own_words(text: str, lexicon: Lexicon) -> str:
    """Return the text with quotations taken out; a quoted lone label is kept."""

    def stand_in(match: re.Match[str]) -> str:
        inner = whole(match[0][1:-1], lexicon)
        return match[0] if inner and not inner.marked else _STAND_IN

    lines = _QUOTED.sub(stand_in, text).split("\n")
    return "\n".join("" if line.lstrip().startswith(">") else line for line in lines)


def _verdicts(text: str, lexicon: Lexicon) -> Iterator[Found]:
    start = 0
    for line in text.split("\n"):
        expression = whole(line, lexicon)
        if expression is None:
            yield from _marked_in(line, start, lexicon)
        elif _introduced(text[:start], lexicon):
            yield Found(expression=expression, start=start, end=start + len(line), alone=True)
        start += len(line) + 1


def _marked_in(line: str, offset: int, lexicon: Lexicon) -> Iterator[Found]:
    for sentence in _pieces(_SENTENCE, line, 0, len(line)):
        words = words_of(line[sentence.start : sentence.stop])
        free = sentence.start + _first_blocker(words, lexicon)
        for clause in _pieces(_CLAUSE, line, sentence.start, sentence.stop):
            if clause.start > free:
                break
            expression = leading(line[clause.start : clause.start + 400], lexicon)
            if expression:
                start = offset + clause.start
                end = start + expression.end
                yield Found(expression=expression, start=start, end=end, alone=False)


def _pieces(separator: re.Pattern[str], line: str, start: int, stop: int) -> Iterator[range]:
    """Cut part of a line behind each separator."""
    for match in separator.finditer(line, start, stop):
        yield range(start, match.end())
        start = match.end()
    yield range(start, stop)


def _introduced(before: str, lexicon: Lexicon) -> bool:
    """Whether what precedes a lone verdict leaves it the judge's own.

    A line that ends in a colon must announce a verdict ("My grade:"), not a quotation.
    """
    last = before.rstrip().rpartition("\n")[2].rstrip("*_ ")
    if not last.endswith(":"):
        return before.rstrip(" \t").endswith("\n") or not before.strip()
    sentence = _SENTENCE.split(last)[-1][-300:]
    words = words_of(sentence)
    markers = lexicon.markers | lexicon.colon_markers
    announced = any(words.phrase(index, markers) for index in range(len(words.found)))
    return announced and not _blocked(sentence, lexicon)


def _blocked(text: str, lexicon: Lexicon) -> bool:
    return _first_blocker(words_of(text), lexicon) < len(text)


def _first_blocker(words: Words, lexicon: Lexicon) -> int:
    """Where the first word stands that takes a later verdict from the judge, or a quotation."""
    ends = (
        match.start()
        for index, match in enumerate(words.found)
        if words.phrase(index, lexicon.blockers)
    )
    quoted = words.text.find(_STAND_IN)
    return min(next(ends, len(words.text)), quoted if quoted >= 0 else len(words.text))


def _concludes_other(grade: str, text: str, lexicon: Lexicon) -> bool:
    """Whether a clause is another verdict ("Correct."), or ends in one ("so it is A")."""
    for clause in _CLAUSE_END.split(text):
        found = whole(clause, lexicon) or _after_copula(clause[-120:], lexicon)
        if found and found.grades - {grade}:
            return True
    return False


def _after_copula(clause: str, lexicon: Lexicon) -> Expression | None:
    words = words_of(clause)
    for index in range(len(words.found) - 1, 0, -1):
        if words.phrase(index - 1, lexicon.copulas) == 1:
            tail = clause[words.found[index].start() :]
            return whole(tail, lexicon) if tail.isupper() else None
    return None


def _capital(words: Words, index: int, lexicon: Lexicon) -> bool:
    """Whether a letter is a capital, and not the article or preposition that opens a sentence."""
    letter = words.found[index][0]
    opens = not index or _SENTENCE_END.search(words.gap(index))
    follows = index + 1 < len(words.found) and words.gap(index + 1).isspace()
    if letter in ("A", "А", "С") and opens and follows:
        return bool(words.phrase(index + 1, lexicon.copulas | lexicon.hedges))
    return letter.isupper()


def _predicative(words: Words, index: int, count: int, lexicon: Lexicon) -> bool:
    """Whether a label word judges the answer, and is no attribute ("the correct year")."""
    shouted = all(match[0].isupper() for match in words.found[index : index + count])
    closes = words.gap(index + count).strip(" \t") != "" or index + count == len(words.found)
    said = index > 0 and words.phrase(index - 1, lexicon.copulas) == 1
    return shouted or closes or said

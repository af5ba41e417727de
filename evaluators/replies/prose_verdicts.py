"""Verdicts in prose: one that is marked, or the verdict alone on its last line.

An expression is labels with nothing else between them, perhaps after a marker: ``B: НЕВЕРЕН``,
``**Grade:** "A"``, ``NOT_ATTEMPTED (NIEPODJĘTA)``. Whatever else a text holds makes it none, so a
label inside a word, a negation or a sentence is never read.

A verdict that is quoted, reported, negated or conditional is not the judge's own. Whatever may be
a second, different verdict leaves no single reading.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.replies.reply_text import Invalid, Lexicon, Words

MAX_CHARS = 300
"""No expression is longer, which bounds the work on any text."""

_PLAIN = re.compile(r"""[\s"'`´„“”‟‘’‚‛«»‹›「」『』*_#>|()\[\]{}<:;,.!/=$•·\-‐‑‒–—→]*""")
_ANNOUNCING = re.compile(r"[:=\n]|\s[-–—→]")
_CLOSERS = "[\"'`”’“»*_)\\]}$]*"
_AFTER = re.compile(
    rf"{_CLOSERS}[.,;!]?{_CLOSERS}\s*$|{_CLOSERS}[.,;!]{_CLOSERS}\s|{_CLOSERS}\s+[(–—-]"
)
_SOFT = re.compile(r"[ \t,*_]+")
_QUOTED = re.compile(
    r"\"[^\"]*+\"|“[^“”\"]*+[”\"]|„[^„“”\"]*+[“”\"]|«[^«»]*+»|‘[^‘’]*+’|`[^`]*+`"
    r"|(?<!\w)'[^'\n]*+'(?!\w)"
)
_STAND_IN = "\ufffc"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CLAUSE = re.compile(r"(?<=[.!?,;–—→])\s+")
_CLAUSE_END = re.compile(r"[.!?;,:\n–—]+")
_SENTENCE_END = re.compile(r"[.!?:\n]")
_TWO = Invalid("two different grades")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """Grades that labels name, ``hinted`` those of signs that only may agree; where they end."""

    grades: frozenset[str]
    hinted: frozenset[str]
    marked: bool
    end: int

    @property
    def grade(self) -> str | None:
        """The one grade that is left, or None."""
        every = self.grades | self.hinted
        return next(iter(every)) if self.grades and len(every) == 1 else None


def _expression(words: Words, *, marked: bool = False) -> Expression | None:
    """Return markers and labels from the first word on; ``marked``: there must be a marker."""
    start = index = _skip_markers(words)
    grades, hinted = set[str](), set[str]()
    while (start or not marked) and (label := _label(words, index)):
        count, grade = label
        hint = words.found[index][0] in words.lexicon.hints
        (hinted if hint else grades).add(grade)
        index += count
    if index == start or not all(_is_plain(words.gap(before)) for before in range(index)):
        return None
    end = words.found[index - 1].end()
    return Expression(grades=frozenset(grades), hinted=frozenset(hinted), marked=start > 0, end=end)


def _label(words: Words, index: int) -> tuple[int, str] | None:
    """Return the words and the grade of a label at ``index``, unless a sentence begins there.

    A letter may be the article or conjunction that opens a sentence: ``B. A year …``.
    """
    if index >= len(words.found):
        return None
    known, word, after = words.lexicon, words.found[index][0], words.gap(index + 1)
    opens = index > 0 and "." in words.gap(index) and after.isspace()
    if word in known.letters and opens and not words.phrase(index + 1, known.labels):
        return None
    if grade := known.hints.get(word) or known.letters.get(word):
        return 1, grade
    count = words.phrase(index, known.labels)
    return (count, known.labels[words.key(index, count)]) if count else None


def _skip_markers(words: Words) -> int:
    """Return the index of the first word behind ``Therefore, my grade is``; 0 for no marker."""
    known, start = words.lexicon, 0
    while True:
        index = start
        while (count := words.phrase(index, known.leads)) and _SOFT.fullmatch(
            words.gap(index + count)
        ):
            index += count
        count = words.phrase(index, known.markers)
        needs_sign = not count
        count = count or words.phrase(index, known.colon_markers)
        index += count
        if not count or (needs_sign and not _ANNOUNCING.search(words.gap(index))):
            return start
        start = index + words.phrase(index, known.copulas)


def _is_plain(gap: str) -> bool:
    """Say whether a gap only separates; two dots trail off, and ``!A`` negates."""
    return bool(_PLAIN.fullmatch(gap)) and ".." not in gap and not gap.endswith("!")


def whole(text: str, lexicon: Lexicon) -> Expression | None:
    """Return the expression that a text is, from its first character to its last, or None."""
    if len(text) > MAX_CHARS:
        return None
    if label := lexicon.exact.get(text.strip().casefold()):
        grades = frozenset({label})
        return Expression(grades=grades, hinted=frozenset(), marked=False, end=len(text))
    words = Words(text, lexicon)
    found = _expression(words)
    if found is None or found.end < words.found[-1].end():
        return None
    tail = words.gap(len(words.found)).rstrip("!")  # "A-" and "A/" are other labels
    return found if _is_plain(tail) and not tail.startswith(("-", "/", "=", "→")) else None


def unannounced(text: str, lexicon: Lexicon) -> str:
    """Return the text behind the words that announce an answer: ``yes`` for ``Answer: yes``."""
    words = Words(text[:MAX_CHARS], lexicon)
    start = _skip_markers(words)
    if not start or start == len(words.found) or not _is_plain(words.gap(0)):
        return text
    return text[words.found[start].start() :]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """An expression in a text, from ``start`` to ``end``; or ``alone`` on its line."""

    expression: Expression
    start: int
    end: int
    alone: bool


def read_prose(text: str, lexicon: Lexicon) -> str | Invalid:
    """Return the one grade of a text of several sentences or lines."""
    own = _own_words(text, lexicon)
    verdicts = list(_verdicts(own, lexicon))
    closing = bool(verdicts) and verdicts[-1].alone and not own[verdicts[-1].end :].strip()
    if not closing and not any(verdict.expression.marked for verdict in verdicts):
        return Invalid("no verdict is marked, and none stands alone on the last line")
    grades = {verdict.expression.grade for verdict in verdicts}
    grade = grades.pop()
    if grades or grade is None:
        return _TWO
    last = verdicts[-1]
    return _unless_contradicted(grade, own[: last.start], own[last.end :], lexicon)


def beside(grade: str, before: str, after: str, lexicon: Lexicon) -> str | Invalid:
    """Return a grade given in JSON, unless the prose before or behind it says otherwise."""
    before, after = _own_words(before, lexicon), _own_words(after, lexicon)
    if not _is_introduced(before, lexicon):
        return Invalid("the verdict is quoted, or not announced as the judge's own")
    others = [*_verdicts(before, lexicon), *_verdicts(after, lexicon)]
    if any(verdict.expression.grade != grade for verdict in others):
        return _TWO
    return _unless_contradicted(grade, before, after, lexicon)


def mentions_other(grade: str, text: str, lexicon: Lexicon) -> bool:
    """Say whether a text names a grade other than this one, as a letter or as a label word."""
    words = Words(text, lexicon)
    corrected = next(words.places(lexicon.corrections), None) is not None
    index = 0
    while index < len(words.found):
        count = words.phrase(index, lexicon.labels)
        if count:
            named = lexicon.labels[words.key(index, count)]
            meant = corrected or _is_predicate(words, index, count)
        else:
            named = lexicon.letters.get(words.found[index][0], grade)
            meant = _is_capital(words, index)
        if named != grade and meant:
            return True
        index += count or 1
    return False


def _unless_contradicted(grade: str, before: str, after: str, lexicon: Lexicon) -> str | Invalid:
    for clause in _CLAUSE_END.split(before):  # "Correct.", or "so it is A"
        found = whole(clause, lexicon) or _after_copula(Words(clause[-120:], lexicon))
        if found and found.grades - {grade}:
            return _TWO
    if mentions_other(grade, after, lexicon):
        return _TWO
    hedge = Words(after[:60], lexicon)
    if hedge.phrase(0, lexicon.hedges) and not _SENTENCE_END.search(hedge.gap(0)):
        return Invalid("the verdict is hedged")
    return grade


def _after_copula(words: Words) -> Expression | None:
    for index in range(len(words.found) - 1, 0, -1):
        if words.phrase(index - 1, words.lexicon.copulas) == 1:
            tail = words.text[words.found[index].start() :]
            return whole(tail, words.lexicon) if tail.isupper() else None
    return None


def _own_words(text: str, lexicon: Lexicon) -> str:
    """Return the text with quotations taken out; a quoted lone label stays."""

    def stand_in(match: re.Match[str]) -> str:
        inner = whole(match[0][1:-1], lexicon)
        return match[0] if inner and not inner.marked else _STAND_IN

    lines = _QUOTED.sub(stand_in, text).split("\n")
    return "\n".join("" if line.lstrip().startswith(">") else line for line in lines)


def _verdicts(text: str, lexicon: Lexicon) -> Iterator[_Verdict]:
    start = 0
    for line in text.split("\n"):
        expression = whole(line, lexicon)
        if expression is None:
            yield from _marked_in(line, start, lexicon)
        elif _is_introduced(text[:start], lexicon):
            yield _Verdict(expression=expression, start=start, end=start + len(line), alone=True)
        start += len(line) + 1


def _marked_in(line: str, offset: int, lexicon: Lexicon) -> Iterator[_Verdict]:
    """Yield marked expressions with which a clause begins, where a sentence can end behind them."""
    for sentence in _pieces(_SENTENCE, line, range(len(line))):
        free = sentence.start + _first_blocker(line[sentence.start : sentence.stop], lexicon)
        for clause in _pieces(_CLAUSE, line, sentence):
            if clause.start > free:
                break
            text = line[clause.start : clause.start + 400]
            found = _expression(Words(text[:MAX_CHARS], lexicon), marked=True)
            if found is None:
                continue
            rest = Words(text[found.end : found.end + 40], lexicon)
            because = rest.phrase(0, lexicon.because) and _SOFT.fullmatch(rest.gap(0))
            if because or _AFTER.match(text, found.end):
                start = offset + clause.start
                yield _Verdict(expression=found, start=start, end=start + found.end, alone=False)


def _pieces(separator: re.Pattern[str], line: str, part: range) -> Iterator[range]:
    """Cut part of a line behind each separator."""
    start = part.start
    for match in separator.finditer(line, part.start, part.stop):
        yield range(start, match.end())
        start = match.end()
    yield range(start, part.stop)


def _is_introduced(before: str, lexicon: Lexicon) -> bool:
    """Say whether what precedes a lone verdict leaves it the judge's own.

    A line that ends in a colon must announce a verdict ("My grade:"), not a quotation.
    """
    last = before.rstrip().rpartition("\n")[2].rstrip("*_ ")
    if not last.endswith(":"):
        return before.rstrip(" \t").endswith("\n") or not before.strip()
    sentence = _SENTENCE.split(last)[-1][-300:]
    markers = Words(sentence, lexicon).places(lexicon.markers | lexicon.colon_markers)
    announced = next(markers, None) is not None
    return announced and _first_blocker(sentence, lexicon) == len(sentence)


def _first_blocker(text: str, lexicon: Lexicon) -> int:
    """Return where the first word or quotation is that takes a later verdict from the judge."""
    words = Words(text, lexicon)
    blockers = (words.found[place].start() for place in words.places(lexicon.blockers))
    quoted = text.find(_STAND_IN)
    return min(next(blockers, len(text)), quoted if quoted >= 0 else len(text))


def _is_capital(words: Words, index: int) -> bool:
    """Say whether a letter is a capital, and not the article or preposition of a sentence."""
    known, letter = words.lexicon, words.found[index][0]
    opens = not index or _SENTENCE_END.search(words.gap(index))
    follows = index + 1 < len(words.found) and words.gap(index + 1).isspace()
    if letter in ("A", "А", "С") and opens and follows:
        return bool(words.phrase(index + 1, known.copulas | known.hedges))
    return letter.isupper()


def _is_predicate(words: Words, index: int, count: int) -> bool:
    """Say whether a label word judges the answer, and is no attribute ("the correct year")."""
    shouted = all(match[0].isupper() for match in words.found[index : index + count])
    closes = words.gap(index + count).strip(" \t") != "" or index + count == len(words.found)
    copula = index > 0 and words.phrase(index - 1, words.lexicon.copulas) == 1
    return shouted or closes or copula

"""What differs between an old answer and a new one, for a reader's eye: a name, a date, a number.

Of the old answer those words are marked that are in the expected answer; of the new one those that
are in neither question nor old answer. Of dates and numbers the span of digits stands for all, of
names the words with capitals.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

WORD = re.compile(r"\w(?:\w|[.,:’'-](?=\w))*")
LONGEST = 240
"""Characters of an answer in which differences are looked for."""
JOINED = 3
"""Characters between two marked words that are marked with them, such as an initial's dot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of an answer."""

    text: str
    is_marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An old answer and a new one in pieces."""

    old: Sequence[Piece]
    new: Sequence[Piece]

    @property
    def old_words(self) -> str:
        """What is marked of the old answer, else all of it."""
        return _marked_text(self.old)

    @property
    def new_words(self) -> str:
        """What is marked of the new answer, else all of it."""
        return _marked_text(self.new)


def difference(question: str, expected: str, old: str, new: str) -> Difference:
    """Return both answers with what differs marked; none of it where nothing can be told."""
    in_expected = _words(expected)
    known = _words(question) | _words(old)
    old_marks = [word for word in _matches(old) if _folded(word[0]) in in_expected]
    new_marks = [word for word in _matches(new) if _folded(word[0]) not in known]
    return Difference(
        old=_pieces(old, _telling(old_marks, expected)),
        new=_pieces(new, _telling(new_marks, expected)),
    )


def _matches(text: str) -> list[re.Match[str]]:
    return list(WORD.finditer(text[:LONGEST]))


def _words(text: str) -> set[str]:
    return {_folded(match[0]) for match in WORD.finditer(text)}


def _folded(word: str) -> str:
    """Return a word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def _telling(words: Sequence[re.Match[str]], expected: str) -> Sequence[re.Match[str]]:
    """Return the words that tell most: from the first to the last number, or name."""
    if re.search(r"\d", expected):
        return _span(words, [word for word in words if re.search(r"\d", word[0])])
    if expected[:1].isupper():
        return _span(words, [word for word in words if word[0][:1].isupper()])
    return words


def _span(
    words: Sequence[re.Match[str]], telling: Sequence[re.Match[str]]
) -> Sequence[re.Match[str]]:
    if not telling:
        return words
    start, end = telling[0].start(), telling[-1].end()
    return [word for word in words if start <= word.start() and word.end() <= end]


def _pieces(text: str, words: Sequence[re.Match[str]]) -> list[Piece]:
    """Return a text in pieces; marked words with next to nothing between them are one."""
    spans: list[tuple[int, int]] = []
    for word in words:
        is_near = False
        if spans:
            between = text[spans[-1][1] : word.start()]
            is_near = len(between.strip()) <= JOINED
        if is_near:
            spans[-1] = spans[-1][0], word.end()
        else:
            spans.append(word.span())
    pieces = []
    place = 0
    for start, end in spans:
        if start > place:
            pieces.append(Piece(text=text[place:start]))
        pieces.append(Piece(text=text[start:end], is_marked=True))
        place = end
    if place < len(text) or not pieces:
        pieces.append(Piece(text=text[place:]))
    return pieces


def _marked_text(pieces: Sequence[Piece]) -> str:
    marked = [piece.text for piece in pieces if piece.is_marked]
    if not marked:
        return "".join(piece.text for piece in pieces)
    return " … ".join(marked)

"""Verdict expressions: labels with nothing else between them, perhaps after a marker.

``B: НЕВЕРЕН``, ``**Grade:** "A"``, ``NOT_ATTEMPTED (NIEPODJĘTA)``. Whatever else a text holds makes
it no expression, so a label inside a word, a negation or a sentence is never read.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from evaluators.replies.lexicon import Lexicon, phrase_key

MAX_CHARS = 300
"""No expression is longer, which bounds the work on any text."""

_WORD = re.compile(r"[^\W_]+|[✅✔✓☑❌✗✘]")
_JOINER = re.compile(r"[\s_\-\u2010\u2011]{1,4}")
_PLAIN = re.compile(r"""[\s"'`´„“”‟‘’‚‛«»‹›「」『』*_#>|()\[\]{}<:;,.!/=$•·\-‐‑‒–—→]*""")
_ANNOUNCING = re.compile(r"[:=\n]|\s[-–—→]")
_CLOSERS = "[\"'`”’“»*_)\\]}$]*"
_AFTER = re.compile(
    rf"{_CLOSERS}[.,;!]?{_CLOSERS}\s*$|{_CLOSERS}[.,;!]{_CLOSERS}\s|{_CLOSERS}\s+[(–—-]"
)
_SOFT = re.compile(r"[ \t,*_]+")
_LONGEST_PHRASE = 6


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


@dataclass(frozen=True, slots=True)
class Label:
    """A label of ``count`` words; a ``hint`` is a sign that may only agree with others."""

    count: int
    grade: str
    hint: bool


@dataclass(frozen=True, slots=True)
class Words:
    """A short text cut into words and the gaps around them."""

    text: str
    found: tuple[re.Match[str], ...]

    def gap(self, index: int) -> str:
        """Return what stands before word ``index``; after the last word for ``len(found)``."""
        start = self.found[index - 1].end() if index else 0
        end = self.found[index].start() if index < len(self.found) else len(self.text)
        return self.text[start:end]

    def phrase(self, index: int, table: Collection[str]) -> int:
        """Return how many words from ``index`` on are the table's longest phrase; 0 for none."""
        if index >= len(self.found):
            return 0
        count = 1
        while count < _LONGEST_PHRASE and index + count < len(self.found):
            if not _JOINER.fullmatch(self.gap(index + count)):
                break
            count += 1
        while count > 0 and self.key(index, count) not in table:
            count -= 1
        return count

    def key(self, index: int, count: int) -> str:
        """Return the phrase key of ``count`` words from ``index`` on."""
        return phrase_key(match[0] for match in self.found[index : index + count])


def words_of(text: str) -> Words:
    """Return a text's words: runs of letters and digits, and ticks and crosses."""
    return Words(text, tuple(_WORD.finditer(text)))


def whole(text: str, lexicon: Lexicon) -> Expression | None:
    """Return the expression that a text is, from its first character to its last, or None."""
    if len(text) > MAX_CHARS:
        return None
    words = words_of(text)
    found = _read(words, lexicon)
    if found is None or found.end < words.found[-1].end() or not _clean_edges(words):
        return None
    return found


def leading(text: str, lexicon: Lexicon) -> Expression | None:
    """Return the marked expression that a text begins with, where a sentence can end behind it."""
    words = words_of(text[:MAX_CHARS])
    found = _read(words, lexicon, marked=True)
    if found is None:
        return None
    rest = words_of(text[found.end : found.end + 40])
    because = rest.phrase(0, lexicon.because) and _SOFT.fullmatch(rest.gap(0))
    return found if because or _AFTER.match(text, found.end) else None


def _read(words: Words, lexicon: Lexicon, marked: bool = False) -> Expression | None:
    """Return markers and labels from the first word on; with ``marked`` there must be a marker."""
    start = index = _skip_markers(words, lexicon)
    labels: list[Label] = []
    while (start or not marked) and (label := _label(words, index, lexicon)):
        labels.append(label)
        index += label.count
    if not labels or not all(_plain(words.gap(before)) for before in range(index)):
        return None
    return Expression(
        grades=frozenset(label.grade for label in labels if not label.hint),
        hinted=frozenset(label.grade for label in labels if label.hint),
        marked=start > 0,
        end=words.found[index - 1].end(),
    )


def _label(words: Words, index: int, lexicon: Lexicon) -> Label | None:
    """Return the label of one or more words at ``index``, unless a new sentence begins there."""
    if index >= len(words.found) or _is_particle(words, index, lexicon):
        return None
    word = words.found[index][0]
    if word in lexicon.hints:
        return Label(1, lexicon.hints[word], True)
    if word in lexicon.letters:
        return Label(1, lexicon.letters[word], False)
    count = words.phrase(index, lexicon.labels)
    return Label(count, lexicon.labels[words.key(index, count)], False) if count else None


def _is_particle(words: Words, index: int, lexicon: Lexicon) -> bool:
    """Whether a letter is the article or conjunction that opens a sentence: ``B. A year …``."""
    after = words.gap(index + 1)
    opens = "." in words.gap(index) and after.isspace() and words.found[index][0] in lexicon.letters
    return opens and index > 0 and not words.phrase(index + 1, lexicon.labels)


def _skip_markers(words: Words, lexicon: Lexicon) -> int:
    """Return the index of the first word behind ``Therefore, my grade is``; 0 without a marker."""
    start = 0
    while True:
        index = _skip_all(words, start, lexicon.leads)
        count = words.phrase(index, lexicon.markers)
        needs_sign = not count
        count = count or words.phrase(index, lexicon.colon_markers)
        index += count
        if not count or (needs_sign and not _ANNOUNCING.search(words.gap(index))):
            return start
        start = index + words.phrase(index, lexicon.copulas)


def _skip_all(words: Words, index: int, table: Collection[str]) -> int:
    while (count := words.phrase(index, table)) and _SOFT.fullmatch(words.gap(index + count)):
        index += count
    return index


def _plain(gap: str) -> bool:
    """Whether a gap only separates; two dots trail off, and ``!A`` negates."""
    return bool(_PLAIN.fullmatch(gap)) and ".." not in gap and not gap.endswith("!")


def _clean_edges(words: Words) -> bool:
    """Whether nothing at the end makes another label of the last one: ``A-``, ``A/``."""
    tail = words.gap(len(words.found)).rstrip("!")
    return _plain(tail) and not tail.startswith(("-", "/", "=", "→"))

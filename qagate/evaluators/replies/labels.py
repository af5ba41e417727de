"""The words that verdicts are read by, and the verdict expressions that they form.

An expression is one or more labels with only punctuation between them, perhaps after a marker:
``B: НЕВЕРЕН``, ``**Grade:** "A"``, ``NOT_ATTEMPTED (NIEPODJĘTA)``. Any other word makes it none,
so a label inside a word, a negation or a sentence is never read.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from string import ascii_uppercase
from typing import cast

from qagate.evaluators.core import GRADES, UsageError
from qagate.evaluators.reading import load_yaml

LABELS_FILE = Path(__file__).with_name("labels.yaml")
MAX_EXPRESSION = 300
"""Characters. No expression is longer, which bounds the work on any text."""

_LOOK_ALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTXABEZHIKMNOPTYX"
)
_LONGEST_PHRASE = 6
"""Words in the longest phrase of the file."""
_WORD = re.compile(r"[^\W_]+|[✅✔✓☑❌✗✘]")
_JOINER = re.compile(r"[\s_\-\u2010\u2011]{1,4}")
_SOFT = re.compile(r"[ \t,*_]+")
_PLAIN = re.compile(
    r"""[\s"'`´„“”‟‘’‚‛«»‹›「」『』*_#>|()\[\]{}<:;,.!/=$•·\-‐‑‒–—→]*"""
)
_ANNOUNCING = re.compile(r"[:=\n]|\s[-–—→]")


@dataclass(frozen=True, slots=True)
class Expression:
    """Labels and nothing else."""

    grade: str | None
    """The one label that they name; None if they disagree, or are only hints."""
    marked: bool
    """Whether a marker announces them."""


@lru_cache(4096)
def word_key(word: str) -> str:
    """Return a word in capitals, with look-alikes of Latin capitals as Latin; not for letters."""
    return unicodedata.normalize("NFC", word).upper().translate(_LOOK_ALIKES)


def folded(entry: str) -> str:
    """Return a phrase's key: its words' keys, joined by spaces."""
    spaced = "".join(character if character.isalnum() else " " for character in entry)
    return " ".join(map(word_key, spaced.split()))


class Words:
    """A short text cut into words (letters and digits, ticks, crosses) and the gaps around them."""

    def __init__(self, text: str) -> None:
        self.found = [*_WORD.finditer(text)]
        self.gaps = _WORD.split(text)
        """``gaps[i]`` is before word ``i``; the last one is after all words."""

    def phrase(self, index: int, table: Collection[str]) -> int:
        """Return how many words from ``index`` on form the table's longest phrase; 0 for none."""
        count = 0
        while count < _LONGEST_PHRASE and index + count < len(self.found):
            if count and not _JOINER.fullmatch(self.gaps[index + count]):
                break
            count += 1
        while count and self.key(index, count) not in table:
            count -= 1
        return count

    def key(self, index: int, count: int) -> str:
        """Return the phrase key of ``count`` words from ``index`` on."""
        return " ".join(
            word_key(match[0]) for match in self.found[index : index + count]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The words of ``labels.yaml``, all languages at once, as ``folded`` writes them."""

    exact: Mapping[str, str]
    """Labels as they are written, but for case."""
    labels: Mapping[str, str]
    letters: Mapping[str, str]
    """By the exact character."""
    hints: Mapping[str, str]
    """Signs that may only agree with a label; by the exact character."""
    markers: frozenset[str]
    colon_markers: frozenset[str]
    leads: frozenset[str]
    copulas: frozenset[str]
    fillers: frozenset[str]
    fields: frozenset[str]
    empty_answers: frozenset[str]

    def expression(self, text: str) -> Expression | None:
        """Return the expression that a whole text is, or None."""
        if len(text) > MAX_EXPRESSION:
            return None
        if label := self.exact.get(text.strip().casefold()):
            return Expression(label, marked=False)
        words = Words(text)
        start = self._skip_markers(words)
        index = start
        grades: set[str] = set()
        hints: set[str] = set()
        while index < len(words.found):
            word = words.found[index][0]
            label_length = words.phrase(index, self.labels)
            if label_length:
                grades.add(self.labels[words.key(index, label_length)])
                index += label_length
            elif word in self.hints:
                hints.add(self.hints[word])
                index += 1
            elif word in self.letters:
                grades.add(self.letters[word])
                index += 1
            else:
                return None
        if index == start or not all(map(_is_plain, words.gaps[:index])):
            return None
        tail = words.gaps[index].rstrip("!")  # "A-" and "A/" are other labels
        if not _is_plain(tail) or tail.startswith(("-", "/", "=", "→")):
            return None
        is_marked = start > 0
        named = grades | hints
        if not grades or len(named) > 1:
            return Expression(None, marked=is_marked)
        return Expression(named.pop(), marked=is_marked)

    def _skip_markers(self, words: Words) -> int:
        """Return the index of the first word behind ``Therefore, my grade is``; 0 for no marker."""
        start = 0
        while True:
            index = start
            while (count := words.phrase(index, self.leads)) and _SOFT.fullmatch(
                words.gaps[index + count]
            ):
                index += count
            count = words.phrase(index, self.markers)
            needs_sign = not count
            count = count or words.phrase(index, self.colon_markers)
            index += count
            if not count or (needs_sign and not _ANNOUNCING.search(words.gaps[index])):
                return start
            start = index + words.phrase(index, self.copulas)

    def announces(self, text: str) -> bool:
        """Return whether a text only announces a verdict: ``Here is the evaluation:``."""
        words = Words(text[:MAX_EXPRESSION])
        return bool(words.found) and self._skip_markers(words) == len(words.found)

    def names_other(self, grade: str, text: str, *, strict: bool = False) -> bool:
        """Return whether a text names another grade, by a label word or a capital letter.

        An attribute is no verdict ("the correct year") unless ``strict``, nor is a letter that
        opens a sentence ("A year is missing").
        """
        words = Words(text)
        index = 0
        while index < len(words.found):
            label_length = words.phrase(index, self.labels)
            if label_length:
                named = self.labels[words.key(index, label_length)]
                last = words.found[index + label_length - 1][0]
                after = words.gaps[index + label_length]
                if named != grade and (
                    strict or last.isupper() or not after.isspace() or "\n" in after
                ):
                    return True
                index += label_length
            else:
                named = self.letters.get(words.found[index][0], grade)
                if named != grade and self._is_capital_label(words, index):
                    return True
                index += 1
        return False

    def _is_capital_label(self, words: Words, index: int) -> bool:
        """Return whether a letter is a label: a capital, and no article that opens a sentence."""
        if not words.found[index][0].isupper():
            return False
        opens = index == 0 or any(end in words.gaps[index] for end in ".!?:\n")
        space_follows = words.gaps[index + 1] == " "
        return not (
            opens and space_follows and not words.phrase(index + 1, self.copulas)
        )


def _is_plain(gap: str) -> bool:
    """Return whether a gap only separates; two dots trail off, and ``!A`` negates."""
    return bool(_PLAIN.fullmatch(gap)) and ".." not in gap and not gap.endswith("!")


@cache
def lexicon(labels: tuple[str, ...] = GRADES) -> Lexicon:
    """Return the words of all languages, for verdicts with these labels.

    A label is read by its own words and by its letter, A for the first; the three grades by their
    words in every language too. Raises UsageError for a word with two meanings.
    """
    data = cast("Mapping[str, Mapping[str, list[str]]]", load_yaml(LABELS_FILE))
    languages = [
        words for key, words in data.items() if key not in ("letters", "hints")
    ]
    keys = Counter(map(folded, labels))
    names: dict[str, list[str]] = {}
    letters: dict[str, list[str]] = {}
    hints: dict[str, list[str]] = {}
    for place, label in enumerate(labels):
        if label in GRADES:
            names[label] = _words(languages, label)
        elif keys[folded(label)] == 1:
            names[label] = [label]
        else:  # another label differs from it in signs only
            names[label] = []
        if place < len(GRADES):
            letters[label] = data["letters"].get(GRADES[place], [])
        else:
            letter = ascii_uppercase[place]
            letters[label] = [letter, letter.lower()]
        hints[label] = []
        if place < len(GRADES) and label == GRADES[place]:
            hints[label] = data["hints"].get(label, [])

    def folded_words(kind: str) -> frozenset[str]:
        return frozenset(map(folded, _words(languages, kind)))

    return Lexicon(
        exact={label.casefold(): label for label in labels},
        labels=_by_label(names, folded),
        letters=_by_label(letters, str),
        hints=_by_label(hints, str),
        markers=folded_words("markers"),
        colon_markers=folded_words("colon_markers"),
        leads=folded_words("leads"),
        copulas=folded_words("copulas"),
        fillers=folded_words("fillers"),
        fields=folded_words("fields"),
        empty_answers=folded_words("empty_answers"),
    )


def _words(languages: Iterable[Mapping[str, list[str]]], kind: str) -> list[str]:
    words: list[str] = []
    for words_by_kind in languages:
        words += words_by_kind.get(kind, [])
    return words


def _by_label(
    words: Mapping[str, list[str]], key: Callable[[str], str]
) -> Mapping[str, str]:
    table: dict[str, str] = {}
    for label in words:
        for word in words[label]:
            if table.setdefault(key(word), label) != label:
                both = f"stands for {table[key(word)]} and for {label}"
                raise UsageError(f"{LABELS_FILE}: {word!r} {both}; keep one")
    return table

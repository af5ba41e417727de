"""What a text is that says nothing: an echo of what was asked, a loop, or no content at all.

Each question is asked of the answer as the reader leaves it, and takes linear time.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence

from qagate.evaluators.replies.labels import folded, lexicon
from qagate.evaluators.text import without_invisible

BREAK = "\x00"
"""Stands in what was asked where text begins that no echo may span, such as the context."""

ECHO_WORDS = 8
"""A run of fewer words of the question may well be part of an answer."""
MOST = 0.9
"""The share of an answer that is an echo or a loop, if the answer is called one."""
REPEATS = 4
"""How often a phrase comes at least where it comes over and over."""
LOOP_WORDS = 12
"""A loop has so many words at least: "No, no, no, no" has not."""
LOOP_CHARACTERS = 60
"""A loop in a text of few words has so many characters at least."""

_WORD = re.compile(r"[^\W_]+")
_SEGMENT_END = re.compile(r"[.:;!?\n…*#_`\"|]+")
LONGEST_ANNOUNCEMENT = 400
"""Characters. A longer answer that holds a letter says something."""


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text in small letters."""
    return tuple(_WORD.findall(text.casefold()))


# Empty


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: only white space and invisible characters."""
    return not without_invisible(text).strip()


def is_empty(text: str, golds: Iterable[str] = ()) -> bool:
    """Return whether an answer is blank, only punctuation, or an empty announcement ("Solution:").

    Many judges graded these CORRECT (Zhao et al. 2025, "One Token to Fool LLM-as-a-Judge", arXiv
    2507.08794). If a gold form is such a text itself, only a blank answer counts.
    """
    if is_blank(text):
        return True
    return _says_nothing(text) and not any(_says_nothing(gold) for gold in golds)


def _says_nothing(text: str) -> bool:
    visible = without_invisible(text)
    if all(_category(sign).startswith("P") for sign in visible):
        return True
    if len(visible) > LONGEST_ANNOUNCEMENT:
        return False
    # A sign may be an answer by itself: ``∞``, an emoji.
    if any(_category(sign) in ("So", "Sm", "Sc") for sign in visible):
        return False
    segments = [folded(segment) for segment in _SEGMENT_END.split(visible)]
    return all(segment in lexicon().empty_answers for segment in segments if segment)


def _category(sign: str) -> str:
    """Return a character's Unicode category; P for white space and for ASCII's signs too."""
    is_plain = sign.isspace() or (sign.isascii() and not sign.isalnum())
    return "P" if is_plain else unicodedata.category(sign)


# Echo


def is_echo(text: str, asked: Collection[str], golds: Iterable[str] = ()) -> bool:
    """Return whether one run of words of what was ``asked`` is nearly all of an answer.

    What stands beside the run has no word but those of what was asked, and no gold: a model may
    repeat the question and then answer it. An answer that is a gold itself is no echo, though
    the question quotes it.
    """
    words = words_of(text)
    if len(words) < ECHO_WORDS or _is_gold(words, golds):
        return False
    pieces = [words_of(piece) for source in asked for piece in source.split(BREAK)]
    asked_words = {word for piece in pieces for word in piece}
    if not asked_words.issuperset(words):
        return False
    for piece in pieces:
        run = _longest_run(words, piece)
        if run is None or len(run) < max(ECHO_WORDS, MOST * len(words)):
            continue
        beside = (words[: run.start], words[run.stop :])
        if not any(_holds_gold(part, golds) for part in beside):
            return True
    return False


def _longest_run(words: Sequence[str], piece: Sequence[str]) -> range | None:
    """Return the places of the longest run of ``words`` in a piece; None if it is too short.

    A run that is long enough holds the middle of the words, so only places of that are tried.
    """
    edge = int(len(words) * (1 - MOST))
    core = words[edge : len(words) - edge]
    text, core_text = _as_text(piece), _as_text(core)
    longest: range | None = None
    found = text.find(core_text)
    for _ in range(_PLACES):
        if found < 0:
            break
        start_in_piece = text.count(_SEPARATOR, 0, found + 1) - 1
        run = _extended(words, piece, edge, len(core), start_in_piece)
        if longest is None or len(run) > len(longest):
            longest = run
        found = text.find(core_text, found + 1)
    return longest


_SEPARATOR = "\x1f"
_PLACES = 8
"""Places of a piece that are tried; a template that repeats itself more often adds nothing."""


def _as_text(words: Sequence[str]) -> str:
    return _SEPARATOR + _SEPARATOR.join(words) + _SEPARATOR


def _extended(
    words: Sequence[str], piece: Sequence[str], start: int, size: int, at: int
) -> range:
    """Return the run that begins with ``size`` equal words, as far as it goes both ways."""
    end, end_in_piece = start + size, at + size
    while start > 0 and at > 0 and words[start - 1] == piece[at - 1]:
        start -= 1
        at -= 1
    while (
        end < len(words)
        and end_in_piece < len(piece)
        and words[end] == piece[end_in_piece]
    ):
        end += 1
        end_in_piece += 1
    return range(start, end)


def _holds_gold(words: Sequence[str], golds: Iterable[str]) -> bool:
    text = _as_text(words)
    for gold in golds:
        gold_words = words_of(gold)
        if gold_words and _as_text(gold_words) in text:
            return True
    return False


def _is_gold(words: Sequence[str], golds: Iterable[str]) -> bool:
    """Return whether words are nearly all of a gold's, or a part of one."""
    text = _as_text(words)
    for gold in golds:
        gold_words = words_of(gold)
        gold_text = _as_text(gold_words)
        if text in gold_text:
            return True
        if len(gold_words) >= MOST * len(words) and gold_text in text:
            return True
    return False


# Repetition


def is_repetition(text: str, golds: Iterable[str] = ()) -> bool:
    """Return whether an answer is one line or phrase over and over, but for a short beginning.

    It is none where a gold stands before the loop, or loops itself.
    """
    words = words_of(text)
    if len(words) >= LOOP_WORDS:
        return _loops(words, golds)
    letters = "".join(text.casefold().split())
    if len(letters) < LOOP_CHARACTERS:
        return False
    compact_golds = ["".join(gold.casefold().split()) for gold in golds]
    return letters not in compact_golds and _start_of_loop(letters) is not None


def _loops(words: Sequence[str], golds: Iterable[str]) -> bool:
    start = _start_of_loop(words)
    if start is None:
        return False
    for gold in golds:
        if words_of(gold) == words:
            return False
        if _holds_gold(words[:start], [gold]):
            return False
    return True


def _start_of_loop(items: Sequence[str]) -> int | None:
    """Return where the loop begins that goes to the end; None where there is none.

    Of the reversed items it is the longest beginning with a short period, which the prefix
    function tells (Knuth, Morris and Pratt 1977, "Fast Pattern Matching in Strings").
    """
    reversed_items = items[::-1]
    count = len(reversed_items)
    borders = [0] * count
    longest = 0
    border = 0
    for end in range(1, count):
        while border and reversed_items[border] != reversed_items[end]:
            border = borders[border - 1]
        if reversed_items[border] == reversed_items[end]:
            border += 1
        borders[end] = border
        length = end + 1
        if (length - border) * REPEATS <= length:
            longest = length
    if longest < MOST * count:
        return None
    return count - longest

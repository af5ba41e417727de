"""Answers that say nothing. Some judges call them correct, so no judge is asked about them."""

import re
import unicodedata
from collections.abc import Iterable

from evaluators.replies.reply_text import folded, lexicon
from evaluators.text import without_invisible

LONGEST = 400
"""Characters: whatever is longer and holds a letter says something."""

_SEGMENT_END = re.compile(r"[.:;!?\n…*#_`\"|]+")


def blank(answer: str) -> bool:
    """Return whether an answer shows nothing at all: white space and invisible characters."""
    return not without_invisible(answer).strip()


def content_free(answer: str, golds: Iterable[str]) -> bool:
    """Return whether an answer is blank, only punctuation, or an empty announcement ("Solution:").

    Such replies have drawn a CORRECT from many judges (Zhao et al. 2025, "One Token to Fool
    LLM-as-a-Judge", arXiv 2507.08794). Where a gold form is such a text itself, only a blank
    answer counts.
    """
    if blank(answer):
        return True
    return _says_nothing(answer) and not any(_says_nothing(gold) for gold in golds)


def _says_nothing(text: str) -> bool:
    visible = without_invisible(text)
    if all(_is_punctuation(character) for character in visible):
        return True
    if len(visible) > LONGEST or any(map(_is_sign, visible)):
        return False
    segments = filter(None, map(folded, _SEGMENT_END.split(visible)))
    return all(segment in lexicon().empty_answers for segment in segments)


def _is_sign(character: str) -> bool:
    """Whether a character may be an answer by itself: ``∞``, an emoji."""
    return unicodedata.category(character) in ("So", "Sm", "Sc") and not character.isascii()


def _is_punctuation(character: str) -> bool:
    """Whether a character is punctuation, white space, or one of ASCII's signs."""
    if character.isascii():
        return not character.isalnum()
    return character.isspace() or unicodedata.category(character).startswith("P")

"""What a reply says: without its thoughts, and without tokens of the chat template.

Replies of all models pass here: those of tested models on their way through the reader of
answers, those of judges and of the builder's models before a verdict or a list is read.
"""

from dataclasses import dataclass

from qagate.evaluators.replies.chat_tokens import without_chat_tokens
from qagate.evaluators.replies.thoughts import outside_thoughts


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a reply says."""

    text: str
    """Empty where a thought is never closed."""
    has_thoughts: bool
    is_open: bool
    """Whether a thought is never closed."""


def said_of(reply: str) -> Said:
    """Return what a reply says; the text is unchanged where it holds nothing else."""
    outside = outside_thoughts(reply)
    text = "" if outside.is_open else without_chat_tokens(outside.text)
    return Said(text=text, has_thoughts=outside.has_thoughts, is_open=outside.is_open)


def said_in(reply: str) -> str | None:
    """Return the text of what a reply says; None where a thought is never closed."""
    said = said_of(reply)
    return None if said.is_open else said.text

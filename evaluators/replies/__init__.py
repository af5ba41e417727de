"""Reads a reply strictly: one reading is left, or it is Invalid. Nothing here raises."""

from evaluators.core import Reply
from evaluators.replies.calls import agreed, rating_field, reason_field
from evaluators.replies.label_first import read_label_first
from evaluators.replies.lexicon import folded, lexicon
from evaluators.replies.own_labels import read_own_label
from evaluators.replies.prose import mentions_other
from evaluators.replies.reply_text import Invalid, plain, unfinished
from evaluators.replies.text_readers import MAX_SPOKEN, read_json_reason, read_text, verdict_field

__all__ = ["Invalid", "read_grade", "read_own_label", "read_rating", "read_reason", "read_yes_no"]


def read_grade(reply: Reply, tool: str = "grade") -> str | Invalid:
    """Return CORRECT, INCORRECT or NOT_ATTEMPTED: from the forced call, a letter, or JSON.

    Cut and filtered replies are Invalid whatever they say. Text beside a call may not name
    another grade.
    """
    if cut := unfinished(reply.finish):
        return cut
    words = lexicon()
    if not reply.calls:
        return read_text(reply.text, words)
    names = frozenset((folded(tool), folded("grade")))
    grade = agreed(reply, tool, lambda value: verdict_field(value, names, words))
    if isinstance(grade, str) and mentions_other(grade, plain(reply.text[:MAX_SPOKEN]), words):
        return Invalid("the text beside the call names another grade")
    return grade


def read_rating(reply: Reply, tool: str = "rate") -> int | Invalid:
    """Return the integer from 1 to 10 of the forced call; never a number out of prose."""
    return unfinished(reply.finish) or agreed(reply, tool, rating_field)


def read_reason(reply: Reply) -> str:
    """Return the judge's own reason from its forced call or its JSON, or an empty text."""
    return reason_field(reply) if reply.calls else read_json_reason(reply.text)


def read_yes_no(text: str, finish: str, yes: tuple[str, ...], no: tuple[str, ...]) -> str | Invalid:
    """Return YES or NO as the model under test says it with one of these words.

    Invalid means that it did not answer; that is a result, not an error.
    """
    return unfinished(finish) or read_label_first(text, yes, no, lexicon())

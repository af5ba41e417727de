"""Reads a reply for one of a rubric's own labels: from the forced call, JSON, a letter or the word.

Stricter than the reading of the three usual grades: what is a verdict must stand alone, in the
call, in a JSON object, or on a line of its own.
"""

import re
from collections.abc import Sequence

from evaluators.core import Reply
from evaluators.reading import parse_json
from evaluators.replies.calls import agreed
from evaluators.replies.reply_text import Invalid, plain, spoken, unfinished, without_markup

FIELD = "grade"
_HEADING = re.compile(r"(?:final )?(?:grade|label|verdict|answer|rating)\s*[:=-]\s*", re.IGNORECASE)
_EDGES = " \t*_`\"'.()[]"


def read_own_label(reply: Reply, labels: Sequence[str], tool: str = FIELD) -> str | Invalid:
    """Return the one of these labels that a reply gives, in the rubric's own spelling.

    A letter counts by the label's place, A for the first. Cut and filtered replies are Invalid
    whatever they say; so is one whose call, JSON and lines do not agree.
    """
    if cut := unfinished(reply.finish):
        return cut
    said = spoken(reply.text.strip())
    if said is None:
        return Invalid("thoughts that are never closed")
    if reply.calls:
        label = agreed(reply, tool, lambda value: _field(value, labels))
    elif "{" in said:
        label = _json_label(said, labels)
        said = said[: said.index("{")]
    else:
        return _one(_lone_labels(said, labels)) or Invalid(_menu(said, labels))
    if isinstance(label, str) and _lone_labels(said, labels) - {label}:
        return Invalid("the text beside the verdict gives another label")
    return label


def _json_label(text: str, labels: Sequence[str]) -> str | Invalid:
    try:
        value = parse_json(text[text.index("{") : text.rindex("}") + 1])
    except ValueError as error:
        return Invalid(f"{error}")
    return _field(value, labels)


def _field(value: object, labels: Sequence[str]) -> str | Invalid:
    given = value.get(FIELD) if isinstance(value, dict) else None
    if not isinstance(given, str):
        return Invalid(f"want an object with a field {FIELD!r} that holds a word")
    return _named(given, labels) or Invalid(_menu(given, labels))


def _lone_labels(text: str, labels: Sequence[str]) -> set[str]:
    """Return the labels that fill a line of their own."""
    lines = without_markup(plain(text)).split("\n")
    return {label for line in lines if (label := _named(line, labels))}


def _named(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that a text is: its word, its letter, or both (``B: mixed``)."""
    word = _HEADING.sub("", text.strip(_EDGES), count=1).strip(_EDGES).casefold()
    names = {label.casefold(): label for label in labels}
    if word in names:
        return names[word]
    for place, (name, label) in enumerate(names.items()):
        letter = chr(ord("a") + place)
        if word == letter or re.fullmatch(rf"{letter}\s*[:.)=-]\s*\(?{re.escape(name)}", word):
            return label
    return None


def _one(found: set[str]) -> str | None:
    return found.pop() if len(found) == 1 else None


def _menu(given: str, labels: Sequence[str]) -> str:
    return f"{given.strip()[:60]!r} is not one of {', '.join(labels)}"

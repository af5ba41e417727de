"""The two prompts of the builder in the user's own words, kept as they stand.

A recipe names their files: ``templates: {generate: FILE, validate: FILE}``. Texts go into their
places as JSON strings, so that none can pass for a part of the prompt.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evaluators.messages import Message
from evaluators.settings import Settings
from evaluators.template import encode
from evaluators.text import digest, sendable

GENERATE = tuple(f"paragraph_{number}" for number in range(1, 6))
VALIDATE = ("paragraph", "question", "answer")
_PLACE = re.compile(r"\{\{ ?(\w+) ?\}\}")
_ECHO = 40  # characters of a text by which it is known where a model repeats only its beginning


def check_template(settings: Settings, key: str, text: str, names: Sequence[str]) -> str:
    """Return a template that has all these places; raises UsageError for one that lacks any."""
    found = set(_PLACE.findall(text))
    if lacking := [name for name in names if name not in found]:
        raise settings.problem(key, f"has no place {{{{{lacking[0]}}}}}; put it where that goes")
    return text


def filled_message(template: str, values: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the one message; a place without a value stays empty, as at the end of the texts."""
    text = _PLACE.sub(
        lambda match: encode(values[match[1]]) if match[1] in values else "", template
    )
    return (Message(role="user", content=sendable(text)),)


def version_of(template: str) -> str:
    """Return what stands for a template in the ledger's keys and in datasheets."""
    return f"template#{digest(template)[:12]}"


def numbered(entries: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return a list's entries with the number of the text that each repeats, from 1.

    An entry that repeats none of them, or only what several begin with, gets no number.
    """
    keys = [_key(text) for text in texts]
    found: list[dict[str, Any]] = []
    for entry in entries:
        echo = _key(str(entry.get("paragraph", "")))
        same = [at for at, key in enumerate(keys, 1) if key == echo]
        if not same and len(echo) >= _ECHO:
            same = [at for at, key in enumerate(keys, 1) if key.startswith(echo)]
        found.append({**entry, "number": same[0] if len(same) == 1 else None})
    return found


def _key(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".… ")

"""A verdict from the forced function call of a reply."""

import re
from collections.abc import Callable
from typing import TypeVar

from evaluators.core import Reply
from evaluators.reading import parse_json
from evaluators.replies.reply_text import Invalid

_RATING = re.compile(r"[1-9]|10")
T = TypeVar("T", str, int)


def agreed(reply: Reply, tool: str, read: Callable[[object], T | Invalid]) -> T | Invalid:
    """Return what the calls of the function ``tool`` say; several must agree.

    A call of any other function beside it leaves no single reading.
    """
    results: set[T] = set()
    for call in reply.calls:
        if call.name != tool:
            return Invalid(f"called {call.name[:40]!r}, not {tool!r}")
        try:
            result = read(parse_json(call.arguments))
        except ValueError as error:
            return Invalid(f"arguments: {error}")
        if isinstance(result, Invalid):
            return result
        results.add(result)
    if len(results) != 1:
        return Invalid("calls that differ" if results else f"no call of {tool!r}")
    return results.pop()


def rating_field(value: object) -> int | Invalid:
    """Return the integer from 1 to 10 in the field ``rating``; nothing is rounded or clamped.

    A number equal to an integer is one (7.0); so is a text of its plain digits ("7").
    """
    if not isinstance(value, dict) or [key.casefold() for key in value].count("rating") != 1:
        return Invalid("want an object with one field 'rating'")
    given = value.get("rating")
    if isinstance(given, str) and _RATING.fullmatch(given):
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int | float) or given not in range(1, 11):
        return Invalid(f"rating: want an integer from 1 to 10, got {given!r:.60}")
    return int(given)


def reason_field(reply: Reply) -> str:
    """Return the ``reason`` of the first call's arguments, or an empty text."""
    try:
        value = parse_json(reply.calls[0].arguments) if reply.calls else None
    except ValueError:
        return ""
    return reason_of(value)


def reason_of(value: object) -> str:
    """Return the field ``reason`` (or ``explanation``) of a JSON object, or an empty text."""
    fields = value if isinstance(value, dict) else {}
    reason = fields.get("reason", fields.get("explanation"))
    return reason if isinstance(reason, str) else ""

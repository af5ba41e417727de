"""Text: hidden characters, one canonical form and its digest, and wording for messages."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from evaluators.core import Request
from evaluators.secrets import mask, one_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MARKS = (
    "\\u00ad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0"
    "\\ufff9-\\ufffb\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
_CONTROLS = "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f"

INVISIBLE = re.compile(f"[{_MARKS}{_CONTROLS}]")
"""What draws nothing: format, zero-width, bidi, tag and control characters (white space is not)."""

UNSAFE = re.compile(f"[{_MARKS}{_CONTROLS}\\ud800-\\udfff\\ue000-\\uf8ff\\ufffe\\uffff]|[^\\S ]")
"""What must not stand as itself in a prompt's slot: INVISIBLE, surrogates, private characters,
and all white space but the plain space."""

_CONTROL = re.compile(f"[{_MARKS}{_CONTROLS}\\r]")
_CI_COMMAND = re.compile(r"##(?=[a-z]{0,20}\[)|^(?=\s*::)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
TRAVELS = 256 * 1024
"""Bytes of an answer that are passed on whole."""
SHOWN = 80
"""Characters of a value that a message shows."""
_TYPES = {bool: "true or false", type(None): "null"}


def travelling(answer: str) -> str:
    """Return an answer as judges and reports are given it; the ledger alone holds a giant whole.

    Of more than 256 kB the first 65,536 characters are left, with the length and the hash of all.
    """
    if len(answer) <= TRAVELS // 4:  # bytes that a character may take
        return answer
    whole = answer.encode("utf-8", "surrogatepass")
    if len(whole) <= TRAVELS:
        return answer
    mark = f"[cut: {len(answer):,} characters, SHA-256 {hashlib.sha256(whole).hexdigest()}]"
    return f"{answer[: TRAVELS // 4]} {mark}"


def without_invisible(text: str) -> str:
    """Return the text without the characters that draw nothing."""
    return INVISIBLE.sub("", text)


def no_command(line: str) -> str:
    """Return a line that no CI system takes for a command to itself."""
    return _CI_COMMAND.sub(lambda match: "# #" if match.group() else ": ", line)


def harmless(text: str) -> str:
    """Return a text for a terminal or a log: its lines as they are, nothing in them a command.

    What moves a cursor, turns text round or draws nothing is written out.
    """
    lines = text.split("\n")
    return "\n".join(no_command(_CONTROL.sub(escaped, line)) for line in lines)


def sendable(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, so that UTF-8 can hold it."""
    return _SURROGATE.sub("\ufffd", text)


def escaped(match: re.Match[str]) -> str:
    r"""Return the one matched character as JSON's \uXXXX, in two halves beyond U+FFFF."""
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(value)


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def flat(value: "DataclassInstance") -> dict[str, object]:
    """Return the fields of a dataclass's instance by name, as they are.

    ``dataclasses.asdict`` copies everything in them as well: ten times the work.
    """
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """Return the ledger key of a request to the model with this identity."""
    tool = request.tool
    asked: dict[str, object] = {
        **flat(request),
        "messages": [flat(message) for message in request.messages],
        "tool": None if tool is None else flat(tool),
    }
    # Where there is none the key is that of a time when no request had one.
    asked.pop("case")
    if request.case is not None:
        own = [flat(message) for message in request.case.messages]
        asked["case"] = {**flat(request.case), "messages": own}
    return digest({"model": dict(identity), "request": asked})


def fresh_key(key: str, name: str) -> str:
    """Return the key of the same request when it is asked anew under a name, itself without one."""
    return digest([name, key]) if name else key


def shown(value: object) -> str:
    """Return a value for a message: cut, on one line, without control characters or keys."""
    if isinstance(value, str):
        return repr(one_line(mask(value), SHOWN))
    return _TYPES.get(type(value), "a list" if isinstance(value, list) else "a mapping")


def listed(names: Iterable[str]) -> str:
    """Return names for a message, in quotes and with commas; cut where there are many."""
    quoted = [shown(name) for name in names]
    more = len(quoted) - 20
    return ", ".join(quoted[:20]) + (f" and {more} more" if more > 0 else "")


def hint(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean …?`` where a known word is close, otherwise the known words."""
    known = list(known)
    lower = {name.casefold(): name for name in known}
    close = get_close_matches(word[:SHOWN].casefold(), lower, n=1)
    return (
        f"did you mean {lower[close[0]]!r}?"
        if close
        else f"known: {one_line(mask(', '.join(known)))}"
    )


def encodable(text: str) -> bool:
    """Return whether a text has no lone surrogate."""
    return text.isascii() or _SURROGATE.search(text) is None

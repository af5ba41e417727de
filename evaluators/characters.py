"""Characters that are not what they seem: invisible ones, and those that move or hide text."""

import re

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

_SURROGATE = re.compile("[\ud800-\udfff]")


def without_invisible(text: str) -> str:
    """Return the text without the characters that draw nothing."""
    return INVISIBLE.sub("", text)


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

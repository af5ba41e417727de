"""Text that is safe to send, to show and to keep: hidden characters, API keys, and wording.

What models and users write may hold characters that draw nothing, commands of a CI system, or
a key. The functions here take such things out or make them visible, each for one purpose.
``mask`` knows the shapes of keys; a Key knows its own value and shows it nowhere.
"""

import base64
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote

from qagate.evaluators.key_shapes import KEYS, PATTERNS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


_MARKS = (
    "\\u00ad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0"
    "\\ufff9-\\ufffb\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff"
)
_CONTROLS = "\\x00-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f"

INVISIBLE = re.compile(f"[{_MARKS}{_CONTROLS}]")
"""Characters that draw nothing: format, zero-width, bidi, tag and control ones, no white space."""

UNSAFE = re.compile(
    f"[{_MARKS}{_CONTROLS}\\ud800-\\udfff\\ue000-\\uf8ff\\ufffe\\uffff]|[^\\S ]"
)
"""What is escaped in a prompt's slot: INVISIBLE, surrogates, private characters, and all white
space except the plain space."""

_CONTROL = re.compile(f"[{_MARKS}{_CONTROLS}\\r]")
_CI_COMMAND = re.compile(r"##(?=[a-z]{0,20}\[)|^(?=\s*::)")
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)
MAX_ANSWER_BYTES = 256 * 1024
"""A longer answer is shortened before judges and reports see it."""
KEPT_OF_GIANT = 32_000
"""Characters of its beginning, and of its end, that are left."""
SHOWN = 80
"""Characters of a value that a message shows."""
_TYPES = {bool: "true or false", int: "a number", float: "a number", type(None): "null"}

MASK = "***"
PLACEHOLDER = "no-key"
SHORTEST = 6
"""Characters. A shorter "key" is masked nowhere: it would eat ordinary words."""
LINE = 300
"""The most characters of a message that stands in one line."""

_SIGNS = dict.fromkeys(sign for sign, _ in KEYS)
_WORDS = tuple(sign for sign in _SIGNS if sign[-1].isalpha())
_SIGNS_BY_MARK = {  # the other signs, by their last character
    mark: tuple(sign for sign in _SIGNS if sign[-1] == mark)
    for mark in {sign[-1] for sign in _SIGNS} - {sign[-1] for sign in _WORDS}
}
_SHORTEST_MATCH = 8  # pwd= and four characters


def travelling(answer: str) -> str:
    """Return an answer as judges and reports get it; only the ledger holds a giant one whole.

    Of more than 256 kB the beginning and the end stay, 32,000 characters each: what a model says
    last may be its answer. Between them stand the length and hash of the whole.
    """
    if len(answer) <= MAX_ANSWER_BYTES // 4:  # bytes that a character may take
        return answer
    whole = answer.encode("utf-8", "surrogatepass")
    if len(whole) <= MAX_ANSWER_BYTES:
        return answer
    digest_of_whole = hashlib.sha256(whole).hexdigest()
    mark = f"[cut: {len(answer):,} characters, SHA-256 {digest_of_whole}]"
    return f"{answer[:KEPT_OF_GIANT]} {mark} {answer[-KEPT_OF_GIANT:]}"


def without_invisible(text: str) -> str:
    """Return the text without the characters that draw nothing."""
    return INVISIBLE.sub("", text)


def no_command(line: str) -> str:
    """Return a line that no CI system takes for a command."""
    return _CI_COMMAND.sub(lambda match: "# #" if match.group() else ": ", line)


def harmless(text: str) -> str:
    """Return a text for a terminal or log: no commands, and what is not drawn is written out."""
    return "\n".join(
        no_command(_CONTROL.sub(escaped, line)) for line in text.split("\n")
    )


def sendable(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate, so that UTF-8 can hold it."""
    if encodable(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def escaped(match: re.Match[str]) -> str:
    r"""Return the one matched character as JSON's \uXXXX, in two halves beyond U+FFFF."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
    return "".join(f"\\u{unit}" for unit in units)


def canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, ASCII."""
    return _CANONICAL.encode(value)


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def flat(value: "DataclassInstance") -> dict[str, object]:
    """Return the fields of a dataclass by name, uncopied: a tenth of the work of ``asdict``."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


class Key:
    """An API key that shows itself nowhere: ``repr``, ``str`` and formats give ``***``.

    Where a server wants several, each is a line of it; no header can hold a line break.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself, for the client that sends it."""
        return self._value

    def reveals(self) -> list[str]:
        """Return all of them, each for a header of its own."""
        return self._value.split("\n")

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return not self._value

    def hide(self, text: str) -> str:
        """Return the text with this key as ``***``, in any shape; the rest as it is."""
        for line in self.reveals():
            secret = line.rpartition(" ")[2]  # behind a scheme such as Bearer
            if len(secret) < SHORTEST or secret == PLACEHOLDER:
                continue
            for shape in _written_forms(secret):
                text = text.replace(shape, MASK)
        return text

    def mask(self, text: str) -> str:
        """Return the text with this key and everything key-shaped as ``***``."""
        return mask(self.hide(text))

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Key is not pickled: it would leave this process")


@lru_cache(maxsize=32)
def _written_forms(secret: str) -> tuple[str, ...]:
    """Return how a key may be written: as it is, in JSON, a URL, hexadecimal and base64.

    In base64 a text has three forms, by how many bytes stand before it. Of each the part
    that depends on the key alone is taken.
    """
    in_json = secret.replace("/", r"\/")
    in_url = quote(secret, safe="")
    content = secret.encode("utf-8", "surrogateescape")
    forms = [secret, in_json, in_url, content.hex(), content.hex().upper()]
    for bytes_before in range(3):
        encoded = base64.b64encode(bytes(bytes_before) + content).decode().rstrip("=")
        begins_at = (0, 2, 3)[bytes_before]
        form = encoded[begins_at : len(encoded) - 1]
        if len(form) >= SHORTEST:
            forms.append(form)
    return tuple(dict.fromkeys(forms))


def mask(text: str, mark: str = MASK) -> str:
    """Return the text with ``mark`` for what is shaped like a key, token or URL password."""
    if len(text) < _SHORTEST_MATCH:
        return text
    lowered = text.lower()
    for sign, pattern in PATTERNS:
        if sign in lowered:
            text = pattern.sub(mark, text)
    return text


def may_hold_key(text: str) -> bool:
    """Return whether ``mask`` would try a pattern on this text.

    If not, ``mask`` changes neither the text nor, where it is JSON, any string in it.
    """
    lowered = text.lower()
    for word in _WORDS:
        if word in lowered:
            return True
    for mark, signs in _SIGNS_BY_MARK.items():
        # Most texts lack most marks, and one character is found 20 times as fast as a word.
        if mark not in lowered:
            continue
        for sign in signs:
            if sign in lowered:
                return True
    return False


def one_line(text: str, limit: int = LINE) -> str:
    """Return the text without control, format and surrogate characters, at most ``limit`` long."""
    shown = (
        " " if unicodedata.category(char)[0] == "C" else char
        for char in text[: 20 * limit]
    )
    line = " ".join("".join(shown).split())
    if len(line) <= limit:
        return line
    return f"{line[: limit - 1]}…"


def shown(value: object) -> str:
    """Return a value for a message: cut, on one line, without control characters or keys."""
    if isinstance(value, str):
        return repr(one_line(mask(value), SHOWN))
    return _TYPES.get(type(value), "a list" if isinstance(value, list) else "a mapping")


def listed(names: Iterable[str]) -> str:
    """Return names for a message, quoted, at most 20 of them."""
    return first_of([shown(name) for name in names], 20)


def first_of(names: Sequence[str], most: int = 3) -> str:
    """Return the first few names, and how many more there are."""
    first_names = ", ".join(names[:most])
    more = len(names) - most
    if more <= 0:
        return first_names
    return f"{first_names} and {more} more"


def hint(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean …?`` if a known word is close, otherwise the known words."""
    known = list(known)
    lower = {name.casefold(): name for name in known}
    close = get_close_matches(word[:SHOWN].casefold(), lower, n=1)
    if close:
        return f"did you mean {lower[close[0]]!r}?"
    if not known:
        return "there are none"
    return f"known: {one_line(mask(', '.join(known)))}"


def encodable(text: str) -> bool:
    """Return whether a text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

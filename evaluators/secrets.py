"""API keys that are never shown, and text made safe to show."""

import re
import unicodedata
from typing import NoReturn

MASK = "***"
PLACEHOLDER = "no-key"
SHORTEST = 6  # a shorter "key" is masked nowhere: it would eat ordinary words
LINE = 300

_CHARS = r"[A-Za-z0-9._~+/=-]"
# A bearer bond is no key: ask for letters among digits, a mixed case, or sheer length.
_RANDOM = rf"(?={_CHARS}{{0,60}}?(?:[A-Z]{{2}}[a-z]|[a-z][A-Z]|[a-z]\d|\d[a-z]|[\w-]{{24}}))"
# Nor is sk-learning: a key is long or has digits, an echoed one asterisks as well.
_BODY = r"(?=[\w-]{20}|[A-Za-z_-]{0,60}[\d*])[\w*-]{8,}"
_TOKENS = ("gho", "ghp", "ghr", "ghs", "ghu", "gsk", "hf")
# Every pattern is linear: a run of characters is entered once, or its repeats are bounded.
_KEYS = (  # what the lower-case text must hold for the pattern to be tried at all, and the pattern
    ("://", r'(?<=://)[^/?#\s"]{1,500}(?=@)'),
    ("sk-", rf"(?<![A-Za-z])sk-{_BODY}"),
    ("sk-", r"sk-(?:ant|live|or|proj|svcacct|test)-[\w-]{16,}"),  # even glued to a word
    *((f"{prefix}-", rf"\b{prefix}-{_BODY}") for prefix in ("rk", "pk", "xai", "pplx", "nvapi")),
    *((f"{name}_", rf"(?<![^\W_]){name}_\w{{12,}}") for name in (*_TOKENS, "github_pat")),
    *((f"{name}_", rf"\b{name}_{_BODY}") for name in (*_TOKENS, "sk", "rk", "pk")),
    ("glpat-", r"glpat-[\w-]{12,}"),
    ("xox", r"xox[abeprs]-[\w-]{10,}"),
    ("akia", r"AKIA[A-Z0-9]{12,}"),
    ("asia", r"\bASIA[A-Z0-9]{12,}"),
    ("ya29.", r"\bya29\.[\w-]{16,}"),
    ("npm_", r"\bnpm_\w{30,}"),
    ("sg.", r"\bSG\.[\w-]{16,}+\.[\w-]{16,}"),
    ("hvs.", r"\bhvs\.[\w-]{16,}"),
    ("aiza", r"AIza[\w-]{20,}"),
    ("eyj", r"(?<![\w-])eyJ[\w-]{10,}+\.[\w-]{10,}+(?:\.[\w-]*+)?"),
    ("bearer", rf"(?i:bearer)\s{{1,9}}{_RANDOM}{_CHARS}{{6,}}"),
    (
        "authorization",
        r"(?i:authorization)[\"']?\s{0,9}[:=]\s{0,9}[\"']?\w{1,9}\s{1,9}[^\s\"'<>]{4,}",
    ),
    ("api", r"(?i:api[_-]?key)[\"']?\s{0,9}[:=]\s{0,9}[\"']?[^\s\"'<>,;]{8,}"),
    ("private key", r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[A-Za-z0-9+/=\s]{0,8000}"),
)
_PATTERNS = tuple((hint, re.compile(pattern, re.ASCII)) for hint, pattern in _KEYS)
_HINTS = tuple(dict.fromkeys(hint for hint, _ in _KEYS))
_SHORTEST_MATCH = 11  # sk- and eight characters; user and password in a URL are longer too


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
        """Return the text with this key as ``***``, whatever its shape; the rest as it is."""
        for line in self.reveals():
            one = line.rpartition(" ")[2]  # behind a scheme such as Bearer
            if len(one) >= SHORTEST and one != PLACEHOLDER:
                text = text.replace(one, MASK)
        return text

    def mask(self, text: str) -> str:
        """Return the text with this key and everything key-shaped as ``***``."""
        return mask(self.hide(text))

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Key is not pickled: it would leave this process")


def mask(text: str, mark: str = MASK) -> str:
    """Return the text with what is shaped like an API key or token, or a URL's password, masked.

    Linear in time. ``mark`` takes the place of each.
    """
    if len(text) < _SHORTEST_MATCH:
        return text
    lowered = text.lower()
    for hint, pattern in _PATTERNS:
        if hint in lowered:
            text = pattern.sub(mark, text)
    return text


def may_hold_key(text: str) -> bool:
    """Return whether ``mask`` might change this text, or what JSON of it holds; True is a guess."""
    return any(map(text.lower().__contains__, _HINTS))


def one_line(text: str, limit: int = LINE) -> str:
    """Return the text without control, format and surrogate characters, at most ``limit`` long."""
    shown = (" " if unicodedata.category(char)[0] == "C" else char for char in text[: 20 * limit])
    line = " ".join("".join(shown).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

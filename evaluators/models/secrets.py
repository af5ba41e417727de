"""API keys: read from the environment, never shown; and text made safe to show."""

import re
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from evaluators.core import UsageProblem

if TYPE_CHECKING:
    from evaluators.models.spec import Spec

MASK = "***"
PLACEHOLDER = "no-key"
SHORTEST = 6  # a shorter "key" is masked nowhere: it would eat ordinary words
LINE = 300

# Every alternative consumes what it looked at, so that the search stays linear.
_KEY_SHAPES = re.compile(
    r"\b(?:sk|rk|pk|gsk|xai|hf|gh[opusr]|glpat|pplx|nvapi|xox[abprs])[-_][A-Za-z0-9_*-]{6,}"
    r"|\bAIza[A-Za-z0-9_-]{20,}"
    r"|\bAKIA[A-Z0-9]{12,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]+)*"
    r"|(?<=\bBearer )[A-Za-z0-9._~+/=*-]{8,}",
    re.IGNORECASE,
)
_CREDENTIALS = re.compile(r"://[^/?#\s]{1,500}@")
_DIGIT_OR_STAR = re.compile(r"[0-9*]")


class Key:
    """An API key that shows itself nowhere: ``repr``, ``str`` and formats give ``***``."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the key itself, for the client that sends it."""
        return self._value

    def mask(self, text: str) -> str:
        """Return the text with this key and everything key-shaped as ``***``."""
        if len(self._value) >= SHORTEST and self._value != PLACEHOLDER:
            text = text.replace(self._value, MASK)
        return mask(text)

    def __repr__(self) -> str:
        return MASK

    def __reduce__(self) -> NoReturn:
        msg = "a Key is not pickled: it would leave this process"
        raise TypeError(msg)


def require_key(spec: "Spec", environ: Mapping[str, str]) -> Key:
    """Return the key of a model from the environment; a placeholder for a loopback server.

    Raises UsageProblem, without the value, where the variable is unset, empty, or holds a
    character that no HTTP header may carry.
    """
    value = environ.get(spec.api_key_env, "").strip()
    if not value and spec.is_loopback:
        return Key(PLACEHOLDER)
    if not value:
        msg = f"{spec.text}: no API key; set the environment variable {spec.api_key_env}"
        raise UsageProblem(msg)
    if not re.fullmatch(r"[!-~]+", value):
        msg = (
            f"{spec.api_key_env}: the key holds a space, a line break or a non-ASCII character; "
            "set it again (its value is not shown)"
        )
        raise UsageProblem(msg)
    return Key(value)


def mask(text: str) -> str:
    """Return the text with key-shaped words and passwords in URLs as ``***``; linear in time."""
    return _KEY_SHAPES.sub(_masked, _CREDENTIALS.sub(f"://{MASK}@", text))


def _masked(match: re.Match[str]) -> str:
    """Keep words such as ``sk-learning``: a key has digits, an echoed one also asterisks."""
    return MASK if _DIGIT_OR_STAR.search(match[0]) else match[0]


def one_line(text: str, limit: int = LINE) -> str:
    """Return the text without control, format and surrogate characters, at most ``limit`` long."""
    shown = (" " if unicodedata.category(char)[0] == "C" else char for char in text[: 20 * limit])
    line = " ".join("".join(shown).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"

"""Text of models and files for a form or a spreadsheet: what it hides is written out."""

import re
import unicodedata

from evaluators.characters import INVISIBLE, escaped
from evaluators.models.secrets import mask

CELL = 32_000
"""Characters: a spreadsheet's cell holds 32,767."""

_HIDDEN = re.compile(
    f"{INVISIBLE.pattern}|[\x0b-\x0d\x1c-\x1f\x85\u2028\u2029\ud800-\udfff\ufffe\uffff]"
)
_FORMULA = frozenset("=+-@")


def visible(text: str) -> str:
    r"""Return the text with hidden characters as ``\u202e`` and keys masked.

    Tabs and newlines stay.
    """
    return _HIDDEN.sub(escaped, mask(text.replace("\r\n", "\n")))


def cell(text: str) -> str:
    """Return a text for a spreadsheet's cell: visible, cut where too long, never a formula."""
    shown = visible(text)
    shown = shown if len(shown) <= CELL else f"{shown[:CELL]} […]"
    return f"'{shown}" if _is_risky(shown) else shown


def from_cell(text: str) -> str:
    """Return what ``cell`` was given, as far as its guard goes."""
    return text[1:] if text[:1] == "'" and _is_risky(text[1:]) else text


def _is_risky(text: str) -> bool:
    first = unicodedata.normalize("NFKC", text.lstrip()[:1])[:1]
    return first in _FORMULA or text[:1] in ("\t", "\n")

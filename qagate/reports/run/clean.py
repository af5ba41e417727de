"""Text from models and files made safe: keys masked once, the rest for the medium that shows it.

``masked`` runs where a record or report is made or read, so a cut never leaves half a key in the
open. Hidden characters are written out, never dropped: odd text should look as odd as it is.
"""

import re
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar, cast

from qagate.evaluators.output import visible
from qagate.evaluators.text import flat, no_command
from qagate.evaluators.text import mask as mask_keys

T = TypeVar("T")

MASK = "[key masked]"
SPAN_LIMIT = 200

_MARKUP = re.compile(r"[\\*_\[\]<>&|~!$]|(?<=:)/(?=/)|(?<=www)\.")
_ADDRESS = re.compile(r"([A-Za-z][\w.+:@/-]*://[\w.:/@%~+-]*[\w/])", re.ASCII)
_ENTITIES = {
    "<": "&lt;"
}  # some renderers take a tag that only a backslash stands before
_WIDE = str.maketrans({"@": "＠", "#": "＃", "`": "'"})


def mask(text: str) -> str:
    """Return the text with everything shaped like an API key or token replaced by ``MASK``."""
    return mask_keys(text, MASK)


def masked(value: T) -> T:
    """Return a value with every text in it masked, at any depth; itself where nothing is."""
    given: Any = value
    if type(given) is str:  # a Kind is no user's text
        safe: Any = mask(given)
    elif isinstance(given, Mapping):
        safe = {masked(key): masked(part) for key, part in given.items()}
    elif type(given) in (list, tuple):
        safe = type(given)(map(masked, given))
    elif is_dataclass(given) and not isinstance(given, type):
        parts = flat(given)
        found = {name: masked(part) for name, part in parts.items()}
        changed = {
            name: part for name, part in found.items() if part is not parts[name]
        }
        safe = replace(given, **changed) if changed else given
    else:
        return value
    return value if safe == given else cast("T", safe)


def line(text: str) -> str:
    r"""Return the text on one line (``\n`` written out) that no CI system takes for a command."""
    return no_command(visible(text).replace("\n", "\\n").replace("\t", "\\t"))


def cut(text: str, limit: int, mark: str = "…") -> str:
    """Return at most ``limit`` characters of a text, ending in ``mark`` where it was longer."""
    return text if len(text) <= limit else text[: max(0, limit - len(mark))] + mark


def span(text: str, limit: int = SPAN_LIMIT) -> str:
    """Return a code span, fenced so that nothing in the text can close it; not for table cells."""
    shown = cut(line(text), limit)
    if not shown.strip():
        return "*(empty)*"
    fence = "`" * (1 + max(map(len, re.findall(r"`+", shown)), default=0))
    return f"{fence} {shown} {fence}"


def prose(text: str, limit: int = 400) -> str:
    """Return a text for Markdown and tables: no markup, link or mention; addresses as code."""

    def escaped(part: str) -> str:
        wide = part.translate(_WIDE)
        return _MARKUP.sub(
            lambda mark: _ENTITIES.get(mark.group(), f"\\{mark.group()}"), wide
        )

    parts = _ADDRESS.split(cut(line(text), limit))
    return "".join(
        f"`{part}`" if n % 2 else escaped(part) for n, part in enumerate(parts)
    )

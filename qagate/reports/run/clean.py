"""Text from models and files made safe to show: keys masked once, the rest for each medium.

``masked`` runs where a record or report is made or read, so that a cut never leaves half a
key in the open. ``line`` is for terminals and logs, ``span`` and ``prose`` are for Markdown.
Hidden characters are written out, never dropped: odd text should look as odd as it is.
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
"""Characters of a code span."""
PROSE_LIMIT = 400
"""Characters of a text among others."""

_MARKUP = re.compile(r"[\\*_\[\]<>&|~!$]|(?<=:)/(?=/)|(?<=www)\.")
"""What Markdown may take for markup, or for a link."""
_ADDRESS = re.compile(r"([A-Za-z][\w.+:@/-]*://[\w.:/@%~+-]*[\w/])", re.ASCII)
_LOOKALIKES = str.maketrans({"@": "＠", "#": "＃", "`": "'"})
"""Mentions, references and code, which no backslash prevents: harmless lookalikes replace them."""


def mask(text: str) -> str:
    """Return the text with everything shaped like an API key or token replaced by ``MASK``."""
    return mask_keys(text, MASK)


def masked(value: T) -> T:
    """Return a value with every text in it masked, at any depth; itself where nothing is."""
    safe = _masked(value)
    return value if safe == value else cast("T", safe)


def _masked(value: Any) -> Any:
    if type(value) is str:  # a Kind, which is a kind of str, is no user's text
        return mask(value)
    if isinstance(value, Mapping):
        return {masked(key): masked(part) for key, part in value.items()}
    if type(value) in (list, tuple):
        return type(value)(masked(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        return _masked_dataclass(value)
    return value


def _masked_dataclass(value: Any) -> Any:
    changed = {}
    for name, part in flat(value).items():
        masked_part = masked(part)
        if masked_part is not part:
            changed[name] = masked_part
    return replace(value, **changed) if changed else value


def line(text: str) -> str:
    r"""Return the text on one line (``\n`` written out) that no CI system takes for a command."""
    return no_command(visible(text).replace("\n", "\\n").replace("\t", "\\t"))


def cut(text: str, limit: int, mark: str = "…") -> str:
    """Return at most ``limit`` characters of a text, ending in ``mark`` where it was longer."""
    if len(text) <= limit:
        return text
    return text[: max(0, limit - len(mark))] + mark


def span(text: str, limit: int = SPAN_LIMIT) -> str:
    """Return a code span, fenced so that nothing in the text can close it; not for table cells."""
    shown = cut(line(text), limit)
    if not shown.strip():
        return "*(empty)*"
    longest = 0
    for backticks in re.findall(r"`+", shown):
        longest = max(longest, len(backticks))
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}"


def prose(text: str, limit: int = PROSE_LIMIT) -> str:
    """Return a text for Markdown and tables: no markup, link or mention; addresses as code."""
    prose_parts = []
    # The pattern is one group, so the parts are the addresses and what stands between them.
    for part in _ADDRESS.split(cut(line(text), limit)):
        if _ADDRESS.fullmatch(part):
            prose_parts.append(f"`{part}`")
        else:
            without_mentions = part.translate(_LOOKALIKES)
            prose_parts.append(_MARKUP.sub(_without_meaning, without_mentions))
    return "".join(prose_parts)


def _without_meaning(markup: re.Match[str]) -> str:
    """Return a character of markup escaped, so that it stands for itself."""
    if markup.group() == "<":
        # Some renderers take a tag for one although a backslash stands before it.
        return "&lt;"
    return f"\\{markup.group()}"

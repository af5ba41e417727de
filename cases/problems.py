"""How errors about the user's files are worded: where, what was got, what may have been meant."""

from collections.abc import Iterable
from difflib import get_close_matches

from evaluators.models.secrets import mask, one_line

SHOWN = 80


def shown(value: object) -> str:
    """Return a value for a message: cut, on one line, without control characters or keys."""
    if isinstance(value, str):
        return repr(one_line(mask(value), SHOWN))
    return _TYPES.get(type(value), "a list" if isinstance(value, list) else "a mapping")


_TYPES = {bool: "true or false", type(None): "null"}


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
    return f"did you mean {lower[close[0]]!r}?" if close else f"known: {', '.join(known)}"


def encodable(text: str) -> bool:
    """Return whether a text has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True

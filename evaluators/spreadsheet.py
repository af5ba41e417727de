"""Cells of CSV files that people open in a spreadsheet: none of them becomes a formula."""

import re
import unicodedata

BOM = "\ufeff"  # without it a spreadsheet reads UTF-8 in the local code page
_STARTS = frozenset("=+-@")
# A list separator, or a line break outside of quotes, begins a new cell for some spreadsheets.
_BROKEN = re.compile(r"([;\t\r\n][\s\"]*+)(?=[=+@＝＋＠－-])")
_GUARDED = re.compile(r"([;\t\r\n][\s\"]*+)'(?=[=+@＝＋＠－-])")


def guarded(text: str) -> str:
    """Return a text with a quote before everything that a spreadsheet may take for a formula."""
    if text[:1].isalnum() and not _BROKEN.search(text):
        return text  # as most cells are
    shown = _BROKEN.sub(r"\1'", text)
    return f"'{shown}" if _is_risky(shown) else shown


def unguarded(text: str) -> str:
    """Return the text that ``guarded`` was given."""
    bare = text[1:] if text[:1] == "'" and _is_risky(text[1:]) else text
    return _GUARDED.sub(r"\1", bare)


def _is_risky(text: str) -> bool:
    start = text.lstrip()[:1]
    if not start.isascii():
        start = unicodedata.normalize("NFKC", start)[:1]
    return start in _STARTS or text[:1] in ("\t", "\n")

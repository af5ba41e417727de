"""Plain text cut into paragraphs of bounded length."""

import re
import unicodedata
from collections.abc import Iterator

from cases.tools.builder.recipe import ParagraphRules
from evaluators.characters import sendable, without_invisible

_BREAK = re.compile(r"\n[^\S\n]*\n")
_SPACE = re.compile(r"\s+")
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-zа-я]|[^\W\d_]{1,12}\.? ?\d{1,3})\]")
_HOLLOW = re.compile(r"\s*\([\s,;:.–—-]*\)")
_BEFORE_MARK = re.compile(r"\s+([,.;:!?…])")
_STRESS = re.compile("[\u0300\u0301]")
# A sentence ends with its mark, and perhaps a closing quotation mark, where a capital or a quote
# follows; initials ("А. Міцкевіч") and abbreviations of one or two letters ("г.") do not end one.
_END = re.compile(
    r"(?:(?<=[.!?…])(?<!\b[^\W\d_]\.)(?<!\b[^\W\d_]{2}\.)|(?<=[.!?…][»”\")]))"
    r"\s+(?=[«„“\"(—–]*\s?[^\W\d_])(?![^\W\d_A-ZА-ЯЁІЎ])"
)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the cleaned paragraphs of a plain text.

    They are set apart by empty lines; in a text without empty lines each line is one.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    for part in _BREAK.split(lines) if _BREAK.search(lines.strip()) else lines.split("\n"):
        cleaned = clean(part)
        if cleaned:
            yield cleaned


def clean(text: str) -> str:
    """Return a text on one line: composed, without invisible marks, stress marks and footnotes.

    What a removed template left behind, such as empty brackets, goes too.
    """
    composed = _STRESS.sub("", unicodedata.normalize("NFC", without_invisible(sendable(text))))
    bare = _HOLLOW.sub("", _NOTE.sub("", composed))
    return _BEFORE_MARK.sub(r"\1", _SPACE.sub(" ", bare)).strip()


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a cleaned paragraph."""
    return _END.split(paragraph)


def bounded(paragraph: str, rules: ParagraphRules) -> str | None:
    """Return a paragraph within the bounds: its first whole sentences where it is too long.

    None where it is too short, has too few sentences, or does not end as a sentence does.
    """
    kept = ""
    count = 0
    for sentence in sentences(paragraph):
        longer = f"{kept} {sentence}".lstrip()
        if len(longer) > rules.longest:
            break
        kept, count = longer, count + 1
    ended = re.search(r"[.!?…][»”\")]?\Z", kept)
    if len(kept) < rules.shortest or count < rules.sentences or not ended:
        return None
    return kept

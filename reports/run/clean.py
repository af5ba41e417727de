"""Text from models and files made harmless for the medium that shows it.

Every function here masks key-shaped text first and cuts last, so that a cut never leaves half a
key in the open. Hidden characters are never dropped: they are written out, because an answer that
carries them should look as odd as it is.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from evaluators import secrets
from evaluators.text import no_command
from reports.run.record import Record

MASK = "[key masked]"
SPAN_LIMIT = 200
CELL_LIMIT = 16_000  # characters; a spreadsheet holds 32,767 UTF-16 units, at most two a character

# Controls but tab and newline, bidi and zero-width marks, fillers, tags, surrogates and the like.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U000e0000-\U000e0fff]"
)
_FORMULA = frozenset("=+-@")
# Where a list separator, or a line break outside of quotes, begins a cell for a spreadsheet.
_BROKEN = re.compile(r"([;\t\r\n][\s\"]*+)(?=[=+@＝＋＠－-])")
_MARKUP = re.compile(r"[\\*_\[\]<>&|~!$]|(?<=:)/(?=/)|(?<=www)\.")
_ENTITIES = {"<": "&lt;"}  # some renderers take a tag that only a backslash stands before
_WIDE = str.maketrans({"@": "＠", "#": "＃", "`": "'"})


def mask(text: str) -> str:
    """Return the text with whatever is shaped like an API key or token replaced by ``MASK``."""
    return secrets.mask(text, MASK)


def visible(text: str) -> str:
    r"""Return the text, masked, with hidden characters written as ``\u202e``.

    Tabs and newlines stay; what is left is legal in XML, in UTF-8 and on a terminal.
    """
    if text.isascii() and text.isprintable():
        return mask(text)  # as most texts are; nothing in it is hidden
    return HIDDEN.sub(_escape, mask(text.replace("\r\n", "\n")))


def line(text: str) -> str:
    r"""Return the text on one line (``\n`` written out) that no CI system takes for a command."""
    flat = visible(text).replace("\n", "\\n").replace("\t", "\\t")
    return no_command(flat)


def cut(text: str, limit: int, mark: str = "…") -> str:
    """Return at most ``limit`` characters of a text, ending in ``mark`` where it was longer."""
    return text if len(text) <= limit else text[: max(0, limit - len(mark))] + mark


def is_plain(texts: Iterable[str]) -> bool:
    """Return whether ``visible`` and ``mask`` leave every one of these texts as it is.

    They are looked at all at once, which may only find more: where a key would begin in one text
    and end in the next. So True is certain, False is not.
    """
    joined = " ".join(texts)
    seen = joined.isascii() and joined.isprintable()
    return (seen or not HIDDEN.search(joined)) and mask(joined) == joined


def cell(text: str) -> str:
    """Return a text for a spreadsheet cell: no formula, visible, at most ``CELL_LIMIT`` long."""
    return plain_cell(visible(text), len(text))


def plain_cell(text: str, length: int | None = None) -> str:
    """Return what ``cell`` does for a text that is visible already; it had ``length`` before."""
    if text[:1].isalnum() and len(text) <= CELL_LIMIT and not _BROKEN.search(text):
        return text  # as most cells are; no formula starts so
    whole = len(text) if length is None else length
    shown = _BROKEN.sub(r"\1'", cut(text, CELL_LIMIT, f" […cut, {whole:,} characters in all]"))
    start = shown.lstrip()[:1]
    if not start.isascii():
        start = unicodedata.normalize("NFKC", start)[:1]
    risky = start in _FORMULA or shown[:1] in ("\t", "\n")
    return f"'{shown}" if risky else shown


def span(text: str, limit: int = SPAN_LIMIT) -> str:
    """Return a Markdown code span of at most ``limit`` characters of text (not for table cells).

    The fence is one backtick longer than the longest run inside: nothing can close it early.
    """
    shown = cut(line(text), limit)
    if not shown.strip():
        return "*(empty)*"
    fence = "`" * (1 + max(map(len, re.findall(r"`+", shown)), default=0))
    return f"{fence} {shown} {fence}"


def prose(text: str, limit: int = 400) -> str:
    """Return a text for running Markdown and its table cells: no markup, link, mention or issue."""
    shown = cut(line(text), limit).translate(_WIDE)
    return _MARKUP.sub(lambda mark: _ENTITIES.get(mark.group(), f"\\{mark.group()}"), shown)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_texts = attrgetter(
    *("key", "id", "dataset", "language", "digest", "question", "context", "expected", "answer"),
    *("outcome", "grade", "reason", "error", "label", "model", "judge", "adjudicated_by"),
)
_vote_texts = attrgetter("judge", "grade", "reason", "error")


def find_plain(records: Iterable[Record]) -> frozenset[str]:
    """Return the keys of the records in whose text nothing is to be masked or made visible.

    Each text goes into three files; to look at all texts of a record at once, and once for all
    files, takes a tenth of the time.
    """
    return frozenset(record.key for record in records if is_plain(_texts_of(record)))


def _texts_of(record: Record) -> Iterable[str]:
    """Return every text of a record that is not empty."""
    found = [text for text in _texts(record) if text]
    for vote in record.votes:
        found += filter(None, _vote_texts(vote))
    if record.measures or record.metadata:
        found += _inside((record.measures, record.metadata))
    return found


def _inside(value: object) -> Iterator[str]:
    """Yield every text of a value, the text of whatever is no number included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _inside(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _inside(part)
    else:
        yield str(value)

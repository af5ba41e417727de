"""Output: lines for any terminal, tables, progress, CSV cells, and files written as a whole."""

import base64
import csv
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from qagate.evaluators.core import QAError
from qagate.evaluators.text import escaped, harmless

PRIVATE = 0o600
"""The mode of a file that only its owner may read."""
PRIVATE_FOLDER = 0o700
SHARED = 0o666
"""The mode of a file that a team commits: the umask takes away what it takes from all files."""
SHARED_FOLDER = 0o777


class UnwrittenError(QAError):
    """A file could not be written, because of a full disk for example. Ends a run with 3."""


def say(stream: TextIO, *lines: str) -> None:
    """Write lines at once, without control characters, CI commands or what the encoding lacks."""
    encoding = stream.encoding or "utf-8"
    text = "".join(f"{harmless(line)}\n" for line in lines)
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def plural(count: int, noun: str) -> str:
    """Return ``1 item``, ``2 items``, ``1,000 items``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, padded: bool = False
) -> list[str]:
    """Return the lines of a Markdown table; if ``padded``, its columns line up as plain text."""
    all_rows = [header, *rows]
    widths = [0] * len(header)
    rules = [" --- "] * len(header)
    if padded:
        widths = _widths(all_rows)
        rules = ["-" * (width + 2) for width in widths]
    lines = []
    for row in all_rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"| {' | '.join(cells)} |")
    return [lines[0], f"|{'|'.join(rules)}|", *lines[1:]]


def aligned_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines of plain text, the first column left-aligned, all others right."""
    widths = _widths(rows)
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        for cell, width in zip(row[1:], widths[1:], strict=True):
            cells.append(cell.rjust(width))
        lines.append("  ".join(cells))
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how many characters each column needs."""
    return [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]


def write_part(path: Path, content: Iterable[bytes], mode: int = PRIVATE) -> Path:
    """Write and sync a file's content next to ``path``, and return the path of this part file.

    Rename the part to finish. Unless ``mode`` says otherwise, only the owner may read it: it may
    hold questions and answers. Raises OSError and any error of ``content``; nothing is left
    behind then.
    """
    part = path.parent / f".{path.name}.part"
    part.unlink(missing_ok=True)
    try:
        # Exclusive creation: a link with this name is not followed.
        with open(
            part, "xb", opener=lambda name, flags: os.open(name, flags, mode)
        ) as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    return part


def write_whole(path: Path, content: Iterable[bytes], mode: int = PRIVATE) -> None:
    """Write a file that appears as a whole or not at all. Raises as ``write_part``."""
    part = write_part(path, content, mode)
    try:
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_texts(texts: Iterable[tuple[Path, str]], *, to_commit: bool = False) -> None:
    """Write each text whole or not at all, and make its folders. Raises UnwrittenError.

    Files to commit, such as those of a data set, may be read by whom the umask allows; others
    only by their owner.
    """
    mode, folder_mode = PRIVATE, PRIVATE_FOLDER
    if to_commit:
        mode, folder_mode = SHARED, SHARED_FOLDER
    for path, text in texts:
        try:
            path.parent.mkdir(folder_mode, parents=True, exist_ok=True)
            write_whole(path, [text.encode("utf-8", "backslashreplace")], mode)
        except OSError as error:
            raise UnwrittenError(
                f"{path}: cannot be written ({error.strerror or error}); name another place"
            ) from None


def content_policy(script: str, style: str) -> str:
    """Return a Content-Security-Policy that allows these two texts only, by their hashes."""
    return (
        f"default-src 'none'; script-src {_source_of(script)}; "
        f"style-src {_source_of(style)}; base-uri 'none'; form-action 'none'"
    )


def _source_of(text: str) -> str:
    """Return how a policy names one text: by its hash."""
    text_hash = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(text_hash).decode('ascii')}'"


HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef"
    "\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U000e0000-\U000e0fff]"
)
"""Controls but tab and newline, bidi and zero-width marks, fillers, tags, surrogates, …"""


def visible(text: str) -> str:
    r"""Return the text with hidden characters written as ``\u202e``, but for tabs and newlines."""
    if text.isascii() and text.isprintable():
        return text  # as most texts are; nothing in it is hidden
    return HIDDEN.sub(escaped, text.replace("\r\n", "\n"))


BOM = "\ufeff"
"""Without it a spreadsheet reads UTF-8 in the local code page."""
CELL_LIMIT = 16_000
"""Characters. A spreadsheet holds 32,767 UTF-16 units, and a character has two at most."""
_STARTS = frozenset("=+-@")
# A list separator, or a line break outside of quotes, begins a new cell for some spreadsheets.
_BROKEN = re.compile(r"([;\t\r\n][\s\"]*+)(?='*[=+@＝＋＠－-])")
_GUARDED = re.compile(r"([;\t\r\n][\s\"]*+)'(?='*[=+@＝＋＠－-])")


def guarded(text: str) -> str:
    """Return a text with a quote before everything that a spreadsheet may take for a formula."""
    if text[:1].isalnum() and not _BROKEN.search(text):
        return text  # as most cells are
    guarded_inside = _BROKEN.sub(r"\1'", text)
    if _is_risky(guarded_inside):
        return f"'{guarded_inside}"
    return guarded_inside


def unguarded(text: str) -> str:
    """Return the text that ``guarded`` was given."""
    if text.startswith("'") and _is_risky(text):
        text = text[1:]
    return _GUARDED.sub(r"\1", text)


def cell(text: str) -> str:
    """Return a text for a spreadsheet's cell: no formula, visible, at most ``CELL_LIMIT`` long."""
    shown = visible(text)
    if len(shown) > CELL_LIMIT:
        mark = f" […cut, {len(text):,} characters in all]"
        shown = shown[: CELL_LIMIT - len(mark)] + mark
    return guarded(shown)


def _is_risky(text: str) -> bool:
    # The text may begin with quotes of its own; behind them it is as risky.
    bare = text.lstrip("'")
    start = unicodedata.normalize("NFKC", bare.lstrip()[:1])[:1]
    return start in _STARTS or bare[:1] in ("\t", "\n")


class _Line:
    def write(self, line: str) -> str:
        return line


def sheet_lines(rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield rows of guarded, quoted cells as the lines of a CSV file for any spreadsheet."""
    return map(
        csv.writer(_Line(), lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerow, rows
    )

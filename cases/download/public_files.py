"""Public files: what one must be, its recorded hash, and getting it into its place."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cases.download.resumable import (
    DownloadError,
    Partial,
    Source,
    Watch,
    fetch,
    without_query,
)
from evaluators.core import UsageError
from evaluators.output import PRIVATE_FOLDER, say
from evaluators.reading import ARCHIVES, file_hash, read_text
from evaluators.settings import Settings
from evaluators.text import listed

DATA_FOLDER = Path(".qa/data")
TEXTS = ("url", "file", "licence", "hint")
FILE_KEYS = (*TEXTS, "sha256", "columns")
RECORD_LIMIT = 4096  # bytes: a hash and a name
LINE_LIMIT = 1024 * 1024  # bytes of the beginning that are looked at
BOM = b"\xef\xbb\xbf"
BEGINNINGS: Mapping[bytes, str] = {
    b"version https://git-lfs": "a Git LFS pointer, not the data "
    "(GitHub has that at https://media.githubusercontent.com/media/OWNER/REPO/…)",
    b"<": "a web page or an XML message",
    **ARCHIVES,
}
MEGABYTE = 1_000_000
STEP = 10 * MEGABYTE  # bytes between two lines of progress where the size is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicFile:
    """One official file; ``name`` is what it is known by in messages.

    ``sha256`` is empty where none is pinned. ``columns`` are names that the file's first line
    holds, be it a CSV header or a JSON object; a JSON list has them near its beginning. ``hint``
    says what to do where it is not served.
    """

    name: str
    url: str
    file: str
    licence: str
    hint: str
    columns: tuple[str, ...]
    sha256: str = ""

    @classmethod
    def of(cls, settings: Settings) -> "PublicFile":
        """Return the file that settings describe by ``FILE_KEYS``, their keys checked before.

        Raises UsageError naming file, line and key for a value that is not as it must be.
        """
        texts = {key: settings.text(key) for key in (*TEXTS, "sha256")}
        if texts["sha256"] and not is_sha256(texts["sha256"]):
            raise settings.problem(key="sha256", what="64 hexadecimal digits are needed")
        if Path(texts["file"]).name != texts["file"]:
            raise settings.problem(key="file", what="a file name without folders is needed")
        return cls(name=settings.name, **texts, columns=settings.words("columns"))


def wrong_content(path: Path, columns: tuple[str, ...]) -> str:
    """Return what a file is that is not the data, ``""`` where its beginning has all columns.

    That is its first line, of a JSON list its first mebibyte. Raises OSError.
    """
    with path.open("rb") as file:
        head = file.readline(LINE_LIMIT).removeprefix(BOM).lstrip()
        while not head and (line := file.readline(LINE_LIMIT)):
            head = line.lstrip()
        if head.startswith(b"["):
            head += file.read(LINE_LIMIT)
    if not head:
        return "empty"
    known = next((what for start, what in BEGINNINGS.items() if head.startswith(start)), "")
    missing = [name for name in columns if name.encode() not in head]
    where = "beginning" if head.startswith(b"[") else "first line"
    lacks = f"something else: its {where} lacks {listed(missing)}" if missing else ""
    return known or lacks


def is_sha256(text: str) -> bool:
    """Return whether a text is a SHA-256 in lower-case hexadecimal."""
    return re.fullmatch(r"[0-9a-f]{64}", text) is not None


def record_path(path: Path) -> Path:
    """Return where the hash of a file is recorded: beside it, in the format of ``sha256sum``."""
    return path.with_name(f"{path.name}.sha256")


def recorded_hash(path: Path) -> str:
    """Return the hash recorded beside a file, ``""`` where there is none.

    Raises UsageError where the record does not begin with a SHA-256.
    """
    record = record_path(path)
    if not record.exists():
        return ""
    word = read_text(record, RECORD_LIMIT).partition(" ")[0].strip().lower()
    if not is_sha256(word):
        raise UsageError(
            f"{record}:1: does not begin with a SHA-256 (64 hexadecimal digits); delete the file"
        )
    return word


def record_hash(path: Path, sha256: str) -> None:
    """Record the hash of a file beside it, unless it is recorded already. Raises OSError."""
    line = f"{sha256}  {path.name}\n".encode()
    record = record_path(path)
    if not record.exists() or record.read_bytes() != line:
        record.write_bytes(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One file to be had. ``expected`` is its hash, ``""`` where nobody has vouched for one."""

    file: PublicFile
    url: str
    target: Path
    expected: str


def obtain(order: Order, stream: TextIO) -> str:
    """Make sure that the right file is in its place, and return how it came there.

    Progress and warnings go to ``stream``. Raises DownloadError, and OSError where a file cannot
    be read or written; nothing that is not right is ever put in the place.
    """
    target = order.target
    if target.exists():
        found = file_hash(target)
        wrong = wrong_content(target, order.file.columns)
        if order.expected and order.expected != found:
            wrong = f"another file: its SHA-256 is {found}, not {order.expected}"
        if not wrong:
            _keep_record(order, found, stream)
            return "already there"
        say(stream, f"warning: {target}: {wrong}; fetching it anew")
    target.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    part = Partial.of(target)
    with watching(order.file.name, stream) as watch:
        fetch(Source(url=order.url, hint=order.file.hint), part, watch)
    found = _verify(order, part)
    if target.exists():
        say(stream, f"warning: the file that was there is now {_set_aside(target, target)}")
    part.finish(target)
    _keep_record(order, found, stream)
    return f"fetched from {without_query(order.url)}"


def _verify(order: Order, part: Partial) -> str:
    """Return the hash of what came. Raises DownloadError where it is not the file expected."""
    wrong = wrong_content(part.path, order.file.columns)
    if wrong:
        part.drop()
        raise DownloadError(f"{without_query(order.url)}: what came is {wrong}; {order.file.hint}")
    found = file_hash(part.path)
    if order.expected in ("", found):
        return found
    aside = _set_aside(part.path, order.target)
    part.drop()
    raise DownloadError(
        f"{without_query(order.url)}: SHA-256 is {found}, not {order.expected}; set aside as "
        f"{aside} and not used; if the publisher changed the file, give the new hash with --sha256"
    )


def _set_aside(path: Path, target: Path) -> Path:
    """Rename a wrong file after its content, so that none that was set aside is overwritten."""
    return path.replace(target.with_name(f"{target.name}.wrong-{file_hash(path)[:12]}"))


def _keep_record(order: Order, found: str, stream: TextIO) -> None:
    """Record the hash of a file that is pinned nowhere; warn where nobody vouched for it."""
    if order.file.sha256:
        return
    record_hash(order.target, found)
    if not order.expected:
        say(
            stream,
            f"warning: no SHA-256 is known for {order.file.name}: {found} is now recorded in "
            f"{record_path(order.target)} and compared from now on; confirm it with someone who "
            "has the file",
        )


@contextmanager
def watching(name: str, stream: TextIO) -> Iterator[Watch]:
    """Return a context whose value shows the progress of a download.

    A terminal gets a bar, everything else about ten plain lines.
    """
    if not stream.isatty():
        yield _line_watch(name, stream)
        return
    from rich import progress as rich  # noqa: PLC0415  # only a terminal needs it
    from rich.console import Console  # noqa: PLC0415

    columns = (
        rich.TextColumn(name, markup=False),
        rich.BarColumn(),
        rich.DownloadColumn(),
        rich.TimeRemainingColumn(),
    )
    with rich.Progress(*columns, console=Console(file=stream), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def _line_watch(name: str, stream: TextIO) -> Watch:
    due = 0

    def watch(done: int, total: int | None) -> None:
        nonlocal due
        if done >= due or done == total:
            of = f" of {total / MEGABYTE:.1f}" if total else ""
            say(stream, f"{name}: {done / MEGABYTE:.1f}{of} MB")
            due = done + (max(1, total // 10) if total else STEP)

    return watch

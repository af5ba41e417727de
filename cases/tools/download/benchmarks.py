"""Which public benchmarks there are, and how to tell whether a file is one of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evaluators.core import UsageError
from evaluators.reading import ARCHIVES, read_text
from evaluators.settings import Settings, load_settings
from evaluators.text import listed

FILE = Path(__file__).with_name("benchmarks.yaml")
TEXTS = ("dataset", "language", "url", "file", "licence", "hint")
RECORD_LIMIT = 4096  # bytes: a hash and a name
LINE_LIMIT = 1024 * 1024  # bytes of the first line that are looked at
BOM = b"\xef\xbb\xbf"
BEGINNINGS: Mapping[bytes, str] = {
    b"version https://git-lfs": "a Git LFS pointer, not the data "
    "(GitHub has that at https://media.githubusercontent.com/media/OWNER/REPO/…)",
    b"<": "a web page or an XML message",
    **ARCHIVES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One official file, and the slice that takes it.

    ``sha256`` is empty where none is pinned. ``columns`` are names that the file's first line
    holds, be it a CSV header or a JSON object. ``hint`` says what to do where it is not served.
    """

    name: str
    dataset: str
    language: str
    url: str
    file: str
    licence: str
    hint: str
    columns: tuple[str, ...]
    sha256: str = ""


def load_benchmarks(path: Path = FILE) -> Mapping[str, Benchmark]:
    """Return the benchmarks of a YAML file by name.

    Raises UsageError naming file, line and key for whatever is missing or not as it must be.
    """
    settings = load_settings(path)
    return {name: _benchmark(name, settings.part(name)) for name in settings.values}


def _benchmark(name: str, settings: Settings) -> Benchmark:
    settings.check_keys((*TEXTS, "sha256", "columns"))
    texts = {key: settings.text(key) for key in (*TEXTS, "sha256")}
    wrong = {key: "missing; give it" for key in TEXTS if not texts[key]}
    if texts["sha256"] and not is_sha256(texts["sha256"]):
        wrong.setdefault("sha256", "64 hexadecimal digits are needed")
    if Path(texts["file"]).name != texts["file"]:
        wrong.setdefault("file", "a file name without folders is needed")
    if wrong:
        raise settings.problem(*next(iter(wrong.items())))
    return Benchmark(name=name, **texts, columns=settings.words("columns"))


def wrong_content(path: Path, columns: tuple[str, ...]) -> str:
    """Return what a file is that is not the data, ``""`` where its first line has all columns.

    Raises OSError.
    """
    with path.open("rb") as file:
        head = file.readline(LINE_LIMIT).removeprefix(BOM).lstrip()
        while not head and (line := file.readline(LINE_LIMIT)):
            head = line.lstrip()
    if not head:
        return "empty"
    for beginning, what in BEGINNINGS.items():
        if head.startswith(beginning):
            return what
    missing = [name for name in columns if name.encode() not in head]
    return f"something else: its first line lacks {listed(missing)}" if missing else ""


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
        msg = f"{record}:1: does not begin with a SHA-256 (64 hexadecimal digits); delete the file"
        raise UsageError(msg)
    return word


def record_hash(path: Path, sha256: str) -> None:
    """Record the hash of a file beside it, unless it is recorded already. Raises OSError."""
    line = f"{sha256}  {path.name}\n".encode()
    record = record_path(path)
    if not record.exists() or record.read_bytes() != line:
        record.write_bytes(line)

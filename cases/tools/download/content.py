"""Whether what came is the data: not a web page, not a pointer to it, not something else."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from cases.problems import listed
from evaluators.files import ARCHIVES

LONGEST = 1024 * 1024  # bytes of the first line that are looked at
BOM = b"\xef\xbb\xbf"
BEGINNINGS: Mapping[bytes, str] = {
    b"version https://git-lfs": "a Git LFS pointer, not the data "
    "(GitHub has that at https://media.githubusercontent.com/media/OWNER/REPO/…)",
    b"<": "a web page or an XML message",
    **ARCHIVES,
}


def wrong_content(path: Path, columns: Iterable[str]) -> str:
    """Return what a file is that is not the data, ``""`` where its first line has all columns.

    Raises OSError.
    """
    with path.open("rb") as file:
        head = file.readline(LONGEST).removeprefix(BOM).lstrip()
        while not head and (line := file.readline(LONGEST)):
            head = line.lstrip()
    if not head:
        return "empty"
    for beginning, what in BEGINNINGS.items():
        if head.startswith(beginning):
            return what
    missing = [name for name in columns if name.encode() not in head]
    return f"something else: its first line lacks {listed(missing)}" if missing else ""

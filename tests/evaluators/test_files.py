"""Text files are read whole, or refused in one line that names the file."""

import os
from pathlib import Path

import pytest

from evaluators.core import UsageError
from evaluators.files import read_text


def test_text_comes_without_mark_and_with_its_line_ends(tmp_path: Path) -> None:
    """A BOM is dropped, CRLF is kept."""
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    assert read_text(path) == "a\r\nb\n"


def test_wrong_byte_names_its_line(tmp_path: Path) -> None:
    """A byte that is not UTF-8 is shown with the line it stands on."""
    path = tmp_path / "a"
    path.write_bytes(b"a\nb\nna\xefve\n")
    with pytest.raises(UsageError, match=r"a:3: wrong encoding: byte 0xef"):
        read_text(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(tmp_path: Path, encoding: str) -> None:
    """UTF-16 with and without its mark is recognised, not read as text with NULs."""
    path = tmp_path / "a"
    path.write_bytes("question".encode(encoding))
    with pytest.raises(UsageError, match="UTF-16; save the file as UTF-8"):
        read_text(path)


@pytest.mark.parametrize(
    "head", [b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ", b"(\xb5/\xfd"]
)
def test_archives_are_not_read(tmp_path: Path, head: bytes) -> None:
    """An archive under any name is refused by its first bytes; nothing is unpacked."""
    path = tmp_path / "a.csv"
    path.write_bytes(head + b"\0" * 20)
    with pytest.raises(UsageError, match="archives are not read"):
        read_text(path)


def test_larger_than_the_limit_is_not_read(tmp_path: Path) -> None:
    """A file above the limit is refused by its size."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_text(path, 5) == "12345"
    with pytest.raises(UsageError, match="5 bytes; at most 4 are read"):
        read_text(path, 4)


def test_missing_file_folder_and_pipe_are_refused(tmp_path: Path) -> None:
    """None of them blocks or raises anything else."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="No such file"):
        read_text(tmp_path / "none")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(UsageError, match="not a regular file"):
            read_text(path)


def test_link_loop_and_broken_name_are_refused(tmp_path: Path) -> None:
    """A link to itself and a name with NUL are one clear error each."""
    (tmp_path / "loop").symlink_to("loop")
    for name in ("loop", "a\0b"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_text(tmp_path / name)

"""The edges of output: lines, tables, progress, and files that are whole or not there."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluators.core import QAError
from evaluators.output import (
    PRIVATE,
    StepProgress,
    aligned_table,
    markdown_table,
    plural,
    say,
    write_part,
    write_texts,
    write_whole,
)


def test_what_an_encoding_lacks_is_escaped() -> None:
    """No line fails because of a terminal's encoding: what it lacks comes as an escape."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    say(stream, "né", "б\ud800")
    assert raw.getvalue() == b"n\\xe9\n\\u0431\\ud800\n"


def test_counts_and_tables() -> None:
    """Only 1 takes the singular; thousands are set apart; cells stand between bars.

    Padded cells line up as plain text; in an aligned table only the first column is to the left.
    """
    said = [plural(count, "row") for count in (0, 1, 2, 1000)]
    assert said == ["0 rows", "1 row", "2 rows", "1,000 rows"]
    header, rows = ("a", "bcd"), [("long", "x")]
    assert markdown_table(header, rows) == ["| a | bcd |", "| --- | --- |", "| long | x |"]
    padded = ["| a    | bcd |", "|------|-----|", "| long | x   |"]
    assert markdown_table(header, rows, padded=True) == padded
    assert markdown_table(header, []) == ["| a | bcd |", "| --- | --- |"]
    assert aligned_table([("model", "n"), ("m", "100")]) == ["model    n", "m      100"]


def test_plain_progress_is_a_line_a_part() -> None:
    """However often it is called, each part of the work is said once; nothing for no work."""
    lines: list[str] = []
    progress = StepProgress(lines.append, 2)
    for done in (0, 1, 2, 2, 3, 4):
        progress.show(f"{done}", done, 4)
    progress.show("none", 0, 0)
    assert lines == ["2", "4"]


def test_a_file_is_replaced_whole_and_is_private(tmp_path: Path) -> None:
    """The old content stays until the new is complete; nothing else is left.

    Folders are made; half a character is written as an escape.
    """
    path = tmp_path / "file"
    write_whole(path, [b"one"])
    write_whole(path, [b"two", b"three"])
    assert path.read_bytes() == b"twothree"
    assert path.stat().st_mode & 0o777 == PRIVATE
    assert list(tmp_path.iterdir()) == [path]
    path = tmp_path / "a" / "b"
    write_texts([(path, "é\ud800")])
    assert path.read_bytes() == "é\\ud800".encode()
    # Someone else's link cannot lead the writer to another file.
    (tmp_path / ".file.part").symlink_to(tmp_path / "victim")
    assert write_part(tmp_path / "file", [b"x"]) == tmp_path / ".file.part"
    assert not (tmp_path / "victim").exists()


def test_content_that_ends_in_an_error_leaves_nothing(tmp_path: Path) -> None:
    """Half a file is never left behind, after any error."""

    def content() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", content())
    assert list(tmp_path.iterdir()) == []


def folder_in_the_way(path: Path) -> None:
    (path / "full").mkdir(parents=True)


def file_as_folder(path: Path) -> None:
    path.parent.write_text("", encoding="utf-8")


@pytest.mark.parametrize("hinder", [folder_in_the_way, file_as_folder])
def test_a_place_that_takes_no_file_is_named(
    tmp_path: Path, hinder: Callable[[Path], None]
) -> None:
    """The message names the path and what to do; no part is left."""
    path = tmp_path / "sub" / "file"
    hinder(path)
    with pytest.raises(QAError, match=r"sub/file: cannot be written \(.+\); name another place"):
        write_texts([(path, "text")])
    assert not list(tmp_path.rglob("*.part"))

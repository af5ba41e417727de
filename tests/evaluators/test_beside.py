"""A judge's replies out of an earlier report stand in where the ledger has none."""

import gzip
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.evaluators.core import Reply
from qagate.evaluators.ledger import KeptReply, Ledger, PaidReply, beside
from qagate.evaluators.ledger.beside import RowsBeside, load_beside, packed
from qagate.evaluators.ledger.kept import ANY, NEVER, Kept
from qagate.evaluators.ledger.rows import VARIABLE, Signer, StoredRow, seal
from tests.support.fixtures import Patch
from tests.support.places import ask
from tests.support.recorded import key_of, put, reply_of, row_of


def stored(number: int, run: str = "old", at: float = 5.0) -> StoredRow:
    paid = replace(row_of(number, 2), run=run, at=at)
    return Signer().signed(seal(paid, 0.0))


def saved(path: Path, rows: Iterable[StoredRow]) -> Path:
    path.write_bytes(b"".join(packed(rows)))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "grades.jsonl.gz", [stored(number) for number in range(3)])


def test_a_reply_beside_the_ledger_is_found_with_its_origin(
    tmp_path: Path, file: Path
) -> None:
    with Ledger(tmp_path / "l", beside=load_beside([file])) as ledger:
        found = ledger.look_up(key_of(1))
        assert ledger.notes == ()
    assert found == KeptReply(reply=reply_of(1, 2), at=5.0, run="old")


def test_nothing_of_it_is_written_into_the_ledger(tmp_path: Path, file: Path) -> None:
    with Ledger(tmp_path / "l", beside=load_beside([file])) as ledger:
        assert ledger.get(key_of(1))
    assert ask(tmp_path / "l", "SELECT count(*) FROM calls") == 0


@pytest.mark.parametrize(
    ("kept", "text"),
    [
        (ANY, "in the ledger"),
        (Kept(since=4.0), reply_of(1, 2).text),
        (Kept(since=6.0), None),
        (Kept(run="old", since=NEVER), reply_of(1, 2).text),
    ],
)
def test_it_is_used_where_the_ledger_has_none_that_counts(
    tmp_path: Path, file: Path, kept: Kept, text: str | None
) -> None:
    """The ledger's own row is of 3, the one beside it of 5."""
    own = PaidReply(
        key=key_of(1), spec="m", run="r", at=3.0, reply=Reply(text="in the ledger")
    )
    with Ledger(tmp_path / "l", beside=load_beside([file])) as ledger:
        put(ledger, [own])
        found = ledger.get(key_of(1), kept)
    assert (None if found is None else found.text) == text


def test_of_several_files_the_newest_row_is_used(tmp_path: Path) -> None:
    files = [
        saved(tmp_path / name, [stored(1, run=name, at=at)])
        for name, at in (("a", 1.0), ("b", 3.0), ("c", 2.0))
    ]
    newest = load_beside(files).newest(key_of(1))
    assert newest == stored(1, run="b", at=3.0)


def test_a_file_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    assert load_beside([tmp_path / "none"]).notes == ()


def lines_of(file: Path) -> list[bytes]:
    return gzip.decompress(file.read_bytes()).splitlines(keepends=True)


BAD_LINES = {
    "no JSON": (b"{\n", "not a row of a ledger"),
    "no row": (b'{"key": "k"}\n', "not a row of a ledger"),
    "not UTF-8": (b"\xff\n", "not a row of a ledger"),
    "a number": (b"1\n", "not a row of a ledger"),
    "long": (b'"' + b"x" * 2000 + b'"\n', "longer than 1,000 bytes"),
}


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named_and_costs_no_other(
    file: Path, monkeypatch: Patch, bad: str
) -> None:
    line, message = BAD_LINES[bad]
    monkeypatch.setattr(beside, "MAX_LINE_BYTES", 1000)
    first, _, third = lines_of(file)
    file.write_bytes(gzip.compress(first + line + third))
    rows = load_beside([file])
    (note,) = rows.notes
    assert note.startswith(f"{file}:2: not used: {message}")
    found = [rows.newest(key_of(number)) is not None for number in range(3)]
    assert found == [True, False, True]


@pytest.mark.parametrize(
    ("old", "new"), [(b"1 1", b"1 2"), (b'"old"', b'"new"'), (b":5.0", b":9.0")]
)
def test_a_row_that_was_altered_is_not_used(file: Path, old: bytes, new: bytes) -> None:
    """Neither its reply, nor its run, nor its time; said once, when it is looked up."""
    second = lines_of(file)[1]
    altered = second.replace(old, new)
    assert altered != second
    file.write_bytes(gzip.compress(altered))
    rows = load_beside([file])
    for _ in range(2):
        assert rows.newest(key_of(1)) is None
        (note,) = rows.notes
        assert "checksum is wrong" in note


@pytest.mark.parametrize("change", [b"", b"}", b'"', b"\xff", b"[" * 200])
def test_a_torn_line_costs_no_run(file: Path, change: bytes) -> None:
    second = lines_of(file)[1]
    file.write_bytes(gzip.compress(second[:-30] + change))
    rows = load_beside([file])
    assert rows.newest(key_of(1)) is None
    assert len(rows.notes) == 1


def test_a_torn_file_is_used_as_far_as_it_goes(tmp_path: Path) -> None:
    file = saved(tmp_path / "torn", (stored(number) for number in range(2000)))
    file.write_bytes(file.read_bytes()[:-5000])
    rows = load_beside([file])
    found = sum(rows.newest(key_of(number)) is not None for number in range(2000))
    assert 0 < found < 2000
    assert "not used" in rows.notes[-1]


def test_what_is_no_compressed_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("plain")
    assert "not used from there on" in load_beside([tmp_path / "plain"]).notes[0]


def test_a_file_that_unpacks_without_end_is_cut(file: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(beside, "MAX_FILE_BYTES", len(lines_of(file)[0]) + 1)
    rows = load_beside([file])
    assert "it holds more than" in rows.notes[0]


def test_many_bad_lines_are_counted(file: Path) -> None:
    file.write_bytes(gzip.compress(b"x\n" * 50))
    notes = load_beside([file]).notes
    assert len(notes) == 4
    assert notes[-1].startswith("50 lines of earlier reports")


def test_rows_need_the_signature_of_the_ledger(file: Path, monkeypatch: Patch) -> None:
    """Otherwise a grade could be forged in a baseline's folder."""
    monkeypatch.setenv(VARIABLE, "s" * 32)
    rows = load_beside([file])
    assert rows.newest(key_of(1)) is None
    assert "unsigned" in rows.notes[0]
    saved(file, [stored(1)])
    assert load_beside([file]).newest(key_of(1)) == stored(1)


def test_the_same_rows_are_the_same_bytes(tmp_path: Path) -> None:
    rows = [stored(number) for number in range(5)]
    once, again = packed(rows), packed([*reversed(rows), rows[0]])
    assert b"".join(once) == b"".join(again)


def test_a_reply_with_an_api_key_is_left_out(tmp_path: Path) -> None:
    reply = Reply(text="Asia's key is sk-" + "a1B2" * 8)
    paid = PaidReply(key=key_of(1), spec="m", reply=reply, at=1.0)
    file = saved(tmp_path / "f", [seal(paid, 0.0), stored(2)])
    rows = load_beside([file])
    assert rows.newest(key_of(1)) is None
    assert rows.newest(key_of(2))


def test_what_a_ledger_used_can_be_saved_again(tmp_path: Path, file: Path) -> None:
    """Its own rows and those beside it: so the next run's baseline has them all."""
    with Ledger(tmp_path / "l", beside=load_beside([file])) as ledger:
        put(ledger, [replace(row_of(7, 2), run="r", at=1.0)])
        rows = ledger.stored_rows([key_of(number) for number in (1, 7, 9)])
    again = load_beside([saved(tmp_path / "again", rows)])
    assert again.newest(key_of(1)) == stored(1)
    assert again.newest(key_of(7)) == stored(7, run="r", at=1.0)


def test_no_rows_beside_find_nothing() -> None:
    assert RowsBeside().newest("k") is None

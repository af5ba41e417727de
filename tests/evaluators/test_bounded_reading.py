"""What others wrote is read within a budget: bytes, members, values, seconds, and no pipe."""

import json
import os
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import bounded_reading
from qagate.evaluators.bounded_reading import (
    Archive,
    ReadingBudget,
    check_regular,
    count_values,
    read_json,
    read_json_file,
)
from qagate.evaluators.core import UsageError
from tests.support.fixtures import Patch

HERE = Path("result.json")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.json", '{"a": 1}')
        file.writestr("b.json", '{"b": [1, 2, 3]}')
    return path


def share_bodies(path: Path) -> None:
    """Let the second entry of an archive's directory name the body of the first."""
    with zipfile.ZipFile(path) as file:
        first, second = file.infolist()
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    offset_at = entry + 42
    assert int.from_bytes(content[offset_at : offset_at + 4], "little") == (
        second.header_offset
    )
    content[offset_at : offset_at + 4] = first.header_offset.to_bytes(4, "little")
    path.write_bytes(content)


def test_each_member_is_read_as_json(archive: Path) -> None:
    opened = Archive(archive, ReadingBudget())
    assert opened.names == ["a.json", "b.json"]
    assert [opened.read(name) for name in opened.names] == [{"a": 1}, {"b": [1, 2, 3]}]


def test_a_body_is_no_two_members(archive: Path) -> None:
    """One body of 100 MB, named by each of a thousand entries, would take hours."""
    share_bodies(archive)
    with pytest.raises(UsageError, match="two members share one body"):
        Archive(archive, ReadingBudget())


def test_a_name_is_no_two_members(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with pytest.warns(UserWarning), zipfile.ZipFile(path, "w") as file:
        file.writestr("a.json", "{}")
        file.writestr("a.json", "{}")
    with pytest.raises(UsageError, match="two members have one name"):
        Archive(path, ReadingBudget())


@pytest.mark.parametrize(
    ("limit", "value", "message"),
    [
        ("MAX_MEMBERS", 1, "more than 1 members"),
        ("MAX_MEMBER_BYTES", 7, r"a\.json cannot be read \(larger than 7 bytes\)"),
        ("MAX_UNPACKED_BYTES", 12, "more than 12 bytes unpacked"),
        ("MAX_VALUES", 2, "more than 2 values"),
    ],
)
def test_an_archive_beyond_a_limit_is_refused(
    archive: Path, monkeypatch: Patch, limit: str, value: int, message: str
) -> None:
    monkeypatch.setattr(bounded_reading, limit, value)
    with pytest.raises(UsageError, match=message):
        opened = Archive(archive, ReadingBudget())
        for name in opened.names:
            opened.read(name)


def test_reading_ends_when_the_time_is_used_up(archive: Path) -> None:
    times = iter([0.0, bounded_reading.MAX_SECONDS + 1])
    opened = Archive(archive, ReadingBudget(clock=lambda: next(times)))
    with pytest.raises(UsageError, match="more than 300 s to read"):
        opened.read("a.json")


def test_reading_lines_ends_when_the_time_is_used_up(tmp_path: Path) -> None:
    """A file without an archive may have lines without end as well."""
    file = tmp_path / "results.jsonl"
    file.write_text("{}\n{}\n", encoding="utf-8")
    times = iter([0.0, 1.0, bounded_reading.MAX_SECONDS + 1])
    with pytest.raises(UsageError, match="more than 300 s to read"):
        read_json_file(file, ReadingBudget(clock=lambda: next(times)))


def test_one_budget_holds_for_all_files(
    archive: Path, monkeypatch: Patch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bounded_reading, "MAX_VALUES", 5)
    budget = ReadingBudget()
    for number in range(2):
        file = tmp_path / f"{number}.json"
        file.write_text("[1, 2]", encoding="utf-8")
    read_json_file(tmp_path / "0.json", budget)
    with pytest.raises(UsageError, match="more than 5 values"):
        read_json_file(tmp_path / "1.json", budget)


def test_a_member_that_is_not_there_is_said(archive: Path) -> None:
    with pytest.raises(UsageError, match=r"has no header\.json"):
        Archive(archive, ReadingBudget()).read("header.json")


def test_what_is_no_archive_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x05\x06" + b"\xff" * 18)
    with pytest.raises(UsageError, match="a damaged archive"):
        Archive(path, ReadingBudget())


@pytest.mark.parametrize(
    "text", ["1e999", "-1e999", "NaN", "Infinity", "9" * 400, "9" * 4000]
)
def test_a_number_that_no_float_holds_is_none(text: str) -> None:
    assert read_json(HERE, text) is None


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "", "[1 2]"])
def test_what_is_no_json_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="not JSON"):
        read_json(HERE, text)


VALUES = st.recursive(
    st.none() | st.integers() | st.text(',[{"\\ab'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(",[{"), inner),
)


def _values_in(value: object) -> int:
    if isinstance(value, list):
        return 1 + sum(map(_values_in, value))
    if isinstance(value, dict):
        return 1 + sum(map(_values_in, value.values()))
    return 1


@given(VALUES)
def test_no_value_is_left_out_of_the_count(value: object) -> None:
    assert count_values(json.dumps(value)) >= _values_in(value)


def test_commas_in_texts_are_no_values(monkeypatch: Patch) -> None:
    monkeypatch.setattr(bounded_reading, "MAX_VALUES", 5)
    assert count_values(json.dumps(["a, b, c, d, e, [f], {g}"])) == 2


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_refused_unopened(tmp_path: Path, make: object) -> None:
    path = tmp_path / "result"
    assert callable(make)
    make(path)
    with pytest.raises(UsageError, match="not a regular file"):
        check_regular(path)


@pytest.mark.parametrize("name", ["missing", "a\0b", "x" * 300])
def test_a_path_that_leads_nowhere_is_said(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        check_regular(Path(name))

"""Files, JSON and YAML are read strictly; what is written is whole or not there."""

import io
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qagate.evaluators import output
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.reading import (
    Map,
    Seq,
    load_yaml,
    parse_json,
    project_settings,
    read_text,
)
from tests.support.tables import grown, tabled


def test_which_files_are_read(tmp_path: Path) -> None:
    """Without BOM, with CRLF, to the limit; no folder, pipe, loop or name with NUL."""
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb\n")
    assert read_text(path) == "a\r\nb\n"
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_text(path, 5) == "12345"
    with pytest.raises(UsageError, match="5 bytes; at most 4 are read"):
        read_text(path, 4)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="No such file"):
        read_text(tmp_path / "none")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(UsageError, match="not a regular file"):
            read_text(path)
    (tmp_path / "loop").symlink_to("loop")
    for name in ("loop", "a\0b"):
        with pytest.raises(UsageError, match="cannot be read"):
            read_text(tmp_path / name)


UNREAD = {
    "byte": (b"a\nb\nna\xefve\n", r"a\.csv:3: wrong encoding: byte 0xef"),
    **{code: ("question".encode(code), "UTF-16; save the file as UTF-8")
       for code in ("utf-16", "utf-16-le", "utf-16-be")},
    **{head.hex(): (head + b"\0" * 20, "archives are not read")
       for head in (b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ", b"(\xb5/\xfd")},
}  # fmt: skip


@pytest.mark.parametrize(("content", "said"), UNREAD.values(), ids=UNREAD)
def test_what_is_no_text_in_utf_8_is_refused(
    tmp_path: Path, content: bytes, said: str
) -> None:
    """A wrong byte names its line; UTF-16 and archives are known by their first bytes."""
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_text(path)


def test_a_wrong_byte_after_a_bom_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbfa\nb\nna\xefve\n")
    with pytest.raises(UsageError, match=r"a\.csv:3: wrong encoding: byte 0xef"):
        read_text(path)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text()
    | st.floats(-1e300, 1e300),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_valid_json_is_read_as_the_standard_library_reads_it(value: object) -> None:
    """Being strict changes no value."""
    assert parse_json(json.dumps(value)) == value


@given(st.text(alphabet='{}[]":,\\ntrueNaI0123456789.eE- ', max_size=60))
def test_any_text_is_read_or_refused_with_one_line(text: str) -> None:
    """No text raises anything but ValueError with a message of one line."""
    try:
        value = parse_json(text)
    except ValueError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert not isinstance(value, float) or math.isfinite(value)


@tabled("text", "words")
def test_what_is_not_strict_json_is_refused(text: str, words: str) -> None:
    """Each refusal says what is wrong, and where if that is known."""
    with pytest.raises(ValueError, match=words):
        parse_json(grown(text))


def test_a_hundred_levels_are_read_and_brackets_in_strings_do_not_count() -> None:
    """The limit is on nesting, not on characters; strings that never end are an error of syntax."""
    assert parse_json("[" * 100 + "]" * 100)
    assert parse_json(json.dumps("[" * 200)) == "[" * 200
    assert parse_json(r'"\"[[["') == '"[[['
    for text in ('"' + '\\"' * 50_000, '"abc\\', '"' * 50_001):
        with pytest.raises(ValueError, match="not JSON"):
            parse_json(text)


def loaded(folder: Path, text: str) -> object:
    path = folder / "a.yaml"
    path.write_text(text, encoding="utf-8")
    return load_yaml(path)


def test_scalars_are_the_text_of_the_file(tmp_path: Path) -> None:
    """YAML 1.1 would change the type of each of these; a null reads as empty, in quotes as text."""
    for scalar in ("No", "off", "010", "1_000", "12:30", "2024-12-31", "1e5", "None"):
        assert loaded(tmp_path, f"a: {scalar}") == {"a": scalar}
    for scalar in ("", "~", "null", "Null", "NULL"):
        assert loaded(tmp_path, f"a: {scalar}\nb: '{scalar}'") == {"a": "", "b": scalar}


def test_lines_are_known(tmp_path: Path) -> None:
    """Mappings and lists tell the lines of their entries; a file of comments has no document."""
    top = loaded(tmp_path, "a: x\nb:\n  - 1\n\n  - {c: 2}\n")
    assert isinstance(top, Map)
    assert top.lines == {"a": 1, "b": 2}
    items = top["b"]
    assert isinstance(items, Seq)
    assert (items.line, items.lines) == (3, [3, 5])
    assert loaded(tmp_path, "# nothing\n") == ""


@tabled("text", "said")
def test_surprises_are_refused_with_their_line(
    tmp_path: Path, text: str, said: str
) -> None:
    """Nothing is constructed, run or silently dropped."""
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, grown(text))
    assert said in str(caught.value)


def test_an_alias_repeats_a_value_and_a_merge_its_keys(tmp_path: Path) -> None:
    """A mapping's own keys win; each key knows the line where it stands."""
    text = "a: &a {min: 1, max: 2}\nb: *a\nc:\n  max: 3\n  <<: *a\nd: [*a, &e x, *e]\n"
    found = loaded(tmp_path, text)
    both = {"min": "1", "max": "2"}
    assert found == {
        "a": both,
        "b": both,
        "c": {"max": "3", "min": "1"},
        "d": [both, "x", "x"],
    }
    assert isinstance(found, Map) and isinstance(found["c"], Map)
    assert found["c"].lines == {"max": 4, "min": 1}


@tabled("first", "unit", "said")
def test_aliases_cannot_explode(
    tmp_path: Path, first: str, unit: str, said: str
) -> None:
    """Neither in number nor in depth."""
    lines = [
        f"k0: &a0 {first}",
        *(f"k{n + 1}: &a{n + 1} {unit.format(n)}" for n in range(60)),
    ]
    with pytest.raises(UsageError, match=said):
        loaded(tmp_path, "\n".join(lines))


TREES = st.recursive(
    st.text("ab 0.~:'\"#-\n", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab1", min_size=1), inner)
    ),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=TREES)
def test_quoted_text_round_trips(tmp_path: Path, tree: object) -> None:
    """What is written with every scalar in quotes is read back unchanged."""
    assert (
        loaded(tmp_path, yaml.safe_dump(tree, default_style='"', allow_unicode=True))
        == tree
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text("ab:-[]{}&*!|>?,#'\"% \n\t~", max_size=40))
def test_any_text_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """No text makes the loader raise anything but a UsageError."""
    try:
        loaded(tmp_path, text)
    except UsageError as problem:
        assert "a.yaml" in str(problem)


@pytest.mark.parametrize(
    ("text", "what"), [("[[tool.qagate]]", "list"), ("tool.qagate=3", "number")]
)
def test_a_projects_settings_are_a_table(tmp_path: Path, text: str, what: str) -> None:
    """Anything else is refused in one line, which says what it is."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(
        UsageError, match=rf"toml: \[tool.qagate\]: a table is needed, not a {what}"
    ):
        project_settings(tmp_path)


def test_lines_and_tables() -> None:
    """Escapes for what an encoding lacks; singular for 1 alone; columns line up."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="")
    output.say(stream, "né", "б\ud800")
    assert raw.getvalue() == b"n\\xe9\n\\u0431\\ud800\n"
    said = [output.plural(count, "row") for count in (0, 1, 2, 1000)]
    assert said == ["0 rows", "1 row", "2 rows", "1,000 rows"]
    header, rows = ("a", "bcd"), [("long", "x")]
    assert output.markdown_table(header, rows) == [
        "| a | bcd |",
        "| --- | --- |",
        "| long | x |",
    ]
    padded = ["| a    | bcd |", "|------|-----|", "| long | x   |"]
    assert output.markdown_table(header, rows, padded=True) == padded
    assert output.markdown_table(header, []) == ["| a | bcd |", "| --- | --- |"]
    assert output.aligned_table([("model", "n"), ("m", "100")]) == [
        "model    n",
        "m      100",
    ]


def test_a_file_is_replaced_whole_and_is_private(tmp_path: Path) -> None:
    """The old content stays until the new is complete; nothing is left; folders are made."""
    path = tmp_path / "file"
    output.write_whole(path, [b"one"])
    output.write_whole(path, [b"two", b"three"])
    assert path.read_bytes() == b"twothree"
    assert path.stat().st_mode & 0o777 == output.PRIVATE
    assert list(tmp_path.iterdir()) == [path]
    path = tmp_path / "a" / "b"
    output.write_texts([(path, "é\ud800")])
    assert path.read_bytes() == "é\\ud800".encode()
    # Someone else's link cannot lead the writer to another file.
    (tmp_path / ".file.part").symlink_to(tmp_path / "victim")
    assert output.write_part(tmp_path / "file", [b"x"]) == tmp_path / ".file.part"
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize(
    ("umask", "file_mode", "folder_mode"),
    [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700), (0o002, 0o664, 0o775)],
)
def test_files_to_commit_are_read_by_whom_the_umask_allows(
    tmp_path: Path, umask: int, file_mode: int, folder_mode: int
) -> None:
    path = tmp_path / "set" / "en.csv"
    before = os.umask(umask)
    try:
        output.write_texts([(path, "q,a")], to_commit=True)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == file_mode
    assert path.parent.stat().st_mode & 0o777 == folder_mode


def test_content_that_ends_in_an_error_leaves_nothing(tmp_path: Path) -> None:
    """Half a file is never left behind, after any error."""

    def content() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        output.write_whole(tmp_path / "file", content())
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_file_is_told(tmp_path: Path) -> None:
    """A full folder, or a file for a folder: path and what to do are told; no part is left."""
    (tmp_path / "a" / "sub" / "file" / "full").mkdir(parents=True)
    (tmp_path / "sub").write_text("", encoding="utf-8")
    for path in (tmp_path / "a" / "sub" / "file", tmp_path / "sub" / "file"):
        with pytest.raises(
            QAError, match=r"sub/file: cannot be written \(.+\); name another"
        ):
            output.write_texts([(path, "text")])
    assert not list(tmp_path.rglob("*.part"))

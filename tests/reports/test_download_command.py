"""`python -m cases download`: the right file, resumed where it stopped, never a wrong one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.config import load_dataset, with_items
from cases.download.benchmarks import load_benchmarks
from cases.download.public_files import recorded_hash
from cases.download.resumable import DownloadError, Partial, version_of
from cases.loading import load_cases
from tests.support.downloading import (
    BOOLQ,
    CASES,
    ETAG,
    HALF,
    HUSIMPLEQA,
    NEW,
    SIMPLEQA,
    failure,
    get,
    ranges,
    sha256,
)
from tests.support.file_server import FileServer, Served, file_server


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


def test_the_file_lands_whole_and_the_line_to_run_is_printed(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bytes are the server's, and stdout ends with a command whose --items names the file."""
    server.files["/data"] = Served(body=BOOLQ)
    path = get(server, tmp_path / "my data", "--sha256", sha256(BOOLQ).upper())
    out, err = capsys.readouterr()
    assert path.read_bytes() == BOOLQ
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, f"{path.name}.sha256"]
    assert out.splitlines() == [
        f"{path}: fetched from {server.url()}, {len(BOOLQ):,} bytes, licence CC BY-SA 3.0",
        f"pytest -n 8 cases/boolq --items 'boolq:en={path}' --model PROVIDER:NAME",
    ]
    assert err == "boolq: 0.0 of 0.0 MB\n"


def test_a_right_file_is_not_fetched_again(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second time nothing is asked of the server."""
    server.files["/data"] = Served(body=BOOLQ)
    get(server, tmp_path)
    get(server, tmp_path)
    assert len(server.seen) == 1
    assert "already there" in capsys.readouterr().out


def test_first_use_records_the_hash_with_a_warning(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody vouched for a hash, it is recorded_hash, said, and compared the next time."""
    server.files["/data"] = Served(body=BOOLQ)
    path = get(server, tmp_path)
    assert "warning: no SHA-256 is known for boolq" in capsys.readouterr().err
    assert recorded_hash(path) == sha256(BOOLQ)
    path.write_bytes(NEW)
    get(server, tmp_path)
    assert path.read_bytes() == BOOLQ
    assert "fetching it anew" in capsys.readouterr().err
    assert (tmp_path / f"{path.name}.wrong-{sha256(NEW)[:12]}").read_bytes() == NEW


def test_a_file_put_there_by_hand_is_taken(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file fetched in a browser is recorded like a fetched one; nothing is asked."""
    (tmp_path / "boolq_dev.jsonl").write_bytes(BOOLQ)
    path = get(server, tmp_path)
    assert recorded_hash(path) == sha256(BOOLQ)
    assert not server.seen
    assert "warning" in capsys.readouterr().err


def test_a_web_page_saved_by_hand_is_replaced(server: FileServer, tmp_path: Path) -> None:
    """What is there but is not the data does not count as there."""
    (tmp_path / "boolq_dev.jsonl").write_bytes(b"<!doctype html>")
    server.files["/data"] = Served(body=BOOLQ)
    assert get(server, tmp_path).read_bytes() == BOOLQ


def test_a_given_hash_is_kept_for_later(
    server: FileServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--sha256 vouches: no warning, and the record stands for the next run without it."""
    server.files["/data"] = Served(body=BOOLQ)
    get(server, tmp_path, "--sha256", sha256(BOOLQ))
    server.files["/data"] = Served(body=NEW)
    (tmp_path / "boolq_dev.jsonl").unlink()
    assert "not used" in failure(server, tmp_path)
    assert "warning" not in capsys.readouterr().err


def test_a_pinned_benchmark_takes_no_other_file(server: FileServer, tmp_path: Path) -> None:
    """SimpleQA is pinned: a mirror's other file is set aside and its name is said."""
    server.files["/data"] = Served(body=SIMPLEQA)
    with pytest.raises(DownloadError, match=r"SHA-256 is .*, not feee3f7e") as caught:
        get(server, tmp_path, name="simpleqa")
    aside = tmp_path / f"simple_qa_test_set.csv.wrong-{sha256(SIMPLEQA)[:12]}"
    assert str(aside) in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [aside.name]


def test_a_hash_of_the_users_own_replaces_the_pin(server: FileServer, tmp_path: Path) -> None:
    """With --sha256 a publisher's new file is taken; the pin needs no record beside it."""
    server.files["/data"] = Served(body=SIMPLEQA)
    path = get(server, tmp_path, "--sha256", sha256(SIMPLEQA), name="simpleqa")
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        ("boolq", BOOLQ, ["true", "false"]),
        ("simpleqa", SIMPLEQA, ["Vermeer"]),
        ("husimpleqa", HUSIMPLEQA, ["Ez", "Ez", "Ez"]),
    ],
)
def test_the_loader_reads_the_official_form(
    server: FileServer, tmp_path: Path, name: str, body: bytes, expected: list[str]
) -> None:
    """The downloaded form loads as the slice that the printed --items names."""
    server.files["/data"] = Served(body=body)
    path = get(server, tmp_path, "--sha256", sha256(body), name=name)
    one = load_benchmarks()[name]
    dataset = load_dataset(CASES / one.dataset / "dataset.yaml")
    cases = load_cases(with_items(dataset, one.language, path).slices[one.language])
    assert [case.expected for case in cases] == expected
    if name == "boolq":
        assert [case.label for case in cases] == ["YES", "NO"]
        assert cases[0].context == "Blue it is."
    if name == "husimpleqa":
        assert [case.id for case in cases] == ["q0", "q1", "q2"]
        assert cases[0].metadata["hu_specific_dim"] == "L"


@pytest.mark.parametrize("headers", [ETAG, {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT"}])
def test_a_cut_download_goes_on(
    server: FileServer, tmp_path: Path, headers: dict[str, str]
) -> None:
    """After a cut the same command asks for the rest of the same version and no more."""
    server.files["/data"] = Served(body=BOOLQ, headers=headers, cut=HALF)
    assert f"the line broke; {HALF:,} bytes are kept" in failure(server, tmp_path)
    server.files["/data"] = Served(body=BOOLQ, headers=headers)
    assert get(server, tmp_path).read_bytes() == BOOLQ
    assert ranges(server) == [None, f"bytes={HALF}-"]
    assert server.seen[1][1]["if-range"] in headers.values()


@pytest.mark.parametrize("careless", [False, True])
def test_two_versions_are_never_glued(server: FileServer, tmp_path: Path, careless: bool) -> None:
    """A file that changed in between is fetched anew, even where the server ignores If-Range."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, cut=HALF)
    failure(server, tmp_path)
    changed = Served(body=NEW, headers={"ETag": '"v2"'}, careless=careless)
    server.files["/data"] = changed
    assert get(server, tmp_path).read_bytes() == NEW


def test_a_server_without_ranges_starts_over(server: FileServer, tmp_path: Path) -> None:
    """The whole file in answer to a Range replaces what has come."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, cut=HALF)
    failure(server, tmp_path)
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, ranges=False)
    assert get(server, tmp_path).read_bytes() == BOOLQ


@pytest.mark.parametrize("headers", [{}, {"ETag": 'W/"weak"'}])
def test_without_a_sure_version_it_starts_over(
    server: FileServer, tmp_path: Path, headers: dict[str, str]
) -> None:
    """Bytes of an unknown version are kept for nothing: no Range is asked."""
    server.files["/data"] = Served(body=BOOLQ, headers=headers, cut=HALF)
    assert "0 bytes are kept" in failure(server, tmp_path)
    server.files["/data"] = Served(body=BOOLQ, headers=headers)
    assert get(server, tmp_path).read_bytes() == BOOLQ
    assert ranges(server) == [None, None]


def test_a_part_that_is_already_whole_is_fetched_again(server: FileServer, tmp_path: Path) -> None:
    """Status 416 means that nothing is left to ask for: the part is dropped, not trusted."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG)
    part = Partial.of(tmp_path / "boolq_dev.jsonl")
    part.begin(server.url(), {"etag": '"v1"'})
    part.path.write_bytes(b"x" * len(BOOLQ))
    assert get(server, tmp_path).read_bytes() == BOOLQ
    assert ranges(server) == [f"bytes={len(BOOLQ)}-", None]


@pytest.mark.parametrize("note", ["{", "[]", '{"url": "u", "version": 3}', '{"url": "u"}'])
def test_a_note_that_cannot_be_used_is_no_note(tmp_path: Path, note: str) -> None:
    """A damaged note leads to a new start, never to an error."""
    part = Partial.of(tmp_path / "data")
    part.path.write_bytes(b"x")
    part.note.write_text(note, encoding="utf-8")
    assert part.version("u") == ""


def test_a_part_from_another_address_is_not_continued(server: FileServer, tmp_path: Path) -> None:
    """Two addresses may give the same ETag to different files."""
    server.files["/other"] = Served(body=BOOLQ, headers=ETAG)
    part = Partial.of(tmp_path / "boolq_dev.jsonl")
    part.begin(server.url(), {"etag": '"v1"'})
    part.path.write_bytes(b"x")
    assert get(server, tmp_path, "--url", server.url("/other")).read_bytes() == BOOLQ
    assert ranges(server) == [None]


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_only_strong_versions_count(etag: str, date: str) -> None:
    """The version is one of the two headers as it stands, and never a weak ETag."""
    version = version_of({"etag": etag, "last-modified": date})
    assert version in ("", etag, date)
    assert not version.startswith("W/")

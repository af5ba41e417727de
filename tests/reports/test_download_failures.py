"""`python -m cases download`: whatever goes wrong is one line, and no wrong file is in place."""

import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cases.download.public_files import wrong_content
from cases.download.resumable import (
    DownloadError,
    Partial,
    Source,
    check_address,
    fetch,
    without_query,
)
from evaluators.core import UsageError
from reports.commands.download import main
from tests.support.downloading import BOOLQ, ETAG, HALF, failure, get, quiet
from tests.support.file_server import FileServer, Served, file_server


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (403, "access is refused; the publisher's bucket"),
        (404, "there is no such file; the publisher's bucket"),
        (206, "status 206: not a file"),
        (418, "not a file"),
        (429, "try again later"),
        (503, "the server is in trouble"),
    ],
)
def test_a_status_is_said_with_what_to_do(
    server: FileServer, tmp_path: Path, status: int, words: str
) -> None:
    """Every status but 200 is an error that names it."""
    server.files["/data"] = Served(status=status, body=b"no")
    message = failure(server, tmp_path)
    assert f"status {status}" in message
    assert words in message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"\n \n", "empty"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "a Git LFS pointer"),
        (b"\x1f\x8b\x08", "a gzip archive"),
        (b'{"error": "gone"}\n', "its first line lacks 'question', 'passage', 'answer'"),
    ],
)
def test_what_is_not_the_data_is_refused(
    server: FileServer, tmp_path: Path, body: bytes, words: str
) -> None:
    """A page, a pointer or an error sent with status 200 is named and not kept."""
    server.files["/data"] = Served(body=body)
    assert words in failure(server, tmp_path)
    assert not any(tmp_path.iterdir())


def test_blank_lines_before_the_data_do_no_harm(tmp_path: Path) -> None:
    """A BOM or a blank line may stand in front."""
    path = tmp_path / "data"
    path.write_bytes(b"\xef\xbb\xbf\n\n" + BOOLQ)
    assert wrong_content(path, ("question",)) == ""


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=60))
def test_any_content_is_judged(tmp_path: Path, body: bytes) -> None:
    """No bytes make the look at the content fail, and a missing column is always noticed."""
    path = tmp_path / "data"
    path.write_bytes(body)
    assert wrong_content(
        path, ("a column longer than any body, so that it cannot be in one of them",)
    )


def test_an_unreachable_host_is_one_line(tmp_path: Path) -> None:
    """No route, no name, nothing listening: one line that says so."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x?token=secret"
        with pytest.raises(DownloadError, match="cannot be reached") as caught:
            main(["boolq", "--to", str(tmp_path), "--url", url])
    assert "secret" not in str(caught.value)


def test_a_server_that_falls_silent_is_given_up(server: FileServer, tmp_path: Path) -> None:
    """Without a byte for the time of patience the fetch ends, and what has come is kept."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, cut=HALF, stall=True)
    part = Partial(tmp_path / "data.part")
    with pytest.raises(DownloadError, match=r"no data in time; [0-9,]+ bytes are kept"):
        fetch(Source(url=server.url(), hint=""), part, quiet, read_seconds=0.3)
    assert part.size == HALF


@pytest.mark.parametrize("claimed", [-1, None])
def test_a_file_past_the_bound_is_refused(
    server: FileServer, tmp_path: Path, claimed: int | None
) -> None:
    """Announced or not, more bytes than the bound are not kept."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, claimed=claimed)
    part = Partial(tmp_path / "data.part")
    with pytest.raises(DownloadError, match="larger than 100 bytes"):
        fetch(Source(url=server.url(), hint="", limit=100), part, quiet)
    assert not any(tmp_path.iterdir())


def test_a_file_without_length_is_taken(server: FileServer, tmp_path: Path) -> None:
    """A server need not say how long the file is."""
    server.files["/data"] = Served(body=BOOLQ, claimed=None)
    assert get(server, tmp_path).read_bytes() == BOOLQ


def test_a_rest_that_is_too_short_is_noticed(server: FileServer, tmp_path: Path) -> None:
    """The whole size that the range announces must come, or nothing is kept."""
    part = Partial.of(tmp_path / "boolq_dev.jsonl")
    part.begin(server.url(), {"etag": '"v1"'})
    part.path.write_bytes(BOOLQ[:HALF])
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG, cut=5, claimed=5)
    assert f"not the {len(BOOLQ):,} bytes" in failure(server, tmp_path)
    assert not any(tmp_path.iterdir())


def test_a_compressed_body_is_refused(server: FileServer, tmp_path: Path) -> None:
    """Its byte positions are not the file's, so it could not be resumed or bounded."""
    server.files["/data"] = Served(body=b"x", headers={"Content-Encoding": "gzip"})
    assert "compressed" in failure(server, tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="limits are POSIX here")
def test_a_full_disk_is_one_line(server: FileServer, tmp_path: Path) -> None:
    """The system's reason is said with the way out, and no file is in place."""
    server.files["/data"] = Served(body=BOOLQ, headers=ETAG)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))  # as good as a full disk
    try:
        message = failure(server, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    target = tmp_path / "boolq_dev.jsonl"
    assert message.startswith(f"{target}: cannot be written or read (File too large)")


def test_a_folder_that_cannot_be_written_is_one_line(server: FileServer, tmp_path: Path) -> None:
    """An error of the file system names the path and the option."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DownloadError, match=r"file.*cannot be written or read \(.*--to"):
        get(server, tmp_path / "file" / "below")


def test_redirects_are_followed(server: FileServer, tmp_path: Path) -> None:
    """A moved file is found, also by a relative address."""
    server.files["/data"] = Served(status=302, headers={"Location": "/moved"})
    server.files["/moved"] = Served(body=BOOLQ)
    assert get(server, tmp_path).read_bytes() == BOOLQ


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("http://files.example/x", "redirect refused: .*https"),
        ("ftp://files.example/x", "redirect refused"),
        ("https://me:password@files.example/x", "redirect refused"),
        ("https://169.254.169.254/x", "redirect refused"),
        ("/data", "more than 5 redirects"),
        ("https://files.example:port/", "redirects to no address"),
    ],
)
def test_a_bad_redirect_is_refused(
    server: FileServer, tmp_path: Path, location: str, words: str
) -> None:
    """Only https is followed, only so often, and no password is shown."""
    server.files["/data"] = Served(status=301, headers={"Location": location})
    with pytest.raises(DownloadError, match=words) as caught:
        get(server, tmp_path)
    assert "password" not in str(caught.value).replace("user or password", "")


def test_a_foreign_server_may_not_redirect_to_this_machine() -> None:
    """What listens on loopback is not for others to reach through us."""
    source = Source(url="https://files.example/x", hint="")
    source.check_redirect("https://mirror.example/x?token=1")
    with pytest.raises(DownloadError, match="is this machine"):
        source.check_redirect("http://127.0.0.1:8080/x")


@pytest.mark.parametrize(
    "url",
    ["http://files.example/x", "file:///etc/passwd", "files.example/x", "https://", "https://a b/"],
)
def test_an_address_that_is_not_https_is_a_usage_problem(tmp_path: Path, url: str) -> None:
    """Plain http is for this machine alone."""
    with pytest.raises(UsageError):
        main(["boolq", "--to", str(tmp_path), "--url", url])


def test_an_address_that_cannot_be_parsed_is_one_line(tmp_path: Path) -> None:
    """What only the HTTP client notices is worded too."""
    with pytest.raises(DownloadError, match="not an address"):
        fetch(Source(url="http://127.0.0.1:1/x?\x00", hint=""), Partial(tmp_path / "p"), quiet)


def test_messages_hold_no_query() -> None:
    """A signed address is as good as a password."""
    check_address("https://files.example/x?signature=abc#here")
    assert (
        without_query("https://u:p@files.example/x?signature=abc") == "https://***@files.example/x"
    )

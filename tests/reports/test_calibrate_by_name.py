"""From `qagate download NAME` to `qagate calibrate NAME`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cases.download.public_files import DATA_FOLDER, DownloadError
from evaluators.__main__ import main as evaluators
from reports.commands.download import main as download
from tests.support.downloading import BEM, EVOUNA, MOHLER, NQ301, sha256
from tests.support.file_server import FileServer, Served, file_server

JUDGE = ["calibrate", "--judge", "lexical"]


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as running:
        yield running


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fetch(server: FileServer, name: str, body: bytes, *options: str) -> None:
    server.files["/data"] = Served(body=body)
    words = (name, "--url", server.url(), "--sha256", sha256(body), *options)
    assert download(words) == 0


def test_a_set_is_fetched_formed_and_measured_by_its_name(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last line of the one command is the other, and the card names the people's labels."""
    fetch(server, "evouna-nq", EVOUNA)
    official, formed, command = capsys.readouterr().out.splitlines()
    assert official.endswith("licence Apache-2.0")
    assert formed.startswith(f"{DATA_FOLDER}/evouna-nq.labelled.jsonl: 3 answers to 1 question")
    assert command == "qagate calibrate --judge PROVIDER:NAME evouna-nq"
    assert evaluators([*JUDGE, "evouna-nq"]) == 0
    card = capsys.readouterr().out
    assert "graded; source: people (evouna-nq) (3)" in card
    assert "| agreement            | 1.000" in card


def test_a_list_of_something_else_is_not_put_in_place(server: FileServer) -> None:
    """A JSON list spreads its keys over lines; one that lacks them is refused by name."""
    server.files["/data"] = Served(body=EVOUNA.replace(b"judge_fid", b"judged"))
    with pytest.raises(DownloadError, match="something else: its beginning lacks 'judge_fid'"):
        download(["evouna-nq", "--url", server.url()])
    assert not DATA_FOLDER.exists()


def test_a_set_that_is_rated_brings_its_scale(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --scale and --kind the ratings are read on the set's own scale."""
    fetch(server, "mohler", MOHLER)
    assert evaluators([*JUDGE, "mohler"]) == 0
    assert "| labels                      | rated; source: people" in capsys.readouterr().out


def test_elsewhere_the_file_and_its_scale_are_said(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """A set in another folder is measured by its path."""
    fetch(server, "mohler", MOHLER, "--to", "my data")
    words = "calibrate --judge PROVIDER:NAME 'my data/mohler.labelled.jsonl' --scale 0:5"
    assert capsys.readouterr().out.splitlines()[-1] == f"qagate {words}"


def test_a_second_file_may_be_there_already(
    server: FileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file with the golds is verified like the first; both are reported."""
    DATA_FOLDER.mkdir(parents=True)
    (DATA_FOLDER / "NQ301_BEM.tsv").write_bytes(BEM)
    fetch(server, "nq301", NQ301)
    out = capsys.readouterr().out
    assert "NQ301_BEM.tsv: already there" in out
    assert out.count("(pinned nowhere)") == 1
    assert "3 answers to 2 questions; left out: 1 for no gold" in out


def test_a_set_that_is_not_there_says_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    """One line with the command; a wrong name gets the nearest."""
    assert evaluators([*JUDGE, "nq301"]) == 4
    assert capsys.readouterr().err == (
        f"{DATA_FOLDER}/nq301.labelled.jsonl is not there; fetch it: qagate download nq301\n"
    )
    assert evaluators([*JUDGE, "nq302"]) == 4
    assert "no set of this name; did you mean 'nq301'?" in capsys.readouterr().err


def test_a_file_of_ones_own_goes_before_a_set(folder: Path) -> None:
    """A file of that name is what is meant, and is read as a file."""
    (folder / "mohler").write_text("x", encoding="utf-8")
    assert evaluators([*JUDGE, "mohler"]) == 4


def test_help_names_the_sets(capsys: pytest.CaptureFixture[str]) -> None:
    """Both commands list what can be fetched."""
    with pytest.raises(SystemExit):
        evaluators(["calibrate", "--help"])
    measuring = capsys.readouterr().out
    with pytest.raises(SystemExit):
        download(["--help"])
    fetching = capsys.readouterr().out
    for name in ("evouna-nq", "evouna-tq", "nq301", "mohler"):
        assert name in measuring
        assert name in fetching

"""The parts of `python -m cases download`: arguments, table, checksums, progress."""

import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.config import load_dataset
from cases.download.benchmarks import FILE, load_benchmarks
from cases.download.public_files import (
    DATA_FOLDER,
    is_sha256,
    record_hash,
    recorded_hash,
    watching,
)
from cases.download.resumable import check_address
from evaluators.core import UsageError
from evaluators.reading import file_hash
from reports.commands.download import main
from tests.support.downloading import (
    CASES,
    sha256,
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required: name"),
        (["simpelqa"], "invalid choice: 'simpelqa'"),
        (["boolq", "--sha256", "12"], "--sha256 '12': 64 hexadecimal digits"),
        (["boolq", "--sha256", " "], "64 hexadecimal digits"),
        (["boolq", "--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_wrong_arguments_are_usage_problems(words: Sequence[str], message: str) -> None:
    """Each is one line that names the argument."""
    with pytest.raises(UsageError, match=message):
        main(words)


def test_the_table_is_as_the_publishers_have_it() -> None:
    """Addresses are https, files do not collide, SimpleQA is pinned, slices exist."""
    benchmarks = load_benchmarks()
    assert set(benchmarks) == {"simpleqa", "husimpleqa", "boolq"}
    assert is_sha256(benchmarks["simpleqa"].source.sha256)
    assert len({one.source.file for one in benchmarks.values()}) == len(benchmarks)
    for one in benchmarks.values():
        assert one.source.url.startswith("https://")
        check_address(one.source.url)
        assert one.language in load_dataset(CASES / one.dataset / "dataset.yaml").slices


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  licence: MIT\n", "", "'licence': missing"),
        ("file: simple", "file: ../simple", "'file': a file name without folders"),
        ("sha256: feee", "sha256: FEEE", "'sha256': 64 hexadecimal digits"),
        ("licence: MIT", "license: MIT", "'license': not known"),
    ],
)
def test_a_wrong_table_is_a_usage_problem(tmp_path: Path, old: str, new: str, message: str) -> None:
    """File, line and key are named."""
    path = tmp_path / "benchmarks.yaml"
    path.write_text(FILE.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(UsageError, match=rf"benchmarks\.yaml:\d+: simpleqa: key {message}"):
        load_benchmarks(path)


def test_the_record_is_what_sha256sum_writes(tmp_path: Path) -> None:
    """`sha256sum -c` checks it too, and writing it again changes nothing."""
    path = tmp_path / "data"
    path.write_bytes(b"x")
    record_hash(path, file_hash(path))
    place = tmp_path / "data.sha256"
    assert place.read_text(encoding="utf-8") == f"{sha256(b'x')}  data\n"
    place.chmod(0o444)
    before = place.stat().st_mtime_ns
    record_hash(path, file_hash(path))
    assert place.stat().st_mtime_ns == before


def test_a_damaged_record_is_a_usage_problem(tmp_path: Path) -> None:
    """It is neither trusted nor overwritten."""
    (tmp_path / "data.sha256").write_text("no hash\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"data\.sha256:1: does not begin with a SHA-256"):
        recorded_hash(tmp_path / "data")


@settings(max_examples=25, deadline=None)
@given(st.binary(min_size=32, max_size=32))
def test_only_hashes_are_hashes(raw: bytes) -> None:
    """Sixty-four lower-case hexadecimal digits, nothing else."""
    assert is_sha256(raw.hex())
    assert not is_sha256(raw.hex()[1:])
    assert not is_sha256(f"{raw.hex()}\n")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar() -> None:
    """On a terminal a bar names the benchmark."""
    stream = Terminal()
    with watching("boolq", stream) as watch:
        watch(50, 100)
        watch(100, 100)
    assert "boolq" in stream.getvalue()


def test_a_log_gets_few_lines() -> None:
    """Elsewhere there are about ten lines, the last with the whole size."""
    stream = io.StringIO()
    with watching("boolq", stream) as watch:
        for done in range(0, 50_000_001, 100_000):
            watch(done, 50_000_000)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[-1] == "boolq: 50.0 of 50.0 MB"


def test_an_unknown_size_is_not_guessed() -> None:
    """Without a size a line comes every ten megabytes."""
    stream = io.StringIO()
    with watching("boolq", stream) as watch:
        for done in range(0, 25_000_001, 1_000_000):
            watch(done, None)
    assert stream.getvalue().splitlines() == [f"boolq: {mb}.0 MB" for mb in (0, 10, 20)]


def test_the_default_folder_is_an_ignored_one() -> None:
    """Other people's data is not committed by accident."""
    ignored = (CASES.parent / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert f"{DATA_FOLDER.parts[0]}/" in ignored

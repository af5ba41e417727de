"""Whole runs and the ledger: at the same time, on a full disk, carried elsewhere, asked anew."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from tests.support.fixtures import Captured
from tests.support.killing import Chain, chain
from tests.support.projects import new_project, without_last_line

pytestmark = pytest.mark.untraced
ITEMS = 40


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Chain]:
    with chain(tmp_path / "one", ITEMS, 0.02, "--concurrency", "4") as made:
        yield made


@dataclass(frozen=True)
class Ended:
    """A run that has ended, for tests that go on from its ledger; none of them changes that."""

    chain: Chain
    outcome: tuple[int, Mapping[str, Any]]
    records: bytes
    report: dict[str, Any]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("ended") / "one"
    with chain(folder, ITEMS, 0.0, "--concurrency", "4") as made:
        yield Ended(made, made.finish(), records(folder), report(folder))


def records(folder: Path) -> bytes:
    return (folder / "reports" / "out" / "records.jsonl").read_bytes()


def report(folder: Path) -> dict[str, Any]:
    """Return run.json without the block that may differ between two runs."""
    path = folder / "reports" / "out" / "run.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del loaded["run"]
    return loaded


def test_a_complete_run_is_repeated_without_a_request(ended: Ended) -> None:
    """All but the last line is the same, with any number of workers (F5): it says whose answers
    these are.
    """
    before = len(ended.chain.trace.sent)
    again = replace(ended.chain, options=("-n", "2", "--dist", "worksteal"), kept=[])
    assert again.finish() == ended.outcome
    assert records(again.folder) == ended.records
    assert without_last_line(report(again.folder)) == without_last_line(ended.report)
    assert len(again.trace.sent) == before


def test_a_fork_replays_exports(ended: Ended, tmp_path: Path, capsys: Captured) -> None:
    """Exported, imported elsewhere, replayed: the same verdicts and no request."""
    one, before = ended.chain, len(ended.chain.trace.sent)
    artefact = tmp_path / "ledger.jsonl"
    assert (
        main(
            [
                "ledger",
                "export",
                str(artefact),
                "--ledger",
                str(one.folder / one.ledger),
            ]
        )
        == 0
    )
    new_project(tmp_path / "fork").asked(ITEMS)
    fork = Chain(tmp_path / "fork", one.server, one.trace, options=("--replay",))
    into = str(fork.folder / fork.ledger)
    assert main(["ledger", "import", str(artefact), "--ledger", into]) == 0
    assert f"{2 * ITEMS} new, 0 known, 0 refused" in capsys.readouterr().out
    assert fork.finish() == ended.outcome
    assert len(one.trace.sent) == before


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.name == "posix" and os.geteuid() == 0
    mounted = (
        mounted and mount("-t", "tmpfs", "-o", "size=160k", "tmpfs", str(folder)) == 0
    )
    if not mounted:
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_stops_the_run_and_is_survived(one: Chain, disk: Path) -> None:
    """No more calls than were in flight, one line with path and need; with space it goes on. What
    the disk did not take stands in the working folder: taken in, nothing is asked twice (R10). Row
    F15 of the fault matrix."""
    one.ledger = str(disk / "ledger.sqlite3")
    code, ends = one.finish()
    states = Counter(state for state, *_ in ends.values())
    assert code == 6
    assert states["missing"] > 0
    assert len(one.trace.sent) - one.count() <= 8
    text = (one.folder / "reports" / "out" / "summary.md").read_text(encoding="utf-8")
    assert "the disk is full" in text
    assert "bytes and more are needed" in text
    unkept = [*(one.folder / ".qa").glob("unkept-*.jsonl")]
    assert any(
        f"did not take are in .qa/{one.name}" in text.replace("\\", "")
        for one in unkept
    )
    assert mount("-o", "remount,size=4m", str(disk)) == 0
    assert one.finish()[0] == 0
    assert not any(path.exists() for path in unkept)
    assert one.count() == 2 * ITEMS
    assert one.trace.repeats == 0


def mount(*words: str) -> int:
    try:
        return subprocess.run(
            ["mount", *words], check=False, capture_output=True
        ).returncode
    except FileNotFoundError:
        return 1

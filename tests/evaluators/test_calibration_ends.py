"""How `python -m evaluators calibrate` ends when something stops it, and what it shows before."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from evaluators.__main__ import main
from evaluators.core import Outcome, Usage
from reports.commands.judge_command import progress_line
from tests.support.labelled_rows import MIXED, spec, write
from tests.support.loopback import Answer, Seen, loopback, plausible

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_figures_that_cannot_be_written_are_printed_all_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk costs the file, not the card."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    path = write("labelled.jsonl", MIXED)
    monkeypatch.setattr(Path, "write_text", full)
    assert main(["calibrate", "--judge", "lexical", path, "--json", "c.json"]) == 1
    out, err = capsys.readouterr()
    assert "# Judge card: lexical" in out
    assert "c.json: cannot be written (No space left on device)" in err


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_keeps_what_was_paid_for(folder: Path) -> None:
    """Interrupted in the middle: exit 130, a line that says how far, and no call made twice."""
    path = write("labelled.jsonl", MIXED)
    with loopback(handler=_slow) as server:
        command = [sys.executable, "-m", "evaluators", "calibrate", "--judge", spec(server.url)]
        command += [path, "--concurrency", "1"]
        with subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            line = process.stderr.readline()
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
        assert line.startswith("judged ")
        assert process.returncode == 130
        assert "replies are kept, run again to go on" in rest
        sent = server.count
        assert main(command[3:]) == 0
        assert server.count - sent <= 10 - sent + 1


def _slow(seen: Seen) -> Answer:
    body = plausible()(seen).body
    return Answer(body=body, delay=0.2)


def test_progress_names_errors_and_what_was_spent() -> None:
    """The line counts what is judged and what failed; an unknown price gives no sum."""
    failed = Outcome(key="k", state="error", usage=Usage(spent=0.5))
    assert progress_line({"a": failed}, 2) == "judged 1 of 2, errors 1, spent $0.5000"
    unknown = Outcome(key="k", state="error", usage=Usage(cost=None))
    assert progress_line({"a": unknown}, 1) == "judged 1 of 1, errors 1, spent an unknown sum"


def test_a_ledger_that_cannot_keep_replies_stops_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing more is asked once a reply cannot be kept; exit 1 with the ledger's name."""
    path = write("labelled.jsonl", MIXED)

    def drop(seen: Seen) -> Answer:
        ledger = folder / "l.sqlite3"
        with contextlib.closing(sqlite3.connect(ledger)) as connection, connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (name,) in tables.fetchall():
                connection.execute(f'DROP TABLE "{name}"')
        return plausible()(seen)

    with loopback(handler=drop) as server:
        words = ["--ledger", "l.sqlite3", "--concurrency", "1"]
        assert main(["calibrate", "--judge", spec(server.url), path, *words]) == 1
        assert server.count <= 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "l.sqlite3" in err.split("\n")[-2]

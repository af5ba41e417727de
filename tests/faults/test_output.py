"""Nobody listens, or the disk is full: what was paid for is reported, and no exit code misleads."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evaluators.command_line import Command, Program
from evaluators.core import QAError, UsageError
from reports.plugin.progress import LossyStream, discard
from reports.render.writer import WriteError
from tests.conftest import Project

ITEMS = 120  # under -v more lines than a pipe or a buffer holds back


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project whose 120 recorded answers are all right; its gate passes."""
    yaml = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}\n"
    project.dataset("capital", {"en": ["Sofia"] * ITEMS}, yaml)
    return project


def closed_pipe() -> int:
    """Return the writing end of a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


def full_disk() -> int:
    return os.open("/dev/full", os.O_WRONLY)


def run(project: Project, out: int, *arguments: str, err: int = subprocess.PIPE) -> tuple[int, str]:
    """Return the exit code and the lines on stderr of pytest with this standard output."""
    command = [sys.executable, "-m", "pytest", *arguments, "qa"]
    done = subprocess.run(command, cwd=project.path, stdout=out, stderr=err, text=True, check=False)
    os.close(out)
    return done.returncode, done.stderr or ""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
@pytest.mark.parametrize("make", [closed_pipe, full_disk])
def test_a_terminal_that_is_gone_costs_no_report(
    capitals: Project, make: Callable[[], int], workers: tuple[str, ...]
) -> None:
    """`| head -1` and `> /dev/full`: the report stands, the gates give the code (R5)."""
    code, said = run(capitals, make(), "-v", *workers)
    assert code == 0
    assert said.count("\n") == 1
    assert said.startswith("the terminal's output was cut off (")
    assert len(capitals.records()) == ITEMS


@pytest.mark.slow
def test_neither_stream_can_be_written(capitals: Project) -> None:
    """`> /dev/full 2>&1`: nobody can be told; report and code are right all the same."""
    out = full_disk()
    code, _ = run(capitals, out, err=os.dup(out))
    assert code == 0
    assert len(capitals.records()) == ITEMS


def test_a_stream_is_given_up_at_the_first_loss() -> None:
    """What is held back by then does not end the process later on."""
    with os.fdopen(full_disk(), "w") as file:
        stream = LossyStream(file)
        assert stream.write("one") == 3
        assert stream.loss == ""
        stream.flush()
        assert stream.loss == "No space left on device"
        stream.write("two")
        stream.flush()


def test_a_stream_without_a_file_is_left_alone() -> None:
    """A stream of a test, or one that is closed, has no descriptor to lead elsewhere."""
    with os.fdopen(full_disk(), "w") as file:
        pass
    discard(file)
    assert file.closed


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (QAError("it failed"), 1),
        (UsageError("a wrong option"), 4),
        (WriteError(Path("out"), 9, OSError(28, "No space left on device")), 3),
        (OSError(30, "Read-only file system", "out/x"), 3),
    ],
)
def test_a_command_ends_with_the_code_of_its_error(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line; a full disk under `reports merge` is no FAIL of a gate (R12)."""

    def fail(self: Command, words: object) -> int:
        raise error

    monkeypatch.setattr(Command, "run", fail)
    program = Program(what="", commands={"do": Command("", "")}, note="")
    assert program.run(["do"]) == code
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(("make", "said"), [(closed_pipe, ""), (full_disk, "output: cannot be")])
def test_a_command_without_a_reader_shows_no_traceback(
    make: Callable[[], int], said: str, tmp_path: Path
) -> None:
    """`qagate list | head -1` is silent; `> /dev/full` is one line."""
    out = make()
    command = [sys.executable, "-m", "reports", "list"]
    known = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, env=known, check=False
    )
    os.close(out)
    assert done.returncode == 3
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)

"""`qagate`: one line of error, and the exit codes that --help promises."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases.__main__ import main
from evaluators.command_line import PROGRAMS
from tests.support.captured import Captured
from tests.support.file_server import Served, file_server

COMMANDS = PROGRAMS["cases"].commands
ROOT = Path(__file__).parents[2]
ROW = b'{"question": "is it", "passage": "It is.", "answer": true}\n'


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help(command: str, capsys: Captured) -> None:
    """--help of a command names it and its exit codes."""
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert f" {command} [-h]" in out
    assert "exit codes: 0" in out


def test_help_names_every_command_and_exit_code(capsys: Captured) -> None:
    """The table is shown whole."""
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(f"{name}  " in out and command.help in out for name, command in COMMANDS.items())
    assert all(f"{code} " in out for code in (0, 1, 4, 130))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "required: COMMAND"),
        (["bogus"], "invalid choice: 'bogus'"),
        (["check", "--bogus"], "unrecognized arguments: --bogus"),
    ],
)
def test_wrong_arguments_exit_with_4(words: list[str], message: str, capsys: Captured) -> None:
    """One line on stderr, nothing on stdout."""
    assert main(words) == 4
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


def test_check_is_run_with_the_other_words(tmp_path: Path, capsys: Captured) -> None:
    """What follows the command is the command's own, and its code is the process's."""
    path = tmp_path / "mine.jsonl"
    path.write_bytes(ROW)
    code = main(["check", "--as", "boolq:en", str(path)])
    assert code == 0
    assert "1 item in 1 file" in capsys.readouterr().out


def test_what_cannot_be_fetched_exits_with_1(tmp_path: Path, capsys: Captured) -> None:
    """A missing file is an error of the world, not of the arguments."""
    with file_server() as server:
        words = ["download", "boolq", "--to", str(tmp_path), "--url", server.url("/none")]
        assert main(words) == 1
    assert "status 404" in capsys.readouterr().err


def test_main_reads_argv(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    """Without arguments of its own main reads the process's."""
    monkeypatch.setattr(sys, "argv", ["cases", "bogus"])
    assert main() == 4
    assert "bogus" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX here")
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    """Exit code 130, no traceback and no part of a file."""
    with file_server() as server:
        server.files["/data"] = Served(body=ROW * 9, cut=100, stall=True)
        words = ["download", "boolq", "--to", str(tmp_path), "--url", server.url()]
        command = [sys.executable, "-m", "cases", *words]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while not server.seen:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() == "interrupted\n"
        assert process.returncode == 130
        assert not any(tmp_path.iterdir())

"""`qagate`: one line of error, and the exit codes that --help promises."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cases.__main__ import main
from tests.support.captured import Captured
from tests.support.downloading import file_server
from tests.support.loopback import Answer
from tests.support.tables import tabled

ROOT = Path(__file__).parents[2]
ROW = b'{"question": "is it", "passage": "It is.", "answer": true}\n'


@tabled("words", "message")
def test_wrong_arguments_exit_with_4(words: list[str], message: str, capsys: Captured) -> None:
    """One line on stderr, nothing on stdout."""
    assert main(words) == 4
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


def test_check_takes_what_lies_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The user's own data sets where there are any; `--as` still asks for a file."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "folk", "--to", "deep"]) == 0
    assert main(["check"]) == 0
    assert "0 errors, 1 warning: 1 item in 1 file" in capsys.readouterr().out
    assert main(["check", "--as", "simpleqa:bg"]) == 4
    assert "no file given" in capsys.readouterr().err


@pytest.mark.slow
@tabled("name", "as_", "code", "checks")
def test_public_files_show_their_known_faults(
    name: str, as_: str, code: int, checks: list[str], capsys: Captured
) -> None:
    """Published sets hold leaks, look-alikes, conflicts and control characters; they are found."""
    file = ROOT.parent / "shared" / "data" / name
    if not file.is_file():
        pytest.skip("the shared data is not here")
    assert main(["check", "--as", as_, str(file)]) == code
    told = capsys.readouterr().out
    assert all(f": {check}: " in told for check in checks)


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX here")
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    """Exit code 130, no traceback and no part of a file."""
    with file_server() as server:
        server.files["/data"] = Answer(action="headers", body=ROW)
        words = ["download", "boolq", "--to", str(tmp_path), "--url", server.url()]
        command = [sys.executable, "-m", "cases", *words]
        with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            while not server.server.count:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            assert process.stderr.read() == "interrupted\n"
        assert process.returncode == 130
        assert not any(tmp_path.iterdir())

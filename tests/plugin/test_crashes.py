"""A crash anywhere ends in one line and exit code 3: never 1, which says that a gate failed."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qagate import command, door
from qagate.evaluators.core import UsageError
from qagate.evaluators.crash import CRASHED, crash_of, end
from qagate.evaluators.output import UnwrittenError
from qagate.evaluators.runtime import engine
from qagate.reports import doors
from qagate.reports.plugin import (
    collected,
    controller,
    crash_guard,
    finish,
    session_results,
    system_needs,
    worker,
)
from tests.support.fixtures import Captured, Patch
from tests.support.projects import ROOT, Project

LINE = re.compile(
    r"INTERNAL ERROR: exit 3; OverflowError: nobody foresaw this \(\S+:\d+\); its traceback is "
    r"in (\S+); please report it"
)
IN_WORKER = re.compile(
    r"INTERNAL ERROR: exit 3; OverflowError: nobody foresaw this \(in a worker\); "
)


def crash(*words: object, **named: object) -> None:
    raise OverflowError("nobody foresaw this")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: Patch) -> Iterator[Path]:
    """Let tracebacks be kept in a folder of the test's own."""
    folder = tmp_path / "tracebacks"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder


@pytest.fixture
def capitals(project: Project) -> Project:
    project.dataset("capital", {"bg": ["Sofia", "Plovdiv"]})
    return project


# Commands


@pytest.mark.parametrize("name", doors.COMMANDS)
def test_a_crash_of_a_command_is_one_line(
    name: str, monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.setattr(command, "load_command", lambda name: crash)
    assert command.main([name]) == CRASHED
    (line,) = capsys.readouterr().err.splitlines()
    assert LINE.match(line)


def test_the_traceback_of_a_crash_is_kept_for_its_owner(
    monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.setattr(command, "load_command", lambda name: crash)
    command.main(["list"])
    match = LINE.match(capsys.readouterr().err)
    assert match is not None
    kept = Path(match[1])
    assert "in crash\n    raise OverflowError" in kept.read_text(encoding="utf-8")
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_crash_shows_no_key(monkeypatch: Patch, capsys: Captured) -> None:
    """Neither in its line nor in the file."""
    key = "sk-proj-abcdefghij0123456789abcdef"

    def leak(words: object) -> int:
        raise RuntimeError(f"refused: {key}")

    monkeypatch.setattr(command, "load_command", lambda name: leak)
    command.main(["list"])
    line = capsys.readouterr().err
    match = re.search(r"is in (\S+);", line)
    assert match is not None
    assert key not in line + Path(match[1]).read_text(encoding="utf-8")


def test_a_crash_without_room_for_its_traceback_is_still_told(
    monkeypatch: Patch, capsys: Captured, temporary: Path
) -> None:
    temporary.rmdir()
    monkeypatch.setattr(command, "load_command", lambda name: crash)
    assert command.main(["list"]) == CRASHED
    assert "its traceback could not be kept" in capsys.readouterr().err


class SilentError(Exception):
    def __str__(self) -> str:
        raise ValueError


def test_an_error_whose_text_cannot_be_made_is_told_by_its_name(
    monkeypatch: Patch, capsys: Captured
) -> None:
    def silent(words: object) -> int:
        raise SilentError

    monkeypatch.setattr(command, "load_command", lambda name: silent)
    assert command.main(["list"]) == CRASHED
    assert "SilentError: no message" in capsys.readouterr().err


# Hooks


HOOKS = {
    "pytest_configure": (worker, "Verdicts"),
    "pytest_sessionstart": (controller.Controller, "_handle_signals"),
    "pytest_report_header": (controller, "shard_header"),
    "pytest_ignore_collect": ("qagate.cases.discovery", "is_left_out"),
    "pytest_generate_tests": (worker, "_dataset_named"),
    "pytest_collection_modifyitems": (worker, "_is_placeholder"),
    "pytest_collection_finish": (worker, "key_in"),
    "pytest_collection": (worker, "gc_paused"),
    "pytest_runtestloop": (collected, "expected_slices"),
    "pytest_runtest_logstart": (session_results.SessionResults, "key_of"),
    "pytest_runtest_setup": (worker, "_wait_for_outcome"),
    "pytest_runtest_makereport": (worker, "_make_report"),
    "pytest_runtest_logreport": (session_results.SessionResults, "note"),
    "pytest_sessionfinish": (controller.Controller, "_session_facts"),
    "finish": (finish, "finish"),
    "pytest_terminal_summary": ("qagate.reports.plugin.terminal", "show_report"),
}
"""What a hook calls, by the hook's name."""


def patched(hook: str, monkeypatch: Patch) -> None:
    owner, name = HOOKS[hook]
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{name}", crash)
        return
    monkeypatch.setattr(owner, name, crash)
    if owner is collected:  # the controller has imported it by name
        monkeypatch.setattr(controller, name, crash)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_crash_of_a_hook_ends_the_run_with_its_code(
    hook: str, capitals: Project, monkeypatch: Patch
) -> None:
    patched(hook, monkeypatch)
    done = capitals.run_in_process("qa")
    output = done.stdout.str() + done.stderr.str()
    assert done.ret == CRASHED, output
    assert LINE.search(output), output
    assert "INTERNALERROR" not in output
    assert "Traceback" not in output


def test_a_crash_at_the_end_leaves_no_earlier_verdict_as_the_last_line(
    capitals: Project, monkeypatch: Patch
) -> None:
    patched("pytest_terminal_summary", monkeypatch)
    done = capitals.run_in_process("qa")
    assert LINE.match(done.outlines[-1])


def test_a_crash_in_a_run_stays_in_its_report(
    capitals: Project, monkeypatch: Patch
) -> None:
    """Nobody can make a verdict of it later."""
    patched("pytest_runtest_makereport", monkeypatch)
    capitals.run_in_process("qa")
    decision = capitals.report()["decision"]
    assert decision["code"] == CRASHED
    assert LINE.match(decision["line"])
    assert command.main(["gate", str(capitals.out)]) == CRASHED


@pytest.mark.parametrize(
    "broken",
    [
        (controller.Controller, "_restore_signals"),
        (controller.Controller, "pytest_unconfigure"),
    ],
    ids=["cleanup", "pytest_unconfigure"],
)
def test_a_crash_after_the_session_ends_the_process(
    broken: tuple[object, str], capitals: Project, monkeypatch: Patch, capsys: Captured
) -> None:
    owner, name = broken
    monkeypatch.setattr(owner, name, lambda controller: crash())
    with pytest.raises(SystemExit) as ended:
        capitals.run_in_process("qa")
    assert ended.value.code == CRASHED


def test_a_crash_before_the_session_ends_the_process(
    capitals: Project, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("qagate.reports.plugin.declare_options", crash)
    with pytest.raises(SystemExit) as ended:
        capitals.run_in_process("qa")
    assert ended.value.code == CRASHED


def test_a_crash_of_the_door_ends_the_process(
    pytestconfig: pytest.Config, monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.setattr(door, "_has_dataset", crash)
    with pytest.raises(SystemExit) as ended:
        door._load_if_needed(pytestconfig)
    assert ended.value.code == CRASHED
    assert LINE.match(capsys.readouterr().err)


@pytest.mark.parametrize("error", [pytest.UsageError("no"), BrokenPipeError()])
def test_an_error_that_pytest_understands_is_no_crash(error: Exception) -> None:
    @crash_guard.ends_process
    def work() -> None:
        raise error

    with pytest.raises(type(error)):
        work()


ERRORS = [(UsageError("no such file"), 4), (UnwrittenError("no such file"), 3)]


def raising(error: Exception) -> Callable[..., None]:
    """Return what raises an error, with whatever it is called."""

    def fail(*words: object, **named: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("error", "code"), ERRORS)
def test_a_foreseen_error_at_the_end_of_a_session_has_its_line_and_code(
    error: Exception, code: int, capitals: Project, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(controller.Controller, "_session_facts", raising(error))
    done = capitals.run_in_process("qa")
    output = done.stdout.str() + done.stderr.str()
    assert done.ret == code, output
    assert "no such file" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(("error", "code"), ERRORS)
@pytest.mark.parametrize("name", ["_restore_signals", "pytest_unconfigure"])
def test_a_foreseen_error_after_the_session_ends_the_process(
    name: str, error: Exception, code: int, capitals: Project, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(controller.Controller, name, raising(error))
    with pytest.raises(SystemExit) as ended:
        capitals.run_in_process("qa")
    assert ended.value.code == code


def test_a_foreseen_error_that_ends_the_process_is_one_line(capsys: Captured) -> None:
    with pytest.raises(SystemExit):
        crash_guard.ends_process(raising(UsageError("no such file")))()
    assert capsys.readouterr().err == "no such file\n"


def test_a_crash_keeps_its_code_where_the_output_is_closed(
    monkeypatch: Patch, capsys: Captured, tmp_path: Path
) -> None:
    with (tmp_path / "output").open("w", encoding="utf-8") as output:
        pass
    monkeypatch.setattr(sys, "stdout", output)
    with pytest.raises(SystemExit) as ended:
        end(ValueError("no"))
    assert ended.value.code == CRASHED
    assert "ValueError: no" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_crash_keeps_its_code_where_the_output_is_full() -> None:
    code = "from qagate.evaluators.crash import end; print('x'); end(ValueError('no'))"
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == CRASHED
    assert b"INTERNAL ERROR: exit 3; ValueError: no" in done.stderr


def test_a_long_message_of_a_crash_does_not_hide_its_place() -> None:
    with pytest.raises(ValueError, match="long") as raised:
        raise ValueError("long " * 200)
    summary = crash_of(raised.value).summary
    assert re.search(r"… \(test_crashes.py:\d+\)$", summary)


# Threads and processes


def test_a_crash_of_the_thread_that_loads_writers_ends_the_run_with_its_code(
    capitals: Project, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(system_needs, "import_module", crash)
    done = capitals.run_in_process("qa")
    assert done.ret == CRASHED
    assert LINE.match(done.outlines[-1])


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (engine.Engine, "_work"),
        (engine.Engine, "__init__"),
        (engine.Engine, "_watch_judges"),
        (engine.Job, "obey"),
    ],
    ids=["work", "making", "canaries", "instruction"],
)
def test_a_crash_of_the_engine_ends_the_run_with_its_code(
    owner: object, name: str, capitals: Project, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(owner, name, crash)
    done = capitals.run_in_process("qa")
    output = done.stdout.str() + done.stderr.str()
    assert done.ret == CRASHED, output
    assert LINE.search(output), output
    assert "Traceback" not in output


BROKEN = """
import qagate.evaluators.runtime.process as process
import qagate.reports.plugin.progress_display as display

def crash(*words, **named):
    raise OverflowError("nobody foresaw this")

display.SECONDS_PER_LOG_LINE = 0.001
{name} = crash
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "display.ProgressDisplay._log",
        "process.EngineProcess._take_in",
        "process.EngineProcess._send",
        "process.Job.obey",
        "process._do",
    ],
)
def test_a_crash_beside_pytests_main_thread_ends_the_run_with_its_code(
    name: str, capitals: Project
) -> None:
    """In the display's thread, those that speak with the engine, or the engine's process."""
    capitals.write("conftest.py", BROKEN.format(name=name))
    done = capitals.run("qa")
    output = done.stdout.str() + done.stderr.str()
    assert done.ret == CRASHED, output
    assert LINE.search(output), output


BROKEN_WORKER = """
import os
from qagate.reports.plugin import worker

def crash(*words, **named):
    raise OverflowError("nobody foresaw this")

if "PYTEST_XDIST_WORKER" in os.environ:
    worker.{name} = crash
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["_dataset_named", "_wait_for_outcome"])
def test_a_crash_in_a_worker_ends_the_run_with_its_code(
    name: str, capitals: Project
) -> None:
    capitals.write("conftest.py", BROKEN_WORKER.format(name=name))
    done = capitals.run("-n", "2", "qa")
    output = done.stdout.str() + done.stderr.str()
    assert done.ret == CRASHED, output
    assert IN_WORKER.search(output), output


def test_a_crash_is_told_once(capitals: Project, monkeypatch: Patch) -> None:
    """What follows from the first one is of no use to anybody."""
    guard = crash_guard.CrashGuard()
    for text in ("first", "second"):
        error = ValueError(text)
        guard.note(crash_of(error))
    assert "first" in guard.line


def test_a_key_among_the_words_of_a_command_is_not_said_again(
    capsys: Captured,
) -> None:
    assert (
        command.main(["ledger", "stats", "postgres://u:a/hunter22@h.example/db"]) == 4
    )
    assert "hunter22" not in capsys.readouterr().err


def test_a_text_in_place_of_a_files_name_is_a_mistake_of_the_user(
    capitals: Project,
) -> None:
    """A system raises an error of its own for a name of more than 255 bytes."""
    text = "Answer in one short sentence. " * 12
    line = capitals.refused(f"--baseline={text}", "qa")
    assert "put it into a file and name that" in line

"""What a run needs of the system is tried before the first call."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import aiohttp
import pytest

from qagate import door
from qagate.evaluators.core import TransientError, UsageError
from qagate.evaluators.models.failures import OWN_LACK, of_exception
from qagate.evaluators.output import UnwrittenError
from qagate.evaluators.runtime import server
from qagate.evaluators.runtime.server import ServerState
from qagate.reports.plugin import system_needs
from qagate.reports.plugin.system_needs import ReportWriters, check_files
from qagate.reports.run.report_folder import claim
from tests.support.fixtures import Patch
from tests.support.loopback import good, loopback
from tests.support.projects import Project, specs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def few_files(monkeypatch: Patch) -> list[tuple[int, int]]:
    """Let this process have 60 open files, of 100 that it may have; return what is set."""
    limits: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda what: (60, 100))
    monkeypatch.setattr(resource, "setrlimit", lambda what, pair: limits.append(pair))
    return limits


def test_the_limit_of_open_files_is_raised(few_files: list[tuple[int, int]]) -> None:
    check_files(60, 0)
    assert few_files == [(100, 100)]


@pytest.mark.usefixtures("few_files")
def test_more_calls_than_files_are_refused() -> None:
    with pytest.raises(UsageError, match="give --concurrency 54, or raise the limit"):
        check_files(64, 2)


@pytest.mark.usefixtures("few_files")
def test_more_workers_than_files_are_refused() -> None:
    with pytest.raises(
        UsageError, match="may open 100; raise the limit: ulimit -n 137"
    ):
        check_files(1, 32)


def test_a_limit_that_cannot_be_raised_counts_as_it_is(monkeypatch: Patch) -> None:
    def refuse(what: int, pair: tuple[int, int]) -> None:
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda what: (60, 100))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(UsageError, match="this process may open 60"):
        check_files(32, 0)


def test_no_limit_of_open_files_allows_any_number(monkeypatch: Patch) -> None:
    none = resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda what: (none, none))
    monkeypatch.setattr(resource, "setrlimit", lambda what, pair: None)
    check_files(100_000, 0)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS])
def test_a_lack_of_our_own_is_no_fault_of_the_server(number: int) -> None:
    """It opens no circuit, however often it comes, and has its own name."""
    key = aiohttp.client_reqrep.ConnectionKey("h", 1, False, True, None, None, None)
    error = of_exception(
        aiohttp.ClientConnectorError(key, OSError(number, os.strerror(number)))
    )
    assert isinstance(error, TransientError)
    assert error.kind == OWN_LACK == server.OWN_LACK
    assert "this machine can open no more connections" in str(error)
    state = ServerState("h", 16, lambda: 0.0, give_up_after=900)
    for second in range(50):
        state.in_flight += 1
        assert not state.note_end(error, float(second), second + 0.5, failed_at=None)
    assert state.describe(60.0) == ""


def at_once(work: Callable[[], object]) -> None:
    work()


def limited(monkeypatch: Patch, program: str) -> None:
    """Limit the memory of processes, and let ``program`` try whether it is enough."""
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1024, 1024))
    monkeypatch.setattr(system_needs, "PROGRAM", program)


def test_too_little_memory_for_a_report_is_found_by_another_process(
    monkeypatch: Patch,
) -> None:
    limited(monkeypatch, "raise SystemExit(1)")
    with pytest.raises(UnwrittenError, match=r"load within 1 kB of memory.*: exit 1;"):
        ReportWriters().start(at_once)


def test_what_fails_under_a_limit_for_another_reason_says_the_reason(
    monkeypatch: Patch,
) -> None:
    """The limit may have nothing to do with it."""
    limited(monkeypatch, "import a_module_that_is_not_there")
    with pytest.raises(UnwrittenError, match="No module named 'a_module_that_is"):
        ReportWriters().start(at_once)


def test_a_limit_that_leaves_enough_memory_is_no_error(monkeypatch: Patch) -> None:
    limited(
        monkeypatch,
        "import os; raise SystemExit(os.environ['OPENBLAS_NUM_THREADS'] != '1')",
    )
    writers = ReportWriters()
    writers.start(at_once)
    writers.wait()
    assert system_needs.MATHS_THREADS not in os.environ


def test_the_users_own_number_of_threads_stands(monkeypatch: Patch) -> None:
    monkeypatch.setenv(system_needs.MATHS_THREADS, "3")
    limited(
        monkeypatch,
        "import os; raise SystemExit(os.environ['OPENBLAS_NUM_THREADS'] != '3')",
    )
    ReportWriters().start(at_once)


@pytest.mark.parametrize(
    "error",
    [
        ImportError("no numpy"),
        MemoryError(),
        ValueError("numpy.dtype size changed"),
        AttributeError("numpy has no attribute"),
    ],
)
def test_a_report_that_cannot_be_written_ends_the_run_before_any_call(
    project: Project, monkeypatch: Patch, error: Exception
) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr(system_needs, "import_module", fail)
    with loopback(handler=good) as running:
        project.asked(3)
        result = project.run_in_process(*specs(running.url), "qa")
        assert (result.ret, running.count) == (3, 0)
    assert "no report could be written: " in result.stderr.str()


@pytest.mark.parametrize("inside", ["", "/deeper/out"])
def test_a_report_folder_that_cannot_be_entered_is_named(
    plain_user: Path, inside: str
) -> None:
    folder = plain_user / "private"
    folder.mkdir()
    folder.chmod(0o000)
    with (
        pytest.raises(UsageError, match=r"--report-dir: .* cannot be written \(Perm"),
        claim(Path(f"{folder}{inside}"), "command"),
    ):
        pass
    folder.chmod(0o700)


def test_a_word_that_names_a_private_folder_is_no_data_set(plain_user: Path) -> None:
    """Before pytest has read its options, the word after one looks like a path."""
    folder = plain_user / "private"
    folder.mkdir()
    folder.chmod(0o000)
    assert not door._has_dataset([folder])
    assert not door._is_there(folder / "deeper")
    folder.chmod(0o700)


@pytest.mark.slow
def test_a_run_without_memory_for_its_report_asks_nothing(project: Project) -> None:
    with loopback(handler=good) as running:
        project.asked(3)
        command = [sys.executable, "-m", "pytest", *specs(running.url), "qa"]
        done = subprocess.run(
            ["bash", "-c", 'ulimit -v 250000; exec "$@"', "bash", *command],
            cwd=project.path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, running.count) == (3, 0), done.stderr

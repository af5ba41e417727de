"""Ctrl-C, SIGTERM, kill -9, a lost database: what was paid for is kept, and the run goes on."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from qagate.evaluators.extras.postgres import postgres
from qagate.evaluators.ledger.place import PostgresUrl
from qagate.reports.plugin.first_seconds import LINE, WORKER
from tests.support.killing import Victim, alive, chain, until
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible
from tests.support.places import ask, text_of
from tests.support.postgres import Cluster
from tests.support.projects import Project

pytestmark = pytest.mark.untraced
RULES = "--judge=lexical"
ITEMS = 12


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project of twelve items that a model is to answer."""
    return project.asked(ITEMS)


def after(seconds: float) -> Callable[[Seen], Answer]:
    """Return a handler that answers as a good model, so late."""
    return lambda seen: Answer(body=plausible()(seen).body, delay=seconds)


@contextmanager
def started(
    project: Project, server: Loopback, *options: str
) -> "Iterator[subprocess.Popen[str]]":
    """Start pytest in a process group of its own; at the end none of the group is left."""
    model = f"--model=openai:m@{server.url}/v1"
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", model, RULES, *options, "qa"], cwd=project.path,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    yield process
    process.communicate(timeout=60)
    until(lambda: not alive(process.pid))


SLOW = pytest.mark.slow
PLAIN, N2 = (), ("-n", "2")
SIGNALS = [
    pytest.param(PLAIN, signal.SIGTERM, 1, id="plain-SIGTERM"),
    pytest.param(PLAIN, signal.SIGINT, 5, id="plain-SIGINT-5", marks=SLOW),
    pytest.param(N2, signal.SIGTERM, 5, id="n2-SIGTERM-5", marks=SLOW),
    pytest.param(N2, signal.SIGINT, 1, id="n2-SIGINT", marks=SLOW),
]


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "number", "times"), SIGNALS)
def test_a_server_that_hangs_holds_up_no_interrupt(
    capitals: Project, workers: tuple[str, ...], number: signal.Signals, times: int
) -> None:
    """However often it is sent: a valid report, INCOMPLETE, each item MISSING once, none left."""
    silent = loopback(handler=lambda seen: Answer(action="hang"))
    with silent as server, started(capitals, server, *workers) as process:
        until(lambda: server.count > 0)
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=60)
    assert_interrupted(capitals, process, output)
    assert capitals.outcomes() == {"missing": ITEMS}


@pytest.mark.parametrize(("workers", "number", "times"), SIGNALS[1:3])
def test_a_signal_leaves_a_partial_report(
    capitals: Project, workers: tuple[str, ...], number: signal.Signals, times: int
) -> None:
    """What was answered is in it, what was not is MISSING, and nothing more is asked (F7)."""
    with (
        loopback(handler=after(0.2)) as server,
        started(capitals, server, *workers, "--concurrency", "1") as process,
    ):
        until(lambda: server.count >= 5)
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=60)
        asked = server.count
        time.sleep(0.5)
        assert server.count == asked
    assert_interrupted(capitals, process, output)
    states = capitals.outcomes()
    assert (states.total(), states["missing"] > 0) == (ITEMS, True)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [PLAIN, pytest.param(N2, marks=SLOW)])
def test_a_closed_terminal_leaves_a_partial_report(
    capitals: Project, workers: tuple[str, ...]
) -> None:
    """It ends every process at once, and no reply in flight is lost."""
    with (
        loopback(handler=after(0.3)) as server,
        started(capitals, server, *workers, "--concurrency", "2") as process,
    ):
        until(lambda: server.count >= 5)
        os.killpg(process.pid, signal.SIGHUP)
        output, _ = process.communicate(timeout=60)
        paid = server.count
    assert_interrupted(capitals, process, output)
    assert (
        ask(capitals.path / ".qa/ledger.sqlite3", "SELECT count(*) FROM calls") == paid
    )
    assert f"exit 2; {paid} replies kept, " in output.splitlines()[-1]


@pytest.mark.slow
def test_a_closed_terminal_is_not_heard_under_nohup(capitals: Project) -> None:
    with loopback(handler=after(0.1)) as server:
        model = f"--model=openai:m@{server.url}/v1"
        process = subprocess.Popen(
            ["nohup", sys.executable, "-m", "pytest", model, RULES, "qa"],
            cwd=capitals.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        until(lambda: server.count >= 2)
        os.killpg(process.pid, signal.SIGHUP)
        output, _ = process.communicate(timeout=60)
    assert "INTERRUPTED" not in output
    assert capitals.report()["complete"] is True


def ended(project: Project, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run Python as a user would, not as a worker of this suite."""
    environ = {name: value for name, value in os.environ.items() if name != WORKER}
    return subprocess.run(
        [sys.executable, *command],
        cwd=project.path, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_of_the_imports_is_one_line(
    project: Project, capitals: Project, name: str
) -> None:
    """Exit 2 and one line from our first import on, no traceback; a report is partial (R2)."""
    interrupt = (
        f"import os, signal, time; os.kill(os.getpid(), signal.{name}); time.sleep(9)\n"
    )
    project.write(
        "interrupted.py", f"import qagate.reports.plugin.first_seconds\n{interrupt}"
    )
    result = ended(project, "-m", "pytest", "-p", "interrupted", "qa")
    assert (result.returncode, result.stdout, result.stderr) == (2, "", f"{LINE}\n")
    hook = "@pytest.hookimpl(trylast=True)\ndef pytest_configure():"
    plugin = f"import pytest\n\n{hook}\n    {interrupt}"
    capitals.write("interrupted.py", plugin)
    model = "--model=openai:m@http://127.0.0.1:9/v1"
    words = ("-p", "interrupted", model, RULES, "qa")
    result = ended(capitals, "-m", "pytest", *words)
    assert (result.returncode, result.stderr) == (2, f"Exit: {LINE}\n")
    assert capitals.report()["complete"] is False


@pytest.mark.slow
def test_nothing_follows_the_last_line(capitals: Project) -> None:
    """Pytest warns at its very end of an exception in a finalizer, as a signal may raise there."""
    plugin = "class Lost:\n    def __del__(self):\n        raise KeyboardInterrupt\n"
    capitals.write("lost.py", f"{plugin}\n\ndef pytest_sessionfinish():\n    Lost()\n")
    with (
        loopback(handler=plausible()) as server,
        started(capitals, server, "-p", "lost") as process,
    ):
        output, _ = process.communicate(timeout=60)
    assert "PytestUnraisableExceptionWarning" in output
    assert "GATES FAIL (1 of 1 failed): exit 1" in output.splitlines()[-1]


def assert_interrupted(
    project: Project, process: "subprocess.Popen[str]", output: str
) -> None:
    assert process.returncode == 2, output
    assert project.report()["complete"] is False
    graded = sum(one["outcome"] in ("passed", "failed") for one in project.records())
    # A worker that was just being started says on its own, and later, that nobody speaks to it.
    lines = [line for line in output.splitlines() if "INTERRUPTED: exit 2; " in line]
    assert lines, output
    last = lines[-1]
    assert f"{graded} of {ITEMS} items graded, no gate decides" in last
    assert "run the same command again for the rest" in last


@pytest.mark.slow
def test_what_a_killed_run_paid_for_is_kept(capitals: Project) -> None:
    """After kill -9 the next run asks only for the rest, and what was not on the disk (F4)."""
    with loopback(handler=after(0.1)) as server:
        with started(capitals, server, "-n", "2", "--concurrency", "2") as process:
            until(lambda: server.count >= 6)
            os.killpg(process.pid, signal.SIGKILL)
        before = server.count
        model = f"--model=openai:m@{server.url}/v1"
        capitals.run_in_process(model, RULES, "--concurrency", "2", "qa")
    assert len(capitals.records()) == ITEMS
    assert before <= server.count <= ITEMS + 2 * 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")
def test_runs_killed_one_after_the_other_lose_nothing(tmp_path: Path) -> None:
    """Kill -9 of group, controller, engine, worker: no kept call is repeated, none lost (F6)."""
    items, concurrency = 60, 6
    options = ("-n", "2", "--concurrency", str(concurrency))
    chance = random.Random(4)
    plan: list[tuple[Victim, float]] = [
        ("group", 0.4), ("controller", 0.2), ("worker", 0.3), ("engine", 0.2)
    ]  # fmt: skip
    with chain(tmp_path / "disturbed", items, 0.1, *options) as one:
        for victim, seconds in plan:
            one.run_killed(victim, seconds, chance)
        disturbed = one.finish()
    with chain(tmp_path / "quiet", items, 0.0, *options) as quiet:
        assert disturbed == quiet.finish()
    assert quiet.trace.repeats == 0
    unkept = [one.trace.asked(kill.over) - kill.kept for kill in one.fatal]
    assert max(unkept) <= 2 * concurrency, "an item has one call under way at most"
    assert one.trace.repeats <= sum(unkept)
    assert one.kept == sorted(one.kept), "progress never goes back"
    assert one.kept[-1] == 2 * items


good = plausible(lambda asked, name, schema: "so")


@pytest.fixture
def capital(project: Project) -> Project:
    return project.asked(ITEMS)


def options(server: Loopback, place: PostgresUrl) -> tuple[str, ...]:
    model = f"--model=openai:m@{server.url}/v1"
    return model, RULES, "--ledger", text_of(place), "qa"


@pytest.mark.slow
@pytest.mark.parametrize("way", ["database", "pooled"])
def test_a_run_goes_on(
    capital: Project, request: pytest.FixtureRequest, way: str
) -> None:
    """Nothing is asked twice, a dry run knows what is kept, no file names the user; also pooled."""
    server = PostgresUrl(request.getfixturevalue(way))
    with loopback(handler=good) as model:
        first = capital.run_in_process(*options(model, server))
        for more in ((), ("--replay",)):
            assert (
                capital.run_in_process(*options(model, server), *more).ret == first.ret
            )
        dry = capital.run_in_process(*options(model, server), "--dry-run")
        assert model.count == ITEMS
    dry.stdout.fnmatch_lines([f"*{ITEMS} of them recorded (free)*"])
    assert ask(server, "SELECT count(*) FROM calls") == ITEMS
    assert ask(server, "SELECT count(*) FROM holders") == 0
    user = urlsplit(server.url).netloc
    for file in capital.out.rglob("*"):
        assert not file.is_file() or user.encode() not in file.read_bytes()


def test_an_absent_database_ends_the_run_with_4(
    capital: Project, server: PostgresUrl
) -> None:
    """One line, before a call is made."""
    with loopback(handler=good) as model:
        wrong = PostgresUrl(f"{server.url}_absent")
        assert "cannot be opened as a ledger" in capital.refused(*options(model, wrong))
        assert model.count == 0


@pytest.mark.slow
def test_a_lost_server(
    capital: Project, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is unasked is MISSING, nothing that was kept is lost, and the same command goes on."""
    seconds = {"PATIENCE_S": 0, "LEASE_S": 1, "RENEW_S": 0.2}
    for name, value in seconds.items():
        monkeypatch.setattr(postgres, name, value)
    cluster.start()
    place = PostgresUrl(cluster.new_database())
    seen: list[Seen] = []

    def handler(one: Seen) -> Answer:
        seen.append(one)
        if len(seen) == 6:
            cluster.stop()
        return good(one)

    with loopback(handler=handler) as model:
        words = (*options(model, place), "--concurrency", "2")
        cut = capital.run_in_process(*words)
        asked = len(seen)
        states = capital.outcomes()
        cluster.start()
        resumed = capital.run_in_process(*words)
    assert asked < ITEMS
    assert states["missing"] >= ITEMS - asked
    assert capital.report()["complete"] is True
    assert cut.ret != 0
    assert "the ledger cannot be used" in cut.stdout.str()
    assert resumed.ret in (0, 1)
    assert "replies that the ledger did not take are in .qa/unkept-" in cut.outlines[-1]
    assert len(seen) == ITEMS


@pytest.mark.slow
def test_machines_at_once_pay_once(server: PostgresUrl, tmp_path: Path) -> None:
    """Three runs go on where one was killed; only its four items under way are asked again."""
    with chain(tmp_path / "one", ITEMS, 0.1, "--concurrency", "2") as one:
        one.ledger = text_of(server)
        one.run_killed("group", 0.3, random.Random(1))
        assert 0 < one.kept[0] < 2 * ITEMS
        own, processes = one.options, []
        for number, words in enumerate(((), ("-n", "2"), ())):
            one.options = (*own, *words, "--report-dir", str(tmp_path / str(number)))
            processes.append(one.start())
        codes = [process.wait(120) for process in processes]
        assert one.count() == 2 * ITEMS
    assert codes == [0, 0, 0]
    assert one.trace.repeats <= 4
    records = [
        (tmp_path / str(number) / "records.jsonl").read_bytes() for number in range(3)
    ]
    assert records[0].count(b'"passed"') >= ITEMS - 2
    assert records[0] == records[1] == records[2]

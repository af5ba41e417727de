"""An engine in a thread and in a process of its own; its outcomes reach tests in any process."""

import asyncio
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.core import (
    Outcome,
    Reply,
    Request,
    Usage,
    UsageError,
    Verdict,
    Vote,
)
from qagate.evaluators.crash import CrashedError
from qagate.evaluators.runtime import engine, outcomes
from qagate.evaluators.runtime import process as processes
from qagate.evaluators.runtime.engine import Engine, Job, do_nothing
from qagate.evaluators.runtime.schedule import UNLIMITED
from tests.support.engine_bench import SECRET, Made, good, hanging, pid_of
from tests.support.fixtures import Patch
from tests.support.killing import until
from tests.support.scripted import Scripted
from tests.support.tables import kept

Maker = Callable[[Job], outcomes.EngineHandle]
HOSTS: tuple[Maker, ...] = (processes.EngineProcess, processes.EngineThread)
ROOT = Path(__file__).parents[2]
ORPHAN = kept(__file__, "orphan")


@pytest.fixture(autouse=True)
def _no_ledger_is_read() -> None:
    """Wait for the threads that look through ledgers of earlier tests.

    A process that is forked while one of them holds a lock of SQLite's waits for it for ever. The
    product forks where there is no other thread (``processes.can_fork``).
    """
    until(lambda: "qa-ledger-check" not in {one.name for one in threading.enumerate()})


@pytest.fixture(params=HOSTS)
def kind(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Return each of the two places where an engine may run; all that is started is stopped."""
    started: list[outcomes.EngineHandle] = []

    def make(job: Job) -> outcomes.EngineHandle:
        started.append(request.param(job))
        return started[-1]

    yield make
    for one in started:
        one.stop(grace=0.1)


def test_a_run_from_its_start_to_its_end(tmp_path: Path, kind: Maker) -> None:
    """Every selected item ends, here and on the board; the figures of the whole run are known."""
    made = Made(tmp_path, good())
    running = kind(made.job())
    running.start()
    running.select(made.keys)
    watcher = outcomes.OutcomeReader(tmp_path / "board")
    for key in reversed(made.keys):
        running.move_to_front(key)
        assert running.arrivals.wait(key).state == "passed"
        assert watcher.wait(key).state == "passed"
        running.count_ended_test()
    watcher.close()
    running.stop()
    assert not running.is_alive
    assert sorted(running.arrivals.outcomes) == made.keys
    assert (running.status.requests, running.status.failure) == (5, "")
    assert running.arrivals.wait("k9").message == "the engine has stopped"


def test_a_window_moves_on_with_the_tests(tmp_path: Path, kind: Maker) -> None:
    """Items far ahead are reached because tests that end are counted, one by one or in a word."""
    made = Made(tmp_path, good(), count=40, board=False)
    running = kind(made.job())
    running.start()
    running.select(made.keys)
    for _ in range(40):
        running.count_ended_test()
    assert running.arrivals.wait("k39").state == "passed"


def test_a_lead_is_worked_on_before_the_selection(tmp_path: Path, kind: Maker) -> None:
    """What leads is done although nothing is selected; what is not selected then is left alone."""
    running = kind(Made(tmp_path, good(), board=False).job())
    running.start()
    running.allow_head_start(1)
    assert running.arrivals.wait("k0").state == "passed"
    running.select(["k3"])
    assert running.arrivals.wait("k3").state == "passed"
    running.stop()
    assert set(running.arrivals.outcomes) == {"k0", "k3"}


def test_a_refused_run_says_why(tmp_path: Path, kind: Maker) -> None:
    """Nothing is asked after a refusal, and whoever waits hears the reason."""
    running = kind(Made(tmp_path, good()).job())
    running.start()
    running.refuse("a test module could not be collected")
    assert running.arrivals.wait("k0").message == "a test module could not be collected"
    running.stop()
    assert running.status.failure == "a test module could not be collected"
    assert running.status.requests == 0


def test_what_hangs_is_given_up(tmp_path: Path, kind: Maker) -> None:
    """A call that never ends holds the end up for no longer than the grace."""
    made = Made(tmp_path, hanging())
    running = kind(made.job())
    running.start()
    running.select(made.keys)
    until(lambda: running.status.in_flight > 0)
    running.stop(grace=0.1)
    assert not running.is_alive
    assert {one.state for one in running.arrivals.outcomes.values()} <= {"missing"}


def test_a_bad_start_is_one_line(tmp_path: Path, kind: Maker) -> None:
    """A ledger that cannot be used: a UsageError, no traceback."""
    with pytest.raises(UsageError, match=r"^no ledger$"):
        kind(Made(tmp_path, good(), error=UsageError("no ledger")).job()).start()


def test_a_crash_in_the_making_of_an_engine_is_no_mistake_of_the_user(
    tmp_path: Path, kind: Maker
) -> None:
    with pytest.raises((CrashedError, KeyError), match="odd"):
        kind(Made(tmp_path, good(), error=KeyError("odd")).job()).start()


def test_a_host_that_never_started_can_be_stopped(tmp_path: Path, kind: Maker) -> None:
    """Stopping what has not begun does nothing; neither does telling it anything."""
    running = kind(Made(tmp_path, good()).job())
    running.refuse("nothing")
    running.stop()
    assert not running.is_alive
    assert running.status.requests == 0


def begun(made: Made) -> processes.EngineProcess:
    running = processes.EngineProcess(made.job())
    running.start()
    running.select(made.keys)
    return running


def test_a_breakdown_is_the_runs_failure(tmp_path: Path) -> None:
    """What nobody foresaw ends the run with its name, and no test waits for an outcome."""
    job = Made(tmp_path, good(), lead=UNLIMITED).job()
    for make in HOSTS:

        def broken() -> None:
            raise RuntimeError(*["surprise"])

        running = make(Job(make=job.make, schedule=job.schedule, prepare=broken))
        running.start()
        assert (
            running.arrivals.wait("k0").message
            == "the engine failed: RuntimeError: surprise"
        )
        running.stop()
        assert running.status.failure == "the engine failed: RuntimeError: surprise"


def test_a_process_that_dies_at_once_says_so(tmp_path: Path) -> None:
    """A process that ends without a word is told by its exit code."""

    def leave(sink: outcomes.OutcomeWriter) -> Engine:
        os._exit(9)

    job = Made(tmp_path, good()).job()
    running = processes.EngineProcess(Job(make=leave, schedule=job.schedule))
    with pytest.raises(UsageError, match=r"died \(exit code 9\)"):
        running.start()


def test_no_test_waits_for_a_killed_engine(tmp_path: Path) -> None:
    """Tests of this process and of others are told at once, and so is the report."""
    running = begun(Made(tmp_path, hanging()))
    until(lambda: running.status.in_flight > 0)
    os.kill(pid_of(running), signal.SIGKILL)
    assert "died (exit code -9)" in running.arrivals.wait("k0").message
    running.stop()
    assert (
        "died (exit code -9)"
        in outcomes.OutcomeReader(tmp_path / "board").wait("k0").message
    )
    assert "run again to go on" in running.status.failure
    assert running.status.requests == 1


def test_the_terminals_interrupt_is_left_to_pytest(tmp_path: Path) -> None:
    """Ctrl-C reaches every process of a terminal; the engine goes on until it is told."""
    made = Made(tmp_path, good(), board=False)
    running = processes.EngineProcess(made.job())
    running.start()
    os.kill(pid_of(running), signal.SIGINT)
    running.select(made.keys)
    assert running.arrivals.wait("k0").state == "passed"
    running.stop()
    assert running.status.failure == ""


def test_a_process_that_is_told_to_end_starts_no_call_more(tmp_path: Path) -> None:
    """SIGTERM closes the schedule; items that were not begun are MISSING."""
    made = Made(tmp_path, good(), board=False)
    running = processes.EngineProcess(made.job())
    running.start()
    os.kill(pid_of(running), signal.SIGTERM)
    assert running.arrivals.wait("k0").state == "missing"
    running.select(made.keys)
    running.stop()
    assert running.status.requests == 0


def test_an_engine_does_not_outlive_its_pytest(tmp_path: Path) -> None:
    """When pytest's process is killed the engine's ends too, soon and by itself."""
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    engine = int(process.stdout.readline())
    process.kill()
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 30
    while Path(f"/proc/{engine}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path(f"/proc/{engine}").exists()


def test_where_another_thread_runs_nothing_is_forked(tmp_path: Path) -> None:
    """A lock that another thread holds would stay locked in a fork for ever (F27)."""
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert not processes.can_fork()
        running = processes.begin(Made(tmp_path, good()).job())
        assert isinstance(running, processes.EngineThread)
        running.stop()
    finally:
        done.set()
        thread.join()


def test_where_no_process_is_to_be_had_a_thread_works(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """A system that is out of processes does not keep a run from its work."""

    refused = Mock(side_effect=BlockingIOError(11, "Resource temporarily unavailable"))
    monkeypatch.setattr("qagate.evaluators.runtime.process.can_fork", lambda: True)
    monkeypatch.setattr(os, "fork", refused)
    made = Made(tmp_path, good())
    running = processes.begin(made.job())
    assert isinstance(running, processes.EngineThread)
    running.select(made.keys)
    assert running.arrivals.wait("k0").state == "passed"
    running.stop()


def test_a_thread_that_hangs_does_not_make_a_death_of_the_end(tmp_path: Path) -> None:
    """A look-up of a host's name may hang in a thread: the run has ended all the same."""

    class Stuck(Scripted):
        async def complete(self, request: Request) -> Reply:
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 30)
            return await super().complete(request)

    made = Made(
        tmp_path, Stuck(lambda request: Reply(text="CORRECT")), count=1, board=False
    )
    running = begun(made)
    assert running.arrivals.wait("k0").state == "passed"
    running.stop(grace=0.1)
    assert (running.status.failure, running.status.requests) == ("", 1)
    assert not running._process.is_alive()


def test_an_interrupt_at_the_start_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C while the engine is made ends its process: nobody else could."""
    former = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell may have it ignored

    def slow(sink: outcomes.OutcomeWriter) -> Engine:
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)
        raise AssertionError

    job = Made(tmp_path, good()).job()
    running = processes.EngineProcess(Job(make=slow, schedule=job.schedule))
    with pytest.raises(KeyboardInterrupt):
        running.start()
    signal.signal(signal.SIGINT, former)
    assert running._process.exitcode == -signal.SIGKILL


def test_an_interrupt_during_a_fork_comes_after_it() -> None:
    """Whichever thread is given it, it is raised once the fork is over, and not lost."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = []
    forking = threading.Event()

    def interrupt() -> None:
        forking.wait()
        signal.pthread_kill(
            threading.get_ident(), signal.SIGINT
        )  # here, and before it returns

    other = threading.Thread(target=interrupt)
    other.start()
    with pytest.raises(KeyboardInterrupt):
        with processes._signals_held():
            forking.set()
            other.join()
            steps.append("forked")
        steps.append("went on")
    signal.signal(signal.SIGINT, former)
    assert steps == ["forked"]


def test_what_cannot_be_read_ends_the_engine(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """A word that this side does not know kills the process; no test waits for it."""
    running = processes.EngineProcess(Made(tmp_path, good(), board=False).job())
    monkeypatch.setattr(running, "_take_in", Mock(side_effect=AttributeError))
    running.start()
    assert "died" in running.arrivals.wait("k0").message
    running.stop()
    assert not running._process.is_alive()


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_only_linux_forks_and_no_daemon(platform: str, monkeypatch: Patch) -> None:
    """Elsewhere libraries do not survive it; a worker of a process pool may have no children."""
    monkeypatch.setattr(sys, "platform", platform)
    if platform == "linux":
        monkeypatch.setattr(
            multiprocessing.current_process(), "_config", {"daemon": True}
        )
    assert not processes.can_fork()


def test_a_single_thread_is_forked() -> None:
    """A process that has never had a second thread may fork its engine."""
    script = "from qagate.evaluators.runtime.process import can_fork; print(can_fork())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(sys.platform == "linux")


def test_a_head_start_loads_while_its_job_is_planned(tmp_path: Path) -> None:
    """What a process was told to load is loaded before it has a job; then it does that job."""
    early = processes.EngineProcess(load=partial((tmp_path / "loaded").touch))
    early.fork()
    until((tmp_path / "loaded").exists)
    made = Made(tmp_path, good())
    running = processes.begin(made.packable(), early)
    assert running is early
    running.select(made.keys)
    states = [running.arrivals.wait(key).state for key in made.keys]
    running.stop()
    assert states == ["passed"] * 5
    assert outcomes.OutcomeReader(tmp_path / "board").wait("k0").state == "passed"
    assert running.status.failure == ""


def test_an_engine_that_loads_for_long_is_alive(
    tmp_path: Path, kind: Maker, monkeypatch: Patch
) -> None:
    """On a busy machine; nor is one silent that was stopped together with its run, by Ctrl-Z."""
    monkeypatch.setattr(engine, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(outcomes, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(processes, "PATIENCE_SECONDS", 2.0)
    made = Made(tmp_path, good())
    running = kind(replace(made.job(), prepare=partial(time.sleep, 3.0)))
    running.start()
    running.select(made.keys)
    assert running.arrivals.wait("k0").state == "passed"
    stopped = processes.EngineProcess(made.job())
    stopped._connection = Mock(poll=Mock(side_effect=[False, True]))
    assert stopped._wait_for_notice()


@pytest.mark.parametrize("dies", [True, False])
def test_a_head_start_may_fail(tmp_path: Path, dies: bool) -> None:
    """What could not be loaded early is loaded at need; a process gone before costs no item."""
    early = processes.EngineProcess(
        load=do_nothing if dies else Mock(side_effect=ImportError("not installed"))
    )
    early.fork()
    if dies:
        os.kill(pid_of(early), signal.SIGKILL)
        early._process.join()
    running = processes.begin(Made(tmp_path, good(), count=1).packable(), early)
    assert (running is not early) == dies
    running.select(["k0"])
    assert running.arrivals.wait("k0").state == "passed"
    running.stop()


def test_a_head_start_without_a_job_leaves_no_process() -> None:
    """It is ended at once where there is none, and by itself where nobody can give it one."""
    early = processes.EngineProcess(load=partial(time.sleep, 60))
    early.fork()
    early.abandon()
    assert early._process.exitcode == -signal.SIGKILL
    early.abandon()
    early.stop()
    early = processes.EngineProcess()
    early.fork()
    early._connection.close()
    early._process.join(30)
    assert early._process.exitcode == 0


@pytest.mark.parametrize("name", ["_take_in", "_send"])
def test_a_crash_of_pytests_side_ends_the_engine(
    tmp_path: Path, monkeypatch: Patch, name: str
) -> None:
    """Its threads cannot go on: the run ends at once, and its status says why."""

    def crash(*words: object) -> None:
        raise OverflowError("nobody foresaw this")

    monkeypatch.setattr(processes.EngineProcess, name, crash)
    running = processes.EngineProcess(Made(tmp_path, good()).job())
    running.start()
    running.select(["k0"])
    assert running.arrivals.wait("k0").state == "missing"
    running.stop()
    assert running.status.crash is not None
    assert "nobody foresaw this" in running.status.crash.summary


def test_a_job_that_does_not_arrive_whole_is_a_crash(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """It is told in the process that started the engine, and nowhere else."""
    monkeypatch.setattr(
        "qagate.evaluators.runtime.process.pack", lambda job: b"cos\nnothing_there\n."
    )
    early = processes.EngineProcess()
    early.fork()
    with pytest.raises(CrashedError, match=r"^AttributeError: "):
        processes.begin(Made(tmp_path, good()).packable(), early)


def test_only_the_line_to_a_process_of_our_own_carries_a_key(tmp_path: Path) -> None:
    """A packed job holds the keys of its models; nothing else may write one down."""
    job = Made(tmp_path, good()).packable()
    assert SECRET in processes.pack(job).decode("latin-1")
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(job)


def test_no_head_start_where_nothing_is_forked(monkeypatch: Patch) -> None:
    """The engine begins later then, in a thread; Ctrl-C while forking begins nothing at all."""

    monkeypatch.setattr("qagate.evaluators.runtime.process.can_fork", lambda: False)
    assert processes.fork_early(do_nothing) is None
    monkeypatch.setattr("qagate.evaluators.runtime.process.can_fork", lambda: True)
    monkeypatch.setattr(os, "fork", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        processes.fork_early(do_nothing)


OUTCOME = Outcome(
    key="simpleqa-bg-1",
    state="failed",
    answer="Пловдив",
    verdict=Verdict(grade="INCORRECT", reason="another town"),
    usage=Usage(input_tokens=5, cost=None),
)
VOTES = st.builds(
    Vote,
    judge=st.text(),
    grade=st.none() | st.text(),
    rating=st.none() | st.integers(1, 10),
    reason=st.text(st.characters()),
    error=st.text(),
)


@dataclass
class Clock:
    """A clock that moves on only by sleeping."""

    now: float = 0.0
    asleep: Callable[[], None] = lambda: None
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)
        self.asleep()


Ends = tuple[outcomes.OutcomeWriter, outcomes.OutcomeSource, Clock]


@pytest.fixture(params=["memory", "file"])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Ends:
    """Return both ends of a way for outcomes, within a process and between two, and its clock."""
    clock = Clock()
    if request.param == "memory":
        arrivals = outcomes.InMemoryOutcomes()
        return arrivals, arrivals, clock
    writer = outcomes.OutcomeStore(tmp_path / "store")
    return writer, outcomes.OutcomeReader(tmp_path / "store", clock.sleep), clock


def test_what_has_come_or_ended_is_not_waited_for(ends: Ends) -> None:
    """An outcome is returned at once; after the end an item without one is MISSING, with why."""
    writer, source, clock = ends
    writer.post([OUTCOME])
    writer.end("the disk is full")
    assert source.wait(OUTCOME.key) == OUTCOME
    missing = source.wait("another")
    assert (missing.state, missing.kind) == ("missing", "stopped")
    assert missing.message == "the disk is full"
    assert clock.sleeps == []
    source.close()
    writer.close()


def test_a_silent_engine_is_given_up_in_memory(monkeypatch: Patch) -> None:
    """Without a beat for half a minute there is an error; a beat starts the time again."""
    arrivals = outcomes.InMemoryOutcomes()
    monkeypatch.setattr(outcomes, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(outcomes, "SILENCE_SECONDS", 0.05)
    with pytest.raises(outcomes.EngineLostError, match="silent for 30 s"):
        arrivals.wait("k1")
    arrivals.beat()
    arrivals.post([OUTCOME])
    assert arrivals.wait(OUTCOME.key) == OUTCOME


def test_a_silent_engine_is_given_up_by_other_processes(tmp_path: Path) -> None:
    """The silence is waited for once, not in each test (R9)."""
    outcomes.OutcomeStore(tmp_path / "store").close()
    clock = Clock()
    reader = outcomes.OutcomeReader(tmp_path / "store", clock.sleep)
    with pytest.raises(
        outcomes.EngineLostError, match="silent for 30 s; run again to resume"
    ):
        reader.wait("nothing")
    before = clock.now
    with pytest.raises(outcomes.EngineLostError):
        reader.wait("nothing either")
    assert clock.now - before < outcomes.SILENCE_SECONDS


def test_a_test_waits_while_the_engine_lives(tmp_path: Path) -> None:
    """An engine whose heart beats is waited for, however long it takes."""
    writer, clock = outcomes.OutcomeStore(tmp_path / "store"), Clock()

    def beat() -> None:
        clock.now += outcomes.SILENCE_SECONDS / 2
        writer.beat()
        if len(clock.sleeps) == 5:
            writer.post([OUTCOME])

    clock.asleep = beat
    assert (
        outcomes.OutcomeReader(tmp_path / "store", clock.sleep).wait(OUTCOME.key)
        == OUTCOME
    )
    assert clock.now > 2 * outcomes.SILENCE_SECONDS


@given(
    text=st.text(st.characters(codec=None), max_size=40),
    votes=st.lists(VOTES, max_size=3),
)
def test_any_text_and_votes_reach_the_test(
    tmp_path_factory: pytest.TempPathFactory, text: str, votes: list[Vote]
) -> None:
    """Lone surrogates and control characters survive, and what several judges said."""
    outcome = Outcome(
        key="k", state="error", answer=text, kind="internal", message=text
    )
    outcome = replace(outcome, verdict=Verdict(votes=tuple(votes)))
    path = tmp_path_factory.mktemp("outcomes") / "store"
    with (
        closing(outcomes.OutcomeStore(path)) as store,
        closing(outcomes.OutcomeReader(path)) as reader,
    ):
        store.post([outcome])
        assert reader.wait("k") == outcome

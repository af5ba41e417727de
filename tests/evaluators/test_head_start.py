"""A process that loads what an engine needs while nobody knows yet what is to be done."""

import os
import pickle
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from evaluators.core import UsageError
from evaluators.runtime.host import nothing
from evaluators.runtime.outcomes import OutcomeReader
from evaluators.runtime.process import EngineProcess, begin, fork_early, pack
from tests.support.hosted import SECRET, Made, good, pid_of
from tests.support.killing import until


def test_a_head_start_loads_while_its_job_is_planned(tmp_path: Path) -> None:
    """What a process was told to load is loaded before it has a job; then it does that job."""
    early = EngineProcess(load=partial((tmp_path / "loaded").touch))
    early.fork()
    until((tmp_path / "loaded").exists)
    made = Made(tmp_path, good())
    running = begin(made.packable(), early)
    assert running is early
    running.select(made.keys)
    states = [running.arrivals.wait(key).state for key in made.keys]
    running.stop()
    assert states == ["passed"] * 5
    assert OutcomeReader(tmp_path / "board").wait("k0").state == "passed"
    assert running.status.failure == ""


def test_a_head_start_may_fail_to_load(tmp_path: Path) -> None:
    """What could not be loaded early is no failure: it is loaded again where it is needed."""

    def broken() -> None:
        raise ImportError(*["not installed"])

    early = EngineProcess(load=broken)
    early.fork()
    running = begin(Made(tmp_path, good(), count=1).packable(), early)
    running.select(["k0"])
    assert running.arrivals.wait("k0").state == "passed"
    running.stop()


def test_a_head_start_without_a_job_leaves_no_process() -> None:
    """Where the user got something wrong the process is ended at once, whatever it is loading."""
    early = EngineProcess(load=partial(time.sleep, 60))
    early.fork()
    early.abandon()
    assert early._process.exitcode == -signal.SIGKILL
    early.abandon()
    early.stop()


def test_a_head_start_ends_when_nobody_can_give_it_a_job() -> None:
    """A process that waits for a job ends by itself once the other end of its line is gone."""
    early = EngineProcess()
    early.fork()
    early._connection.close()
    early._process.join(30)
    assert early._process.exitcode == 0


def test_a_head_start_that_died_is_done_without(tmp_path: Path) -> None:
    """A process that is no more before it had a job costs the run nothing but the head start."""
    early = EngineProcess()
    early.fork()
    os.kill(pid_of(early), signal.SIGKILL)
    early._process.join()
    running = begin(Made(tmp_path, good(), count=1).packable(), early)
    assert running is not early
    running.select(["k0"])
    assert running.arrivals.wait("k0").state == "passed"
    running.stop()


def test_a_job_that_does_not_arrive_whole_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a process cannot make of its job is one line for the user, not a traceback."""
    monkeypatch.setattr("evaluators.runtime.process.pack", lambda job: b"cos\nnothing_there\n.")
    early = EngineProcess()
    early.fork()
    with pytest.raises(UsageError, match=r"^the engine failed: AttributeError: "):
        begin(Made(tmp_path, good()).packable(), early)


def test_only_the_line_to_a_process_of_our_own_carries_a_key(tmp_path: Path) -> None:
    """A packed job holds the keys of its models; nothing else may write one down."""
    job = Made(tmp_path, good()).packable()
    assert SECRET in pack(job).decode("latin-1")
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(job)


def test_no_head_start_where_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process cannot be forked the engine begins later, in a thread."""
    monkeypatch.setattr("evaluators.runtime.process.can_fork", lambda: False)
    assert fork_early(nothing) is None


def test_an_interrupt_while_forking_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the very moment is the user's: nothing is begun in another way instead."""

    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("evaluators.runtime.process.can_fork", lambda: True)
    monkeypatch.setattr(os, "fork", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fork_early(nothing)

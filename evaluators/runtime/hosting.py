"""Where an engine runs: in a process of its own, or in a thread where none can be forked.

A process of its own shares no interpreter lock with pytest: on two cores both go at full speed.
"""

import multiprocessing
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from evaluators.runtime.engine_job import EngineHandle, Job
from evaluators.runtime.engine_process import EngineProcess
from evaluators.runtime.engine_thread import EngineThread, ThreadHandle

TASKS = Path("/proc/self/task")  # Linux lists a process's threads there, C's own included

__all__ = [
    "EngineHandle",
    "EngineProcess",
    "EngineThread",
    "Job",
    "begin",
    "can_fork",
    "head_start",
]


def head_start(load: Callable[[], None]) -> EngineProcess | None:
    """Return a process that does ``load`` until ``begin`` gives it a job.

    None where no process may be forked, or none is to be had.
    """
    if not can_fork():
        return None
    process = EngineProcess(load=load)
    try:
        process.fork()
    except OSError:
        return None
    return process


def begin(job: Job, early: EngineProcess | None = None) -> EngineHandle:
    """Start an engine where it best runs here. Raises UsageError where it cannot be made.

    ``early`` is what ``head_start`` returned; where it has died it is done without.
    """
    if early is not None and early.give(job):
        early.start()
        return early
    if can_fork():
        process = EngineProcess(job)
        with suppress(OSError):  # no process is to be had, yet a thread may be
            process.start()
            return process
    local = ThreadHandle(job)
    local.start()
    return local


def can_fork() -> bool:
    """Whether a process may be forked: on Linux, where no other thread could hold a lock in it."""
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    if sys.platform != "linux" or not alone:
        return False
    try:
        return len(list(TASKS.iterdir())) == 1
    except OSError:
        return False

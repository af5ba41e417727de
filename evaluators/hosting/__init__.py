"""Where an engine runs: in a process of its own, or in a thread where none can be forked.

A process of its own shares no interpreter lock with pytest: on two cores both go at full speed.
"""

import multiprocessing
import sys
import threading
from pathlib import Path

from evaluators.hosting.job import Host, Job
from evaluators.hosting.process import EngineProcess
from evaluators.hosting.thread import EngineThread, LocalHost

TASKS = Path("/proc/self/task")  # Linux lists a process's threads there, C's own included

__all__ = ["EngineThread", "Host", "Job", "begin", "can_fork"]


def begin(job: Job) -> Host:
    """Start an engine where it best runs here. Raises UsageProblem where it cannot be made."""
    if can_fork():
        process = EngineProcess(job)
        try:
            process.start()
        except OSError:  # no process is to be had, yet a thread may be
            process.close()
        else:
            return process
    local = LocalHost(job)
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

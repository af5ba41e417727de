"""What a run needs of the system it runs on, tried before the first call.

A report that cannot be written is worth nothing, however well its replies are kept. So what
writes it is loaded first. Each call in flight is an open file: where too few may be open, the
calls would fail, and look like a server that is down.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module

from qagate.evaluators.core import UsageError
from qagate.evaluators.output import UnwrittenError
from qagate.evaluators.text import one_line

OWN_FILES = 40
"""Files that a run has open beside its connections: its own, Python's, the ledger's."""

WORKER_FILES = 3
"""Files that each worker of xdist takes in this process."""

MATHS_THREADS = "OPENBLAS_NUM_THREADS"
"""The variable by which numpy's library takes memory for one thread only. None is needed."""

PROGRAM = "import qagate.reports.plugin.finish as finish; finish.prepare()"
"""What a process does that tries whether there is memory for a report."""


def check_files(concurrency: int, workers: int) -> None:
    """Let this process open as many files as it may. Raises UsageError if these are too few."""
    try:
        import resource  # noqa: PLC0415  # Windows has none
    except ImportError:
        return
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may have a lower limit of its own
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))
        soft_limit = hard_limit
    if soft_limit == resource.RLIM_INFINITY:
        return
    other_files = OWN_FILES + WORKER_FILES * workers
    calls = soft_limit - other_files
    if concurrency <= calls:
        return
    way_out = f"raise the limit: ulimit -n {concurrency + other_files}"
    if calls >= 1:
        way_out = f"give --concurrency {calls}, or {way_out}"
    raise UsageError(
        f"--concurrency {concurrency}: needs {concurrency + other_files} open files with {workers} "
        f"workers, and this process may open {soft_limit}; {way_out}"
    )


class ReportWriters:
    """What writes the report, loaded in a thread while models are connected."""

    def __init__(self) -> None:
        self._problem = ""
        self._thread: threading.Thread | None = None

    def start(self, guarded: Callable[[Callable[[], object]], object]) -> None:
        """Begin to load, in a thread in which ``guarded`` notes a crash.

        Raises UnwrittenError where a limit leaves too little memory.
        """
        _check_memory()
        load = partial(guarded, self._load)
        self._thread = threading.Thread(target=load, name="qa-end", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Return once all is loaded. Raises UnwrittenError if it cannot be."""
        if self._thread is not None:
            self._thread.join()
        if self._problem:
            raise _no_report(self._problem)

    def _load(self) -> None:
        try:
            with _one_thread():
                import_module("qagate.reports.plugin.finish").prepare()
        except Exception as error:
            self._problem = _last_line(str(error)) or type(error).__name__
            if not isinstance(error, (ImportError, MemoryError, OSError)):
                raise  # a crash, which is told as one


def _check_memory() -> None:
    """Raise UnwrittenError if the memory that a process may take is too little for a report.

    A process of its own tries, where there is a limit: libraries in C end the process that
    does not get its memory.
    """
    try:
        import resource  # noqa: PLC0415  # Windows has none
    except ImportError:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    with _one_thread():
        trial = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    if trial.returncode:
        reason = _last_line(trial.stderr) or f"exit {trial.returncode}"
        raise _no_report(
            f"what writes it does not load within {limit // 1024:,} kB of memory, "
            f"the limit of this process (ulimit -v): {reason}"
        )


def _last_line(text: str) -> str:
    """Return the last line that is not blank: the one that says what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    return one_line(lines[-1].strip()) if lines else ""


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let numpy's library prepare for one thread, if the user names no other number."""
    if MATHS_THREADS in os.environ:
        yield
        return
    os.environ[MATHS_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(MATHS_THREADS, None)


def _no_report(why: str) -> UnwrittenError:
    return UnwrittenError(f"no report could be written: {why}; nothing was asked")

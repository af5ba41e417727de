"""An engine in a process of its own, forked from pytest's before that has any thread.

A process of its own shares no interpreter lock with pytest: on two cores both go at full speed. It
sends how items ended and what the engine is at, and is sent the words of ``EngineHandle``. A broken
pipe ends the run on either side: an engine whose pytest was killed starts no further call, and
tests whose engine was killed do not wait.
"""

import contextlib
import copyreg
import multiprocessing
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue

from evaluators.core import UsageError
from evaluators.runtime.engine import Status
from evaluators.runtime.engine_child import SIGNALS, TAIL_SECONDS, work
from evaluators.runtime.engine_thread import GRACE_SECONDS, EngineHandle, EngineThread, Job, nothing
from evaluators.runtime.outcomes import OutcomeStore
from evaluators.secrets import Key

READY_SECONDS = 5.0  # an SDK loads in less, or tests had better begin
TASKS = Path("/proc/self/task")  # Linux lists a process's threads there, C's own included


def fork_early(load: Callable[[], None]) -> "EngineProcess | None":
    """Return a process that does ``load`` until ``begin`` gives it a job; None if none can be."""
    if not can_fork():
        return None
    process = EngineProcess(load=load)
    try:
        process.fork()
    except OSError:
        return None
    return process


def begin(job: Job, early: "EngineProcess | None" = None) -> EngineHandle:
    """Start an engine where it best runs here. Raises UsageError if it cannot be made.

    ``early`` is what ``fork_early`` returned; if it has died, a new process is started.
    """
    if early is not None and early.give(job):
        early.start()
        return early
    if can_fork():
        process = EngineProcess(job)
        with contextlib.suppress(OSError):  # no process is to be had, yet a thread may be
            process.start()
            return process
    thread = EngineThread(job)
    thread.start()
    return thread


def can_fork() -> bool:
    """Whether a process may be forked: on Linux, where no other thread could hold a lock in it."""
    alone = threading.active_count() == 1 and not multiprocessing.current_process().daemon
    if sys.platform != "linux" or not alone:
        return False
    try:
        return len(list(TASKS.iterdir())) == 1
    except OSError:
        return False


def pack(job: Job) -> bytes:
    """Return a job as bytes for the pipe to a process of our own, and for nothing else.

    The keys of its models are in them.
    """
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {Key: lambda key: (Key, (key.reveal(),))}
    pickler.dump(job)
    return buffer.getvalue()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back while the process forks.

    Until the new process has its own way with them it must not have pytest's. In this one an
    interrupt would be lost in a hook that runs after the fork, or leave a lock of it taken; any
    thread may be given the signal, so that a mask alone does not help.
    """
    came: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    former = {
        number: signal.signal(number, lambda got, _: came.append(got))
        for number in (SIGNALS if is_main else ())
    }
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in former.items():
            signal.signal(number, handler)
    for got in came:
        signal.raise_signal(got)


class EngineProcess(EngineHandle):
    """An engine in a forked process, as pytest's side sees it.

    Without a job the process does ``load`` until it is given one.
    """

    def __init__(self, job: Job | None = None, load: Callable[[], None] = nothing) -> None:
        super().__init__()
        self._status = Status()
        self._store = None if job is None else job.store
        self._connection, self._others = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=work,
            args=(self._others, self._connection, job, load),
            name="qa-engine",
            daemon=True,
        )
        self._reader = threading.Thread(target=self._read, name="qa-engine-reader", daemon=True)
        self._writer = threading.Thread(target=self._write, name="qa-engine-writer", daemon=True)
        self._outbox: SimpleQueue[tuple[object, ...] | None] = SimpleQueue()
        self._words: Mapping[str, Callable[..., None]] = {
            "post": self.arrivals.post,
            "status": self._note,
            "beat": lambda _: self.arrivals.beat(),
            "end": self._end,
            "ready": lambda _: self._ready.set(),
        }
        self._ready = threading.Event()
        self._has_ended = False

    @property
    def status(self) -> Status:
        """What the engine is at, or came to."""
        return self._status

    @property
    def is_alive(self) -> bool:
        """Whether more may come from it."""
        return self._reader.is_alive()

    def fork(self) -> None:
        """Start the process. Raises OSError if the system has none left."""
        try:
            with _signals_held():
                self._process.start()
        except BaseException:  # an interrupt too: nobody else knows of the process yet
            self.abandon()
            raise
        self._others.close()

    def give(self, job: Job) -> bool:
        """Say what is to be done if that was not known yet; return False if the process died."""
        try:
            self._connection.send_bytes(pack(job))  # never a local: it holds the keys
        except OSError:
            self.abandon()
            return False
        self._store = job.store
        return True

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that cannot be done, or OSError."""
        if self._process.pid is None:
            self.fork()
        try:
            word, value = self._connection.recv()
        except (EOFError, ConnectionError):
            word, value = "problem", self._death()
        except BaseException:  # an interrupt: nobody else can end the process
            self.abandon()
            raise
        if word == "problem":
            self._process.join()
            raise UsageError(value)
        self._reader.start()
        self._writer.start()

    def abandon(self) -> None:
        """Kill a process that has begun no job and close its pipe; do nothing once it has."""
        if self._reader.ident is not None:
            return
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self._connection.close()
        self._others.close()

    def wait_until_ready(self) -> None:
        """Return once everything is loaded, so that nobody takes the processor from that."""
        self._ready.wait(READY_SECONDS)

    def tell(self, word: str, *values: object) -> None:
        """Pass a word on to the engine."""
        # By a thread: an interrupt in the middle of a word would garble every later one.
        self._outbox.put((word, *values))

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""
        if self._reader.ident is None:
            return
        self.tell("stop", grace)
        self._reader.join(grace + TAIL_SECONDS)
        if self._reader.is_alive():
            self._end("the run was stopped")
            self._process.kill()
        self._reader.join()

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # it has ended: there is nobody to tell
            while (word := self._outbox.get()) is not None:
                self._connection.send(word)

    def _note(self, status: Status) -> None:
        self._status = status
        self.arrivals.beat()

    def _end(self, message: str) -> None:
        self._has_ended = True
        self.arrivals.end(message)

    def _read(self) -> None:
        try:
            while True:
                word, value = self._connection.recv()
                self._words[word](value)
        except (EOFError, OSError):
            pass
        except Exception:  # noqa: BLE001  # what cannot be read cannot be waited for
            self._process.kill()
        self._ready.set()
        self._outbox.put(None)
        self._process.join()
        if not self._has_ended:
            self._report_death()

    def _report_death(self) -> None:
        """Let no test wait for an engine that was killed."""
        why = self._status.failure or self._death()
        self._status = replace(self._status, failure=why, in_flight=0, waiting="")
        self._end(why)
        if self._store is not None:
            store = OutcomeStore(self._store)
            store.end(why)
            store.close()

    def _death(self) -> str:
        self._process.join()
        return (
            f"the engine's process died (exit code {self._process.exitcode}); "
            "what was paid for is kept, run again to go on"
        )

"""An engine in a process of its own, forked from pytest's before that has any thread; or a thread.

Two processes share no interpreter lock: on two cores both run at full speed. A pipe joins them, and
its end ends the run on either side: no further call is made, and no test waits.
"""

import asyncio
import contextlib
import copyreg
import gc
import multiprocessing
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from io import BytesIO
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

from qagate.evaluators.core import Outcome, UsageError
from qagate.evaluators.runtime import outcomes
from qagate.evaluators.runtime.engine import Engine, Job, do_nothing
from qagate.evaluators.runtime.outcomes import (
    GRACE_SECONDS,
    SILENCE_SECONDS,
    EngineHandle,
    Instruction,
    Status,
)
from qagate.evaluators.text import Key
from qagate.evaluators.user_code import in_thread

SIGNALS = (signal.SIGINT, signal.SIGTERM)
READY_SECONDS = 5.0  # an SDK loads in less; tests wait no longer for that
STATUS_SECONDS = 0.1
SILENT_SECONDS = (
    SILENCE_SECONDS - 2
)  # after which an engine is ended, before tests give it up
WAITS = 28  # short ones, in place of one as long as SILENT_SECONDS
LATE_SECONDS = 1.5  # how long after the run's time is used up a silent engine is ended
TAIL_SECONDS = 2.0  # to write what has arrived, once nothing more is waited for
COLLECT_AT = 20_000  # new objects, not 700: garbage collection took an eighth of the engine's time
Notice = Literal["made", "problem", "ready", "post", "status", "beat", "work", "end"]
"""What the engine's process says, each with one value."""
TASKS = Path(
    "/proc/self/task"
)  # Linux lists a process's threads there, those of C code too


def fork_early(load: Callable[[], None]) -> "EngineProcess | None":
    """Return a process that does ``load`` until ``begin`` gives it a job; None if there is none."""
    if can_fork():
        process = EngineProcess(load=load)
        with contextlib.suppress(OSError):
            process.fork()
            return process
    return None


def begin(job: Job, early: "EngineProcess | None" = None) -> EngineHandle:
    """Start an engine: in the ``early`` process if it lives, in a new one, or in a thread."""
    if early is not None and early.give(job):
        early.start()
        return early
    if can_fork():
        process = EngineProcess(job)
        with contextlib.suppress(
            OSError
        ):  # no process is to be had, yet a thread may be
            process.start()
            return process
    thread = EngineThread(job)
    thread.start()
    return thread


def can_fork() -> bool:
    """Whether a process may be forked: on Linux, if no other thread could hold a lock in it."""
    alone = (
        threading.active_count() == 1 and not multiprocessing.current_process().daemon
    )
    if sys.platform == "linux" and alone:
        with contextlib.suppress(OSError):
            return len(list(TASKS.iterdir())) == 1
    return False


def pack(job: Job) -> bytes:
    """Return a job, with the keys of its models, for the pipe to our own process alone."""
    buffer = BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = copyreg.dispatch_table | {
        Key: lambda key: (Key, (key.reveal(),))
    }
    pickler.dump(job)
    return buffer.getvalue()


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Hold signals back while the process forks, which must not handle them as pytest does.

    Here an interrupt would be lost in a hook after the fork, or leave a lock of its taken. A mask
    alone does not help, as any thread may receive a signal.
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


@dataclass(frozen=True, slots=True)
class Stop:
    """Start no item and no call, and end after ``grace`` seconds."""

    grace: float


class EngineProcess(EngineHandle):
    """An engine in a forked process; one without a job does ``load`` until it is given one."""

    status = Status()
    """The engine's latest status; after the end the final one."""

    def __init__(
        self, job: Job | None = None, load: Callable[[], None] = do_nothing
    ) -> None:
        super().__init__(self._read, "qa-engine-reader")
        self._store = None if job is None else job.store
        self._connection, self._childs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("fork").Process(
            target=work,
            args=(self._childs, self._connection, job, load),
            name="qa-engine",
            daemon=True,
        )
        self._writer = threading.Thread(
            target=self._write, name="qa-engine-writer", daemon=True
        )
        self._outbox: SimpleQueue[Instruction | Stop | None] = SimpleQueue()
        self._received: Mapping[Notice, Callable[[Any], None]] = {
            "post": self.arrivals.post,
            "status": self._note,
            "beat": lambda _: self.arrivals.beat(),
            "end": self.arrivals.end,
            "ready": lambda _: self._ready.set(),
            "work": lambda key_and_left: self._note_work(*key_and_left),
        }
        self._at_work: dict[str, None] = {}
        self._was_silent = False
        self._ready = threading.Event()

    def fork(self) -> None:
        """Start the process. Raises OSError if the system has none left."""
        try:
            with _signals_held():
                self._process.start()
        except BaseException:  # an interrupt too: nobody else knows of the process yet
            self.abandon()
            raise
        self._childs.close()

    def give(self, job: Job) -> bool:
        """Give the job to a process that was started without one; return False if it has died."""
        try:
            self._connection.send_bytes(pack(job))  # never a local: it holds the keys
        except OSError:
            self.abandon()
            return False
        self._store = job.store
        return True

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError if that is impossible, or OSError."""
        if self._process.pid is None:
            self.fork()
        try:
            message, value = self._connection.recv()
        except (EOFError, ConnectionError):
            message, value = "problem", self._death()
        except BaseException:  # an interrupt: nobody else can end the process
            self.abandon()
            raise
        if message == "problem":
            self._process.join()
            raise UsageError(value)
        self._thread.start()
        self._writer.start()

    def abandon(self) -> None:
        """Kill a process that has begun no job; do nothing once it has."""
        if self._thread.ident is not None:
            return
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self._connection.close()
        self._childs.close()

    def wait_until_ready(self) -> None:
        """Return once everything is loaded, so that tests take no processor time from that."""
        self._ready.wait(READY_SECONDS)

    def tell(self, instruction: Instruction) -> None:
        """Pass an instruction on to the engine."""
        # By a thread: an interrupt in the middle of a message would garble every later one.
        self._outbox.put(instruction)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for calls in flight, then give up."""
        if self._thread.ident is None:
            return
        self._outbox.put(Stop(grace))
        self._thread.join(grace + TAIL_SECONDS)
        if self._thread.is_alive():
            self.arrivals.end("the run was stopped")
            self._process.kill()
        self._thread.join()

    def _write(self) -> None:
        with contextlib.suppress(
            OSError
        ):  # the engine has ended: there is nobody to tell
            while (message := self._outbox.get()) is not None:
                self._connection.send(message)

    def _note(self, status: Status) -> None:
        self.status = status
        self.arrivals.beat()

    def _note_work(self, key: str, left: float | None) -> None:
        if left is None:
            self._at_work.pop(key, None)
        else:
            self._at_work[key] = None
            self.status = replace(self.status, left=left)

    def _read(self) -> None:
        try:
            while self._hears():
                message, value = self._connection.recv()
                self._received[message](value)
            self._was_silent = True
            self._process.kill()
        except (EOFError, OSError):
            pass
        except Exception:  # noqa: BLE001  # what cannot be read cannot be waited for
            self._process.kill()
        self._ready.set()
        self._outbox.put(None)
        self._process.join()
        if self.arrivals.ended is not None:
            return
        # It was killed: no test may wait for it.
        why = self.status.failure or self._death()
        self.status = replace(self.status, failure=why, in_flight=0, waiting="")
        self.arrivals.end(why)
        if self._store is not None:
            with contextlib.closing(outcomes.OutcomeStore(self._store)) as store:
                store.end(why)

    def _hears(self) -> bool:
        """Wait for a message; the engine sends its status all the time.

        A stop of the whole run (Ctrl-Z) outlasts one of the short waits, not all of them.
        """
        most = min(SILENT_SECONDS, max(1.0, self.status.left + LATE_SECONDS))
        return any(self._connection.poll(most / WAITS) for _ in range(WAITS))

    def _death(self) -> str:
        self._process.join()
        how = "was held up and ended" if self._was_silent else "died"
        own = ", ".join(list(self._at_work)[:3])
        return (
            f"the engine's process {how} (exit code {self._process.exitcode})"
            + (
                f" while code of yours judged or answered {own}: mend that first"
                if own
                else ""
            )
            + "; what was paid for is kept, run again to go on"
        )


class EngineThread(EngineHandle):
    """An engine in a thread of this process. Raises UsageError if it cannot be made."""

    def __init__(self, job: Job) -> None:
        super().__init__(self._run, "qa-engine")
        self._job = job
        self._engine = job.make_engine(self.arrivals)
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._main: asyncio.Task[None] | None = None

    @property
    def status(self) -> Status:
        """The engine's latest status; after the end the final one."""
        return self._engine.status

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def tell(self, instruction: Instruction) -> None:
        """Pass an instruction on to the engine."""
        # A loop that is closed has done everything.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._job.obey, self._engine, instruction)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for calls in flight, then give up."""
        if self._thread.ident is None or not self._is_open:
            return
        self._is_open = False
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._job.schedule.close)
            self._loop.call_soon_threadsafe(self._engine.halt)
        self._thread.join(grace)
        if self._thread.is_alive() and self._main is not None:
            self._loop.call_soon_threadsafe(self._main.cancel)
            self._thread.join(grace)
        self._engine.close()

    def _run(self) -> None:
        try:
            work = self._engine.run(
                self._job.schedule, self._job.models, self._job.prepare
            )
            self._main = self._loop.create_task(work)
            with contextlib.suppress(asyncio.CancelledError):
                self._loop.run_until_complete(self._main)
        except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
            self._engine.fail(error)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


class PipeWriter(outcomes.OutcomeWriter):
    """Sends outcomes to pytest's process, as long as it listens; open to the last status."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._lock = threading.Lock()  # a thread of its own sends the heartbeat

    def send(self, notice: Notice, value: object = None) -> None:
        """Send one message."""
        with self._lock, contextlib.suppress(OSError):
            self.connection.send((notice, value))

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Send outcomes."""
        self.send("post", outcomes)

    def beat(self) -> None:
        """Show that the engine is alive."""
        self.send("beat")

    def note_work(self, key: str, left: float | None) -> None:
        """Send it at once: nothing can be sent while the work holds this process up."""
        self.send("work", (key, left))

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        self.send("end", message)


def work(
    own: Connection,
    parents: Connection,
    job: Job | None,
    load: Callable[[], None] = do_nothing,
) -> None:
    """Do the job in the new process; None: ``load``, and get it through the pipe."""
    parents.close()  # or the end of pytest's process would never be seen
    # The terminal interrupts every process at once: pytest decides what that means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # until everything is loaded that stays to the end
    loaded: Callable[[], object] = do_nothing
    if job is None:
        signal.signal(
            signal.SIGTERM, signal.SIG_DFL
        )  # nothing has begun that must end well
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        # What fails to load is loaded again when it is needed.
        loading: Future[None] = in_thread(load)
        loaded = loading.exception
        try:
            job = pickle.loads(own.recv_bytes())
        except (EOFError, OSError):  # there is no job: the user got something wrong
            return
        except Exception as error:  # noqa: BLE001  # a traceback would help nobody
            problem = f"the engine failed: {type(error).__name__}: {error}"
            PipeWriter(own).send("problem", problem)
            return
    assert isinstance(job, Job)
    _do(job, PipeWriter(own), loaded)


def _do(job: Job, writer: PipeWriter, loaded: Callable[[], object]) -> None:
    has_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: has_to_end.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        engine = job.make_engine(writer)
    except UsageError as problem:
        writer.send("problem", str(problem))
        return
    writer.send("made")

    def load() -> None:
        loaded()
        job.prepare()
        gc.freeze()
        gc.set_threshold(COLLECT_AT)
        gc.enable()
        writer.send("ready")

    try:
        asyncio.run(_run(replace(job, prepare=load), engine, writer, has_to_end))
    except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
        engine.fail(error)
    engine.close()
    writer.send("status", engine.status)


async def _keep_telling(engine: Engine, writer: PipeWriter) -> None:
    while True:
        writer.send("status", engine.status)
        await asyncio.sleep(STATUS_SECONDS)


async def _run(
    job: Job, engine: Engine, writer: PipeWriter, has_to_end: threading.Event
) -> None:
    loop, pipe = asyncio.get_running_loop(), writer.connection
    main = asyncio.create_task(engine.run(job.schedule, job.models, job.prepare))
    is_ending = False

    def stop(grace: float = GRACE_SECONDS) -> None:
        nonlocal is_ending
        job.schedule.close()
        if not is_ending:
            is_ending = True
            engine.halt()
            loop.call_later(grace, main.cancel)
            # If anything hangs then, nobody may be left who could end this process.
            signal.setitimer(signal.ITIMER_REAL, grace + TAIL_SECONDS)

    def listen() -> None:
        try:
            while pipe.poll():
                instruction: Instruction | Stop = pipe.recv()
                if isinstance(instruction, Stop):
                    stop(instruction.grace)
                else:
                    job.obey(engine, instruction)
        except Exception:  # noqa: BLE001  # pytest's process is gone, or cannot be understood
            loop.remove_reader(pipe.fileno())
            stop()

    loop.add_reader(pipe.fileno(), listen)
    loop.add_signal_handler(signal.SIGTERM, stop)
    telling = asyncio.create_task(_keep_telling(engine, writer))
    if has_to_end.is_set():
        stop()
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await main
    finally:
        loop.remove_reader(pipe.fileno())
        telling.cancel()
        # Before the loop is closed, which waits for threads that may hang.
        writer.send("status", engine.status)

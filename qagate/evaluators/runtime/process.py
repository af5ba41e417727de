"""Where the engine runs: in a process of its own, or in a thread of pytest's.

Two processes share no interpreter lock: on two cores both run at full speed. So the engine's
process is forked from pytest's before that has any thread (``fork_early``), loads what is
heavy while tests are still collected, and is given its job once that is known (``begin``).
Where no process can be forked safely, a thread does the same.

One pipe joins the two. Towards pytest go notices (``Notice``): outcomes, the heartbeat, the
status. Towards the engine go instructions, and at the end ``Stop``. The end of the pipe ends
the run on either side: without pytest the engine makes no further call, and without the
engine no test waits.

Two sides stand in this file: EngineProcess and EngineThread are pytest's; ``work`` and all
below it run in the engine's process.
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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from io import BytesIO
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import assert_never

from qagate.evaluators.core import Outcome, UsageError
from qagate.evaluators.crash import Crash, CrashedError, crash_of
from qagate.evaluators.output import UnwrittenError
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

SIGNALS = [signal.SIGINT, signal.SIGTERM]
if sys.platform != "win32":
    SIGNALS.append(signal.SIGHUP)

READY_SECONDS = 5.0
"""Tests wait no longer for an engine that loads. An SDK loads in less."""

STATUS_SECONDS = 0.1
"""Between two reports of the engine's status."""

PATIENCE_SECONDS = SILENCE_SECONDS - 2
"""A process that is silent for so long is killed, just before tests would give it up."""

WAITS = 28
"""So many short waits for a notice make up the whole patience, see ``_wait_for_notice``."""

LATE_SECONDS = 1.5
"""A silent process is killed so long after the run's time is used up."""

TAIL_SECONDS = 2.0
"""To write what has arrived, once nothing more is waited for."""

COLLECT_AT = 20_000
"""New objects between garbage collections, not 700: they took an eighth of the engine's time."""

TASKS = Path("/proc/self/task")
"""Linux lists a process's threads there, those of C code too."""


def fork_early(load: Callable[[], None]) -> "EngineProcess | None":
    """Return a process that does ``load`` until ``begin`` gives it a job; None if there is none."""
    if not can_fork():
        return None
    process = EngineProcess(load=load)
    try:
        process.fork()
    except OSError:  # the system has no process left
        return None
    return process


def begin(job: Job, early: "EngineProcess | None" = None) -> EngineHandle:
    """Start an engine: in the ``early`` process if it lives, in a new one, or in a thread."""
    if early is not None and early.give(job):
        early.start()
        return early
    if can_fork():
        process = EngineProcess(job)
        with contextlib.suppress(OSError):  # no process is left, but a thread may be
            process.start()
            return process
    thread = EngineThread(job)
    thread.start()
    return thread


def can_fork() -> bool:
    """Whether a process may be forked: on Linux, if no other thread could hold a lock in it."""
    if sys.platform != "linux" or threading.active_count() > 1:
        return False
    if multiprocessing.current_process().daemon:
        return False
    try:
        return len(list(TASKS.iterdir())) == 1
    except OSError:
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

    In the new process an interrupt would be lost in a hook after the fork, or leave a lock
    of that hook taken. A mask alone does not help, as any thread may receive a signal.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    former = {}
    if threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            former[number] = signal.signal(number, note)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for held, handler in former.items():
            signal.signal(held, handler)
    for received in came:
        signal.raise_signal(received)


@dataclass(frozen=True, slots=True)
class Stop:
    """Start no item and no call, and end after ``grace`` seconds."""

    grace: float


@dataclass(frozen=True, slots=True)
class Made:
    """The engine is made and begins."""


@dataclass(frozen=True, slots=True)
class Problem:
    """The engine cannot be made, for a reason that the user learns."""

    error: UsageError | UnwrittenError


@dataclass(frozen=True, slots=True)
class Crashed:
    """The engine's process broke down where nobody foresaw it."""

    crash: Crash


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything is loaded."""


@dataclass(frozen=True, slots=True)
class Posted:
    """These items have ended."""

    outcomes: Sequence[Outcome]


@dataclass(frozen=True, slots=True)
class Reported:
    """What the engine is doing now."""

    status: Status


@dataclass(frozen=True, slots=True)
class Beat:
    """The engine is alive."""


@dataclass(frozen=True, slots=True)
class Work:
    """The user's code begins its work on an item, or has ended it (``left`` None)."""

    key: str
    left: float | None
    """Seconds that the run has left."""


@dataclass(frozen=True, slots=True)
class Over:
    """Nothing more will come, and why."""

    message: str


Notice = Made | Problem | Crashed | Ready | Posted | Reported | Beat | Work | Over
"""What the engine's process says. The first is Made, Problem or Crashed."""


class EngineProcess(EngineHandle):
    """An engine in a forked process; one without a job does ``load`` until it is given one.

    Its life: ``fork``, ``give`` it a job if it has none, ``start``, ``stop``. A process that
    gets no job is ended by ``abandon``. On this side two threads serve it. One reads notices
    (``_read``), and kills the process if it is silent for too long: the user's code may hold
    it up for ever. The other writes instructions (``_write``).

    Attributes::

    :status: The engine's latest status; after the end the final one.

    :_connection: This side's end of the pipe; ``_childs`` is the engine's.

    :_outbox: What the engine is still to be told; None ends the writer.

    :_at_work: The keys of items on which the user's code works now, the latest last.

    :_was_silent: Whether the process was killed for its silence.

    :_crash: What nobody foresaw, on either side.

    :_ready: Set once the engine has loaded everything, or has died.
    """

    status = Status()

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
        self._at_work: dict[str, None] = {}
        self._was_silent = False
        self._crash: Crash | None = None
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
            # The packed job is never a local: a traceback would show the keys in it.
            self._connection.send_bytes(pack(job))
        except OSError:
            self.abandon()
            return False
        self._store = job.store
        return True

    def start(self) -> None:
        """Make the engine and begin.

        Raises UsageError or UnwrittenError if that is impossible, OSError without a process,
        and CrashedError.
        """
        if self._process.pid is None:
            self.fork()
        notice: Notice
        try:
            notice = self._connection.recv()
        except (EOFError, ConnectionError):
            notice = Problem(UsageError(self._death()))
        except BaseException:  # an interrupt: nobody else can end the process
            self.abandon()
            raise
        if isinstance(notice, Problem):
            self._process.join()
            raise notice.error
        if isinstance(notice, Crashed):
            self._process.join()
            raise CrashedError(notice.crash)
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
        """Send what is put into the outbox, until the engine has ended."""
        try:
            while (message := self._outbox.get()) is not None:
                self._send(message)
        except OSError:  # there is nobody left to tell
            pass
        except Exception as error:  # noqa: BLE001  # it would wait for its orders for ever
            self._break_down(crash_of(error))

    def _send(self, message: Instruction | Stop) -> None:
        self._connection.send(message)

    def _read(self) -> None:
        """Take in what the engine says, until it has ended; then let no test wait."""
        try:
            while self._wait_for_notice():
                self._take_in(self._connection.recv())
            self._was_silent = True
            self._process.kill()
        except (EOFError, OSError):  # it has ended
            pass
        except Exception as error:  # noqa: BLE001  # what cannot be read cannot be waited for
            self._break_down(crash_of(error))
        self._ready.set()
        self._outbox.put(None)
        self._process.join()
        if self.arrivals.ended is None:
            self._announce_death()

    def _break_down(self, crash: Crash) -> None:
        """Note a crash of this side or the other, and end the process: nothing more comes of it."""
        self._crash = self._crash or crash
        self._process.kill()

    def _wait_for_notice(self) -> bool:
        """Return True once there is a notice, False if the engine stayed silent for too long.

        The engine sends its status all the time. Many short waits stand in place of a long
        one: when the whole run is stopped (Ctrl-Z) and goes on later, only the wait that was
        interrupted is over at once.
        """
        seconds = max(1.0, self.status.left + LATE_SECONDS)
        seconds = min(PATIENCE_SECONDS, seconds)
        return any(self._connection.poll(seconds / WAITS) for _ in range(WAITS))

    def _take_in(self, notice: Notice) -> None:
        """Do what a notice calls for on this side."""
        match notice:
            case Posted():
                self.arrivals.post(notice.outcomes)
            case Reported():
                self.status = notice.status
                self.arrivals.beat()
            case Beat():
                self.arrivals.beat()
            case Work():
                self._note_work(notice)
            case Ready():
                self._ready.set()
            case Over():
                self.arrivals.end(notice.message)
            case Crashed():
                self._break_down(notice.crash)
            case Made() | Problem():
                raise ValueError(f"{notice} is no notice of an engine that runs")
            case _:
                assert_never(notice)

    def _note_work(self, notice: Work) -> None:
        """Note who is to blame if the engine is held up, and how long it may be."""
        if notice.left is None:
            self._at_work.pop(notice.key, None)
        else:
            self._at_work[notice.key] = None
            self.status = replace(self.status, left=notice.left)

    def _announce_death(self) -> None:
        """Tell all tests, in every process, that the engine was killed."""
        why = self.status.failure or self._death()
        self.status = replace(
            self.status,
            failure=why,
            crash=self.status.crash or self._crash,
            in_flight=0,
            held_back_by="",
        )
        self.arrivals.end(why)
        if self._store is not None:
            with contextlib.closing(outcomes.OutcomeStore(self._store)) as store:
                store.end(why)

    def _death(self) -> str:
        """Return how the process ended, once it has, and what the user can do."""
        self._process.join()
        fate = "was held up and ended" if self._was_silent else "died"
        message = f"the engine's process {fate} (exit code {self._process.exitcode})"
        if self._at_work:
            items = ", ".join(list(self._at_work)[:3])
            message += (
                f" while code of yours judged or answered {items}: mend that first"
            )
        return f"{message}; what was paid for is kept, run again to go on"


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
            self._loop.call_soon_threadsafe(self._obey, instruction)

    def _obey(self, instruction: Instruction) -> None:
        """Do what the engine is told. A crash ends the run: tests would wait for ever."""
        try:
            self._job.obey(self._engine, instruction)
        except Exception as error:  # noqa: BLE001  # whatever it is
            self._engine.fail(error)
            self._job.schedule.close()

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
        """Run the engine to its end in a loop of its own."""
        try:
            running = self._engine.run(
                self._job.schedule, self._job.models, self._job.prepare
            )
            self._main = self._loop.create_task(running)
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

    def send(self, notice: Notice) -> None:
        """Send one notice."""
        with self._lock, contextlib.suppress(OSError):
            self.connection.send(notice)

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Send outcomes."""
        self.send(Posted(outcomes))

    def beat(self) -> None:
        """Show that the engine is alive."""
        self.send(Beat())

    def note_work(self, key: str, left: float | None) -> None:
        """Send it at once: nothing can be sent while the work holds this process up."""
        self.send(Work(key, left))

    def end(self, message: str) -> None:
        """Say that nothing more will come, and why."""
        self.send(Over(message))


def work(
    connection: Connection,
    parents_connection: Connection,
    job: Job | None,
    load: Callable[[], None] = do_nothing,
) -> None:
    """Do the job in the new process. Without one: ``load``, and wait for it at the pipe.

    ``parents_connection`` is pytest's end of the pipe, of which the fork holds a copy. A crash
    is told to pytest's process.
    """
    writer = PipeWriter(connection)
    try:
        _work(writer, parents_connection, job, load)
    except Exception as error:  # noqa: BLE001  # multiprocessing would print a traceback
        writer.send(Crashed(crash_of(error)))


def _work(
    writer: PipeWriter,
    parents_connection: Connection,
    job: Job | None,
    load: Callable[[], None],
) -> None:
    parents_connection.close()  # or the end of pytest's process would never be seen
    # The terminal interrupts every process at once, and its end reaches every process:
    # pytest decides what that means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    gc.disable()  # until ``_do`` has loaded everything that stays to the end
    if job is not None:
        _do(job, writer)
        return
    # Nothing has begun that must end well: SIGTERM may simply end the process. The fork has
    # left both signals blocked (``_signals_held``); ``_do`` unblocks them itself.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    loading: Future[None] = in_thread(load)

    def wait_for_loading() -> None:
        loading.exception()  # waits; what failed to load is loaded again when needed

    try:
        job = pickle.loads(writer.connection.recv_bytes())
    except (EOFError, OSError):  # there is no job: the user got something wrong
        return
    assert isinstance(job, Job)
    _do(job, writer, wait_for_loading)


def _do(
    job: Job, writer: PipeWriter, wait_for_loading: Callable[[], object] = do_nothing
) -> None:
    """Make the engine and run it to its end."""
    has_to_end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: has_to_end.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    try:
        engine = job.make_engine(writer)
    except (UsageError, UnwrittenError) as error:
        writer.send(Problem(error))
        return
    writer.send(Made())

    def load() -> None:
        wait_for_loading()
        job.prepare()
        # What is loaded now stays to the end: no collection needs to look at it again.
        gc.freeze()
        gc.set_threshold(COLLECT_AT)
        gc.enable()
        writer.send(Ready())

    running = _EngineInProcess(replace(job, prepare=load), engine, writer)
    try:
        asyncio.run(running.run(has_to_end))
    except Exception as error:  # noqa: BLE001  # the report says so; no test must hang
        engine.fail(error)
    engine.close()
    writer.send(Reported(engine.status))


class _EngineInProcess:
    """The engine in its own process: it runs, listens to pytest and reports its status.

    ``_loop`` and ``_main``, the task of the engine's run, are there once ``run`` has begun.
    """

    def __init__(self, job: Job, engine: Engine, writer: PipeWriter) -> None:
        self._job = job
        self._engine = engine
        self._writer = writer
        self._pipe = writer.connection
        self._is_ending = False

    async def run(self, has_to_end: threading.Event) -> None:
        """Run the engine to its end; at once if the process was told to end before."""
        self._loop = asyncio.get_running_loop()
        self._main = asyncio.create_task(
            self._engine.run(self._job.schedule, self._job.models, self._job.prepare)
        )
        self._loop.add_reader(self._pipe.fileno(), self._listen)
        self._loop.add_signal_handler(signal.SIGTERM, self._stop)
        reporting = asyncio.create_task(self._keep_reporting())
        if has_to_end.is_set():
            self._stop()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._main
        finally:
            self._loop.remove_reader(self._pipe.fileno())
            reporting.cancel()
            # Before the loop is closed, which waits for threads that may hang.
            self._writer.send(Reported(self._engine.status))

    def _listen(self) -> None:
        """Do what pytest says; stop if its process is gone, or cannot be understood."""
        try:
            while self._pipe.poll():
                instruction: Instruction | Stop = self._pipe.recv()
                if isinstance(instruction, Stop):
                    self._stop(instruction.grace)
                else:
                    self._job.obey(self._engine, instruction)
        except (EOFError, OSError):
            self._loop.remove_reader(self._pipe.fileno())
            self._stop()
        except Exception as error:  # noqa: BLE001
            self._loop.remove_reader(self._pipe.fileno())
            self._engine.fail(error)
            self._stop()

    def _stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, and end after ``grace`` seconds."""
        self._job.schedule.close()
        if self._is_ending:
            return
        self._is_ending = True
        self._engine.halt()
        self._loop.call_later(grace, self._main.cancel)
        # If anything hangs then, nobody may be left who could end this process.
        signal.setitimer(signal.ITIMER_REAL, grace + TAIL_SECONDS)

    async def _keep_reporting(self) -> None:
        while True:
            self._writer.send(Reported(self._engine.status))
            await asyncio.sleep(STATUS_SECONDS)

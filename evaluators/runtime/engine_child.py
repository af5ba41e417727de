"""What goes on in the engine's own process."""

import asyncio
import contextlib
import gc
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from types import FrameType

from evaluators.core import Outcome, UsageError
from evaluators.runtime.engine import Engine
from evaluators.runtime.engine_job import GRACE_SECONDS, TAIL_SECONDS, Job, nothing, refuse
from evaluators.runtime.packing import unpack

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STATUS_SECONDS = 0.1


class Pipe:
    """The engine's end of the line, as a sink. What nobody hears any more is let go."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def send(self, word: str, value: object = None) -> None:
        """Say one thing."""
        with contextlib.suppress(OSError):
            self._connection.send((word, value))

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Tell how items ended."""
        self.send("post", outcomes)

    def beat(self) -> None:
        """Do nothing: the status is told more often."""

    def end(self, message: str) -> None:
        """Say that nothing more will come."""
        self.send("end", message)

    def close(self) -> None:
        """Leave the line open: the status at the end is still to be told."""


class Worker:
    """What goes on in the engine's process."""

    def __init__(self, job: Job, connection: Connection) -> None:
        self._job = job
        self._connection = connection
        self._wire = Pipe(connection)
        self._words: Mapping[str, Callable[..., None]] = {
            "lead": job.schedule.lead,
            "select": job.schedule.select,
            "want": job.schedule.want,
            "ended": job.schedule.ended,
            "refuse": self._refuse,
            "stop": self._stop,
        }
        self._engine: Engine | None = None
        self._main: asyncio.Task[None] | None = None
        self._is_ending = False
        self._is_told_to_end = False

    def work(self, loaded: Callable[[], None] = nothing) -> None:
        """Make the engine, say whether that went well, run it; ``loaded`` is waited for before."""
        signal.signal(signal.SIGTERM, self._end_soon)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            self._engine = self._job.engine(self._wire)
        except UsageError as problem:
            self._wire.send("problem", str(problem))
            return
        self._wire.send("made")
        try:
            loaded()
            self._job.prepare()
            gc.freeze()
            gc.enable()
            self._wire.send("ready")
            asyncio.run(self._run(self._engine))
        except Exception as error:  # noqa: BLE001  # said in the report; the tests must not hang
            self._engine.fail(error)
        self._engine.close()
        self._wire.send("status", self._engine.status)

    def _end_soon(self, number: int, frame: FrameType | None) -> None:
        self._is_told_to_end = True

    async def _run(self, engine: Engine) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._connection.fileno(), self._listen)
        loop.add_signal_handler(signal.SIGTERM, self._stop, GRACE_SECONDS)
        telling = asyncio.create_task(self._keep_telling(engine))
        self._main = asyncio.create_task(engine.run(self._job.schedule, self._job.models))
        if self._is_told_to_end:
            self._stop(GRACE_SECONDS)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._main
        finally:
            loop.remove_reader(self._connection.fileno())
            telling.cancel()
            # Before the loop is closed, which waits for threads that may hang.
            self._wire.send("status", engine.status)

    async def _keep_telling(self, engine: Engine) -> None:
        while True:
            self._wire.send("status", engine.status)
            await asyncio.sleep(STATUS_SECONDS)

    def _listen(self) -> None:
        try:
            while self._connection.poll():
                word, *values = self._connection.recv()
                self._words[word](*values)
        except Exception:  # noqa: BLE001  # pytest is no more, or not to be understood
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._stop(GRACE_SECONDS)

    def _refuse(self, why: str) -> None:
        if self._engine is not None:
            refuse(self._engine, self._job.schedule, why)

    def _stop(self, grace: float) -> None:
        self._job.schedule.close()
        if self._is_ending or self._engine is None or self._main is None:
            return
        self._is_ending = True
        self._engine.halt()
        asyncio.get_running_loop().call_later(grace, self._main.cancel)
        # Whatever hangs then, nobody may be left who could end this process.
        signal.setitimer(signal.ITIMER_REAL, grace + TAIL_SECONDS)


def work(
    own: Connection, others: Connection, job: Job | None, load: Callable[[], None] = nothing
) -> None:
    """Do the job; ``own`` is this process's end of the line, ``others`` the other one's.

    Where the job is not known yet it comes by the line, packed, and ``load`` is done meanwhile.
    """
    others.close()  # or the end of pytest's process would never be seen
    # The terminal interrupts every process at once: pytest decides what that means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # until everything is loaded that stays to the end
    if job is not None:
        Worker(job, own).work()
        return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is begun that would have to end well
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    loading = threading.Thread(target=_try, args=(load,), name="qa-engine-loader", daemon=True)
    loading.start()
    try:
        job = unpack(own.recv_bytes())
    except (EOFError, OSError):  # there is none: the user got something wrong
        return
    except UsageError as problem:
        Pipe(own).send("problem", str(problem))
        return
    Worker(job, own).work(loading.join)


def _try(load: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):  # what is still missing then is loaded when it is needed
        load()

"""What goes on in the engine's own process."""

import asyncio
import contextlib
import gc
import pickle
import signal
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from types import FrameType

from evaluators.core import Outcome, UsageError
from evaluators.runtime.engine import Engine
from evaluators.runtime.engine_thread import GRACE_SECONDS, Job, nothing
from evaluators.runtime.outcomes import OutcomeWriter

SIGNALS = (signal.SIGINT, signal.SIGTERM)
STATUS_SECONDS = 0.1
TAIL_SECONDS = 2.0  # to write what has arrived, once nothing more is waited for


class PipeWriter(OutcomeWriter):
    """Tells pytest's process how items ended, as long as it listens.

    The connection stays open after the end, for the last status.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()  # the heart beats in a thread of its own

    def send(self, word: str, value: object = None) -> None:
        """Say one thing."""
        with self._lock, contextlib.suppress(OSError):
            self._connection.send((word, value))

    def post(self, outcomes: Sequence[Outcome]) -> None:
        """Tell how items ended."""
        self.send("post", outcomes)

    def beat(self) -> None:
        """Show that the engine is alive."""
        self.send("beat")

    def end(self, message: str) -> None:
        """Say that nothing more will come."""
        self.send("end", message)


def work(
    own: Connection, others: Connection, job: Job | None, load: Callable[[], None] = nothing
) -> None:
    """Do the job; ``own`` is this process's end of the pipe, ``others`` that of pytest's process.

    A job that is not known yet comes through the pipe, pickled, and ``load`` is done meanwhile.
    """
    others.close()  # or the end of pytest's process would never be seen
    # The terminal interrupts every process at once: pytest decides what that means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # until everything is loaded that stays to the end
    loading = threading.Thread(target=_try, args=(load,), name="qa-engine-loader", daemon=True)
    if job is None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing has begun that must end well
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        loading.start()
        try:
            job = pickle.loads(own.recv_bytes())
        except (EOFError, OSError):  # there is none: the user got something wrong
            return
        except Exception as error:  # noqa: BLE001  # no traceback of another process
            problem = f"the engine failed: {type(error).__name__}: {error}"
            PipeWriter(own).send("problem", problem)
            return
    assert isinstance(job, Job)
    _Worker(job, own).work(loading)


def _try(load: Callable[[], None]) -> None:
    with contextlib.suppress(Exception):  # what is still missing then is loaded when it is needed
        load()


class _Worker:
    """Makes the engine, runs it, and passes on what pytest's process says."""

    def __init__(self, job: Job, connection: Connection) -> None:
        self._job = job
        self._connection = connection
        self._writer = PipeWriter(connection)
        self._engine: Engine | None = None
        self._main: asyncio.Task[None] | None = None
        self._is_ending = False
        self._has_to_end = False

    def work(self, loading: threading.Thread) -> None:
        """Make the engine, say whether that went well, run it once everything is loaded."""
        signal.signal(signal.SIGTERM, self._end_soon)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        try:
            self._engine = engine = self._job.engine(self._writer)
        except UsageError as problem:
            self._writer.send("problem", str(problem))
            return
        self._writer.send("made")
        try:
            if loading.ident is not None:
                loading.join()
            self._job.prepare()
            gc.freeze()
            gc.enable()
            self._writer.send("ready")
            asyncio.run(self._run(engine))
        except Exception as error:  # noqa: BLE001  # said in the report; the tests must not hang
            engine.fail(error)
        engine.close()
        self._writer.send("status", engine.status)

    def _end_soon(self, number: int, frame: FrameType | None) -> None:
        self._has_to_end = True

    async def _run(self, engine: Engine) -> None:
        loop = asyncio.get_running_loop()
        words = {**self._job.words(engine), "stop": self._stop}
        loop.add_reader(self._connection.fileno(), self._listen, words)
        loop.add_signal_handler(signal.SIGTERM, self._stop, GRACE_SECONDS)
        telling = asyncio.create_task(self._keep_telling(engine))
        self._main = asyncio.create_task(engine.run(self._job.schedule, self._job.models))
        if self._has_to_end:
            self._stop(GRACE_SECONDS)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._main
        finally:
            loop.remove_reader(self._connection.fileno())
            telling.cancel()
            # Before the loop is closed, which waits for threads that may hang.
            self._writer.send("status", engine.status)

    async def _keep_telling(self, engine: Engine) -> None:
        while True:
            self._writer.send("status", engine.status)
            await asyncio.sleep(STATUS_SECONDS)

    def _listen(self, words: dict[str, Callable[..., None]]) -> None:
        try:
            while self._connection.poll():
                word, *values = self._connection.recv()
                words[word](*values)
        except Exception:  # noqa: BLE001  # pytest's process is gone, or cannot be understood
            asyncio.get_running_loop().remove_reader(self._connection.fileno())
            self._stop(GRACE_SECONDS)

    def _stop(self, grace: float) -> None:
        self._job.schedule.close()
        if self._is_ending or self._engine is None or self._main is None:
            return
        self._is_ending = True
        self._engine.halt()
        asyncio.get_running_loop().call_later(grace, self._main.cancel)
        # Whatever hangs then, nobody may be left who could end this process.
        signal.setitimer(signal.ITIMER_REAL, grace + TAIL_SECONDS)

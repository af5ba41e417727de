"""An engine in a process of its own, forked from pytest's before that has any thread.

Two messages matter to pytest's side: how items ended, and what the engine is at. The other way go
the few words that a schedule understands. A broken line ends the run on either side: an engine
whose pytest was killed starts no call more, and tests whose engine was killed do not wait.
"""

import contextlib
import multiprocessing
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from queue import SimpleQueue

from evaluators.core import UsageError
from evaluators.runtime.engine import Status
from evaluators.runtime.engine_child import SIGNALS, work
from evaluators.runtime.engine_job import GRACE_SECONDS, TAIL_SECONDS, Job, nothing
from evaluators.runtime.outcomes import InMemoryOutcomes, OutcomeStore
from evaluators.runtime.packing import pack

READY_SECONDS = 5.0  # an SDK loads in less, or tests had better begin
ENDED_AT_ONCE = 8  # tests whose end is told in one word


class EngineProcess:
    """An engine in a forked process, as pytest's side sees it.

    Without a job the process does ``load`` until it is given one.
    """

    def __init__(self, job: Job | None = None, load: Callable[[], None] = nothing) -> None:
        self.arrivals = InMemoryOutcomes()
        self.status = Status()
        self._board = None if job is None else job.board
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
            "end": self._end,
            "ready": lambda _: self._ready.set(),
        }
        self._ready = threading.Event()
        self._has_ended = False
        self._ended = 0

    @property
    def is_alive(self) -> bool:
        """Whether more may come from it."""
        return self._reader.is_alive()

    def fork(self) -> None:
        """Start the process. Raises OSError where none is to be had."""
        # Until the new process has its own way with signals it must not have pytest's.
        former = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, former)
        except BaseException:  # an interrupt too: nobody else knows of the process yet
            self.abandon()
            raise
        self._others.close()

    def give(self, job: Job) -> bool:
        """Say what is to be done, where that was not known yet; return False where it has died."""
        packed = pack(job)
        try:
            self._connection.send_bytes(packed)
        except OSError:
            self.abandon()
            return False
        self._board = job.board
        return True

    def start(self) -> None:
        """Make the engine and begin. Raises UsageError where that cannot be done, or OSError."""
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
        """Kill a process that has begun no job and give its line back; do nothing once it has."""
        if self._reader.ident is not None:
            return
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()
        self._connection.close()
        self._others.close()

    def lead(self, count: int) -> None:
        """Work on so many items before it is known which ones have a test."""
        self._tell("lead", count)

    def wait_until_ready(self) -> None:
        """Return once everything is loaded, so that nobody takes the processor from that."""
        self._ready.wait(READY_SECONDS)

    def select(self, keys: Sequence[str]) -> None:
        """Work on these items."""
        self._tell("select", keys)

    def want(self, key: str) -> None:
        """Put an item first: its test is waiting."""
        if key not in self.arrivals.outcomes:
            self._tell("want", key)

    def ended(self) -> None:
        """Count one more test as over."""
        self._ended += 1
        if self._ended >= ENDED_AT_ONCE:
            self._tell("ended", self._ended)
            self._ended = 0

    def refuse(self, why: str) -> None:
        """Ask nothing more and let no test wait; ``why`` is the engine's failure."""
        self._tell("refuse", why)

    def stop(self, grace: float = GRACE_SECONDS) -> None:
        """Start no item and no call, wait ``grace`` seconds for those in flight, then give up."""
        if self._reader.ident is None:
            return
        self._tell("stop", grace)
        self._reader.join(grace + TAIL_SECONDS)
        if self._reader.is_alive():
            self._end("the run was stopped")
            self._process.kill()
        self._reader.join()

    def _tell(self, *word: object) -> None:
        # By a thread: an interrupt in the middle of a word would garble every later one.
        self._outbox.put(word)

    def _write(self) -> None:
        with contextlib.suppress(OSError):  # it has ended: nothing is left to be told
            while (word := self._outbox.get()) is not None:
                self._connection.send(word)

    def _note(self, status: Status) -> None:
        self.status = status
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
            self._bury()

    def _bury(self) -> None:
        """Let no test wait for an engine that was killed."""
        why = self.status.failure or self._death()
        self.status = replace(self.status, failure=why, in_flight=0, waiting="")
        self._end(why)
        if self._board is not None:
            board = OutcomeStore(self._board)
            board.end(why)
            board.close()

    def _death(self) -> str:
        self._process.join()
        return (
            f"the engine's process died (exit code {self._process.exitcode}); "
            "what was paid for is kept, run again to go on"
        )

"""The user's own code: found as MODULE:NAME, and run for a limited time.

Code that asks models runs in a thread, and calls in flight go on in the event loop. A thread that
does not end cannot be stopped: its item is an ERROR, and the process does not wait for it. Code
that asks nothing runs ``apart``, in a process that can be ended.
"""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from qagate.evaluators.core import Ask, JudgeError, Model, Reply, Request, UsageError
from qagate.evaluators.text import hint, mask, one_line


def load_named(text: str, option: str, kind: str) -> tuple[ModuleType, object]:
    """Return module and object of MODULE:NAME, a ``class`` or ``function`` as ``kind`` says.

    Raises UsageError, beginning with ``option``; the working folder is searched too.
    """
    name, _, attribute = text.partition(":")
    if not name or not attribute:
        example = "MyJudge" if kind == "class" else "my_function"
        raise UsageError(
            f"{option}: want python:MODULE:{kind.upper()}, for instance python:my_code:{example}"
        )
    module = _import(name, option)
    if not hasattr(module, attribute):
        names = [known for known in vars(module) if not known.startswith("_")]
        raise UsageError(
            f"{option}: module {name!r} has no {kind} {attribute!r}; {hint(attribute, names)}"
        )
    return module, getattr(module, attribute)


def _import(name: str, option: str) -> ModuleType:
    """Return a module of the user's. Raises UsageError, whatever its import raises."""
    working_folder = str(Path.cwd())
    if working_folder not in sys.path:
        sys.path.append(working_folder)
    try:
        return import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # the user's module may skip itself, or exit
        reason = one_line(mask(f"{type(error).__name__}: {error}"))
        advice = "give one that can"
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            files = [path.stem for path in Path.cwd().glob("*.py")]
            if hint(name, files).startswith("did you mean"):
                advice = hint(name, files)
        raise UsageError(
            f"{option}: module {name!r} cannot be imported ({reason}); {advice}"
        ) from None


T = TypeVar("T")

RULE_SECONDS = 10.0
"""For one answer, without the time of calls to models."""
HELD_SECONDS = 5.0
"""So long may code let no other thread run, as a search of ``re`` does."""
LOAD_SECONDS = 300.0
"""To import the user's module."""
_SINGLE_PROCESSES = threading.BoundedSemaphore(4)
"""So many processes at a time run for a single piece of work each."""
_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from qagate.evaluators.user_code import serve
serve(float(sys.argv[2]))
"""
SHORT = 2_000
"""Characters. Rules read a shorter answer in milliseconds, so without a thread."""


async def off_the_loop(
    spec: str, work: Callable[[Ask], T], ask: Ask, seconds: float = RULE_SECONDS
) -> T:
    """Run ``work`` in another thread with an ``ask`` for it, and return its result.

    Raises JudgeError (``judge_timeout``) after ``seconds``, and any error of ``work``.
    """
    import asyncio  # noqa: PLC0415  # workers find code and do not run it

    loop = asyncio.get_running_loop()
    pending = 0

    async def ask_with_clock_stopped(model: Model, request: Request) -> Reply:
        nonlocal pending
        # After the time-out this is a RuntimeError, so no further call is paid for.
        limit.reschedule(None)
        pending += 1
        try:
            return await ask(model, request)
        finally:
            pending -= 1
            limit.reschedule(None if pending else loop.time() + seconds)

    async def ask_from_thread(model: Model, request: Request) -> Reply:
        call = ask_with_clock_stopped(model, request)
        reply = asyncio.run_coroutine_threadsafe(call, loop)
        return await asyncio.wrap_future(reply)

    try:
        async with asyncio.timeout(seconds) as limit:
            return await asyncio.wrap_future(in_thread(lambda: work(ask_from_thread)))
    except TimeoutError:
        if not limit.expired():
            raise
        raise JudgeError(
            f"{spec}: no verdict within {seconds:g} s", kind="judge_timeout"
        ) from None


NOTE_WORK: ContextVar[Callable[[bool], None]] = ContextVar(
    "NOTE_WORK", default=lambda _: None
)
"""Called with True where the user's code begins its work on an item in this process, and with False
where it ends: it may hold the process up for ever."""


def in_thread(
    work: Callable[[], T], note: Callable[[bool], object] | None = None
) -> Future[T]:
    """Start ``work`` in a thread and return its future."""
    result: Future[T] = Future()
    result.set_running_or_notify_cancel()
    note = note or NOTE_WORK.get()

    def run() -> None:
        note(True)
        try:
            result.set_result(work())
        except BaseException as error:  # noqa: BLE001  # for the caller who waits
            result.set_exception(as_failure(error))
        note(False)

    threading.Thread(target=run, name="qa-rule", daemon=True).start()
    return result


def as_failure(error: BaseException) -> Exception:
    """Return what the user's code raised as an error that cannot end the event loop or its tasks.

    ``sys.exit``, ``pytest.fail`` or a cancellation of its own would; StopIteration never arrives.
    """
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(f"it raised {error!r}").with_traceback(error.__traceback__)


class _HeldUpError(Exception):
    """A process ended, or lets none of its threads run."""


def apart(name: str, load: Callable[[], None], work: Callable[[], T]) -> T:
    """Return what ``work`` returns in another process, where ``load`` has run before it.

    Threads of one process do all such work. Where one holds it up or ends it, each piece is done
    again in a process of its own, which shows who is to blame. Raises JudgeError, beginning with
    ``name``: ``judge_timeout`` after ``RULE_SECONDS``, otherwise ``check_failed``.
    """
    try:
        with suppress(_HeldUpError):
            return _shared(os.getpid(), Path.cwd()).current().do(load, work)
        # Perhaps other work held the shared process up: try in a process of its own.
        with _SINGLE_PROCESSES, closing(OtherProcess()) as single_process:
            return single_process.do(load, work)
    except _HeldUpError:
        message = f"{name}: it ended its process, or held it up for {HELD_SECONDS:g} s"
        raise JudgeError(message, kind="check_failed") from None
    except JudgeError as error:
        raise JudgeError(f"{name}: {error}", kind=error.kind) from None


@cache
def _shared(owner: int, folder: Path) -> "_Shared":
    """Return what the process ``owner`` uses in a folder; a fork must not use its parent's."""
    return _Shared()


class _Shared:
    """The process that most work goes to; another one is started once it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: OtherProcess | None = None

    def current(self) -> "OtherProcess":
        with self._lock:
            if self._process is None or self._process.has_ended:
                self._process = OtherProcess()
            return self._process


class OtherProcess:
    """A process that runs ``serve``; it ends with its owner, or when it is held up."""

    def __init__(self) -> None:
        self.has_ended = False
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path), str(HELD_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._lock = threading.Lock()
        self._numbers = count()
        self._pending: dict[int, Future[object]] = {}
        threading.Thread(
            target=self._hand_out_results, name="qa-apart", daemon=True
        ).start()

    def do(self, load: Callable[[], None], work: Callable[[], T]) -> T:
        """Return what ``work`` returns after ``load``. Raises JudgeError or _HeldUpError."""
        self.start(load).result(LOAD_SECONDS)
        result = self.start(work)
        try:
            return result.result(RULE_SECONDS)  # type: ignore[return-value]  # as work returns it
        except TimeoutError:
            pass
        try:
            self.start(os.getpid).result(HELD_SECONDS)  # does any thread get its turn?
        except TimeoutError:
            self.close()
            raise _HeldUpError from None
        raise JudgeError(f"no verdict within {RULE_SECONDS:g} s", kind="judge_timeout")

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()

    def start(self, work: Callable[[], object]) -> Future[object]:
        """Start work in it, which must be picklable; the future has its result."""
        future: Future[object] = Future()
        with self._lock:
            if self.has_ended:
                future.set_exception(_HeldUpError())
                return future
            number = next(self._numbers)
            self._pending[number] = future
            assert self._process.stdin is not None
            with suppress(OSError):  # it has ended, and the reader will say so
                pickle.dump((number, work), self._process.stdin)
                self._process.stdin.flush()
        return future

    def _hand_out_results(self) -> None:
        """Give each result to the future that waits for it, and an error to those left at the end.

        It runs in a thread of this process as long as the other process does.
        """
        assert self._process.stdout is not None
        with suppress(EOFError, pickle.UnpicklingError):
            while True:
                number, result, error = pickle.load(self._process.stdout)
                future = self._pending.pop(number)
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)
        with self._lock:  # ``start`` adds no future from here on
            self.has_ended = True
        self.close()
        for future in self._pending.values():
            future.set_exception(_HeldUpError())


def serve(held_seconds: float) -> None:
    """Do what comes over standard input, each piece of work in a thread, until it ends."""
    source = sys.stdin.buffer
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the user's code prints is no result
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()
    threading.Thread(target=_keep_alarm_off, args=(held_seconds,), daemon=True).start()

    def report(number: int, work: Callable[[], object]) -> None:
        error = None
        try:
            answer = pickle.dumps((number, work(), None))
        except JudgeError as failure:
            error = JudgeError(str(failure), kind=failure.kind)
        except BaseException as failure:  # noqa: BLE001  # the user's code may raise anything
            text = one_line(mask(f"{type(failure).__name__}: {failure}"))
            error = JudgeError(text, kind="check_failed")
        if error:
            answer = pickle.dumps((number, None, error))
        with lock, suppress(OSError):
            results.write(answer)
            results.flush()

    with suppress(EOFError):
        while True:
            number_and_work = pickle.load(source)
            threading.Thread(target=report, args=number_and_work, daemon=True).start()
    os._exit(0)


def _keep_alarm_off(seconds: float) -> None:
    """Let the system end this process once no thread gets its turn any longer."""
    while hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)
        time.sleep(seconds / 10)

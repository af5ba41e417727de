"""Ctrl-C while a run is being prepared ends it with one line, not with a traceback.

Importing this module takes over SIGINT, as the imports that follow take time. pytest gets
it back when its session starts. Nothing has been asked until then.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType

EXIT_CODE = 2
LINE = "INTERRUPTED: exit 2; nothing was asked yet, run the same command again"
WORKER = "PYTEST_XDIST_WORKER"
"""xdist sets this variable in its workers. Their controller ends them."""

Handler = Callable[[int, FrameType | None], object]


def interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the import; pytest then gives back the terminal that it captured."""
    sys.excepthook = _say_and_exit
    raise KeyboardInterrupt


def _say_and_exit(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Be the hook for exceptions that nobody caught: one line for an interrupt."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    sys.stdout.flush()
    print(LINE, file=sys.stderr, flush=True)  # noqa: T201  # no module of ours may be complete
    os._exit(EXIT_CODE)


def take_over(handler: Handler = interrupt) -> None:
    """Give SIGINT to this handler, unless somebody else handles it."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if WORKER in os.environ or not is_main_thread:
        return
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, interrupt):
        signal.signal(signal.SIGINT, handler)


def give_back(handler: Handler) -> None:
    """Make Ctrl-C a plain KeyboardInterrupt again, unless others have replaced the handler."""
    if signal.getsignal(signal.SIGINT) is handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


take_over()

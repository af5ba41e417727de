"""A signal to stop while a run is being prepared ends it with one line, not with a traceback.

Importing this module takes over the signals, as the imports that follow take time. pytest gets
them back when its session starts. Nothing has been asked until then.
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


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals by which people and systems stop a run.

    They are Ctrl-C, a request to end, and a terminal that was closed, which a run under
    ``nohup`` does not hear.
    """
    signals = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32":  # it has no third
        return tuple(signals)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    return tuple(signals)


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
    """Give the signals to this handler, but those that somebody else handles."""
    is_main_thread = threading.current_thread() is threading.main_thread()
    if WORKER in os.environ or not is_main_thread:
        return
    for number in stop_signals():
        if signal.getsignal(number) in (_usual_handler(number), interrupt):
            signal.signal(number, handler)


def give_back(handler: Handler) -> None:
    """Make the signals what they usually are, but those whose handler others have replaced."""
    for number in stop_signals():
        if signal.getsignal(number) is handler:
            signal.signal(number, _usual_handler(number))


def _usual_handler(number: signal.Signals) -> Handler | signal.Handlers:
    """Return what Python does at a signal unless it is told otherwise."""
    if number == signal.SIGINT:
        return signal.default_int_handler
    return signal.SIG_DFL


take_over()

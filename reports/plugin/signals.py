"""What the signals that end a run do to the controller."""

import signal
import threading
from functools import partial
from types import FrameType

import pytest


def end_by_term(config: pytest.Config) -> None:
    """Let SIGTERM end a run as Ctrl-C does."""
    _handle(config, _interrupt, signal.SIGTERM)


def finish_undisturbed(config: pytest.Config) -> None:
    """Let no second signal take the partial report away: what follows ends within seconds."""
    _handle(config, signal.SIG_IGN, signal.SIGINT, signal.SIGTERM)


def _handle(config: pytest.Config, handler: object, *numbers: signal.Signals) -> None:
    """Give signals this handler until pytest has ended."""
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            former = signal.signal(number, handler)  # type: ignore[arg-type]
            config.add_cleanup(partial(_restore, number, former))


def _restore(number: signal.Signals, former: object) -> None:
    signal.signal(number, former)  # type: ignore[arg-type]


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt

"""A run goes on without its terminal, and says at the end that output was lost.

A closed terminal, a reader like ``head`` that has seen enough, or a full disk must not cost
a run that was paid for. What cannot be written is dropped; the report folder has everything.
"""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from qagate.evaluators.output import say
from qagate.reports.plugin.crash_guard import add_cleanup
from qagate.reports.plugin.progress_display import replace_stream, stream_of


class LossyStream:
    """Replaces pytest's stream; drops what can no longer be written."""

    def __init__(self, stream: Any) -> None:
        self.loss = ""
        """Why something was dropped; empty if everything arrived."""
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text if possible; return its length."""
        self._attempt(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        """Pass on what the stream still holds, if possible."""
        self._attempt(self._stream.flush)

    def _attempt(self, output: Callable[[], object]) -> None:
        try:
            output()
        except OSError as error:
            if not self.loss:
                self.loss = error.strerror or type(error).__name__
            discard(self._stream)


def discard(stream: Any) -> None:
    """Point a stream at nothing; its unwritten text would else end the process with a traceback."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class LostOutput:
    """The controller's hook that lets a run go on without its terminal."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Replace the stream before the first line."""
        if not session.config.pluginmanager.has_plugin("terminalreporter"):
            return
        writer = session.config.get_terminal_writer()
        stream = LossyStream(stream_of(writer))
        replace_stream(writer, stream)
        add_cleanup(session.config, lambda: _say_loss(stream))


def _say_loss(stream: LossyStream) -> None:
    """Say on stderr why output was lost, if any was, and if stderr is still there."""
    stream.flush()
    if not stream.loss:
        return
    try:
        say(
            sys.stderr,
            f"the terminal's output was cut off ({stream.loss}); see the report",
        )
    except OSError:
        discard(sys.stderr)

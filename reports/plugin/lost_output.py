"""A terminal that cannot be written to (a full disk, a pipe closed by ``head``) costs no report."""

import os
import sys
from contextlib import suppress
from typing import Any

import pytest

from evaluators.output import say
from reports.plugin.progress import STREAM


class LossyStream:
    """Takes the place of pytest's stream; what cannot be written any more is dropped.

    ``loss`` says why, and is empty as long as everything arrived.
    """

    def __init__(self, stream: Any) -> None:
        self.loss = ""
        self._stream = stream

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Pass a text on, if somebody still takes it; return its length."""
        try:
            self._stream.write(text)
        except OSError as error:
            self._give_up(error)
        return len(text)

    def flush(self) -> None:
        """Pass on what the stream still holds, if somebody takes it."""
        try:
            self._stream.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.loss = self.loss or error.strerror or type(error).__name__
        discard(self._stream)


def discard(stream: Any) -> None:
    """Lead a stream to nowhere: what it holds would else end the process with a traceback."""
    with suppress(OSError, ValueError):
        descriptor = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


class LostOutput:
    """Hooks of the controller: the run goes on without a terminal, and says so in the end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Put the stream in its place before the first line."""
        config = session.config
        if config.pluginmanager.has_plugin("terminalreporter"):
            writer = config.get_terminal_writer()
            stream = LossyStream(getattr(writer, STREAM))
            setattr(writer, STREAM, stream)
            config.add_cleanup(lambda: _end(stream))


def _end(stream: LossyStream) -> None:
    """Say once, where errors are said, that not all could be shown."""
    stream.flush()
    if stream.loss:
        try:
            say(sys.stderr, f"the terminal's output was cut off ({stream.loss}); see the report")
        except OSError:
            discard(sys.stderr)

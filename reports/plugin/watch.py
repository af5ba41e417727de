"""Shows the progress of a run where somebody looks: a live block, lines in a log, or nothing."""

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from reports.plugin.live import LIVE_SECONDS, LOG_SECONDS, Screen, Ticker, drawn
from reports.plugin.progress import Activity, Progress

_STREAM = "_file"  # where pytest's TerminalWriter keeps its stream; it offers no public way in


class Watch:
    """Tells how far a run is from ``start`` to ``stop``; says nothing under ``-q``."""

    def __init__(
        self, config: pytest.Config, progress: Progress, activity: Callable[[], Activity]
    ) -> None:
        self._progress = progress
        self._activity = activity
        self._writer: Any = config.get_terminal_writer() if _is_wanted(config) else None
        self._descriptor = _descriptor(getattr(self._writer, _STREAM, None))
        self._live = self._descriptor is not None and _is_live(config, self._descriptor)
        self._ticker: Ticker | None = None
        self._screen: Screen | None = None

    def start(self) -> None:
        """Begin to show it."""
        if self._descriptor is None:
            return
        if self._live:
            self._screen = Screen(getattr(self._writer, _STREAM), self._descriptor)
            setattr(self._writer, _STREAM, self._screen)
        tick, seconds = (self._draw, LIVE_SECONDS) if self._live else (self._log, LOG_SECONDS)
        self._ticker = Ticker(tick, seconds)
        self._ticker.start()

    def stop(self) -> None:
        """Take the block away and leave the terminal to pytest; may be called again."""
        if self._ticker is not None:
            self._ticker.stop()
        if self._screen is not None:
            self._screen.show(())
            setattr(self._writer, _STREAM, self._screen.stream)
            self._screen = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _draw(self) -> None:
        if self._screen is None or self._descriptor is None:
            return
        size = os.get_terminal_size(self._descriptor)
        texts = self._progress.block(time.monotonic(), self._activity())
        share = self._progress.done / max(self._progress.planned, 1)
        lines = drawn(texts, share, size.columns - 1, colour=bool(self._writer.hasmarkup))
        self._screen.show(lines if size.lines > len(lines) + 1 else ())

    def _log(self) -> None:
        if self._descriptor is None:
            return
        line = self._progress.line(time.monotonic(), self._activity())
        start = "\n" if self._writer.width_of_current_line else ""
        os.write(self._descriptor, f"{start}{line}\n".encode("utf-8", "replace"))


def _is_wanted(config: pytest.Config) -> bool:
    return config.pluginmanager.has_plugin("terminalreporter") and config.option.verbose >= 0


def _descriptor(stream: Any) -> int | None:
    """Return a descriptor of our own for a stream, None where it is no file of the system."""
    try:
        return os.dup(stream.fileno())
    except (AttributeError, OSError, ValueError):
        return None


def _is_live(config: pytest.Config, descriptor: int) -> bool:
    """Say whether the block may be drawn: a terminal on which nobody else writes."""
    shared = config.option.capture == "no" or config.option.usepdb or config.option.trace
    plain = os.environ.get("CI") or os.environ.get("TERM", "dumb") == "dumb"
    return os.isatty(descriptor) and not (shared or plain)

"""Shows the progress of a run: a live block below pytest's output, or lines in a log.

pytest writes dots in the middle of a line, which the Live display of rich would tear apart.
So ``Screen`` takes the place of pytest's stream: the block is erased before pytest writes,
and drawn again below. The block has a file descriptor of its own, as pytest captures the
usual one.
"""

import os
import re
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TextIO

import pytest

from qagate.evaluators.runtime.outcomes import Status
from qagate.reports.plugin.progress import Progress

SECONDS_PER_DRAWING = 0.5
SECONDS_PER_LOG_LINE = 10.0
MAX_LINES_LEFT_OUT = 30
"""So many unchanged log lines are left out in a row, no more: some CI systems kill silent jobs."""
BAR_WIDTH = 20
"""Columns of the progress bar, where there is room."""
MIN_BAR_WIDTH = 8
"""A bar of fewer columns is left out."""
MAX_LINES_PER_TEXT = 3
_ERASE_BELOW = b"\x1b[J"
_CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class ProgressDisplay:
    """Shows the progress from ``start`` to ``stop`` on a terminal or in a log; not under ``-q``."""

    def __init__(
        self,
        config: pytest.Config,
        progress: Progress,
        status: Callable[[], Status],
        guarded: Callable[[Callable[[], None]], None],
    ) -> None:
        """``guarded`` does the work of the display's thread, and notes a crash in it."""
        self._guarded = guarded
        self._progress = progress
        self._status = status
        self._writer: Any = None
        """pytest's TerminalWriter; None where nothing is shown."""
        has_terminal = config.pluginmanager.has_plugin("terminalreporter")
        if has_terminal and config.option.verbose >= 0:
            self._writer = config.get_terminal_writer()
        self._descriptor = _own_descriptor(self._writer)
        """Open until ``stop``; None where nothing is shown."""
        self._is_live = _may_draw(config, self._descriptor)
        """Whether a block is drawn; else lines are logged."""
        self._stop_ticking: Callable[[], None] = lambda: None
        self._screen: Screen | None = None
        self._logged_line = ""
        self._lines_left_out = 0
        """How many log lines in a row were left out, as they said the same."""

    def start(self) -> None:
        """Begin to show it."""
        if self._descriptor is None:
            return
        if self._is_live:
            self._screen = Screen(stream_of(self._writer), self._descriptor)
            replace_stream(self._writer, self._screen)
            draw = partial(self._guarded, self._draw)
            self._stop_ticking = ticking(draw, SECONDS_PER_DRAWING)
        else:
            log = partial(self._guarded, self._log)
            self._stop_ticking = ticking(log, SECONDS_PER_LOG_LINE)

    def stop(self) -> None:
        """Take the block away and leave the terminal to pytest; may be called again."""
        self._stop_ticking()
        if self._screen is not None:
            self._screen.show(())
            replace_stream(self._writer, self._screen.stream)
            self._screen = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _draw(self) -> None:
        """Draw the block as it is now; none on a terminal that is too low for it."""
        if self._screen is None or self._descriptor is None:
            return
        progress = self._progress
        now = time.monotonic()
        status = self._status()
        progress.mark(now, status)
        texts = progress.block(now, status)
        size = os.get_terminal_size(self._descriptor)
        lines = block_lines(
            texts,
            share=progress.done / max(progress.planned, 1),
            width=size.columns - 1,
            colour=bool(self._writer.hasmarkup),
        )
        is_high_enough = size.lines > len(lines) + 1
        self._screen.show(lines if is_high_enough else ())

    def _log(self) -> None:
        """Write a line, unless it says the same as the one before."""
        if self._descriptor is None:
            return
        now = time.monotonic()
        status = self._status()
        self._progress.mark(now, status)
        line = self._progress.line(now, status)
        if line == self._logged_line and self._lines_left_out < MAX_LINES_LEFT_OUT:
            self._lines_left_out += 1
            return
        self._logged_line = line
        self._lines_left_out = 0
        start = "\n" if self._writer.width_of_current_line else ""
        os.write(self._descriptor, f"{start}{line}\n".encode("utf-8", "replace"))


def stream_of(writer: Any) -> Any:
    """Return the stream of pytest's terminal writer, to which there is no public way."""
    return writer._file


def replace_stream(writer: Any, stream: object) -> None:
    """Let pytest's terminal writer write to another stream."""
    writer._file = stream


def _own_descriptor(writer: Any) -> int | None:
    """Return a new descriptor of what a terminal writer writes to.

    None without a writer, or where its stream has no descriptor.
    """
    if writer is None:
        return None
    try:
        return os.dup(stream_of(writer).fileno())
    except (AttributeError, OSError, ValueError):  # some streams have none
        return None


def _may_draw(config: pytest.Config, descriptor: int | None) -> bool:
    """Return whether a terminal can show a block, and nobody else writes to it."""
    if descriptor is None or not os.isatty(descriptor):
        return False
    if os.environ.get("CI") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    option = config.option
    is_shared = option.capture == "no" or option.usepdb or option.trace
    return not is_shared


def ticking(tick: Callable[[], None], seconds: float) -> Callable[[], None]:
    """Call ``tick`` every ``seconds`` in a thread, until the returned function is called."""
    over = threading.Event()

    def run() -> None:
        with suppress(OSError):  # the terminal is gone
            while not over.wait(seconds):
                tick()

    thread = threading.Thread(target=run, name="qa-progress", daemon=True)

    def stop() -> None:
        over.set()
        thread.join()

    thread.start()
    return stop


class Screen:
    """pytest's stream with a block of text kept below it; replaces the stream itself."""

    def __init__(self, stream: TextIO, descriptor: int) -> None:
        self.stream = stream
        self._descriptor = descriptor
        self._lock = threading.RLock()
        self._column = 0
        """Where the cursor stands after what pytest wrote."""
        self._block: Sequence[str] = ()

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write pytest's text; the block makes way for it."""
        with self._lock:
            if self._block:
                self._erase()
            written = self.stream.write(text)
            self.stream.flush()
            self._column = column_after(self._column, text)
            self._paint()
        return written

    def show(self, block: Sequence[str]) -> None:
        """Replace the block; an empty one takes it away."""
        with self._lock:
            self._erase()
            self._block = tuple(block)
            self._paint()

    def _paint(self) -> None:
        """Write the block below the cursor, and move the cursor back."""
        if not self._block:
            return
        with suppress(OSError):  # a terminal that is gone must not end the run
            width = os.get_terminal_size(self._descriptor).columns
            below = "".join(f"\r\n\x1b[2K{line}" for line in self._block)
            back = f"\x1b[{len(self._block)}A\x1b[{self._column % width + 1}G"
            os.write(self._descriptor, (below + back).encode("utf-8", "replace"))

    def _erase(self) -> None:
        with suppress(OSError):
            os.write(self._descriptor, _ERASE_BELOW)


def column_after(column: int, text: str) -> int:
    """Return the cursor's column, from 0, after this text was written from ``column``."""
    from rich.cells import cell_len  # noqa: PLC0415  # only a terminal needs it

    visible_text = _CONTROL_SEQUENCE.sub("", text).replace("\r", "\n")
    _, newline, last_line = visible_text.rpartition("\n")
    if newline:
        return cell_len(last_line)
    return column + cell_len(last_line)


def block_lines(
    texts: Sequence[str], share: float, width: int, *, colour: bool
) -> list[str]:
    """Return the lines of a block, cut to ``width`` columns.

    ``share`` (0 to 1) is drawn as a bar if the first text leaves room for one.
    """
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console, RenderableType  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(
        width=max(width, 20),
        color_system="standard" if colour else None,
        force_terminal=True,
        legacy_windows=False,
    )
    head, *rest = texts
    cells: list[RenderableType] = ["qa"]
    room = console.width - cell_len(head) - len("qa  ")
    if room >= MIN_BAR_WIDTH:
        cells.append(
            ProgressBar(total=1.0, completed=share, width=min(BAR_WIDTH, room))
        )
    cells.append(Text(head, no_wrap=True, overflow="ellipsis"))
    head_line = Table.grid(padding=(0, 1))
    head_line.add_row(*cells)
    with console.capture() as captured:
        console.print(head_line, end="")
        for text in rest:
            for line in textwrap.wrap(text, console.width - 3)[:MAX_LINES_PER_TEXT]:
                indented = Text(f"   {line}", style="dim")
                console.print(indented, no_wrap=True, overflow="ellipsis")
    return captured.get().rstrip("\n").split("\n")

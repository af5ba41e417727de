"""Says how far a run is while it runs: a block below pytest's output, or a line now and then.

pytest writes dots in the middle of a line, so that a display which owns the screen (rich's Live)
would tear them. Here pytest goes on writing where it is; the block stands on the lines below, is
taken away before anything is written and put back after it. It is written through a descriptor of
its own: pytest points the usual one at a file while it captures what a test prints.
"""

import os
import re
import textwrap
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TextIO

LIVE_SECONDS = 0.5
LOG_SECONDS = 10.0
_MOST_LINES = 3  # that one text may take
_ERASE_BELOW = b"\x1b[J"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen:
    """pytest's stream with a block of text kept below it; stands in for the stream itself."""

    def __init__(self, stream: TextIO, descriptor: int) -> None:
        self.stream = stream
        self._descriptor = descriptor
        self._lock = threading.RLock()
        self._column = 0
        self._block: Sequence[str] = ()

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write what pytest has to say; the block makes way for it."""
        with self._lock:
            if self._block:
                self._erase()
            written = self.stream.write(text)
            self.stream.flush()
            self._column = column_after(self._column, text)
            self._paint()
        return written

    def flush(self) -> None:
        """Pass on what the stream still holds."""
        with self._lock:
            self.stream.flush()

    def show(self, block: Sequence[str]) -> None:
        """Put another block in place of the present one; none takes it away."""
        with self._lock:
            self._erase()
            self._block = tuple(block)
            self._paint()

    def _paint(self) -> None:
        if not self._block:
            return
        with suppress(OSError):  # a terminal that is gone must not take the run with it
            width = os.get_terminal_size(self._descriptor).columns
            below = "".join(f"\r\n\x1b[2K{line}" for line in self._block)
            back = f"\x1b[{len(self._block)}A\x1b[{self._column % width + 1}G"
            os.write(self._descriptor, (below + back).encode("utf-8", "replace"))

    def _erase(self) -> None:
        with suppress(OSError):
            os.write(self._descriptor, _ERASE_BELOW)


class Ticker:
    """Calls ``tick`` every so many seconds, in a thread of its own, until it is stopped."""

    def __init__(self, tick: Callable[[], None], seconds: float) -> None:
        self._tick = tick
        self._seconds = seconds
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="qa-progress", daemon=True)

    def start(self) -> None:
        """Begin; the first tick comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """End; no tick is under way any more when this returns."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError):  # nobody is there to read it any more
            while not self._over.wait(self._seconds):
                self._tick()


def column_after(column: int, text: str) -> int:
    """Return the column of the cursor, from 0, after this text was written from ``column``."""
    from rich.cells import cell_len  # noqa: PLC0415  # only a terminal needs it

    _, newline, line = _CONTROL.sub("", text).replace("\r", "\n").rpartition("\n")
    return cell_len(line) + (0 if newline else column)


def drawn(texts: Sequence[str], share: float, width: int, *, colour: bool) -> list[str]:
    """Return the lines of a block, cut to ``width``; a bar where there is room beside the first."""
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console(
        width=max(width, 20),
        force_terminal=True,
        color_system="standard" if colour else None,
        legacy_windows=False,
    )
    head, *rest = texts
    grid = Table.grid(padding=(0, 1))
    room = min(20, console.width - cell_len(head) - len("qa  "))
    bar = [ProgressBar(total=1.0, completed=share, width=room)] if room >= 8 else []
    grid.add_row("qa", *bar, Text(head, no_wrap=True, overflow="ellipsis"))
    with console.capture() as captured:
        console.print(grid, end="")
        for text in rest:
            for line in textwrap.wrap(text, console.width - 3)[:_MOST_LINES]:
                console.print(Text(f"   {line}", style="dim"), no_wrap=True, overflow="ellipsis")
    return captured.get().rstrip("\n").split("\n")

"""What the terminal shows while a run goes on: a live block below pytest's output, or log lines.

pytest writes dots in the middle of a line, which rich's Live would tear: our block makes way for
what is written. It has its own descriptor, as pytest captures the usual one.
"""

import os
import re
import sys
import textwrap
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import pytest

from qagate.evaluators.core import Outcome
from qagate.evaluators.output import say
from qagate.evaluators.runtime.budget import money, part_of_cost
from qagate.evaluators.runtime.outcomes import Status

RECENT_S = 30.0  # of which rates are shown: what the ledger gave at once says little
LIVE_S = 0.5
LOG_S = 10.0
LOG_REPEATS = 30  # times that an unchanged line is left out: some CI kills silent jobs
_MOST_LINES = 3  # of one text
_ERASE_BELOW = b"\x1b[J"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STREAM = (
    "_file"  # where pytest's TerminalWriter keeps its stream; there is no public way
)


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts finished items."""

    planned: int
    started: float
    """A monotonic time, in seconds."""
    priced: bool = True
    """Whether all costs are known."""
    done: int = 0
    spent: float = 0.0
    """USD."""
    ungraded: Counter[str] = field(default_factory=Counter)
    """Items by kind of ERROR or MISSING."""
    graded: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Passed items and all graded ones, by slice."""
    _marks: deque[tuple[float, int, int, float]] = field(default_factory=deque)

    def add(self, slice_name: str, outcome: Outcome | None) -> None:
        """Count one finished item."""
        self.done += 1
        if outcome is None:
            self.ungraded["no outcome"] += 1
            return
        self.spent += outcome.usage.spent
        if outcome.state in ("error", "missing"):
            self.ungraded[outcome.kind] += 1
        if outcome.state in ("passed", "failed"):
            passed, every = self.graded.get(slice_name, (0, 0))
            self.graded[slice_name] = (passed + (outcome.state == "passed"), every + 1)

    def line(self, now: float, status: Status) -> str:
        """Return everything in one line."""
        return "qa " + " | ".join(self.block(now, status))

    def block(self, now: float, status: Status) -> list[str]:
        """Return the same in parts: how far; the slices; what went wrong or is waited for."""
        shares = [
            f"{name} {passed / n:.2f}"
            for name, (passed, n) in sorted(self.graded.items())
        ]
        counted = {"ungraded": self.ungraded, "retried": status.retried}
        troubles = [
            f"{what}: {', '.join(f'{kind} {n:,}' for kind, n in sorted(counts.items()))}"
            for what, counts in counted.items()
            if counts
        ]
        troubles += [f"waiting: {status.waiting}"] if status.waiting else []
        passed = f"passed: {', '.join(shares)}" if shares else ""
        return [self._head(now, status), *filter(None, (passed, "; ".join(troubles)))]

    def _head(self, now: float, status: Status) -> str:
        marks = self._marks or deque([(self.started, 0, 0, 0.0)])
        self._marks = marks
        while len(marks) > 1 and now - marks[1][0] > RECENT_S:
            marks.popleft()
        then, done, calls, spent = marks[0]
        if now - marks[-1][0] >= 1:
            marks.append((now, self.done, status.requests, self.spent))
        seconds, recent = max(now - then, 1e-9), self.done - done
        items, price = recent / seconds, (self.spent - spent) / max(recent, 1)
        left = self.planned - self.done
        parts = [
            f"{self.done:,}/{self.planned:,} ({self.done / max(self.planned, 1):.0%})"
        ]
        if left and items:
            s = left / items
            unit = f"{s / 60:.0f} min" if s < 6000 else f"{s / 3600:.1f} h"
            parts.append(f"{s:.0f} s left" if s < 100 else f"{unit} left")
        parts.append(f"{items:.1f} items/s")
        if status.requests:
            parts.append(f"{(status.requests - calls) / seconds:.1f} calls/s")
            parts.append(f"{status.in_flight} of {status.limit} in flight")
            cost = f"{money(self.spent)} of about {money(self.spent + left * price)}"
            parts.append(cost if self.priced else f"cost {part_of_cost(self.spent)}")
        return ", ".join(parts)


class ProgressDisplay:
    """Shows the progress from ``start`` to ``stop`` on a terminal or in a log; not under ``-q``."""

    def __init__(
        self, config: pytest.Config, progress: Progress, status: Callable[[], Status]
    ) -> None:
        self._progress = progress
        self._status = status
        shows = (
            config.pluginmanager.has_plugin("terminalreporter")
            and config.option.verbose >= 0
        )
        self._writer: Any = config.get_terminal_writer() if shows else None
        self._descriptor: int | None = None
        with suppress(AttributeError, OSError, ValueError):  # some streams have none
            self._descriptor = os.dup(getattr(self._writer, STREAM).fileno())
        shared = (
            config.option.capture == "no" or config.option.usepdb or config.option.trace
        )
        plain = os.environ.get("CI") or os.environ.get("TERM", "dumb") == "dumb"
        terminal = self._descriptor is not None and os.isatty(self._descriptor)
        self._live = terminal and not (shared or plain)  # nobody else writes to it
        self._stop_ticking: Callable[[], None] = lambda: None
        self._screen: Screen | None = None
        self._logged = ("", 0)

    def start(self) -> None:
        """Begin to show it."""
        if self._descriptor is None:
            return
        if self._live:
            self._screen = Screen(getattr(self._writer, STREAM), self._descriptor)
            setattr(self._writer, STREAM, self._screen)
        tick, seconds = (self._draw, LIVE_S) if self._live else (self._log, LOG_S)
        self._stop_ticking = ticking(tick, seconds)

    def stop(self) -> None:
        """Take the block away and leave the terminal to pytest; may be called again."""
        self._stop_ticking()
        if self._screen is not None:
            self._screen.show(())
            setattr(self._writer, STREAM, self._screen.stream)
            self._screen = None
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _draw(self) -> None:
        if self._screen is None or self._descriptor is None:
            return
        size, one = os.get_terminal_size(self._descriptor), self._progress
        texts, share = (
            one.block(time.monotonic(), self._status()),
            one.done / max(one.planned, 1),
        )
        lines = block_lines(
            texts, share, size.columns - 1, colour=bool(self._writer.hasmarkup)
        )
        self._screen.show(lines if size.lines > len(lines) + 1 else ())

    def _log(self) -> None:
        if self._descriptor is None:
            return
        line = self._progress.line(time.monotonic(), self._status())
        before, repeats = self._logged
        self._logged = (
            line,
            repeats + 1 if line == before and repeats < LOG_REPEATS else 0,
        )
        if self._logged[1]:
            return
        start = "\n" if self._writer.width_of_current_line else ""
        os.write(self._descriptor, f"{start}{line}\n".encode("utf-8", "replace"))


def ticking(tick: Callable[[], None], seconds: float) -> Callable[[], None]:
    """Call ``tick`` every ``seconds`` in a thread, until the returned function is called."""
    over = threading.Event()

    def run() -> None:
        with suppress(OSError):  # the terminal is gone
            while not over.wait(seconds):
                tick()

    def stop() -> None:
        over.set()
        thread.join()

    thread = threading.Thread(target=run, name="qa-progress", daemon=True)
    thread.start()
    return stop


class Screen:
    """pytest's stream with a block of text kept below it; replaces the stream itself."""

    def __init__(self, stream: TextIO, descriptor: int) -> None:
        self.stream = stream
        self._descriptor = descriptor
        self._lock = threading.RLock()
        self._column = 0
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

    _, newline, line = _CONTROL.sub("", text).replace("\r", "\n").rpartition("\n")
    return cell_len(line) + (0 if newline else column)


def block_lines(
    texts: Sequence[str], share: float, width: int, *, colour: bool
) -> list[str]:
    """Return the lines of a block, cut to ``width``; with a bar if the first has room for it."""
    from rich.cells import cell_len  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.progress_bar import ProgressBar  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    system: Any = {"force_terminal": True, "legacy_windows": False}
    console = Console(
        width=max(width, 20), color_system="standard" if colour else None, **system
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
                console.print(
                    Text(f"   {line}", style="dim"), no_wrap=True, overflow="ellipsis"
                )
    return captured.get().rstrip("\n").split("\n")


# A terminal that is lost


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
        self._attempt(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Pass on what the stream still holds, if possible."""
        self._attempt(self._stream.flush)

    def _attempt(self, work: Callable[..., object], *words: str) -> None:
        try:
            work(*words)
        except OSError as error:
            self.loss = self.loss or error.strerror or type(error).__name__
            discard(self._stream)


def discard(stream: Any) -> None:
    """Point a stream at nothing; its unwritten text would else end the process with a traceback."""
    with suppress(OSError, ValueError), Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


class LostOutput:
    """The controller's hook that lets a run go on without its terminal, and says so at the end."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Replace the stream before the first line."""
        if not session.config.pluginmanager.has_plugin("terminalreporter"):
            return
        writer = session.config.get_terminal_writer()
        stream = LossyStream(getattr(writer, STREAM))
        setattr(writer, STREAM, stream)

        def say_loss() -> None:
            stream.flush()
            if stream.loss:
                try:
                    what = f"the terminal's output was cut off ({stream.loss}); see the report"
                    say(sys.stderr, what)
                except OSError:
                    discard(sys.stderr)

        session.config.add_cleanup(say_loss)

"""Says how far a run is while it runs: a live block below pytest's output, or a line now and then.

pytest writes dots in the middle of a line, so that a display which owns the screen (rich's Live)
would tear them. Here pytest goes on writing where it is; the block is on the lines below, is
taken away before anything is written and put back after it. It is written through a descriptor of
its own: pytest points the usual one at a file while it captures what a test prints.
"""

import os
import re
import textwrap
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TextIO

import pytest

from evaluators.core import Outcome
from evaluators.runtime.budget import money
from evaluators.runtime.engine import Status

RECENT_SECONDS = 30.0  # rates are those of so long; what the ledger gave at once says little
LIVE_SECONDS = 0.5
LOG_SECONDS = 10.0
LOG_REPEATS = 30  # a line that says nothing new is left out so often: some CI kills what is silent
_MOST_LINES = 3  # that one text may take
_ERASE_BELOW = b"\x1b[J"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STREAM = "_file"  # where pytest's TerminalWriter keeps its stream; it offers no public way in


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts finished items. ``started`` is a monotonic time; ``priced`` that all costs are known.

    ``ungraded`` counts items by kind of ERROR or MISSING, ``graded`` passed and all by slice.
    """

    planned: int
    started: float
    priced: bool = True
    done: int = 0
    spent: float = 0.0
    ungraded: Counter[str] = field(default_factory=Counter)
    graded: dict[str, tuple[int, int]] = field(default_factory=dict)
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
        if outcome.state not in ("passed", "failed"):
            return
        passed, every = self.graded.get(slice_name, (0, 0))
        self.graded[slice_name] = (passed + (outcome.state == "passed"), every + 1)

    def line(self, now: float, status: Status) -> str:
        """Return all there is to say, in one line."""
        return "qa " + " | ".join(self.block(now, status))

    def block(self, now: float, status: Status) -> list[str]:
        """Return the same in parts: how far; the slices; what went wrong or is waited for."""
        shares = [f"{name} {passed / n:.2f}" for name, (passed, n) in sorted(self.graded.items())]
        troubles = [*_counts("ungraded", self.ungraded), *_counts("retried", status.retried)]
        troubles += [f"waiting: {status.waiting}"] if status.waiting else []
        passed = f"passed: {', '.join(shares)}" if shares else ""
        return [self._head(now, status), *filter(None, (passed, "; ".join(troubles)))]

    def _head(self, now: float, status: Status) -> str:
        """Return how much is done, how fast, at what cost, and what is left."""
        items, calls, price = self._rates(now, status.requests)
        left = self.planned - self.done
        parts = [f"{self.done:,}/{self.planned:,} ({self.done / max(self.planned, 1):.0%})"]
        if left and items:
            parts.append(f"{_duration(left / items)} left")
        parts.append(f"{items:.1f} items/s")
        if status.requests:
            parts.append(f"{calls:.1f} calls/s")
            parts.append(f"{status.in_flight} of {status.limit} in flight")
            whole = money(self.spent + left * price)
            parts.append(f"{money(self.spent)} of about {whole}" if self.priced else "cost unknown")
        return ", ".join(parts)

    def _rates(self, now: float, requests: int) -> tuple[float, float, float]:
        """Return recent items a second, calls a second and USD an item."""
        marks = self._marks or deque([(self.started, 0, 0, 0.0)])
        self._marks = marks
        while len(marks) > 1 and now - marks[1][0] > RECENT_SECONDS:
            marks.popleft()
        then, done, calls, spent = marks[0]
        if now - marks[-1][0] >= 1:
            marks.append((now, self.done, requests, self.spent))
        seconds, items = max(now - then, 1e-9), self.done - done
        return items / seconds, (requests - calls) / seconds, (self.spent - spent) / max(items, 1)


def _counts(what: str, counts: Mapping[str, int]) -> Sequence[str]:
    listed = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
    return (f"{what}: {listed}",) if counts else ()


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class ProgressDisplay:
    """Shows the progress from ``start`` to ``stop``, where somebody looks; nothing under ``-q``."""

    def __init__(
        self, config: pytest.Config, progress: Progress, status: Callable[[], Status]
    ) -> None:
        self._progress = progress
        self._status = status
        plain = not config.pluginmanager.has_plugin("terminalreporter")
        wanted = not plain and config.option.verbose >= 0
        self._writer: Any = config.get_terminal_writer() if wanted else None
        self._descriptor = _duplicate(getattr(self._writer, STREAM, None))
        self._live = self._descriptor is not None and _is_live(config, self._descriptor)
        self._ticker: Ticker | None = None
        self._screen: Screen | None = None
        self._logged = ("", 0)

    def start(self) -> None:
        """Begin to show it."""
        if self._descriptor is None:
            return
        if self._live:
            self._screen = Screen(getattr(self._writer, STREAM), self._descriptor)
            setattr(self._writer, STREAM, self._screen)
        tick, seconds = (self._draw, LIVE_SECONDS) if self._live else (self._log, LOG_SECONDS)
        self._ticker = Ticker(tick, seconds)
        self._ticker.start()

    def stop(self) -> None:
        """Take the block away and leave the terminal to pytest; may be called again."""
        if self._ticker is not None:
            self._ticker.stop()
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
        size = os.get_terminal_size(self._descriptor)
        texts = self._progress.block(time.monotonic(), self._status())
        share = self._progress.done / max(self._progress.planned, 1)
        lines = block_lines(texts, share, size.columns - 1, colour=bool(self._writer.hasmarkup))
        self._screen.show(lines if size.lines > len(lines) + 1 else ())

    def _log(self) -> None:
        if self._descriptor is None:
            return
        line = self._progress.line(time.monotonic(), self._status())
        before, repeats = self._logged
        self._logged = (line, repeats + 1 if line == before and repeats < LOG_REPEATS else 0)
        if self._logged[1]:
            return
        start = "\n" if self._writer.width_of_current_line else ""
        os.write(self._descriptor, f"{start}{line}\n".encode("utf-8", "replace"))


def _duplicate(stream: Any) -> int | None:
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
        with suppress(OSError):  # the terminal is gone
            while not self._over.wait(self._seconds):
                self._tick()


class Screen:
    """pytest's stream with a block of text kept below it; takes the place of the stream itself."""

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


def column_after(column: int, text: str) -> int:
    """Return the column of the cursor, from 0, after this text was written from ``column``."""
    from rich.cells import cell_len  # noqa: PLC0415  # only a terminal needs it

    _, newline, line = _CONTROL.sub("", text).replace("\r", "\n").rpartition("\n")
    return cell_len(line) + (0 if newline else column)


def block_lines(texts: Sequence[str], share: float, width: int, *, colour: bool) -> list[str]:
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

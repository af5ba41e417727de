"""The block below pytest's output: on a pseudo-terminal, read back as a person would see it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from evaluators.core import Outcome, Usage
from evaluators.runtime.outcomes import Status
from reports.plugin.progress import (
    LOG_REPEATS,
    Progress,
    ProgressDisplay,
    Screen,
    block_lines,
    column_after,
    ticking,
)
from tests.support.projects import BAR, Project, graded

WIDTH, HEIGHT = 80, 24


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Return the two ends of a pseudo-terminal of 80 × 24."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    yield outer, inner
    os.close(outer)
    os.close(inner)


class Display:
    """The lines on a terminal: it knows what the block needs, and looks past colours."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = self.column = 0

    def take(self, part: str) -> None:
        """Obey one control or show one run of text."""
        if part == "\r":
            self.column = 0
        elif part == "\n":
            self.row += 1
            self.lines += [""] * (self.row + 1 - len(self.lines))
        elif part.startswith("\x1b["):
            self.control(part[2:-1], part[-1])
        else:
            line = self.lines[self.row].ljust(self.column)
            after = self.column + len(part)
            self.lines[self.row] = line[: self.column] + part + line[after:]
            self.column = after

    def control(self, number: str, letter: str) -> None:
        """Erase, or move the cursor."""
        if letter == "J":
            self.lines[self.row :] = [self.lines[self.row][: self.column]]
        elif letter == "K":
            self.lines[self.row] = ""
        elif letter == "A":
            self.row -= int(number)
        elif letter == "G":
            self.column = int(number) - 1


def seen(content: str) -> list[str]:
    """Return the lines that a person sees on a terminal that got this."""
    display = Display()
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", content):
        display.take(part)
    return [line.rstrip() for line in display.lines]


def arrived(outer: int) -> str:
    """Return what came out of the terminal until nothing more does."""
    content = b""
    while select.select([outer], [], [], 0.1)[0]:
        content += os.read(outer, 65536)
    return content.decode()


def test_pytest_writes_on_where_it_was(terminal: tuple[int, int]) -> None:
    """Dots go on in their line, the block stays below them, and goes without a trace."""
    outer, inner = terminal
    with os.fdopen(os.dup(inner), "w") as stream:
        screen = Screen(stream, inner)
        screen.write("test_x.py ..")
        screen.show(["6 of 9", "so far so good"])
        screen.write("\x1b[32m.\x1b[0mF\n")
        screen.write("next ")
        assert seen(arrived(outer)) == ["test_x.py ...F", "next", "6 of 9", "so far so good"]
        screen.show(["7 of 9"])
        screen.show([])
        screen.write("over\n")
        assert screen.isatty() is True  # type: ignore[operator]
        screen.flush()
    content = arrived(outer)
    assert seen("next " + content)[0] == "next over"
    assert "so far" not in content


def test_a_terminal_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    """A courtesy: pytest writes on without it, an OSError ends its thread quietly."""
    with (tmp_path / "out").open("w+", encoding="utf-8") as stream:
        screen = Screen(stream, 987_654)
        screen.show(["lost"])
        screen.write("kept\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "kept\n"
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        raise BrokenPipeError

    stop = ticking(tick, 0.001)
    while not ticks:
        pass
    stop()
    assert ticks == [1]


@pytest.mark.parametrize(
    ("column", "text", "after"),
    [(3, "ab", 5), (3, "ab\n", 0), (3, "\rx", 1), (0, "\x1b[31mд\x1b[0m", 1), (0, "日本", 4)],
)
def test_the_cursor_is_known(column: int, text: str, after: int) -> None:
    """Colours take no room, wide letters two columns, a new line starts at the left."""
    assert column_after(column, text) == after


@pytest.mark.parametrize("width", [20, 40, 79, 120])
def test_no_line_of_the_block_is_wider_than_the_terminal(width: int) -> None:
    """What does not fit is cut: a wrapped line would be left behind."""
    texts = ["1,204/8,652 (14%), 3 min left, 9.0 items/s", "passed: " + "simpleqa:bg 0.44, " * 9]
    for colour in (False, True):
        lines = [
            re.sub(r"\x1b\[[0-9;]*m", "", one)
            for one in block_lines(texts, 0.1, width, colour=colour)
        ]
        assert 2 <= len(lines) <= 1 + 3
        assert max(map(len, lines)) <= width


def on_a_terminal(terminal: tuple[int, int], folder: Path, arguments: Sequence[str]) -> str:
    """Run pytest on the terminal and return all it wrote."""
    outer, inner = terminal
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(WIDTH)}
    environment.pop("CI", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner,
    )  # fmt: skip
    content = ""
    while process.poll() is None:
        content += arrived(outer)
    return content + arrived(outer)


SLOW = "import time\n\n\ndef pytest_runtest_setup():\n    time.sleep(0.15)\n"
YAML = graded({"en": BAR})


@pytest.mark.slow
@pytest.mark.parametrize("mode", [(), ("-n", "2")], ids=["plain", "n2"])
def test_the_block_is_shown_and_leaves_the_screen_to_pytest(
    project: Project, mode: tuple[str, ...], terminal: tuple[int, int]
) -> None:
    """While it runs a person sees how far it is; afterwards the screen is as without it."""
    project.dataset("capital", {"en": ["Sofia"] * 12}, YAML)
    project.write("qa/conftest.py", SLOW)
    content = on_a_terminal(terminal, project.path, [*mode, "qa"])
    assert re.search(r"\d+/12 \(\d+%\), .*items/s", content)
    assert "passed: capital:en 1.00" in content
    screen = "\n".join(seen(content))
    assert "items/s" not in screen
    assert "............" in screen
    assert "GATES PASS (1 of 1): exit 0" in screen


@pytest.mark.slow
def test_quiet_means_no_block(project: Project, terminal: tuple[int, int]) -> None:
    """Under -q the run says nothing until its end."""
    project.dataset("capital", {"en": ["Sofia"] * 12}, YAML)
    project.write("qa/conftest.py", SLOW)
    assert "items/s" not in on_a_terminal(terminal, project.path, ["-q", "qa"])


IDLE = Status()
BUSY = Status(requests=90, in_flight=16, limit=24, retried={"timeout": 3, "rate_limit": 1200})


def outcome(state: str, spent: float = 0.0, kind: str = "") -> Outcome:
    return Outcome(key="k", state=state, kind=kind, usage=Usage(spent=spent))  # type: ignore[arg-type]


def halfway() -> Progress:
    """Return six of forty items, three seconds after the start."""
    progress = Progress(planned=40, started=100.0)
    for state in ("passed", "passed", "failed"):
        progress.add("simpleqa:bg", outcome(state, spent=0.25))
    progress.add("simpleqa:bg", outcome("error", spent=0.25, kind="timeout"))
    progress.add("simpleqa:en", outcome("passed"))
    progress.add("simpleqa:en", None)
    return progress


def test_the_line_has_what_a_waiting_person_asks() -> None:
    """Done, left, rates, calls, money, shares, troubles, waits; nothing of the unknown."""
    assert halfway().line(103.0, BUSY) == (
        "qa 6/40 (15%), 17 s left, 2.0 items/s, 30.0 calls/s, 16 of 24 in flight, "
        "$1.00 of about $6.67 | passed: simpleqa:bg 0.67, simpleqa:en 1.00 | "
        "ungraded: no outcome 1, timeout 1; retried: rate_limit 1,200, timeout 3"
    )
    waiting = Status(waiting="api.example asks to wait 12 s")
    assert halfway().block(103.0, waiting)[-1].endswith("waiting: api.example asks to wait 12 s")
    assert Progress(planned=3, started=5.0).line(5.0, IDLE) == "qa 0/3 (0%), 0.0 items/s"
    assert (
        Progress(planned=3, started=5.0, priced=False)
        .line(6.0, BUSY)
        .startswith("qa 0/3 (0%), 0.0 items/s, 90.0 calls/s, 16 of 24 in flight, cost unknown | ")
    )
    partly = Progress(planned=3, started=5.0, priced=False, spent=0.24)
    assert "in flight, cost partly known: $0.24" in partly.line(6.0, BUSY)
    long = Progress(planned=20_001, started=0.0)
    long.add("s:en", outcome("passed"))
    assert "5.6 h left" in long.line(1.0, IDLE)


def test_rates_are_those_of_late() -> None:
    """What the ledger gave at once at the start says nothing about the time left."""
    progress = Progress(planned=1000, started=0.0)
    for second in range(101):
        for _ in range(500 if second == 0 else 2):
            progress.add("s:en", outcome("passed"))
        text = progress.line(float(second), IDLE)
    assert text == "qa 700/1,000 (70%), 2 min left, 2.0 items/s | passed: s:en 1.00"


def test_a_log_leaves_out_what_says_nothing_new(tmp_path: Path) -> None:
    """A run that waits hours for a batch says so now and then, not every ten seconds."""
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        option = SimpleNamespace(verbose=0, capture="fd", usepdb=False, trace=False)
        plugins = SimpleNamespace(has_plugin=lambda name: True)
        config: Any = SimpleNamespace(
            option=option, pluginmanager=plugins, get_terminal_writer=lambda: TerminalWriter(file)
        )
        waits = ["2 queued", *["1 queued"] * (LOG_REPEATS + 3)]
        told = iter(waits)
        progress = Progress(planned=2, started=time.monotonic())
        display = ProgressDisplay(config, progress, lambda: Status(waiting=next(told)))
        for _ in waits:
            display._log()
        display.stop()
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == ["2 queued", "1 queued", "1 queued"]

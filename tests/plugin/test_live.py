"""What a terminal shows: the block below pytest's output, and the tables at the end of a run."""

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from qagate.cases.dataset import Shards, Threshold
from qagate.evaluators.core import Outcome, Usage
from qagate.evaluators.runtime.outcomes import Status
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.plugin import progress_display as live
from qagate.reports.plugin.progress import EndedItems, Progress
from qagate.reports.plugin.terminal import slice_lines
from qagate.reports.render import console
from qagate.reports.run.evidence import TrendPoint
from qagate.reports.run.report import WARNING, Cause, Decision
from tests.support.fixtures import Patch
from tests.support.projects import BAR, Project, graded
from tests.support.samples import full, gate, record, report
from tests.support.samples import part as slice_part
from tests.support.tables import tabled

WIDTH, HEIGHT = 80, 24


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Return the two ends of a pseudo-terminal of 80 × 24."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    yield outer, inner
    os.close(outer)
    os.close(inner)


def seen(content: str) -> list[str]:
    """Return the lines that a person sees on a terminal that got this, without colours."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", content):
        control = part[-1] if part[0] in "\x1b\r\n" else ""
        if control == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif control == "J":  # erase what is below
            lines[row:] = [lines[row][:column]]
        elif control == "K":
            lines[row] = ""
        elif control == "A":  # up
            row -= int(part[2:-1])
        elif control in ("\r", "G") and control:
            column = 0 if control == "\r" else int(part[2:-1]) - 1
        elif not control:
            line, after = lines[row].ljust(column), column + len(part)
            lines[row], column = line[:column] + part + line[after:], after
    return [line.rstrip() for line in lines]


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
        screen = live.Screen(stream, inner)
        screen.write("test_x.py ..")
        screen.show(["6 of 9", "so far so good"])
        screen.write("\x1b[32m.\x1b[0mF\n")
        screen.write("next ")
        assert seen(arrived(outer)) == [
            "test_x.py ...F",
            "next",
            "6 of 9",
            "so far so good",
        ]
        screen.show(["7 of 9"])
        screen.show([])
        screen.write("over\n")
        assert screen.isatty() is True  # type: ignore[operator]
    content = arrived(outer)
    assert seen("next " + content)[0] == "next over"
    assert "so far" not in content


def test_a_terminal_that_is_gone_takes_nothing_with_it(tmp_path: Path) -> None:
    """A courtesy: pytest writes on without it, an OSError ends its thread quietly."""
    with (tmp_path / "out").open("w+", encoding="utf-8") as stream:
        screen = live.Screen(stream, 987_654)
        screen.show(["lost"])
        screen.write("kept\n")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "kept\n"
    ticks: list[int] = []

    def tick() -> None:
        ticks.append(1)
        raise BrokenPipeError

    stop = live.ticking(tick, 0.001)
    while not ticks:
        pass
    stop()
    assert ticks == [1]


@pytest.mark.parametrize(
    ("column", "text", "after"),
    [
        (3, "ab", 5),
        (3, "ab\n", 0),
        (3, "\rx", 1),
        (0, "\x1b[31mд\x1b[0m", 1),
        (0, "日本", 4),
    ],
)
def test_the_cursor_is_known(column: int, text: str, after: int) -> None:
    """Colours take no room, wide letters two columns, a new line starts at the left."""
    assert live.column_after(column, text) == after


@pytest.mark.parametrize("width", [20, 40, 79, 120])
def test_no_line_of_the_block_is_wider_than_the_terminal(width: int) -> None:
    """What does not fit is cut: a wrapped line would be left behind."""
    texts = [
        "1,204/8,652 (14%), 3 min left, 9.0 items/s",
        "passed: " + "simpleqa:bg 0.44, " * 9,
    ]
    for colour in (False, True):
        lines = [
            re.sub(r"\x1b\[[0-9;]*m", "", one)
            for one in live.block_lines(texts, 0.1, width, colour=colour)
        ]
        assert 2 <= len(lines) <= 1 + 3
        assert max(map(len, lines)) <= width


def on_a_terminal(
    terminal: tuple[int, int], folder: Path, arguments: Sequence[str]
) -> str:
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
def test_block_is_shown(
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
BUSY = Status(
    requests=90, in_flight=16, limit=24, retried={"timeout": 3, "rate_limit": 1200}
)


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


def test_rates_are_those_of_late() -> None:
    """Done, rates of late, calls, money, shares, troubles, waits; nothing of the unknown."""
    progress = Progress(planned=1000, started=0.0)
    for second in range(101):
        for _ in range(500 if second == 0 else 2):
            progress.add("s:en", outcome("passed"))
        progress.mark(float(second), IDLE)
        text = progress.line(float(second), IDLE)
    assert text == "qa 700/1,000 (70%), 2 min left, 2.0 items/s | passed: s:en 1.00"
    assert halfway().line(103.0, BUSY) == (
        "qa 6/40 (15%), 17 s left, 2.0 items/s, 30.0 calls/s, 16 of 24 in flight, "
        "$1.00 of about $6.67 | passed: simpleqa:bg 0.67, simpleqa:en 1.00 | "
        "ungraded: no outcome 1, timeout 1; retried: rate_limit 1,200, timeout 3"
    )
    waiting = Status(held_back_by="api.example asks to wait 12 s")
    assert (
        halfway()
        .block(103.0, waiting)[-1]
        .endswith("waiting: api.example asks to wait 12 s")
    )
    assert (
        Progress(planned=3, started=5.0).line(5.0, IDLE) == "qa 0/3 (0%), 0.0 items/s"
    )
    assert (
        Progress(planned=3, started=5.0, priced=False)
        .line(6.0, BUSY)
        .startswith(
            "qa 0/3 (0%), 0.0 items/s, 90.0 calls/s, 16 of 24 in flight, cost unknown | "
        )
    )
    partly = Progress(planned=3, started=5.0, priced=False, spent=0.24)
    assert "in flight, cost partly known: $0.24" in partly.line(6.0, BUSY)
    long = Progress(planned=20_001, started=0.0)
    long.add("s:en", outcome("passed"))
    assert "5.6 h left" in long.line(1.0, IDLE)


def test_a_log_leaves_out_what_says_nothing_new(tmp_path: Path) -> None:
    """A run that waits hours for a batch says so now and then, not every ten seconds."""
    with (tmp_path / "log").open("w", encoding="utf-8") as file:
        option = SimpleNamespace(verbose=0, capture="fd", usepdb=False, trace=False)
        plugins = SimpleNamespace(has_plugin=lambda name: True)
        config: Any = SimpleNamespace(
            option=option,
            pluginmanager=plugins,
            get_terminal_writer=lambda: TerminalWriter(file),
        )
        waits = ["2 queued", *["1 queued"] * (live.MAX_LINES_LEFT_OUT + 3)]
        told = iter(waits)
        progress = Progress(planned=2, started=time.monotonic())
        display = live.ProgressDisplay(
            config,
            progress,
            lambda: Status(held_back_by=next(told)),
            lambda work: work(),
        )
        for _ in waits:
            display._log()
        display.stop()
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert [line.rpartition(": ")[2] for line in lines] == [
        "2 queued",
        "1 queued",
        "1 queued",
    ]


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_no_line_is_wider_than_the_terminal(columns: int, monkeypatch: Patch) -> None:
    """Reasons are wrapped; slices and gates are there, -v adds a line for each value."""
    monkeypatch.setenv("COLUMNS", str(columns))
    made = full()
    made = replace(made, notes=("word " * 100,))
    lines = [*slice_lines(made.slices), *console.gates(made)]
    assert columns - 10 <= max(map(len, console.notes(made))) <= columns
    assert max(map(len, lines)) <= max(columns, 100)
    text = "\n".join(lines)
    assert all(one.name in text for one in made.slices)
    made = full()
    short = slice_lines([replace(one, breakdowns={}) for one in made.slices])
    added = [line for line in slice_lines(made.slices) if line not in short]
    assert added
    assert all(" = " in line and "(n=" in line for line in added)


def test_no_text_steers_the_terminal() -> None:
    """Control sequences stay text, and long notes are wrapped."""
    share = {"correct": Estimate(value=1.0, low=0.2, high=1.0, n=1)}
    made = slice_part("graded", (record(1),), {"correct": 1.0})
    made = replace(made, breakdowns={"topic": {"\x1b[31mred\nPASS": share}})
    text = "\n".join(slice_lines((made,)))
    assert "red" in text
    assert "\x1b" not in text
    assert not any(line.startswith("PASS") for line in text.splitlines())
    lines = list(console.notes(report(notes=("word " * 60 + "one-two " * 40,))))
    assert max(map(len, lines)) <= console.WIDTH
    assert len(lines) > 2
    assert all(line.startswith("    ") for line in lines[1:])
    assert (
        "one-two".join([""] * 41)
        == "".join(lines).replace(" ", "").partition("word" * 60)[2]
    )


PRICES = ("cost partly known: $1.00: no price for m", "prices of today", "1 row aside")
TODO = ("few items; add items", "no words of de; add a file: FILE")


def test_a_terminal_shows_three_notes_those_to_act_on_first() -> None:
    lines = list(console.brief(report(notes=(*PRICES, *TODO))))
    assert lines == [
        *(f"note: {note}" for note in (*TODO, PRICES[0])),
        "and 2 more notes: in summary.md, on the page, or with -v",
    ]


def test_what_touches_the_verdict_is_the_first_note() -> None:
    urgent = f"{WARNING}nothing measures the judge"
    lines = list(console.brief(report(notes=(*TODO, urgent))))
    assert lines[0] == urgent


def test_what_is_said_of_several_languages_is_one_note() -> None:
    """The first is shown whole, and how many more say the same."""
    notes = [
        f"judge in {code} (for simpleqa:{code}): agreement 0.9{digit}"
        for code, digit in (("pl", 1), ("hu", 2), ("bg", 3))
    ]
    lines = list(console.brief(report(notes=tuple(notes))))
    assert lines == [f"note: {notes[0]} (and 2 like it)"]


def test_commands_in_a_gates_reason_name_the_report() -> None:
    """RUN stands for an unknown folder; an undefined measure or a lone figure says so."""
    open_ = gate("INCONCLUSIVE", reason="to read: qagate review RUN --baseline=old")
    made = report(
        decision=Decision(gates=(open_,), code=6, cause=Cause.GATE_OPEN, line="")
    )
    for folder, said in ((Path("a/new"), "a/new"), (None, "RUN")):
        text = " ".join(" ".join(console.gates(made, folder)).split())
        assert f"qagate review {said} --baseline=old" in text
    assert Estimate(value=0.5, low=0.4, high=0.6, n=9).text() == "0.500 [0.400, 0.600]"
    assert (
        Estimate(value=0.02, low=0.0041, high=0.1, n=9).text() == "0.020 [0.004, 0.100]"
    )
    assert (
        Estimate(value=0.005, low=0.00412, high=0.02, n=9).text()
        == "0.005 [0.00412, 0.020]"
    )
    assert Estimate(value=0.5, low=None, high=None, n=9).text() == "0.500"
    assert Estimate(value=None, low=None, high=None, n=0).text() == "undefined"


CODES = {
    "GATES FAIL": 1,
    "INTERRUPTED": 2,
    "NOTHING GRADED": 4,
    "GATES PASS": 0,
    "SHARD": 0,
}


@tabled("line", "given", "step")
def test_the_command_that_goes_on(
    line: str, given: Mapping[str, str], step: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Each end but PASS names a command with the paths of this run; a path here is a short one."""
    monkeypatch.chdir(tmp_path)
    changed = Threshold(measure="drop", max=0.05)
    made = gate(
        given.get("state", "INCONCLUSIVE"),  # type: ignore[arg-type]
        reason=given.get("reason", ""),
        remedy=given.get("remedy", ""),
        anchored="anchored" in given,
        threshold=changed
        if "change" in given
        else Threshold(measure="correct", min=0.5),
    )
    gates = (made,) if given else ()
    missed = (record(1, outcome="failed", grade="INCORRECT"),)
    own = report(
        missed,
        decision=Decision(
            gates=gates,
            code=CODES.get(line.partition(";")[0], 6),
            cause=Cause.GATE_OPEN,
            line=line,
        ),
        run={"command": given.get("command", "pytest -n 8 cases/")},
        baseline=str(tmp_path / "reports" / "baselines" / "v1"),
        anchor="/far/v0",
        slices=(
            slice_part("graded", missed, {"correct": 0.61}, partial="partial" in given),
        ),
        shards=Shards(of=3, held=(1,)) if "shards" in given else None,
        trend=(TrendPoint(name="v7", started="", model="", slices={}),)
        if "trend" in given
        else (),
    )
    wanted = [f"next: {step}".replace("OUT", "reports/out")]
    assert console.next_step(own, tmp_path / given.get("folder", "reports/out")) == (
        wanted if step else []
    )


def test_an_item_counts_once_its_outcome_is_here() -> None:
    """Its test may end first: a worker hears of the outcome by another way."""
    ended = EndedItems()
    ended.add("a")
    ended.add("b")
    graded = outcome("passed")
    assert ended.take({"b": graded}) == [("b", graded)]
    assert ended.take({"b": graded}) == []
    assert ended.take({"a": graded, "b": graded}) == [("a", graded)]


def test_an_item_without_an_outcome_counts_at_the_end() -> None:
    ended = EndedItems()
    ended.add("a")
    assert ended.take({}, all_left=True) == [("a", None)]

"""Progress in words: what is done, how fast, what is left, what it cost, and how it goes."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _pytest._io import TerminalWriter

from evaluators.core import Outcome, Usage
from evaluators.runtime.engine import Status
from reports.plugin.progress import LOG_REPEATS, Progress, ProgressDisplay

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


def test_the_line_has_everything_a_waiting_person_asks() -> None:
    """Done, time left, rates, calls in flight, money so far and in all, shares, troubles."""
    assert halfway().line(103.0, BUSY) == (
        "qa 6/40 (15%), 17 s left, 2.0 items/s, 30.0 calls/s, 16 of 24 in flight, "
        "$1.00 of about $6.67 | passed: simpleqa:bg 0.67, simpleqa:en 1.00 | "
        "ungraded: no outcome 1, timeout 1; retried: rate_limit 1,200, timeout 3"
    )


def test_a_run_that_waits_says_for_what() -> None:
    """When nothing moves the block's last line has the reason."""
    waiting = Status(waiting="api.example asks to wait 12 s")
    assert halfway().block(103.0, waiting)[-1].endswith("waiting: api.example asks to wait 12 s")


def test_a_line_leaves_out_what_is_not_known() -> None:
    """Offline neither calls nor cost, no time left at first; an unknown price is a word; hours."""
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

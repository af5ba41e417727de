"""The progress line: what is done, how fast, what is left, what it cost, and how it goes."""

from evaluators.core import Outcome, Usage
from reports.plugin.progress import EVERY_SECONDS, Progress


def outcome(state: str, spent: float = 0.0) -> Outcome:
    return Outcome(key="k", state=state, usage=Usage(spent=spent))  # type: ignore[arg-type]


def test_the_line_has_everything_a_waiting_person_asks() -> None:
    """Done, rate, time left, money, ungraded items and the running share of each slice."""
    progress = Progress(planned=40, started=100.0)
    for state in ("passed", "passed", "failed", "error"):
        progress.add("simpleqa:bg", outcome(state, spent=0.25))
    progress.add("simpleqa:en", outcome("passed"))
    progress.add("simpleqa:en", None)
    line = progress.line(103.0)
    assert line == (
        "qa 6/40 (15%) | 2.0/s | 17 s left | $0.75 | 2 ungraded | "
        "simpleqa:bg 0.67, simpleqa:en 1.00"
    )


def test_a_line_is_due_every_ten_seconds() -> None:
    """The first line comes after one interval, the next ones an interval apart."""
    progress = Progress(planned=1, started=0.0)
    times = [1.0, EVERY_SECONDS, EVERY_SECONDS + 1, 2 * EVERY_SECONDS]
    assert [progress.due(now) for now in times] == [False, True, False, True]


def test_nothing_done_yet() -> None:
    """Before the first item there is no rate and no share, and no division by zero."""
    line = Progress(planned=3, started=5.0).line(5.0)
    assert line == "qa 0/3 (0%) | 0.0/s | 0 s left | $0.00 | 0 ungraded"

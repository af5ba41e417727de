"""Outcomes inside one process: who waits for one is woken, told of the end, or given up."""

import threading
from collections.abc import Sequence

import pytest

from evaluators.core import Outcome
from evaluators.runtime.outcomes import (
    SILENCE_SECONDS,
    EngineLostError,
    InMemoryOutcomes,
    OutcomeWriter,
    OutcomeWriters,
)

OUTCOME = Outcome(key="k1", state="passed")


class Told(OutcomeWriter):
    """A sink that remembers what it was told, and by which name."""

    def __init__(self, name: str, told: list[str]) -> None:
        self.name = name
        self.told = told

    def post(self, outcomes: Sequence[Outcome]) -> None:
        self.told.extend(f"{self.name} {one.key}" for one in outcomes)

    def beat(self) -> None:
        self.told.append(f"{self.name} beat")

    def end(self, message: str) -> None:
        self.told.append(f"{self.name} {message}")

    def close(self) -> None:
        self.told.append(f"{self.name} closed")


def test_who_waits_is_woken() -> None:
    """A test that waits before its outcome has come goes on once it comes."""
    arrivals = InMemoryOutcomes()
    timer = threading.Timer(0.05, arrivals.post, [[OUTCOME]])
    timer.start()
    assert arrivals.wait("k1") == OUTCOME
    assert arrivals.outcomes == {"k1": OUTCOME}
    arrivals.close()


def test_after_the_end_nothing_is_waited_for() -> None:
    """What had come before is still there; the rest is MISSING, with the reason."""
    arrivals = InMemoryOutcomes()
    arrivals.post([OUTCOME])
    arrivals.end("the disk is full")
    assert arrivals.wait("k1") == OUTCOME
    missing = arrivals.wait("k2")
    assert (missing.state, missing.kind, missing.message) == (
        "missing",
        "stopped",
        "the disk is full",
    )


def test_a_silent_engine_is_given_up() -> None:
    """Without a sign of life for half a minute there is an error; a beat starts the time anew."""
    now = [0.0]
    arrivals = InMemoryOutcomes(lambda: now[0])
    now[0] = SILENCE_SECONDS + 1
    with pytest.raises(EngineLostError, match="silent for 30 s"):
        arrivals.wait("k1")
    arrivals.beat()
    arrivals.post([OUTCOME])
    assert arrivals.wait("k1") == OUTCOME


def test_several_sinks_are_told_in_their_order() -> None:
    """Every word reaches every sink, the first one first."""
    told: list[str] = []
    sinks = OutcomeWriters(Told("a", told), Told("b", told))
    sinks.post([OUTCOME])
    sinks.beat()
    sinks.end("over")
    sinks.close()
    words = ("k1", "beat", "over", "closed")
    assert told == [f"{name} {word}" for word in words for name in ("a", "b")]

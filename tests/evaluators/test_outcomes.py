"""Outcomes: the engine posts them, tests in any process wait for theirs, and never for ever."""

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import Outcome, Usage, Verdict, Vote
from evaluators.runtime.outcomes import (
    SILENCE_SECONDS,
    EngineLostError,
    InMemoryOutcomes,
    OutcomeReader,
    OutcomeSource,
    OutcomeStore,
    OutcomeWriter,
)

OUTCOME = Outcome(
    key="simpleqa-bg-1",
    state="failed",
    answer="Пловдив",
    verdict=Verdict(grade="INCORRECT", reason="another town"),
    usage=Usage(input_tokens=5, cost=None),
)
VOTES = st.builds(
    Vote,
    judge=st.text(),
    grade=st.none() | st.text(),
    rating=st.none() | st.integers(1, 10),
    reason=st.text(st.characters()),
    error=st.text(),
)


@dataclass
class Clock:
    """A clock that moves on only by sleeping."""

    now: float = 0.0
    asleep: Callable[[], None] = lambda: None
    sleeps: list[float] = field(default_factory=list)

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps.append(seconds)
        self.asleep()


Ends = tuple[OutcomeWriter, OutcomeSource, Clock]


@pytest.fixture(params=["memory", "file"])
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> Ends:
    """Return both ends of a way for outcomes, within a process and between two, and its clock."""
    clock = Clock()
    if request.param == "memory":
        arrivals = InMemoryOutcomes(clock.time)
        return arrivals, arrivals, clock
    writer = OutcomeStore(tmp_path / "store")
    return writer, OutcomeReader(tmp_path / "store", clock.time, clock.sleep), clock


def test_what_has_come_or_ended_is_not_waited_for(ends: Ends) -> None:
    """An outcome that has come is returned at once; after the end an item without one is MISSING.

    It has the engine's reason.
    """
    writer, source, clock = ends
    writer.post([OUTCOME])
    writer.end("the disk is full")
    assert source.wait(OUTCOME.key) == OUTCOME
    missing = source.wait("another")
    assert (missing.state, missing.kind) == ("missing", "stopped")
    assert missing.message == "the disk is full"
    assert clock.sleeps == []
    source.close()
    writer.close()


def test_a_silent_engine_is_given_up_in_memory() -> None:
    """Without a beat for half a minute there is an error; a beat starts the time again."""
    clock = Clock()
    arrivals = InMemoryOutcomes(clock.time)
    clock.now = SILENCE_SECONDS + 1
    with pytest.raises(EngineLostError, match="silent for 30 s"):
        arrivals.wait("k1")
    arrivals.beat()
    arrivals.post([OUTCOME])
    assert arrivals.wait(OUTCOME.key) == OUTCOME


def test_a_silent_engine_is_given_up_by_other_processes(tmp_path: Path) -> None:
    """The silence is waited for once, not in each test (R9)."""
    OutcomeStore(tmp_path / "store").close()
    clock = Clock()
    reader = OutcomeReader(tmp_path / "store", clock.time, clock.sleep)
    with pytest.raises(EngineLostError, match="silent for 30 s; run again to resume"):
        reader.wait("nothing")
    before = clock.now
    with pytest.raises(EngineLostError):
        reader.wait("nothing either")
    assert clock.now - before < SILENCE_SECONDS


def test_a_test_waits_while_the_engine_lives(tmp_path: Path) -> None:
    """An engine whose heart beats is waited for, however long it takes."""
    writer, clock = OutcomeStore(tmp_path / "store"), Clock()

    def beat() -> None:
        clock.now += SILENCE_SECONDS / 2
        writer.beat()
        if len(clock.sleeps) == 5:
            writer.post([OUTCOME])

    clock.asleep = beat
    assert OutcomeReader(tmp_path / "store", clock.time, clock.sleep).wait(OUTCOME.key) == OUTCOME
    assert clock.now > 2 * SILENCE_SECONDS


def test_a_waiting_test_is_woken() -> None:
    """A test that waits before its outcome has come continues once it comes."""
    arrivals = InMemoryOutcomes()
    threading.Timer(0.05, arrivals.post, [[OUTCOME]]).start()
    assert arrivals.wait(OUTCOME.key) == OUTCOME
    assert arrivals.outcomes == {OUTCOME.key: OUTCOME}


def test_a_file_tells_another_writer_first(tmp_path: Path) -> None:
    """Outcomes and the end reach both."""
    first = InMemoryOutcomes()
    writers = OutcomeStore(tmp_path / "store", first)
    writers.post([OUTCOME])
    writers.beat()
    writers.end("over")
    reader = OutcomeReader(tmp_path / "store")
    for source in (first, reader):
        assert source.wait(OUTCOME.key) == OUTCOME
        assert source.wait("another").message == "over"
    writers.close()


@given(text=st.text(st.characters(codec=None), max_size=40), votes=st.lists(VOTES, max_size=3))
def test_any_text_and_votes_reach_the_test(
    tmp_path_factory: pytest.TempPathFactory, text: str, votes: list[Vote]
) -> None:
    """Lone surrogates and control characters survive, and what several judges said."""
    outcome = Outcome(key="k", state="error", answer=text, kind="internal", message=text)
    outcome = replace(outcome, verdict=Verdict(votes=tuple(votes)))
    path = tmp_path_factory.mktemp("outcomes") / "store"
    with closing(OutcomeStore(path)) as store, closing(OutcomeReader(path)) as reader:
        store.post([outcome])
        assert reader.wait("k") == outcome

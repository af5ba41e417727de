"""The board: the engine posts, a test in any process waits for its own item, and never for ever."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import Outcome, Usage, Verdict, Vote
from evaluators.runtime.outcomes import (
    SILENCE_SECONDS,
    EngineLostError,
    OutcomeReader,
    OutcomeStore,
    decode,
    encode,
)


class Clock:
    """A clock that only sleeping moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps = 0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1


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


@given(st.lists(VOTES, max_size=3))
def test_votes_reach_the_test(votes: list[Vote]) -> None:
    """What several judges said survives the way to another process, as it was."""
    outcome = replace(OUTCOME, verdict=Verdict(votes=tuple(votes)))
    assert decode(encode(outcome)) == outcome


def test_a_vote_is_known_by_its_label() -> None:
    """A grade, or a rating in digits; nothing where the judge said nothing."""
    votes = [Vote(judge="j", grade="CORRECT"), Vote(judge="j", rating=7), Vote(judge="j")]
    assert [vote.label for vote in votes] == ["CORRECT", "7", ""]


def test_an_outcome_that_stands_is_returned_at_once(tmp_path: Path) -> None:
    """A test whose item is done does not sleep."""
    board, clock = OutcomeStore(tmp_path / "b"), Clock()
    board.post([OUTCOME])
    watcher = OutcomeReader(tmp_path / "b", clock.time, clock.sleep)
    assert watcher.wait(OUTCOME.key) == OUTCOME
    assert clock.sleeps == 0
    watcher.close()
    board.close()


def test_a_test_waits_while_the_engine_lives(tmp_path: Path) -> None:
    """However long it takes, a beating engine is waited for."""
    board = OutcomeStore(tmp_path / "b")

    class Beating(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(SILENCE_SECONDS / 2)
            board.beat()
            if self.sleeps == 5:
                board.post([OUTCOME])

    clock = Beating()
    watcher = OutcomeReader(tmp_path / "b", clock.time, clock.sleep)
    assert watcher.wait(OUTCOME.key) == OUTCOME
    assert clock.now > 2 * SILENCE_SECONDS


def test_a_silent_engine_is_given_up(tmp_path: Path) -> None:
    """When no beat comes for half a minute the test ends with an error that says so (R9)."""
    OutcomeStore(tmp_path / "b").close()
    clock = Clock()
    watcher = OutcomeReader(tmp_path / "b", clock.time, clock.sleep)
    with pytest.raises(EngineLostError, match="silent for 30 s; run again to resume"):
        watcher.wait("nothing")
    before = clock.now
    with pytest.raises(EngineLostError):
        watcher.wait("nothing either")
    assert clock.now - before < SILENCE_SECONDS


def test_an_engine_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    """After the end an item without an outcome is MISSING at once, with the engine's reason."""
    board, clock = OutcomeStore(tmp_path / "b"), Clock()
    board.post([OUTCOME])
    board.end("the disk is full")
    watcher = OutcomeReader(tmp_path / "b", clock.time, clock.sleep)
    assert watcher.wait(OUTCOME.key) == OUTCOME
    missing = watcher.wait("another")
    assert (missing.state, missing.message) == ("missing", "the disk is full")
    assert clock.sleeps == 0


@given(text=st.text(st.characters(codec=None), max_size=40))
def test_any_text_survives_the_board(text: str) -> None:
    """Encoding and decoding keep lone surrogates and control characters."""
    outcome = Outcome(key="k", state="error", answer=text, kind="internal", message=text)
    assert decode(encode(outcome)) == outcome
    assert encode(outcome).isascii()

"""Three unreadable replies of a judge are final, unless the user wants it asked anew."""

import asyncio
from pathlib import Path

import pytest

from evaluators.core import JudgeError, Reply, Request
from evaluators.judges.llm import ask_until_read
from evaluators.ledger import Ledger
from evaluators.replies import Invalid
from evaluators.runtime.calls import Meter
from tests.support.recorded import caller
from tests.support.scripted import Scripted, ask_for


class Judge:
    """A judge in a run of its own each time: its replies are those of the list, by attempt."""

    def __init__(self, path: Path, *replies: str) -> None:
        self.path = path
        self.model = Scripted(lambda request: Reply(text=replies[request.attempt]))

    @property
    def asked(self) -> list[int]:
        """The attempts that were sent so far."""
        return [request.attempt for request in self.model.requests]

    def run(self, *, reask: bool = False, replay: bool = False) -> str | None:
        """Return the reading of one run, None where there was none."""
        with Ledger(self.path, read_only=replay) as ledger:
            ask = caller(ledger, replay=replay, reask=reask).metered(Meter(price=lambda *_: 0.0))
            asking = ask_until_read(self.model, ask_for("grade this"), ask, read)
            try:
                return asyncio.run(asking)[0]
            except JudgeError as error:
                assert str(error).endswith("without a verdict: hm; hm; hm")
                return None


def read(reply: Reply) -> str | Invalid:
    return Invalid(reason="hm") if reply.text == "?" else reply.text


def test_three_unreadable_replies_are_final(tmp_path: Path) -> None:
    """A second run asks nothing."""
    judge = Judge(tmp_path / "l", *"???A")
    assert [judge.run(), judge.run()] == [None, None]
    assert judge.asked == [0, 1, 2]


def test_they_are_asked_anew_on_request_and_the_verdict_stays(tmp_path: Path) -> None:
    """--reask-invalid opens a second round; every later run finds it, without the option too."""
    judge = Judge(tmp_path / "l", *"????A")
    assert judge.run() is None
    assert judge.run(reask=True) == "A"
    assert judge.asked == [0, 1, 2, 3, 4]
    assert [judge.run(), judge.run(reask=True), judge.run(replay=True)] == ["A"] * 3
    assert len(judge.asked) == 5


def test_a_run_opens_one_round_at_most(tmp_path: Path) -> None:
    """Three replies a run, with the option as without: each run that wants it adds a round."""
    judge = Judge(tmp_path / "l", *"????????A")
    for rounds in (1, 2):
        assert judge.run(reask=True) is None
        assert judge.asked == list(range(3 * rounds))
    assert judge.run() is None
    assert judge.run(reask=True) == "A"
    assert judge.asked == list(range(9))


def test_a_round_that_was_cut_off_is_finished_first(tmp_path: Path) -> None:
    """A run that died in the second round is resumed there; nothing is asked twice."""
    judge = Judge(tmp_path / "l", *"????A")
    assert judge.run() is None
    with Ledger(tmp_path / "l") as ledger:
        ask = caller(ledger).metered(Meter(price=lambda *_: 0.0))
        fourth = Request(messages=ask_for("grade this").messages, attempt=3)
        asyncio.run(ask(judge.model, fourth))  # type: ignore[arg-type]
    assert judge.run(reask=True) == "A"
    assert judge.asked == [0, 1, 2, 3, 4]


def test_a_replay_opens_no_round(tmp_path: Path) -> None:
    """--replay asks nobody, --reask-invalid or not."""
    judge = Judge(tmp_path / "l", *"???A")
    assert judge.run() is None
    assert judge.run(reask=True, replay=True) is None
    assert judge.asked == [0, 1, 2]


@pytest.mark.parametrize("reask", [False, True])
def test_a_verdict_is_never_asked_again(tmp_path: Path, reask: bool) -> None:
    """The option is for what could not be read, not for what is unwelcome."""
    judge = Judge(tmp_path / "l", *"?B")
    assert [judge.run(reask=reask), judge.run(reask=reask)] == ["B", "B"]
    assert judge.asked == [0, 1]

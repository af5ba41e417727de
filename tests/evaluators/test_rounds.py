"""Three unreadable replies of a judge are final."""

import asyncio
from pathlib import Path

from evaluators.core import JudgeError, Reply
from evaluators.judges.llm import ask_until_read
from evaluators.ledger import Ledger
from evaluators.replies.readers import Invalid
from evaluators.runtime.caller import Meter
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

    def run(self) -> str | None:
        """Return the reading of one run, None where there was none."""
        with Ledger(self.path) as ledger:
            ask = caller(ledger).metered(Meter(price=lambda *_: 0.0))
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


def test_a_verdict_is_never_asked_again(tmp_path: Path) -> None:
    """A judge is asked again for what could not be read, not for what is unwelcome."""
    judge = Judge(tmp_path / "l", *"?B")
    assert [judge.run(), judge.run()] == ["B", "B"]
    assert judge.asked == [0, 1]

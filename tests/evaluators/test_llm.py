"""Judges: what is asked, when it is asked again, and when nothing is asked."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.core import (
    CORRECT,
    GRADES,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
    Judge,
    JudgeError,
    Reply,
    Request,
    ToolCall,
    Verdict,
)
from evaluators.judges.llm import ChoiceJudge, RatingJudge, ask_until_read
from evaluators.judges.offline import YesNoJudge
from evaluators.ledger import Ledger
from evaluators.replies.labels import LONGEST, blank, content_free
from evaluators.replies.readers import Invalid
from evaluators.rubric import Protocol, Rubric
from evaluators.runtime.caller import Meter
from tests.support.recorded import caller
from tests.support.scripted import Scripted, ask_for, complete, make_case
from tests.support.tables import tabled


def rubric(protocol: Protocol) -> Rubric:
    user = "{question} {target} {predicted_answer}"
    return Rubric(
        name="r", language="bg", protocol=protocol, system="s", user=user, version="r.bg@1#abc"
    )


def replies(*given: Reply) -> Callable[[Request], Reply]:
    """Give these replies in turn."""
    left = list(given)
    return lambda request: left.pop(0)


def judge_it(judge: Judge, answer: str = "Пловдив", golds: tuple[str, ...] = ("София",)) -> Verdict:
    return asyncio.run(judge.judge(make_case(golds=golds), answer, complete))


def call(name: str, arguments: str) -> Reply:
    return Reply(calls=(ToolCall(name=name, arguments=arguments),))


def test_a_grade_comes_from_one_forced_call() -> None:
    """Reason first, then one of three words; temperature 0; the rubric's version is kept."""
    model = Scripted(replies(call("grade", '{"reason": "друг град", "grade": "INCORRECT"}')))
    judge = ChoiceJudge(model=model, rubric=rubric("tool"))
    assert judge_it(judge) == Verdict(grade="INCORRECT", reason="друг град")
    (request,) = model.requests
    assert request.tool is not None
    assert request.tool.name == "grade"
    assert list(request.tool.schema["properties"]) == ["reason", "grade"]  # type: ignore[call-overload]
    assert request.tool.schema["properties"]["grade"]["enum"] == list(GRADES)  # type: ignore[index]
    assert request.parameters["temperature"] == 0
    assert (request.version, request.repeat, request.attempt) == ("r.bg@1#abc", 1, 0)
    assert judge.spec == model.spec


@pytest.mark.parametrize(
    ("kind", "protocol", "reply"),
    [
        (ChoiceJudge, "tool", call("grade", '{"grade": "INCORRECT"}')),
        (RatingJudge, "rate", call("rate", '{"rating": 2}')),
    ],
)
def test_a_bare_protocol_has_no_place_for_a_reason(
    kind: type[ChoiceJudge] | type[RatingJudge], protocol: Protocol, reply: Reply
) -> None:
    """The verdict is the function's one field, and a description promises no other."""
    model = Scripted(replies(reply))
    judge_it(kind(model=model, rubric=replace(rubric(protocol), bare=True)))
    (request,) = model.requests
    assert request.tool is not None
    assert len(request.tool.schema["required"]) == 1  # type: ignore[arg-type]
    assert "reason" not in f"{request.tool}"


def test_a_rater_is_told_that_there_is_no_expert_answer() -> None:
    """An empty slot would read as an expert who says nothing."""
    model = Scripted(replies(call("rate", '{"rating": 8, "reason": ""}')))
    assert judge_it(RatingJudge(model=model, rubric=rubric("rate")), golds=("",)).rating == 8
    (request,) = model.requests
    assert "(none was given: judge by the context" in request.messages[-1].content


@pytest.mark.parametrize(("protocol", "text"), [("letter", "A"), ("json", '{"grade": "CORRECT"}')])
def test_letters_and_json_are_asked_as_plain_text(protocol: Protocol, text: str) -> None:
    """A rubric that asks for text gets no function to call."""
    model = Scripted(replies(Reply(text=text)))
    assert judge_it(ChoiceJudge(model=model, rubric=rubric(protocol))).grade == CORRECT
    assert model.requests[0].tool is None


def test_an_unreadable_reply_is_asked_again_and_a_readable_one_never() -> None:
    """The same prompt, a higher attempt; the first reading is final."""
    model = Scripted(replies(Reply(text="A or B"), Reply(text="B"), Reply(text="A")))
    assert judge_it(ChoiceJudge(model=model, rubric=rubric("letter"))).grade == "INCORRECT"
    assert [request.attempt for request in model.requests] == [0, 1]
    assert model.requests[0].messages == model.requests[1].messages


def test_three_unreadable_replies_are_an_error() -> None:
    """The error names what was wrong with each; no grade is made up."""
    model = Scripted(replies(Reply(text="A", finish="length"), Reply(text="A\nB"), Reply()))
    words = "3 replies without a verdict: .*'length'; no single grade.*; an empty reply"
    with pytest.raises(JudgeError, match=words):
        judge_it(ChoiceJudge(model=model, rubric=rubric("letter")))
    assert [request.attempt for request in model.requests] == [0, 1, 2]


def test_an_answer_without_content_is_not_attempted_and_costs_nothing() -> None:
    """Unless the gold answer is such a text itself: then the judge decides."""
    model = Scripted(replies(Reply(text="A")))
    judge = ChoiceJudge(model=model, rubric=rubric("letter"))
    assert judge_it(judge, "Отговор:").grade == NOT_ATTEMPTED
    assert model.requests == []
    assert judge_it(judge, "#", golds=("диез", "#")).grade == CORRECT


def test_a_rating_comes_from_one_forced_call() -> None:
    """An integer from 1 to 10; an unreadable reply is asked again."""
    model = Scripted(replies(call("rate", '{"rating": 11}'), call("rate", '{"rating": 9}')))
    judge = RatingJudge(model=model, rubric=rubric("rate"))
    assert judge_it(judge) == Verdict(rating=9)
    assert [request.attempt for request in model.requests] == [0, 1]
    assert model.requests[0].tool is not None
    assert model.requests[0].tool.name == "rate"
    assert judge.spec == model.spec


def test_the_same_answer_may_be_judged_once_more() -> None:
    """A second judgement is a request of its own; nothing else in it differs."""
    model = Scripted(lambda request: call("grade", '{"reason": "", "grade": "CORRECT"}'))
    first = ChoiceJudge(model=model, rubric=rubric("tool"))
    judge_it(first)
    judge_it(replace(first, repeat=2))
    one, two = model.requests
    assert (one.repeat, two.repeat) == (1, 2)
    assert one == replace(two, repeat=1)
    rater = Scripted(lambda request: call("rate", '{"rating": 9}'))
    judge_it(RatingJudge(model=rater, rubric=rubric("rate"), repeat=3))
    assert rater.requests[0].repeat == 3


def test_a_blank_answer_is_rated_one_without_asking() -> None:
    """Only a blank one: a poor answer is for the rater to rate."""
    judge = RatingJudge(
        model=Scripted(replies(call("rate", '{"rating": 2}'))), rubric=rubric("rate")
    )
    assert judge_it(judge, " \u200b\n").rating == 1
    assert judge_it(judge, "Solution:").rating == 2


@pytest.mark.parametrize(
    ("answer", "grade"), [("Так, бо", YES), ("не.", NO), ("Не ведаю", UNANSWERED)]
)
def test_yes_and_no_need_no_model(answer: str, grade: str) -> None:
    """An answer that is neither is UNANSWERED, with a reason, and no error."""
    judge = YesNoJudge(yes=("Так",), no=("Не",))
    verdict = judge_it(judge, answer)
    assert verdict.grade == grade
    assert verdict.reason
    assert judge.spec == "rule:yes_no"


@tabled("answer")
def test_announcements_and_punctuation_are_no_content(answer: str) -> None:
    """In every language; but a gold of that kind leaves the decision to the judge."""
    assert content_free(answer, ["Jupiter"])
    assert not content_free(answer, ["Jupiter", "Solution"])


@pytest.mark.parametrize(
    "answer",
    ["C", "-7", "<p>", "π", "∞", "Answer: 42", "Solution of salt", "0", "👍", ". " * LONGEST + "x"],
)
def test_anything_else_is_content(answer: str) -> None:
    """A letter, a number, a sign with a meaning of its own."""
    assert not content_free(answer, ["Jupiter"])


@pytest.mark.parametrize("answer", ["", " \n", "\u200b\ufeff", "\x00", "\u2800"])
def test_a_blank_answer_never_has_content(answer: str) -> None:
    """Not even where the gold is punctuation."""
    assert blank(answer)
    assert content_free(answer, ["#"])


class JudgeRun:
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
    judge = JudgeRun(tmp_path / "l", *"???A")
    assert [judge.run(), judge.run()] == [None, None]
    assert judge.asked == [0, 1, 2]


def test_a_verdict_is_never_asked_again(tmp_path: Path) -> None:
    """A judge is asked again for what could not be read, not for what is unwelcome."""
    judge = JudgeRun(tmp_path / "l", *"?B")
    assert [judge.run(), judge.run()] == ["B", "B"]
    assert judge.asked == [0, 1]

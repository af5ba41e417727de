"""Rules before a model: what is settled, what is asked, what is checked, what counts."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    Model,
    RefusedError,
    Reply,
    Request,
    ToolCall,
    Verdict,
    Vote,
)
from evaluators.judges.ensemble import AUDIT, CascadeJudge
from evaluators.judges.lexical.lexical_judge import LexicalJudge
from evaluators.judges.llm import ChoiceJudge
from evaluators.rubric import Rubric
from tests.support.scripted import Scripted, make_case

RUBRIC = Rubric(
    name="r",
    language="bg",
    protocol="tool",
    system="",
    user="{question} {target} {predicted_answer}",
    version="v",
)


def says(grade: str) -> Scripted:
    call = ToolCall(name="grade", arguments=f'{{"reason": "so", "grade": "{grade}"}}')
    return Scripted(lambda request: Reply(calls=(call,)))


def cascade(model: Scripted, audit: float = 0.0) -> CascadeJudge:
    return CascadeJudge(
        rules=LexicalJudge(), model=ChoiceJudge(model=model, rubric=RUBRIC), audit=audit
    )


def judged(judge: CascadeJudge, answer: str) -> Verdict:
    async def ask(model: Model, request: Request) -> Reply:
        return await model.complete(request)

    return asyncio.run(judge.judge(make_case(), answer, ask))


def test_what_the_rules_are_sure_of_costs_no_call() -> None:
    """Right or not attempted: the rules' verdict, named as theirs."""
    model = says(INCORRECT)
    verdict = judged(cascade(model), "София")
    assert (verdict.grade, verdict.sure) == (CORRECT, True)
    assert [(vote.judge, vote.grade) for vote in verdict.votes] == [("lexical", CORRECT)]
    assert judged(cascade(model), "Не знам.").grade == NOT_ATTEMPTED
    assert model.requests == []


def test_the_model_judges_the_rest() -> None:
    """Where the rules are not sure their opinion does not count at all."""
    model = says(CORRECT)
    answer = "Градът в подножието на Витоша"
    verdict = judged(cascade(model), answer)
    assert len(model.requests) == 1
    assert verdict == Verdict(
        grade=CORRECT,
        reason="so",
        votes=(Vote(judge="openai:scripted", grade=CORRECT, reason="so"),),
    )


def test_an_audit_changes_no_verdict() -> None:
    """The model's verdict stands beside the rules'; what counts does not depend on the draw."""
    model = says(INCORRECT)
    verdict = judged(cascade(model, audit=1.0), "София")
    assert verdict.grade == CORRECT
    assert [vote.grade for vote in verdict.votes] == [CORRECT, INCORRECT]
    assert verdict.votes[1].judge == "openai:scripted"
    without = judged(cascade(model), "София")
    assert replace(verdict, votes=()) == replace(without, votes=())


def test_a_failed_audit_is_noted_and_harms_nothing() -> None:
    """The item is settled; only the check did not take place."""

    def refuse(request: Request) -> Reply:
        kind = "refused"
        raise RefusedError(kind, "the server said no")

    verdict = judged(cascade(Scripted(refuse), audit=1.0), "София")
    assert verdict.grade == CORRECT
    assert verdict.votes[1] == Vote(judge="openai:scripted", error="refused: the server said no")


@pytest.mark.parametrize("answer", ["", "Solution:", "Отговор:", "…"])
def test_nobody_is_asked_about_an_answer_without_content(answer: str) -> None:
    """A master key reaches no model, neither as the rest nor as an audit."""
    model = says(CORRECT)
    assert judged(cascade(model, audit=1.0), answer).grade == NOT_ATTEMPTED
    assert model.requests == []


@given(st.floats(0, 1), st.integers(0, 5), st.integers(1, 500))
def test_the_draw_depends_on_item_and_seed_alone(share: float, seed: int, number: int) -> None:
    """The same in every process, and an item of a smaller share is one of every larger share."""
    judge = replace(cascade(says(CORRECT), share), seed=seed)
    case = make_case(number)
    assert judge.audits(case) == judge.audits(replace(case, question="Друг?", recorded=None))
    assert not replace(judge, audit=0.0).audits(case)
    assert replace(judge, audit=1.0).audits(case)
    larger = replace(judge, audit=min(1.0, share + 0.1))
    assert larger.audits(case) or not judge.audits(case)


def test_the_share_is_drawn_about_as_often_as_it_says() -> None:
    """Five in a hundred of ten thousand items, and other ones for another seed."""
    judge = cascade(says(CORRECT), AUDIT)
    cases = [make_case(number) for number in range(10_000)]
    drawn = {case.id for case in cases if judge.audits(case)}
    assert 430 <= len(drawn) <= 570
    other = {case.id for case in cases if replace(judge, seed=1).audits(case)}
    assert len(drawn & other) < 100

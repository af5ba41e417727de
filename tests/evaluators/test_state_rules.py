"""What an answer is graded as by its state, and what nobody grades."""

import asyncio
from dataclasses import replace

import pytest

from qagate.evaluators import core
from qagate.evaluators.answers.state_rules import JUDGE_ALL, SettledByState, StateRules
from qagate.evaluators.core import AnswerState, ReadAnswer
from tests.support.scripted import complete, make_case

GRADED = StateRules(silent=core.NOT_ATTEMPTED)
YES_NO = StateRules(silent=core.UNANSWERED, needs_whole=True, reads_refusals=True)
RATED = StateRules(rates_empty=True)
SAYING_NOTHING: list[AnswerState] = ["declined", "echo", "repetition", "empty"]


def grade_of(
    rules: StateRules, state: AnswerState, gold: str = "1911", finish: str = "stop"
) -> str | None:
    """Return the label that needs no judge; None where a judge reads the answer."""
    case = replace(make_case(), golds=(gold,))
    answer = ReadAnswer(text="said", state=state, finish=finish)
    verdict = rules.verdict(case, answer)
    return verdict.label if verdict else None


@pytest.mark.parametrize("state", SAYING_NOTHING)
def test_an_answer_that_says_nothing_is_not_attempted(state: AnswerState) -> None:
    assert grade_of(GRADED, state) == core.NOT_ATTEMPTED
    assert grade_of(YES_NO, state, finish="content_filter") == core.UNANSWERED


def test_words_of_a_refusal_are_read_where_options_are() -> None:
    """ "I don't know, B" may be a choice."""
    assert grade_of(YES_NO, "declined") is None


@pytest.mark.parametrize("state", ["answered", "cut"])
def test_a_judge_reads_what_may_be_an_answer(state: AnswerState) -> None:
    assert grade_of(GRADED, state) is None


def test_to_decline_meets_a_gold_that_nobody_knows() -> None:
    assert grade_of(GRADED, "declined", "UNANSWERABLE: not known") == core.CORRECT
    assert grade_of(GRADED, "echo", "UNANSWERABLE: not known") == core.NOT_ATTEMPTED


def test_a_judge_reads_whether_a_refusal_denies_the_premise() -> None:
    """ "I know of no such war" may be right; a filter denies nothing."""
    premise = "FALSE PREMISE: there was no such war"
    assert grade_of(GRADED, "declined", premise) is None
    by_filter = grade_of(GRADED, "declined", premise, "content_filter")
    assert by_filter == core.NOT_ATTEMPTED


@pytest.mark.parametrize("state", SAYING_NOTHING)
def test_a_rubric_rates_all_but_an_empty_answer(state: AnswerState) -> None:
    assert grade_of(RATED, state) == ("1" if state == "empty" else None)


@pytest.mark.parametrize("state", SAYING_NOTHING)
def test_labels_of_a_rubrics_own_are_for_its_judge(state: AnswerState) -> None:
    assert grade_of(JUDGE_ALL, state) is None


@pytest.mark.parametrize("rules", [GRADED, YES_NO, RATED, JUDGE_ALL])
def test_a_thought_alone_is_never_graded(rules: StateRules) -> None:
    answer = ReadAnswer(text="", state="thought_only")
    assert rules.problem(answer).endswith("raise max_tokens")


def test_a_cut_answer_is_ungraded_only_where_the_whole_is_needed() -> None:
    answer = ReadAnswer(text="Ye", state="cut")
    assert YES_NO.problem(answer)
    assert not GRADED.problem(answer)
    assert not RATED.problem(answer)


def test_a_settled_verdict_stands_in_place_of_the_judge() -> None:
    verdict = core.Verdict(grade=core.NOT_ATTEMPTED, reason="no content")
    judge = SettledByState(spec="openai:judge", settled=verdict)
    assert judge.spec == "openai:judge"
    assert asyncio.run(judge.judge(make_case(), "", complete)) is verdict

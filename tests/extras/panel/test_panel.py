"""Judges made of judges: votes, panels, and rules before a model."""

import asyncio
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.extras.panel import panel
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.runtime.item_worker import returned_names
from qagate.reports.run.changes import names_by_providers
from tests.support.scripted import Scripted, complete, make_case, make_rubric
from tests.support.tables import tabled

SOME_GRADES = st.lists(st.sampled_from(core.GRADES), max_size=5)
SOME_RATINGS = st.lists(st.integers(panel.LOWEST, panel.HIGHEST), max_size=5)
FEW = st.integers(0, 3)
SEVERAL = st.lists(st.integers(panel.LOWEST, panel.HIGHEST), min_size=1, max_size=5)


@tabled("grades", "missing", "verdict")
def test_the_most_votes_win(
    grades: list[str], missing: int, verdict: str | None
) -> None:
    """More votes than any other grade; a tie has no winner, and neither has what may become one."""
    assert panel.majority(grades, missing) == verdict


@given(SOME_GRADES, FEW)
def test_what_stands_is_not_to_be_overturned(grades: list[str], missing: int) -> None:
    """With votes missing, a verdict is given only if no values of theirs could change it."""
    fates = {
        panel.majority([*grades, *rest])
        for rest in product(core.GRADES, repeat=missing)
    }
    assert panel.majority(grades, missing) == (fates.pop() if len(fates) == 1 else None)


@tabled("ratings", "missing", "rating")
def test_the_middle_rating(
    ratings: list[int], missing: int, rating: int | None
) -> None:
    """The median; of an even number the lower of the middle two, which is always a whole number."""
    assert panel.middle(ratings, missing) == rating


@given(SEVERAL, st.integers(0, 2))
def test_a_middle_that_stands_is_not_to_be_moved(
    ratings: list[int], missing: int
) -> None:
    """With ratings missing, a middle is given only where no value of theirs could change it."""
    rest = product(range(panel.LOWEST, panel.HIGHEST + 1), repeat=missing)
    fates = {panel.middle([*ratings, *some]) for some in rest}
    assert panel.middle(ratings, missing) == (fates.pop() if len(fates) == 1 else None)


Said = core.Verdict | Exception


@dataclass
class Member:
    """A judge that always says the same; ``heard`` counts how often it was asked."""

    spec: str
    said: Said
    heard: list[str] = field(default_factory=list)

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        self.heard.append(answer)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def members_saying(*said: str | int | Exception) -> tuple[Member, ...]:
    def verdict(one: str | int | Exception) -> Said:
        if isinstance(one, Exception):
            return one
        return (
            core.Verdict(rating=one)
            if isinstance(one, int)
            else core.Verdict(grade=one)
        )

    return tuple(map(Member, "abcdef", map(verdict, said)))


def judged(members: tuple[Member, ...], answer: str = "Sofia") -> core.Verdict:
    judge = panel.PanelJudge(judges=members)

    async def ask(model: core.Model, request: core.Request) -> core.Reply:
        raise AssertionError

    return asyncio.run(judge.judge(make_case(), answer, ask))


def gone() -> core.RefusedError:
    return core.RefusedError("refused", "the server said no")


def test_a_panel_keeps_every_vote() -> None:
    """The majority's grade or the median, with what each said; a tie is an error that has them."""
    verdict = judged(members_saying(core.CORRECT, core.INCORRECT, core.CORRECT))
    assert verdict.grade == core.CORRECT
    assert verdict.reason == "a: CORRECT; b: INCORRECT; c: CORRECT"
    assert verdict.votes == (
        core.Vote(judge="a", grade=core.CORRECT),
        core.Vote(judge="b", grade=core.INCORRECT),
        core.Vote(judge="c", grade=core.CORRECT),
    )
    with pytest.raises(
        core.JudgeError, match=r"a: CORRECT; b: INCORRECT: a tie; name an odd"
    ) as told:
        judged(members_saying(core.CORRECT, core.INCORRECT))
    assert told.value.kind == panel.TIE
    assert [vote.label for vote in told.value.votes] == [core.CORRECT, core.INCORRECT]
    assert judged(members_saying(2, 9, 7)).rating == 7
    verdict = judged(members_saying(4, 8))
    assert (verdict.rating, verdict.reason) == (4, "a: 4; b: 8")
    assert judged(members_saying(6, 6, gone())).rating == 6


@pytest.mark.parametrize(
    "failure", [gone(), core.JudgeError("three replies without a verdict")]
)
def test_a_missing_vote_that_changes_nothing(failure: Exception) -> None:
    """Two of three agree: the third could not change their verdict."""
    verdict = judged(members_saying(core.CORRECT, failure, core.CORRECT))
    assert verdict.grade == core.CORRECT
    assert verdict.votes[1].grade is None
    assert str(failure) in verdict.votes[1].error


@pytest.mark.parametrize("said", [(core.CORRECT, core.INCORRECT), (4, 8)])
def test_a_missing_vote_that_could_decide(said: tuple[str | int, ...]) -> None:
    """It is an error: which grade would win, or what the median would be, is not known."""
    with pytest.raises(core.JudgeError, match="what is missing could decide") as told:
        judged(members_saying(*said, gone()))
    assert told.value.kind == panel.UNDECIDED


def test_no_vote_is_what_stops_a_run_or_is_an_error_of_ours() -> None:
    """A stop leaves the item to a later run, unless the other votes decide; a bug ends the item."""
    stopped = core.StoppedError("budget", "all is spent")
    with pytest.raises(core.StoppedError, match="all is spent"):
        judged(members_saying(core.CORRECT, core.INCORRECT, stopped))
    assert (
        judged(members_saying(core.CORRECT, core.CORRECT, stopped)).grade
        == core.CORRECT
    )

    with pytest.raises(ZeroDivisionError):
        judged(members_saying(core.CORRECT, core.CORRECT, ZeroDivisionError()))


@tabled("spec", "models", "name")
def test_judges_are_named_as_providers_do(
    spec: str, models: dict[str, str], name: str
) -> None:
    """Every model in a judge's SPEC is named as returned; one that was not asked keeps its SPEC."""
    assert returned_names(spec, models) == name


@tabled("name", "spec", "known")
def test_who_was_asked_is_known_by_another_name(
    name: str, spec: str, known: list[str]
) -> None:
    """A judge that was spared every call shows nothing of which model it would have been."""
    assert names_by_providers(name, spec) == {*known}


def says(grade: str) -> Scripted:
    call = core.ToolCall(
        name="grade", arguments=f'{{"reason": "so", "grade": "{grade}"}}'
    )
    return Scripted(lambda request: core.Reply(calls=(call,)))


def cascade(model: Scripted) -> CascadeJudge:
    asked = RubricJudge(model=model, rubric=make_rubric())
    return CascadeJudge(rules=LexicalJudge(), model=asked)


def cascaded(judge: CascadeJudge, answer: str) -> core.Verdict:
    return asyncio.run(judge.judge(make_case(), answer, complete))


def test_what_the_rules_are_sure_of_costs_no_call_and_the_model_judges_the_rest() -> (
    None
):
    """Sure: the rules' verdict, named as theirs; else their opinion does not count at all."""
    model = says(core.INCORRECT)
    verdict = cascaded(cascade(model), "София")
    assert (verdict.grade, verdict.sure) == (core.CORRECT, True)
    assert [(vote.judge, vote.grade) for vote in verdict.votes] == [
        ("lexical", core.CORRECT)
    ]
    assert cascaded(cascade(model), "Не знам.").grade == core.NOT_ATTEMPTED
    assert model.requests == []
    model = says(core.CORRECT)
    verdict = cascaded(cascade(model), "Градът в подножието на Витоша")
    assert len(model.requests) == 1
    assert verdict == core.Verdict(
        grade=core.CORRECT,
        reason="so",
        votes=(core.Vote(judge="openai:scripted", grade=core.CORRECT, reason="so"),),
    )


def test_of_labelled_answers_the_model_judges_all() -> None:
    """They measure the model; what the rules settle is checked on a run's own answers."""
    model = says(core.INCORRECT)
    verdict = cascaded(replace(cascade(model), rules_settle=False), "София")
    assert verdict.grade == core.INCORRECT
    assert [vote.judge for vote in verdict.votes] == ["openai:scripted"]

"""Panels: who is asked, what the votes come to, and what a missing vote leaves open."""

import asyncio
from dataclasses import dataclass, field

import pytest

from evaluators.content import LONGEST
from evaluators.core import (
    CORRECT,
    INCORRECT,
    NOT_ATTEMPTED,
    Ask,
    Case,
    JudgeError,
    Model,
    RefusedError,
    Reply,
    Request,
    StoppedError,
    Verdict,
    Vote,
)
from evaluators.judges.ensemble import TIE, UNDECIDED, PanelJudge
from evaluators.judges.judge_spec import known_names, returned_names
from evaluators.judges.llm import empty_answer_rating, empty_answer_verdict
from tests.support.scripted import make_case

Said = Verdict | Exception


@dataclass
class Member:
    """A judge that always says the same; ``heard`` counts how often it was asked."""

    spec: str
    said: Said
    heard: list[str] = field(default_factory=list)

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        self.heard.append(answer)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def graders(*grades: str | Exception) -> tuple[Member, ...]:
    """Return judges a, b, c … that say this."""
    said = [one if isinstance(one, Exception) else Verdict(grade=one) for one in grades]
    return tuple(Member("abcdef"[place], one) for place, one in enumerate(said))


def raters(*ratings: int | Exception) -> tuple[Member, ...]:
    said = [one if isinstance(one, Exception) else Verdict(rating=one) for one in ratings]
    return tuple(Member("abcdef"[place], one) for place, one in enumerate(said))


def judged(
    members: tuple[Member, ...], breaker: Member | None = None, answer: str = "Sofia"
) -> Verdict:
    rating = isinstance(members[0].said, Verdict) and members[0].said.rating is not None
    panel = PanelJudge(
        judges=members,
        tie_breaker=breaker,
        rating=rating,
        spared=empty_answer_rating if rating else empty_answer_verdict,
    )

    async def ask(model: Model, request: Request) -> Reply:
        raise AssertionError

    return asyncio.run(panel.judge(make_case(), answer, ask))


def gone() -> RefusedError:
    kind = "refused"
    return RefusedError(kind, "the server said no")


def test_every_vote_is_kept() -> None:
    """The majority's grade, with what each judge said, in the order of the judges."""
    verdict = judged(graders(CORRECT, INCORRECT, CORRECT))
    assert verdict.grade == CORRECT
    assert verdict.reason == "a: CORRECT; b: INCORRECT; c: CORRECT"
    assert verdict.votes == (
        Vote(judge="a", grade=CORRECT),
        Vote(judge="b", grade=INCORRECT),
        Vote(judge="c", grade=CORRECT),
    )


def test_a_tie_is_an_error_that_keeps_the_votes() -> None:
    """No grade is made up; what was said can still be reviewed."""
    with pytest.raises(JudgeError, match=r"a: CORRECT; b: INCORRECT: a tie; name a --tie-") as told:
        judged(graders(CORRECT, INCORRECT))
    assert told.value.kind == TIE
    assert [vote.label for vote in told.value.votes] == [CORRECT, INCORRECT]


def test_a_tie_breaker_is_asked_only_where_there_is_a_tie() -> None:
    """Its vote is added to the others; one that names a third grade breaks nothing."""
    breaker = Member("t", Verdict(grade=INCORRECT))
    assert judged(graders(CORRECT, CORRECT), breaker).grade == CORRECT
    assert breaker.heard == []
    verdict = judged(graders(CORRECT, INCORRECT), breaker)
    assert verdict.grade == INCORRECT
    assert verdict.votes[-1] == Vote(judge="t", grade=INCORRECT)
    third = Member("t", Verdict(grade=NOT_ATTEMPTED))
    with pytest.raises(JudgeError, match="does not break") as told:
        judged(graders(CORRECT, INCORRECT), third)
    assert told.value.kind == TIE
    assert len(told.value.votes) == 3


def test_a_member_may_break_the_tie() -> None:
    """Then its vote counts once more."""
    members = graders(CORRECT, INCORRECT, NOT_ATTEMPTED)
    assert judged(members, members[1]).grade == INCORRECT


def test_a_tie_breaker_that_is_gone_leaves_the_tie() -> None:
    """A failure is never a grade."""
    with pytest.raises(JudgeError, match="does not break") as told:
        judged(graders(CORRECT, INCORRECT), Member("t", gone()))
    assert told.value.kind == UNDECIDED
    assert told.value.votes[-1].error == "refused: the server said no"


@pytest.mark.parametrize("failure", [gone(), JudgeError("three replies without a verdict")])
def test_a_missing_vote_that_changes_nothing(failure: Exception) -> None:
    """Two of three agree: whatever the third had said, the verdict is theirs."""
    verdict = judged(graders(CORRECT, failure, CORRECT))
    assert verdict.grade == CORRECT
    assert verdict.votes[1].grade is None
    assert str(failure) in verdict.votes[1].error


def test_a_missing_vote_that_could_decide() -> None:
    """It is an error, also with a tie-breaker: what it would have to break is not known."""
    breaker = Member("t", Verdict(grade=CORRECT))
    for tie_breaker in (None, breaker):
        with pytest.raises(JudgeError, match="what is missing could decide") as told:
            judged(graders(CORRECT, INCORRECT, gone()), tie_breaker)
        assert told.value.kind == UNDECIDED
    assert breaker.heard == []


def test_a_run_that_asks_nothing_more_is_no_failure_of_a_judge() -> None:
    """The item is left to a later run, unless the votes there are decide it."""
    kind = "budget"
    stopped = StoppedError(kind, "all is spent")
    with pytest.raises(StoppedError, match="all is spent"):
        judged(graders(CORRECT, INCORRECT, stopped))
    with pytest.raises(StoppedError, match="all is spent"):
        judged(graders(CORRECT, INCORRECT), Member("t", stopped))
    assert judged(graders(CORRECT, CORRECT, stopped)).grade == CORRECT


def test_an_error_of_ours_is_no_vote() -> None:
    """Anything but a failed call or an unreadable judge ends the item, as everywhere."""
    with pytest.raises(ZeroDivisionError):
        judged(graders(CORRECT, CORRECT, ZeroDivisionError()))


def test_ratings_come_to_their_median() -> None:
    """Odd: the median. Even: the lower of the middle two, unless a tie-breaker adds its own."""
    assert judged(raters(2, 9, 7)).rating == 7
    assert judged(raters(4, 8)).rating == 4
    breaker = Member("t", Verdict(rating=7))
    verdict = judged(raters(4, 8), breaker)
    assert verdict.rating == 7
    assert verdict.reason == "a: 4; b: 8; t: 7"
    assert judged(raters(6, 6), breaker).rating == 6
    assert len(breaker.heard) == 1


def test_a_missing_rating() -> None:
    """It stands where the median cannot move, and is an error where it can."""
    assert judged(raters(6, 6, gone())).rating == 6
    with pytest.raises(JudgeError, match="could decide"):
        judged(raters(4, 8, gone()))


@pytest.mark.parametrize("answer", ["Solution:", ".", "", "Отговор:", "\u200b"])
def test_nobody_is_asked_about_an_answer_without_content(answer: str) -> None:
    """A master key is NOT_ATTEMPTED whatever the judges would have said."""
    members = graders(CORRECT, CORRECT, CORRECT)
    assert judged(members, answer=answer) == Verdict(
        grade=NOT_ATTEMPTED, reason="no content; the judge was not asked"
    )
    assert all(member.heard == [] for member in members)
    assert judged(members, answer="x" * LONGEST).grade == CORRECT


def test_a_blank_answer_is_rated_one() -> None:
    """No rater is asked about nothing."""
    members = raters(9, 9)
    assert judged(members, answer=" ").rating == 1
    assert members[0].heard == []


@pytest.mark.parametrize(
    ("spec", "models", "name"),
    [
        ("openai:j", {"openai:j": "j-2026"}, "j-2026"),
        ("openai:j", {}, "openai:j"),
        ("lexical+openai:j", {"openai:j": "j-2026"}, "lexical+j-2026"),
        ("lexical+openai:j", {}, "lexical+openai:j"),
        ("openai:a openai:ab lexical", {"openai:a": "x", "openai:ab": "y"}, "x y lexical"),
        ("openai:m+lora", {"openai:m+lora": "m-1"}, "m-1"),
    ],
)
def test_judges_are_named_as_their_providers_do(
    spec: str, models: dict[str, str], name: str
) -> None:
    """Every model in a judge's SPEC is named as returned; one that was not asked keeps its SPEC."""
    assert returned_names(spec, models) == name


@pytest.mark.parametrize(
    ("name", "spec", "known"),
    [
        ("j-2026", "openai:j", {"j-2026"}),
        ("openai:j", "openai:j", set()),
        ("lexical", "lexical", set()),
        ("lexical+j-2026", "lexical+openai:j", {"lexical+j-2026"}),
        ("x openai:b", "openai:a openai:b", {"x"}),
        ("x y", "", {"x y"}),
    ],
)
def test_who_was_asked_is_known_by_another_name(name: str, spec: str, known: set[str]) -> None:
    """A judge that was spared every call shows nothing of which model it would have been."""
    assert known_names(name, spec) == known

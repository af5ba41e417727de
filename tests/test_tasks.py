"""Who answers and who judges each kind of slice, and what passes."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cases.plan import Item
from cases.slices import Slice
from cases.tasks import RULES, Rules, make_tasks
from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import Kind, Reply, UsageProblem, Verdict
from evaluators.judges.choice import ChoiceJudge
from evaluators.judges.lexical import LexicalJudge
from evaluators.judges.overlap import OverlapRater
from evaluators.judges.rating import RatingJudge
from evaluators.judges.yes_no import YesNoJudge
from evaluators.rubric import Prompt, Rubric
from tests.scripted import Scripted, make_case

PROMPT = Prompt(name="answer", language="bg", system="", user="{question}", version="v")
RUBRIC = Rubric(name="r", language="bg", protocol="tool", system="", user="", version="v")
SLICE = Slice(
    dataset="d", language="bg", kind="graded", path=Path("bg.csv"), prompt=PROMPT, rubric=RUBRIC
)
LEXICAL = RULES["lexical"]
MODEL = Scripted(lambda request: Reply(text="x"))


def item(kind: Kind, **changes: object) -> Item:
    slice_ = replace(SLICE, kind=kind, yes="Да", no="Не")
    return Item(key="k", slice=slice_, case=make_case(**changes), repeat=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "label", "offline", "asked"),
    [
        ("graded", None, LexicalJudge, ChoiceJudge),
        ("rated", None, OverlapRater, RatingJudge),
        ("yes_no", "YES", YesNoJudge, YesNoJudge),
        ("judged", "CORRECT", LexicalJudge, ChoiceJudge),
        ("judged", "7", OverlapRater, RatingJudge),
    ],
)
def test_each_kind_has_its_judge(kind: Kind, label: str | None, offline: type, asked: type) -> None:
    """Rules without a judge model, the rubric's protocol with one; yes/no is always a rule."""
    one = item(kind, label=label)
    assert isinstance(make_tasks([one], None, LEXICAL)["k"].judge, offline)
    assert isinstance(make_tasks([one], None, MODEL)["k"].judge, asked)


def test_the_answers_under_judgement_are_always_the_recorded_ones() -> None:
    """A model under test answers every kind but ``judged``, where the judge is the thing tested."""
    assert isinstance(make_tasks([item("graded")], MODEL, LEXICAL)["k"].answerer, PromptedAnswer)
    judged = make_tasks([item("judged", label="CORRECT")], MODEL, LEXICAL)["k"]
    assert isinstance(judged.answerer, RecordedAnswer)


def test_a_yes_or_no_must_be_whole() -> None:
    """Only there a cut answer is refused."""
    answerers = {
        kind: make_tasks([item(kind, label="YES")], MODEL, LEXICAL)["k"].answerer
        for kind in ("graded", "yes_no")
    }
    assert [one.whole for one in answerers.values() if isinstance(one, PromptedAnswer)] == [
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("kind", "label", "verdict", "passes"),
    [
        ("graded", None, Verdict(grade="CORRECT"), True),
        ("graded", None, Verdict(grade="NOT_ATTEMPTED"), False),
        ("rated", None, Verdict(rating=6), True),
        ("rated", None, Verdict(rating=5), False),
        ("rated", None, Verdict(), False),
        ("yes_no", "YES", Verdict(grade="YES"), True),
        ("yes_no", "YES", Verdict(grade="UNANSWERED"), False),
        ("judged", "INCORRECT", Verdict(grade="INCORRECT"), True),
        ("judged", "7", Verdict(rating=7), True),
        ("judged", "7", Verdict(rating=8), False),
    ],
)
def test_what_passes(kind: Kind, label: str | None, verdict: Verdict, passes: bool) -> None:
    """CORRECT; a rating at the bar; the right word; the given label."""
    one = item(kind, label=label)
    assert make_tasks([one], None, LEXICAL)["k"].passes(one.case, verdict) is passes


@pytest.mark.parametrize(
    ("changes", "model", "judge", "message"),
    [
        ({"prompt": None}, MODEL, LEXICAL, "no answer prompt for 'bg'; add answer.bg.yaml"),
        ({"rubric": None}, None, MODEL, "an LLM judge needs a rubric"),
    ],
)
def test_what_a_choice_needs_is_asked_for(
    changes: dict[str, object], model: Scripted | None, judge: Scripted | Rules, message: str
) -> None:
    """A missing prompt or rubric is named before any call."""
    one = item("graded")
    one = replace(one, slice=replace(one.slice, **changes))  # type: ignore[arg-type]
    with pytest.raises(UsageProblem, match=message):
        make_tasks([one], model, judge)


def test_nothing_recorded_and_no_model() -> None:
    """A file without answers cannot be judged offline: say so once, not item by item."""
    with pytest.raises(UsageProblem, match=r"no item has a recorded answer.*--model"):
        make_tasks([item("graded", recorded=None)], None, LEXICAL)


def test_a_recorded_answer_is_taken_exactly() -> None:
    """An empty recorded answer is an answer: nothing is asked."""
    one = item("graded", recorded="")
    task = make_tasks([one], None, LEXICAL)["k"]

    async def refuse(*_: object) -> Reply:
        raise AssertionError

    assert asyncio.run(task.answerer.answer(one.case, 1, refuse)) == ""

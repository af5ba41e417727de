"""The forecast of calls: those of the run itself, found without making any."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import Answerer, Judge, Reply, ToolCall
from evaluators.judges.ensemble import CascadeJudge, PanelJudge
from evaluators.judges.forecast import Call, Forecast, calls_ahead, make_forecast
from evaluators.judges.lexical.judge import LexicalJudge
from evaluators.judges.llm import ChoiceJudge, empty_answer_verdict
from evaluators.models.spec import Prices, Spec, parse
from evaluators.rubric import Prompt, Rubric
from evaluators.runtime.budget import PriceTier, Pricing
from evaluators.runtime.engine import Task
from evaluators.text import request_key
from tests.support.scripted import Scripted, make_case

PROMPT = Prompt(name="p", language="bg", version="1", system="", user="{question}")
RUBRIC = Rubric(
    name="r",
    language="bg",
    version="1",
    protocol="tool",
    system="",
    user="{question} {target} {predicted_answer}",
)


def never(request: object) -> Reply:
    """Fail: a forecast calls nobody."""
    raise AssertionError


def model(spec: str) -> Scripted:
    return Scripted(never, spec=spec)


def choice(spec: str) -> ChoiceJudge:
    return ChoiceJudge(model=model(spec), rubric=RUBRIC)


def answerer() -> PromptedAnswer:
    return PromptedAnswer(model=model("m"), prompt=PROMPT)


def task(answering: Answerer, judge: Judge, recorded: str | None = None) -> Task:
    return Task(
        key="k",
        case=make_case(recorded=recorded),
        repeat=1,
        answerer=answering,
        judge=judge,
        passes=lambda case, verdict: True,
    )


def ahead(one: Task, kept: Mapping[str, Reply] | None = None) -> list[Call]:
    return asyncio.run(calls_ahead(one, (kept or {}).get))


def specs_of(calls: list[Call]) -> list[tuple[str, bool]]:
    return [(call.spec, call.kept) for call in calls]


def test_every_judge_is_foreseen_while_the_answer_is_not_known() -> None:
    """A panel's members and a cascade's model count, as any of them may be asked."""
    panel = PanelJudge(judges=(choice("a"), choice("b")), spared=empty_answer_verdict)
    assert specs_of(ahead(task(answerer(), panel))) == [("m", False), ("a", False), ("b", False)]
    cascade = CascadeJudge(rules=LexicalJudge(), model=choice("a"), audit=0.0)
    assert specs_of(ahead(task(answerer(), cascade))) == [("m", False), ("a", False)]


def test_known_answers_are_judged_as_the_run_will() -> None:
    """Rules that are sure spare the model; a recorded answer costs no call."""
    cascade = CascadeJudge(rules=LexicalJudge(), model=choice("a"), audit=0.0)
    assert ahead(task(RecordedAnswer(), cascade, recorded="София")) == []
    assert specs_of(ahead(task(RecordedAnswer(), choice("a"), recorded="Пловдив"))) == [
        ("a", False)
    ]
    assert ahead(task(RecordedAnswer(), choice("a"), recorded=None)) == []


def test_what_is_kept_is_free_and_followed() -> None:
    """A kept answer leads to its own judgement, which may be kept as well."""
    one = task(answerer(), choice("a"))
    first, guess = ahead(one)
    assert (first.kept, guess.kept) == (False, False)
    kept = {request_key(answerer().model.identity, first.request): Reply(text="Пловдив")}
    _, second = ahead(one, kept)
    assert second.request != guess.request
    call = ToolCall(name="grade", arguments='{"reason": "r", "grade": "INCORRECT"}')
    kept[request_key(model("a").identity, second.request)] = Reply(calls=(call,))
    assert specs_of(ahead(one, kept)) == [("m", True), ("a", True)]


def test_calls_add_up() -> None:
    """Kept calls take nothing; an unknown price makes the sum unknown, not smaller."""
    spec: Spec = parse("openai:m", {})
    tariff = Pricing(steps=(PriceTier(above=0, prices=Prices(input=0, output=1e4)),), source="t")
    (call, _) = ahead(task(answerer(), choice("m")))
    kept = Call(spec="m", request=call.request, kept=True)
    total = make_forecast([call, kept, call], {"m": spec}, {"m": tariff}, set())
    assert (total.calls, total.kept, total.tokens_out) == (3, 1, 200)
    assert total.cost == 2.0
    assert total.most == 2 * 40.96
    unknown = make_forecast([call], {"m": spec}, {"m": None}, set())
    assert (unknown.cost, unknown.cached, unknown.most) == (None, None, None)
    assert ((total + unknown).cost, (total + unknown).known) == (None, 2.0)
    assert Forecast() + total == total


def test_a_rubric_is_paid_for_once_where_a_provider_keeps_it() -> None:
    """The first call writes it, all others read it; what an item adds is paid for by each.

    A short rubric is kept by nobody, and calls without one have nothing in common.
    """
    spec = parse("anthropic:m", {})
    prices = Prices(input=10, output=0, cache_read=1, cache_write=12.5)
    tariff = Pricing(steps=(PriceTier(above=0, prices=prices),), source="t")
    rubric = replace(RUBRIC, system="Correct is what is so. " * 500)
    judge = ChoiceJudge(model=model("m"), rubric=rubric)
    calls = ahead(task(RecordedAnswer(), judge, recorded="Пловдив")) * 11
    total = make_forecast(calls, {"m": spec}, {"m": tariff}, set())
    assert total.cost is not None
    assert total.cached is not None
    assert 0.15 * total.cost < total.cached < 0.25 * total.cost
    plain = ChoiceJudge(model=model("m"), rubric=replace(RUBRIC, system="Correct is what is so."))
    for one in (plain, choice("m")):
        found = ahead(task(RecordedAnswer(), one, recorded="Пловдив")) * 3
        alike = make_forecast(found, {"m": spec}, {"m": tariff}, set())
        assert alike.cached == alike.cost

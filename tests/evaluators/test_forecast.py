"""The forecast is the run's own: the calls that items would take, and what they cost."""

import asyncio
from collections.abc import Mapping

import pytest

from qagate.cases.tasks import PromptedAnswer, RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.judges.rubric_judge import RubricJudge, verdict_without_call
from qagate.evaluators.kept_requests import request_key
from qagate.evaluators.models.pricing import PriceTier, Pricing
from qagate.evaluators.models.spec import Prices, Spec, parse
from qagate.evaluators.runtime.forecast import (
    Call,
    Forecast,
    calls_ahead,
    make_forecast,
)
from qagate.evaluators.runtime.task import Task
from tests.support.engine_bench import correct
from tests.support.figures import some
from tests.support.scripted import PROMPT, Scripted, make_case, make_rubric


def model(spec: str) -> Scripted:
    return Scripted(lambda request: pytest.fail("asked"), spec=spec)


def choice(spec: str, system: str = "") -> RubricJudge:
    return RubricJudge(model=model(spec), rubric=make_rubric(system=system))


ANSWERER = PromptedAnswer(model=model("m"), prompt=PROMPT)


def ahead(
    judge: core.Judge,
    recorded: str | None = None,
    answerer: core.Answerer = ANSWERER,
    kept: Mapping[str, core.Reply] | None = None,
) -> list[Call]:
    """Return the calls for an item that a model answers, unless its answer is recorded."""
    case = make_case(recorded=recorded)
    answerer = RecordedAnswer() if recorded else answerer
    task = Task(
        key="k", case=case, repeat=1, answerer=answerer, judge=judge, passes=correct
    )
    return asyncio.run(calls_ahead(task, (kept or {}).get))


def specs_of(calls: list[Call]) -> list[tuple[str, bool]]:
    return [(call.spec, call.kept) for call in calls]


def test_judges_are_foreseen() -> None:
    """Any that may be asked while the answer is unknown; of known answers those that will be."""
    panel = PanelJudge(
        judges=(choice("a"), choice("b")), verdict_without_call=verdict_without_call
    )
    assert specs_of(ahead(panel)) == [("m", False), ("a", False), ("b", False)]
    cascade = CascadeJudge(rules=LexicalJudge(), model=choice("a"), audit=0.0)
    assert specs_of(ahead(cascade)) == [("m", False), ("a", False)]
    assert ahead(cascade, recorded="София") == []
    assert specs_of(ahead(choice("a"), recorded="Пловдив")) == [("a", False)]
    assert ahead(choice("a"), answerer=RecordedAnswer()) == []


def test_what_is_kept_is_free_and_followed() -> None:
    """A kept answer leads to its own judgement, which may be kept as well."""
    first, guess = ahead(choice("a"))
    assert (first.kept, guess.kept) == (False, False)
    kept = {
        request_key(ANSWERER.model.identity, first.request): core.Reply(text="Пловдив")
    }
    _, second = ahead(choice("a"), kept=kept)
    assert second.request != guess.request
    call = core.ToolCall(
        name="grade", arguments='{"reason": "r", "grade": "INCORRECT"}'
    )
    kept[request_key(model("a").identity, second.request)] = core.Reply(calls=(call,))
    assert specs_of(ahead(choice("a"), kept=kept)) == [("m", True), ("a", True)]


def test_calls_add_up() -> None:
    """Kept calls take nothing; an unknown price makes the sum unknown, not smaller."""
    spec: Spec = parse("openai:m", {})
    prices = Prices(input=0, output=1e4)
    tariff = Pricing(tiers=(PriceTier(above=0, prices=prices),), source="t")
    (call, _) = ahead(choice("m"))
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
    """The first call writes it, all others read it; what an item adds is paid for by each. A short
    rubric is kept by nobody, and calls without one have nothing in common."""
    spec = parse("anthropic:m", {})
    prices = Prices(input=10, output=0, cache_read=1, cache_write=12.5)
    tariff = Pricing(tiers=(PriceTier(above=0, prices=prices),), source="t")
    calls = ahead(choice("m", "Correct is what is so. " * 500), recorded="Пловдив") * 11
    total = make_forecast(calls, {"m": spec}, {"m": tariff}, set())
    assert 0.15 < some(total.cached) / some(total.cost) < 0.25
    for one in (choice("m", "Correct is what is so."), choice("m")):
        found = ahead(one, recorded="Пловдив") * 3
        alike = make_forecast(found, {"m": spec}, {"m": tariff}, set())
        assert alike.cached == alike.cost

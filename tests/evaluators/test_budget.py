"""The budget holds, the forecast is the run's own, and an unknown price is unknown."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.tasks import PromptedAnswer, RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.judges.forecast import Call, Forecast, calls_ahead, make_forecast
from qagate.evaluators.judges.rubric_judge import RubricJudge, spared
from qagate.evaluators.kept_requests import request_key
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.models.spec import BatchLimits, Prices, Spec, parse
from qagate.evaluators.runtime.budget import (
    GENAI_PRICES,
    USUAL_OUTPUT,
    Budget,
    PriceTier,
    Pricing,
    cost_of,
    longest_reply,
    money,
    most_input_tokens,
    output_limit,
    pricing_of,
)
from qagate.evaluators.runtime.engine import Task
from tests.support.engine_bench import correct
from tests.support.figures import some
from tests.support.places import ask
from tests.support.recorded import row_of
from tests.support.scripted import PROMPT, Scripted, make_case, make_rubric
from tests.support.tables import tabled


def spec(**parameters: object) -> Spec:
    return Spec(
        text="m",
        provider="openai",
        name="m",
        base_url="https://a.example/v1",
        api_key_env="K",
        parameters=parameters,
    )


def priced_at(input_price: float, output_price: float) -> Pricing:
    """Return what tokens cost, in USD per million."""
    prices = Prices(input=input_price, output=output_price)
    return Pricing(tiers=(PriceTier(above=0, prices=prices),), source="t")


def budget(
    limit: float, one: Spec, input_price: float = 0.0, output_price: float = 1e6
) -> Budget:
    """Return a budget over one model; the default price is 1 USD an output token."""
    return Budget(limit, {"m": (one, priced_at(input_price, output_price))})


def request(text: str = "q", **parameters: object) -> core.Request:
    return core.Request(
        messages=(core.Message(role="user", content=text),), parameters=parameters
    )


MODEL = cast("core.Model", SimpleNamespace(spec="m"))


@settings(deadline=None, max_examples=60)
@given(
    limit=st.integers(1, 200),
    calls=st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=60),
    width=st.integers(1, 8),
)
def test_the_limit_is_kept_and_used(
    limit: int, calls: list[tuple[int, bool]], width: int
) -> None:
    """With replies no longer than allowed the limit holds; a refusal means that 20 did not fit."""
    kept = budget(limit, spec(max_tokens=20))
    slots = asyncio.Semaphore(width)

    async def call(tokens: int, *, arrives: bool) -> None:
        async with slots:
            try:
                reserved = await kept.reserve(MODEL, request())
            except core.StoppedError as error:
                assert error.kind == "budget"
                return
            await asyncio.sleep(0)
            reply = (
                core.Reply(input_tokens=1, output_tokens=tokens) if arrives else None
            )
            kept.settle(reserved, "m", reply)
            assert kept.spent <= limit

    async def run() -> None:
        await asyncio.gather(
            *(call(tokens, arrives=arrives) for tokens, arrives in calls)
        )

    asyncio.run(run())
    if kept.refusal:
        assert kept.spent > limit - 20
    else:
        assert kept.spent == sum(tokens for tokens, arrives in calls if arrives)


def test_nothing_is_started_after_a_refusal() -> None:
    """Not even a call that would fit: which items are asked must not depend on their length."""
    kept = budget(10, spec())
    for tokens in (11, 1):
        with pytest.raises(
            core.StoppedError, match=r"could cost \$11\.00; raise --max-cost"
        ):
            asyncio.run(kept.reserve(MODEL, request(max_tokens=tokens)))


def test_what_goes_on_with_an_item_comes_before_new_items() -> None:
    """Once money is short, judge calls that came late are paid for before answers that waited."""
    purse = budget(10, spec(max_tokens=5))

    async def scenario() -> list[str]:
        order: list[str] = []

        async def call(name: str, *, urgent: bool) -> None:
            reserved = await purse.reserve(MODEL, request(), urgent=urgent)
            order.append(name)
            await asyncio.sleep(0.001)
            purse.settle(
                reserved, "m", core.Reply(text="", input_tokens=1, output_tokens=1)
            )

        kinds = {"answer": False, "judge": True}
        calls = [
            call(name, urgent=kinds[name]) for name in ["answer"] * 4 + ["judge"] * 2
        ]
        await asyncio.gather(*calls)
        return order

    assert asyncio.run(scenario()) == ["answer"] * 2 + ["judge"] * 2 + ["answer"] * 2


def test_a_reply_without_token_counts_is_booked_at_its_most() -> None:
    """A server that does not count makes no call free; a longer reply is expected again."""
    kept, open_ended = budget(10, spec(max_tokens=4)), budget(1e9, spec())

    async def run() -> None:
        kept.settle(await kept.reserve(MODEL, request()), "m", core.Reply(text="x"))

        assert kept.spent == 4
        first = await open_ended.reserve(MODEL, request())
        open_ended.settle(first, "m", core.Reply(input_tokens=1, output_tokens=9000))
        assert [first, await open_ended.reserve(MODEL, request())] == [
            USUAL_OUTPUT,
            9000,
        ]

    asyncio.run(run())


@given(st.text(max_size=200))
def test_no_text_has_more_tokens_than_its_bound(text: str) -> None:
    """At most one token a byte, in any script; a forced tool's schema counts as well."""
    assert most_input_tokens(request(text)) >= len(
        text.encode("utf-8", "surrogatepass")
    )
    tool = core.Tool(name="grade", description="Grade it.", schema={"type": "object"})
    plain = request()
    forced = core.Request(messages=plain.messages, tool=tool)
    assert most_input_tokens(forced) > most_input_tokens(plain) + 500


def test_whoever_limits_the_reply_is_heard() -> None:
    """The model's own parameters win over the request's; other names of the limit count too."""
    assert output_limit(spec(), request()) is None
    assert output_limit(spec(), request(max_tokens=7)) == 7
    assert output_limit(spec(max_tokens=5), request(max_tokens=7)) == 5
    assert output_limit(spec(max_completion_tokens=3), request()) == 3


@tabled("amount", "text")
def test_small_amounts_stay_visible(amount: float, text: str) -> None:
    """A fraction of a cent is not shown as nothing."""
    assert money(amount) == text


def test_a_reply_that_says_its_cost_teaches_what_the_next_may_cost() -> None:
    """For any prices: an application may call several models for one answer."""

    async def run() -> list[float]:
        money_left = budget(1.0, spec(max_tokens=1), output_price=0.0)
        held = [await money_left.reserve(MODEL, request())]
        money_left.settle(held[0], "m", core.Reply(text="a", cost=0.4))
        held.append(await money_left.reserve(MODEL, request()))
        money_left.settle(held[1], "m", core.Reply(text="b", cost=0.4))
        with pytest.raises(core.StoppedError):
            await money_left.reserve(MODEL, request())
        assert money_left.spent == pytest.approx(0.8)
        return held

    assert asyncio.run(run()) == [0.0, 0.4]


@tabled("parameters", "seen", "batch", "tokens")
def test_short_verdicts(
    parameters: dict[str, object], seen: int, batch: bool, tokens: int
) -> None:
    """But not below what the models file allows, nor below a reply that came."""
    asked = replace(
        request(max_tokens=2048),
        tool=core.Tool(name="grade", description="", schema={}),
    )
    assert longest_reply(spec(**parameters), asked, seen, batch=batch) == tokens
    assert longest_reply(spec(), replace(asked, tool=None), seen, batch=True) == 2048


def test_what_a_run_spent_counts_in_its_next_process(place: LedgerPlace) -> None:
    """Killed after any reply, the next process of the same name has the rest; another has all."""
    reply = core.Reply(input_tokens=1, output_tokens=20)

    def bought(limit: float, run: str, most: int) -> int:
        """Keep the replies of at most so many calls, each while another one is in flight."""

        async def buy(ledger: Ledger) -> int:
            kept = budget(limit, spec(max_tokens=20))
            kept.join(ledger, run)
            number = 0
            try:
                while number < most:
                    kept.settle(await kept.reserve(MODEL, request()), "m", reply)
                    await kept.reserve(MODEL, request())
                    await ledger.put(row_of(ask_count() + 1))
                    kept.settle(20.0, "m", None)
                    number += 1
            except core.StoppedError as error:
                assert f"of --max-cost ${limit:,.2f} spent" in str(error)
            return number

        with Ledger(place) as ledger:
            return asyncio.run(buy(ledger))

    def ask_count() -> int:
        return int(str(ask(place, "SELECT count(*) FROM calls")))

    assert [bought(200, "a", 2), bought(200, "a", 2)] == [2, 2]
    assert bought(200, "a", 99) <= 3
    assert bought(60, "b", 99) == 2


def test_a_free_call_does_not_stay_in_flight(tmp_path: Path) -> None:
    """Of calls in flight, a run that is killed has spent as much as its dearest replies cost."""
    reply = core.Reply(input_tokens=1, output_tokens=4)
    free_model = cast("core.Model", SimpleNamespace(spec="free"))
    models = {
        "m": (spec(max_tokens=20), priced_at(0, 1e6)),
        "free": (spec(), priced_at(0, 0)),
    }

    async def run(ledger: Ledger) -> str:
        purse = Budget(100, models)
        purse.join(ledger, "a")
        purse.settle(await purse.reserve(MODEL, request()), "m", reply)
        for _ in range(3):
            reserved = await purse.reserve(free_model, request())
            purse.settle(reserved, "free", reply)
        await purse.reserve(MODEL, request())
        return some(ledger.account)().text

    with Ledger(tmp_path / "ledger.sqlite3") as ledger:
        # 4 USD are spent, and the one call in flight may cost as much as the one before.
        assert asyncio.run(run(ledger)) == "8.0"


DAY = date(2026, 1, 15)


def priced(text: str, prices: Prices | None = None) -> Spec:
    return replace(parse(text, {}), prices=prices)


def test_prices_by_name_address_and_length() -> None:
    """The user's own wins; a provider is found by its address; long requests cost their step."""
    found = some(pricing_of(priced("openai:gpt-4o", Prices(input=0, output=0)), DAY))
    assert (found.source, found.cost(1000, 1000)) == ("", 0.0)
    found = some(pricing_of(priced("openai:gpt-4o", Prices(input=2, output=8)), DAY))
    assert found.cost(1000, 0, read=900, written=50) == found.cost(1000, 0)
    groq = priced("openai:llama-3.1-8b-instant@https://api.groq.com/openai/v1")
    reply = core.Reply(input_tokens=10**6, output_tokens=10**6)
    assert cost_of({"m": pricing_of(groq, DAY)}, "m", reply) == pytest.approx(0.13)
    google = priced("openai:gemini-2.5-pro@https://generativelanguage.googleapis.com")
    found = some(pricing_of(google, DAY))
    assert [tier.above for tier in found.tiers] == [0, 200_000]
    assert found.cost(200_001, 0) > 1.9 * found.cost(200_000, 0)


@pytest.mark.parametrize(
    "text",
    [
        "openai:gpt-4o",
        "openai:gpt-4.1-2025-04-14",
        "anthropic:claude-3-5-sonnet-20241022",
    ],
)
def test_published_prices_are_found_by_name(text: str) -> None:
    """Dated releases too; output costs more than input, and both something."""
    found = some(pricing_of(priced(text), DAY))
    assert found.source == GENAI_PRICES
    assert found.cost(0, 1_000_000) > found.cost(1_000_000, 0) > 0


@tabled("text")
def test_unknown_is_not_free(text: str) -> None:
    """Unknown names, own servers, another provider's model, prices not by the token: None."""
    assert pricing_of(priced(text), DAY) is None
    assert cost_of({text: None}, text, core.Reply(input_tokens=5)) is None
    assert cost_of({}, text, core.Reply(input_tokens=5)) is None


@pytest.mark.parametrize("text", ["openai:gpt-4.1", "anthropic:claude-opus-4-1"])
def test_cached_tokens_cost_what_the_provider_asks_for_them(text: str) -> None:
    """Read from a cache they cost less; to write them costs no less; the rest costs as ever."""
    found = some(pricing_of(priced(text), DAY))
    plain = found.cost(1000, 10)
    read = some(
        found.of_reply(
            core.Reply(input_tokens=1000, output_tokens=10, cache_read_tokens=800)
        )
    )
    written = some(
        found.of_reply(
            core.Reply(input_tokens=1000, output_tokens=10, cache_write_tokens=800)
        )
    )
    assert read < plain <= written <= found.most(1000, 10)
    assert (
        found.of_reply(core.Reply(text="x", input_tokens=9)) is None
    )  # a count that is not known
    assert read == pytest.approx(found.cost(200, 10) + found.cost(800, 0, read=800))


rates = st.floats(0, 100)


@given(
    prices=st.tuples(rates, rates, rates, rates, st.none() | rates, st.none() | rates),
    start=st.integers(1, 1000),
    at_most=st.integers(0, 2000),
    share=st.floats(0, 1),
    tokens=st.integers(0, 50),
)
def test_the_most_is_never_less_than_the_cost(
    prices: tuple[float, float, float, float, float | None, float | None],
    start: int,
    at_most: int,
    share: float,
    tokens: int,
) -> None:
    """For any steps: a request of up to so many tokens does not cost more than its most."""
    low, low_out, high, high_out, read, write = prices
    below = Prices(input=low, output=low_out, cache_read=read, cache_write=write)
    beyond = PriceTier(above=start, prices=Prices(input=high, output=high_out))
    tariff = Pricing(tiers=(PriceTier(above=0, prices=below), beyond), source="test")
    used = int(at_most * share)
    most = tariff.most(at_most, tokens) + 1e-12
    assert tariff.cost(used, tokens) <= most
    assert tariff.cost(used, tokens, read=used // 2, written=used // 3) <= most


def test_calls_in_batches_cost_what_is_published_or_half() -> None:
    """genai-prices' own price where it has one, else the provider's share; never that of a call."""
    for text in (
        "openai:gpt-4.1",
        "anthropic:claude-opus-4-1",
    ):  # with a batch price, and without
        pricing = some(pricing_of(parse(text, {}), date(2026, 11, 1)))
        half = pricing.cost(1000, 1000) / 2
        assert pricing.of_calls(batch=True).cost(1000, 1000) == pytest.approx(half)
        reply = core.Reply(input_tokens=1000, output_tokens=1000)
        assert pricing.of_reply(replace(reply, batch=True)) == pytest.approx(
            some(pricing.of_reply(reply)) / 2
        )
    # The user's own share wins, over prices given with it and over published ones.
    for prices in (None, Prices(input=2.0, output=8.0)):
        named = replace(
            parse("openai:gpt-4.1", {}), batch=BatchLimits(price=0.25), prices=prices
        )
        pricing = some(pricing_of(named, date(2026, 11, 1)))
        assert pricing.of_calls(batch=True).cost(1000, 1000) == pytest.approx(0.0025)


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
    panel = PanelJudge(judges=(choice("a"), choice("b")), spared=spared)
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
    tariff = priced_at(0, 1e4)
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

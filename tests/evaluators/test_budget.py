"""The budget holds, whatever the replies are."""

import asyncio
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.models.pricing import PriceTier, Pricing
from qagate.evaluators.models.spec import Prices, Spec
from qagate.evaluators.runtime.budget import (
    USUAL_OUTPUT,
    Budget,
    longest_reply,
    most_input_tokens,
    output_limit,
)
from tests.support.figures import some
from tests.support.places import ask
from tests.support.recorded import row_of
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


@pytest.mark.parametrize("spent", ["NaN", "-1e9", "1e999", '"much"', "[]"])
def test_a_forged_account_gives_no_budget_without_end(
    tmp_path: Path, spent: str
) -> None:
    """Any limit is above NaN, and a negative sum would be room to spend."""
    kept = budget(1.0, spec(max_tokens=20))
    with Ledger(tmp_path / "ledger.sqlite3") as ledger:
        ledger.swap(Document("spent a", "forged", spent), None)
        kept.join(ledger, "a")
        assert kept.spent == 0.0
        assert "forged" in ledger.notes[0]


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

"""What calls cost, by whose word; an unknown price is unknown."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.models.pricing import (
    GENAI_PRICES,
    PriceTier,
    Pricing,
    cost_of,
    pricing_of,
)
from qagate.evaluators.models.spec import BatchLimits, Prices, Spec, parse
from tests.support.figures import some

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


@pytest.mark.parametrize(
    "text",
    [
        "openai:no-such-model",
        "anthropic:claude-of-nobody",
        "openai:gpt-4o@http://127.0.0.1:8000/v1",
        "openai:gpt-4o@https://gateway.example/v1",
        "openai:claude-3-5-sonnet",
        "openai:whisper-1",
    ],
)
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

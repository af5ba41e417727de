"""Prices: models.yaml first, then published ones by address and name, and unknown is unknown."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import Reply
from evaluators.models.spec import Prices, Spec, parse
from evaluators.runtime.budget import (
    GENAI_PRICES,
    MODELS_YAML,
    PriceTier,
    Pricing,
    cost_of,
    pricing_of,
)
from tests.support.tables import tabled

DAY = date(2026, 1, 15)


def spec(text: str, prices: Prices | None = None) -> Spec:
    one = parse(text, {})
    return Spec(
        text=text,
        provider=one.provider,
        name=one.name,
        base_url=one.base_url,
        api_key_env=one.api_key_env,
        prices=prices,
    )


def test_the_users_own_price_wins() -> None:
    """A contract's price stands in models.yaml and beats the published one; 0 is a price."""
    own = pricing_of(spec("openai:gpt-4o", Prices(input=0, output=0)), DAY)
    assert own is not None
    assert (own.source, own.cost(1000, 1000)) == (MODELS_YAML, 0.0)


@pytest.mark.parametrize(
    "text", ["openai:gpt-4o", "openai:gpt-4.1-2025-04-14", "anthropic:claude-3-5-sonnet-20241022"]
)
def test_published_prices_are_found_by_name(text: str) -> None:
    """Dated releases too; output costs more than input, and both something."""
    found = pricing_of(spec(text), DAY)
    assert found is not None
    assert found.source == GENAI_PRICES
    assert found.cost(0, 1_000_000) > found.cost(1_000_000, 0) > 0


@tabled("text")
def test_unknown_is_not_free(text: str) -> None:
    """Unknown names, the user's own servers, another provider's model: None, never 0."""
    assert pricing_of(spec(text), DAY) is None
    assert cost_of({text: None}, text, Reply(input_tokens=5)) is None
    assert cost_of({}, text, Reply(input_tokens=5)) is None


def test_other_providers_are_found_by_their_address() -> None:
    """A compatible API of a known provider has its own prices."""
    found = pricing_of(spec("openai:llama-3.1-8b-instant@https://api.groq.com/openai/v1"), DAY)
    assert found is not None
    assert cost_of({"m": found}, "m", Reply(input_tokens=10**6, output_tokens=10**6)) == (
        pytest.approx(0.13)
    )


def test_long_requests_cost_what_their_step_says() -> None:
    """Where the price depends on the length, the step's price is that of all tokens."""
    found = pricing_of(spec("openai:gemini-2.5-pro@https://generativelanguage.googleapis.com"), DAY)
    assert found is not None
    assert [step.above for step in found.steps] == [0, 200_000]
    assert found.cost(200_001, 0) > 1.9 * found.cost(200_000, 0)


@pytest.mark.parametrize("text", ["openai:gpt-4.1", "anthropic:claude-opus-4-1"])
def test_cached_tokens_cost_what_the_provider_asks_for_them(text: str) -> None:
    """Read from a cache they cost less; to write them costs no less; the rest costs as ever."""
    found = pricing_of(spec(text), DAY)
    assert found is not None
    plain = found.cost(1000, 10)
    read = found.of(Reply(input_tokens=1000, output_tokens=10, cache_read_tokens=800))
    written = found.of(Reply(input_tokens=1000, output_tokens=10, cache_write_tokens=800))
    assert read < plain <= written <= found.most(1000, 10)
    assert read == pytest.approx(found.cost(200, 10) + found.cost(800, 0, read=800))


def test_a_price_without_one_of_its_own_for_the_cache_holds_for_all_input() -> None:
    """Where an entry of models.yaml names two, cached input costs what other input does."""
    found = pricing_of(spec("openai:gpt-4o", Prices(input=2, output=8)), DAY)
    assert found is not None
    assert found.cost(1000, 0, read=900, written=50) == found.cost(1000, 0)


def test_a_price_that_is_not_by_the_token_is_no_price() -> None:
    """Models of speech or of a price a request are unknown, not half counted."""
    assert pricing_of(spec("openai:whisper-1"), DAY) is None


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
    """Whatever the steps: a request of up to so many tokens does not cost more than its most."""
    low, low_out, high, high_out, read, write = prices
    tariff = Pricing(
        steps=(
            PriceTier(
                above=0,
                prices=Prices(input=low, output=low_out, cache_read=read, cache_write=write),
            ),
            PriceTier(above=start, prices=Prices(input=high, output=high_out)),
        ),
        source="test",
    )
    used = int(at_most * share)
    most = tariff.most(at_most, tokens) + 1e-12
    assert tariff.cost(used, tokens) <= most
    assert tariff.cost(used, tokens, read=used // 2, written=used // 3) <= most


def test_calls_in_batches_cost_what_is_published_or_half() -> None:
    """genai-prices' own price where it has one, else the provider's share; never that of a call."""
    for text in ("openai:gpt-4.1", "anthropic:claude-opus-4-1"):  # with a batch price, and without
        pricing = pricing_of(parse(text, {}), date(2026, 11, 1))
        assert pricing is not None
        assert pricing.way(batch=True).cost(1000, 1000) == pytest.approx(
            pricing.cost(1000, 1000) / 2
        )
        reply = Reply(input_tokens=1000, output_tokens=1000)
        assert pricing.of(replace(reply, batch=True)) == pytest.approx(pricing.of(reply) / 2)


def test_the_users_own_share_of_a_batch_wins() -> None:
    """It holds for the prices given beside it, and for published ones."""
    for prices in (None, Prices(input=2.0, output=8.0)):
        named = replace(parse("openai:gpt-4.1", {}), batch={"price": 0.25}, prices=prices)
        pricing = pricing_of(named, date(2026, 11, 1))
        assert pricing is not None
        assert pricing.way(batch=True).cost(1000, 1000) == pytest.approx(0.0025)

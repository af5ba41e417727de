"""What a call of a model costs.

Prices come from models.yaml, or else from the installed genai-prices; an unknown price is
never 0. ``pricing_of`` finds them, and a ``Pricing`` says what a reply cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from types import MappingProxyType

from qagate.evaluators.core import Price, Reply, UsageError
from qagate.evaluators.models.spec import Prices, Spec, parse

TOKENS_PRICED = 1_000_000
"""Prices are for so many tokens."""

GENAI_PRICES = "genai-prices"
"""Names that library as the source of prices."""

IN_BATCHES: Mapping[str, str] = MappingProxyType({"processing": "batch"})
"""What genai-prices calls the prices of calls in batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Prices of a request that has more than ``above`` input tokens."""

    above: int
    prices: Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What tokens cost, in USD per million; without priority rates and one-hour caches."""

    tiers: tuple[PriceTier, ...]
    """By rising size of the request, the first from 0 tokens. A tier prices all tokens."""
    source: str
    """Who says so."""
    batch: "Pricing | None" = None
    """What calls in batches cost; None if the model's API has no batches."""
    share: float = 1.0
    """The share of these prices that is paid."""

    def of_calls(self, *, batch: bool) -> "Pricing":
        """Return what calls cost in batches, or one by one."""
        if batch and self.batch is not None:
            return self.batch
        return self

    def cost(
        self, input_tokens: int, output_tokens: int, *, read: int = 0, written: int = 0
    ) -> float:
        """Return what a request costs in USD; ``read`` and ``written`` are tokens of a cache."""
        prices = self._reached(input_tokens)[-1].prices
        plain_price, read_price, written_price = prices.inputs
        plain = max(0, input_tokens - read - written)
        inputs = plain * plain_price + read * read_price + written * written_price
        return self.share * (inputs + output_tokens * prices.output) / TOKENS_PRICED

    def of_reply(self, reply: Reply) -> float | None:
        """Return what the request of a reply cost in USD; None where tokens of it are not known."""
        if reply.cost is not None or not reply.input_tokens:
            return reply.cost
        if reply.text and not reply.output_tokens:
            return None
        return self.of_calls(batch=reply.batch).cost(
            reply.input_tokens,
            reply.output_tokens,
            read=reply.cache_read_tokens,
            written=reply.cache_write_tokens,
        )

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a request with up to these tokens costs in USD."""
        most = 0.0
        for tier in self._reached(input_tokens):
            inputs = input_tokens * max(tier.prices.inputs)
            most = max(most, inputs + output_tokens * tier.prices.output)
        return self.share * most / TOKENS_PRICED

    def _reached(self, input_tokens: int) -> Sequence[PriceTier]:
        """Return the tiers that a request of so many tokens has reached: at least the first."""
        reached = [tier for tier in self.tiers if input_tokens > tier.above]
        return reached or self.tiers[:1]


def pricing_of(spec: Spec, on: date) -> Pricing | None:
    """Return the prices of a model on a day, or None if they are unknown.

    models.yaml wins, and is all that is known of the user's own server.
    """
    if spec.prices is None:
        tiers = _published(spec, on)
        source = GENAI_PRICES
    else:
        tiers = (PriceTier(above=0, prices=spec.prices),)
        source = spec.file
    if not tiers:
        return None
    if spec.batching is None:
        return Pricing(tiers=tiers, source=source)
    batch_tiers: tuple[PriceTier, ...] = ()
    if spec.prices is None and spec.batch.price is None:
        batch_tiers = _published(spec, on, IN_BATCHES)
    share = 1.0
    if not batch_tiers or batch_tiers == tiers:
        # Prices in batches are published for some models only. The others have a discount.
        batch_tiers = tiers
        share = spec.batching.price
    batch = Pricing(tiers=batch_tiers, source=f"{source}, in batches", share=share)
    return Pricing(tiers=tiers, source=source, batch=batch)


def cost_of(
    pricing: Mapping[str, Pricing | None], spec: str, reply: Reply
) -> float | None:
    """Return what a reply of the model with this SPEC cost in USD, None if that is not known."""
    model_pricing = pricing.get(spec)
    if model_pricing is None:
        return reply.cost
    return model_pricing.of_reply(reply)


def _published(
    spec: Spec, on: date, context: Mapping[str, str] | None = None
) -> tuple[PriceTier, ...]:
    """Return the prices of a model that genai-prices knows on a day; none if it knows none."""
    if spec.is_loopback:
        return ()
    from genai_prices import Usage, calc_price  # noqa: PLC0415  # half a second, 60 MB

    # Noon: a few providers are cheaper by night, and a run must not cost less for being late.
    noon = datetime.combine(on, time(12), tzinfo=UTC)
    try:
        model_price = calc_price(
            Usage(input_tokens=0, output_tokens=0),
            model_ref=spec.name,
            provider_api_url=spec.base_url,
            genai_request_timestamp=noon,
            price_context=context,
        ).model_price
    except LookupError:
        return ()
    published = vars(model_price)  # it has an attribute for each price that is known
    input_price = published.get("input_mtok")
    output_price = published.get("output_mtok")
    # A price for each request, or none for text, is not one that tokens can be counted at.
    if input_price is None or output_price is None or published.get("requests_kcount"):
        return ()
    read_price = published.get("cache_read_mtok")
    write_price = published.get("cache_write_mtok")
    starts = {0}
    for price in (input_price, output_price, read_price, write_price):
        for tier in getattr(price, "tiers", ()):
            starts.add(tier.start)
    tiers = []
    for start in sorted(starts):
        prices = Prices(
            input=_price_at(start, input_price),
            output=_price_at(start, output_price),
            cache_read=None if read_price is None else _price_at(start, read_price),
            cache_write=None if write_price is None else _price_at(start, write_price),
        )
        tiers.append(PriceTier(above=start, prices=prices))
    return tuple(tiers)


def _price_at(start: int, price: object) -> float:
    """Return a price of genai-prices, a number or one with tiers, from so many tokens on."""
    price_reached = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if tier.start <= start:
            price_reached = tier.price
    return float(str(price_reached))


def pricer(catalogue: Mapping[str, Spec], on: date) -> Price:
    """Return a function that says what a reply of a SPEC cost in USD, at one day's prices."""

    @cache
    def pricing(text: str) -> Pricing | None:
        try:
            return pricing_of(parse(text, catalogue), on)
        except UsageError:  # the catalogue has it no longer
            return None

    def price(text: str, reply: Reply) -> float | None:
        return cost_of({text: pricing(text)}, text, reply)

    return price

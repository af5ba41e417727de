"""What a call costs, from models.yaml or else from genai-prices; an unknown price is never 0.

genai-prices finds a price by the server's address and the model's name, in the data of the
installed package. It never fetches any.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from types import MappingProxyType

from evaluators.core import Reply, UsageError
from evaluators.models.spec import Prices, Spec, parse
from evaluators.text import flat

PER = 1_000_000  # prices are per million tokens
MODELS_YAML = "models.yaml"
GENAI_PRICES = "genai-prices"
_PRICED = ("input", "output", "cache_read", "cache_write")
IN_BATCHES: Mapping[str, str] = MappingProxyType({"processing": "batch"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Prices of a request that has more than ``above`` input tokens."""

    above: int
    prices: Prices

    def times(self, share: float) -> "PriceTier":
        """Return the tier with this share of its prices."""
        given = ((name, price) for name, price in flat(self.prices).items() if price is not None)
        parts = {name: share * float(str(price)) for name, price in given}
        return PriceTier(above=self.above, prices=Prices(**parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What a model's tokens cost, in USD per million.

    Not covered: priority rates, and caches that hold a prompt for an hour.
    """

    steps: tuple[PriceTier, ...]
    """By rising size of the request, the first from 0 tokens. A tier prices all tokens."""
    source: str
    """Who says so."""
    batch: "Pricing | None" = None
    """What calls in batches cost; None if the model's API has no batches."""

    def way(self, *, batch: bool) -> "Pricing":
        """Return what calls cost in batches, or one by one."""
        return self.batch or self if batch else self

    def cost(
        self, input_tokens: int, output_tokens: int, *, read: int = 0, written: int = 0
    ) -> float:
        """Return what one request costs in USD.

        ``read`` input tokens came from the provider's cache, ``written`` ones were put into it.
        """
        reached = (step for step in reversed(self.steps) if input_tokens > step.above)
        prices = next(reached, self.steps[0]).prices
        parts = max(0, input_tokens - read - written), read, written
        inputs = sum(part * price for part, price in zip(parts, prices.inputs, strict=True))
        return (inputs + output_tokens * prices.output) / PER

    def of(self, reply: Reply) -> float:
        """Return what the request of a reply cost in USD."""
        if reply.cost is not None:
            return reply.cost
        pricing, read = self.way(batch=reply.batch), reply.cache_read_tokens
        written = reply.cache_write_tokens
        return pricing.cost(reply.input_tokens, reply.output_tokens, read=read, written=written)

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a request with up to these tokens costs in USD."""
        reached = [step for step in self.steps if input_tokens > step.above] or self.steps[:1]
        return max(
            (input_tokens * max(step.prices.inputs) + output_tokens * step.prices.output) / PER
            for step in reached
        )


def pricing_of(spec: Spec, on: date) -> Pricing | None:
    """Return the prices of a model on a day, or None if they are unknown.

    models.yaml wins. The user's own server has no other price than the one given there: the same
    model costs something else, or nothing, on another server.
    """
    if spec.prices is None:
        steps, source = _published(spec, on), GENAI_PRICES
    else:
        steps, source = (PriceTier(above=0, prices=spec.prices),), MODELS_YAML
    if not steps:
        return None
    if spec.batching is None:
        return Pricing(steps=steps, source=source)
    own = spec.prices is not None or "price" in spec.batch
    known = () if own else _published(spec, on, IN_BATCHES)
    if not known or known == steps:  # published for some models only
        known = tuple(step.times(spec.batching.price) for step in steps)
    batch = Pricing(steps=known, source=f"{source}, in batches")
    return Pricing(steps=steps, source=source, batch=batch)


def cost_of(pricing: Mapping[str, Pricing | None], spec: str, reply: Reply) -> float | None:
    """Return what a reply of the model with this SPEC cost in USD, None for an unknown price."""
    found = pricing.get(spec)
    return reply.cost if found is None else found.of(reply)


def _published(
    spec: Spec, on: date, context: Mapping[str, str] | None = None
) -> tuple[PriceTier, ...]:
    """Return published prices; none if no price is known or the server is the user's own."""
    if spec.is_loopback:
        return ()
    from genai_prices import Usage, calc_price  # noqa: PLC0415  # half a second, 60 MB

    # Noon: a few providers are cheaper by night, and a run must not cost less for being late.
    noon = datetime.combine(on, time(12), tzinfo=UTC)
    try:
        found = calc_price(
            Usage(input_tokens=0, output_tokens=0),
            model_ref=spec.name,
            provider_api_url=spec.base_url,
            genai_request_timestamp=noon,
            price_context=context,
        ).model_price
    except LookupError:
        return ()
    values = vars(found)
    ways = {name: values.get(f"{name}_mtok") for name in _PRICED}
    # A price for each request, or none for text, is not one that tokens can be counted at.
    if None in (ways["input"], ways["output"]) or values.get("requests_kcount"):
        return ()
    return _steps(ways)


def _steps(ways: Mapping[str, object]) -> tuple[PriceTier, ...]:
    known = {name: price for name, price in ways.items() if price is not None}
    tiers = (tier for price in known.values() for tier in getattr(price, "tiers", ()))
    starts = {0, *(tier.start for tier in tiers)}
    return tuple(
        PriceTier(above=start, prices=Prices(**{name: _at(known[name], start) for name in known}))
        for start in sorted(starts)
    )


def _at(price: object, start: int) -> float:
    tiers = getattr(price, "tiers", ())
    below = [tier.price for tier in tiers if tier.start <= start]
    amount = below[-1] if below else getattr(price, "base", price)
    return float(amount) if isinstance(amount, Decimal) else float(str(amount))


def pricer(catalogue: Mapping[str, Spec], on: date) -> Callable[[str, Reply], float | None]:
    """Return what a recorded reply of a SPEC cost in USD at the prices of one day.

    The cost is None where no price is known, or the SPEC is no longer known.
    """

    @cache
    def pricing(text: str) -> Pricing | None:
        try:
            return pricing_of(parse(text, catalogue), on)
        except UsageError:
            return None

    def cost(text: str, reply: Reply) -> float | None:
        return cost_of({text: pricing(text)}, text, reply)

    return cost

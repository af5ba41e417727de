"""The money of a run: what a call costs, and a limit that always holds.

Prices come from models.yaml, or else from the installed genai-prices; an unknown price is never 0.
The most a call can cost is set aside before it starts, and settled after. Processes of one run that
share a ledger note there what they have spent: a repeated task goes on with what it has left.
"""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import cache
from types import MappingProxyType
from uuid import uuid4

from qagate.evaluators.core import (
    Model,
    Price,
    Reply,
    Request,
    StoppedError,
    UsageError,
)
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.spec import Prices, Spec, parse
from qagate.evaluators.text import Document

PER = 1_000_000  # prices are per million tokens
GENAI_PRICES = "genai-prices"
IN_BATCHES: Mapping[str, str] = MappingProxyType({"processing": "batch"})
BUDGET = "budget"
BATCH = "batch"
"""The ledger's kind of document, and of items whose calls are still with a provider."""
ROUNDING = 1e-9  # USD; sums of prices are not exact

USUAL_OUTPUT = 4096
"""Tokens taken as the longest reply where neither prompt, judge nor models.yaml limits it."""

VERDICT_TOKENS = 512
"""Tokens taken as a judge's longest reply in a batch, where the models file does not limit it and
no longer one has come: its function asks for a sentence or two. A wave holds the sum for hours."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_PER_MESSAGE = 16  # role and separators
_PER_TOOL = 700  # what a provider writes around a tool; Anthropic documents up to 530


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceTier:
    """Prices of a request that has more than ``above`` input tokens."""

    above: int
    prices: Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What tokens cost, in USD per million; without priority rates and one-hour caches."""

    steps: tuple[PriceTier, ...]
    """By rising size of the request, the first from 0 tokens. A tier prices all tokens."""
    source: str
    """Who says so."""
    batch: "Pricing | None" = None
    """What calls in batches cost; None if the model's API has no batches."""
    share: float = 1.0
    """The share of these prices that is paid."""

    def way(self, *, batch: bool) -> "Pricing":
        """Return what calls cost in batches, or one by one."""
        return self.batch or self if batch else self

    def cost(
        self, input_tokens: int, output_tokens: int, *, read: int = 0, written: int = 0
    ) -> float:
        """Return what a request costs in USD; ``read`` and ``written`` are tokens of a cache."""
        reached = (step for step in reversed(self.steps) if input_tokens > step.above)
        prices = next(reached, self.steps[0]).prices
        parts = max(0, input_tokens - read - written), read, written
        inputs = sum(
            part * price for part, price in zip(parts, prices.inputs, strict=True)
        )
        return self.share * (inputs + output_tokens * prices.output) / PER

    def of(self, reply: Reply) -> float | None:
        """Return what the request of a reply cost in USD; None where tokens of it are not known."""
        if reply.cost is not None or not reply.input_tokens:
            return reply.cost
        if reply.text and not reply.output_tokens:
            return None
        pricing, read = self.way(batch=reply.batch), reply.cache_read_tokens
        written = reply.cache_write_tokens
        return pricing.cost(
            reply.input_tokens, reply.output_tokens, read=read, written=written
        )

    def most(self, input_tokens: int, output_tokens: int) -> float:
        """Return the most that a request with up to these tokens costs in USD."""
        reached = [
            step for step in self.steps if input_tokens > step.above
        ] or self.steps[:1]
        prices = [step.prices for step in reached]
        most = max(
            input_tokens * max(one.inputs) + output_tokens * one.output
            for one in prices
        )
        return self.share * most / PER


def pricing_of(spec: Spec, on: date) -> Pricing | None:
    """Return the prices of a model on a day, or None if they are unknown.

    models.yaml wins, and is all that is known of the user's own server.
    """
    if spec.prices is None:
        steps, source = _published(spec, on), GENAI_PRICES
    else:
        steps, source = (PriceTier(above=0, prices=spec.prices),), spec.file
    if not steps:
        return None
    if spec.batching is None:
        return Pricing(steps=steps, source=source)
    batch_steps: tuple[PriceTier, ...] = ()
    if spec.prices is None and spec.batch.price is None:
        batch_steps = _published(spec, on, IN_BATCHES)
    share = 1.0
    if batch_steps in ((), steps):  # published for some models only
        batch_steps = steps
        share = spec.batching.price
    batch = Pricing(steps=batch_steps, source=f"{source}, in batches", share=share)
    return Pricing(steps=steps, source=source, batch=batch)


def cost_of(
    pricing: Mapping[str, Pricing | None], spec: str, reply: Reply
) -> float | None:
    """Return what a reply of the model with this SPEC cost in USD, None if that is not known."""
    found = pricing.get(spec)
    return reply.cost if found is None else found.of(reply)


def _published(
    spec: Spec, on: date, context: Mapping[str, str] | None = None
) -> tuple[PriceTier, ...]:
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
    published = vars(found)  # any price may be missing
    input_price = published.get("input_mtok")
    output_price = published.get("output_mtok")
    # A price for each request, or none for text, is not one that tokens can be counted at.
    if input_price is None or output_price is None or published.get("requests_kcount"):
        return ()
    read_price = published.get("cache_read_mtok")
    write_price = published.get("cache_write_mtok")
    starts = {0}
    for price in (input_price, output_price, read_price, write_price):
        starts.update(tier.start for tier in getattr(price, "tiers", ()))
    return tuple(
        PriceTier(
            above=start,
            prices=Prices(
                input=_price_at(start, input_price),
                output=_price_at(start, output_price),
                cache_read=None if read_price is None else _price_at(start, read_price),
                cache_write=(
                    None if write_price is None else _price_at(start, write_price)
                ),
            ),
        )
        for start in sorted(starts)
    )


def _price_at(start: int, price: object) -> float:
    """Return a price of genai-prices, a number or one with tiers, from so many tokens on."""
    reached = getattr(price, "base", price)
    for tier in getattr(price, "tiers", ()):
        if tier.start <= start:
            reached = tier.price
    return float(str(reached))


def pricer(catalogue: Mapping[str, Spec], on: date) -> Price:
    """Return what a reply of a SPEC cost in USD at one day's prices; None if none is known."""

    @cache
    def pricing(text: str) -> Pricing | None:
        with suppress(UsageError):
            return pricing_of(parse(text, catalogue), on)
        return None

    return lambda text, reply: cost_of({text: pricing(text)}, text, reply)


class Budget:
    """Keeps a run's spending within ``limit`` USD. Used from one event loop.

    ``models`` are those that may be asked, by SPEC. ``refusal``, once set, refuses every call.
    """

    def __init__(
        self, limit: float, models: Mapping[str, tuple[Spec, Pricing]]
    ) -> None:
        self.limit = limit
        self.spent = 0.0
        self._models = models
        self._held = 0.0
        self._name = uuid4().hex
        self._others = 0.0  # what other processes of the run have spent
        self._in_flight = 0
        self._most_paid = 0.0  # for one reply
        self._longest: dict[str, int] = {}
        self._dearest: dict[
            str, float
        ] = {}  # of the replies that say themselves what they cost
        self._left_out = 0, 0.0  # calls that did not fit into a batch, and their most
        self._urgent: list[asyncio.Future[None]] = []
        self._waiting: list[asyncio.Future[None]] = []
        self.refusal = ""

    def join(self, ledger: Ledger, run: str) -> None:
        """Count what this run has spent on a ledger in other processes, and note it there."""
        kind = f"spent {run}"
        found = ledger.documents(kind)
        others = sum(float(text) for key, text in found.items() if key != self._name)
        self.spent, self._others = self.spent - self._others + others, others

        def account() -> Document:
            in_flight = min(
                self._held, self._in_flight * self._most_paid
            )  # they may cost this
            return Document(
                kind, self._name, repr(self.spent - self._others + in_flight)
            )

        ledger.account = account

    async def reserve(
        self,
        model: Model,
        request: Request,
        *,
        urgent: bool = False,
        batch: bool = False,
    ) -> float:
        """Set aside the most that this request can cost, in USD, and return it.

        Waits while the request would fit if calls in flight cost less than was set aside for them.
        An ``urgent`` request goes before others. Raises StoppedError ("budget") once it cannot fit;
        nothing is started after that. A request in a ``batch`` has its own price and does not wait,
        as a wave takes hours: what does not fit is left out.
        """
        spec, pricing = self._models[model.spec]
        price = pricing.way(batch=batch)
        tokens = most_input_tokens(request)
        while True:
            seen = self._longest.get(model.spec, 0)
            most = price.most(tokens, longest_reply(spec, request, seen, batch=batch))
            most = max(most, self._dearest.get(model.spec, 0.0))
            fits = self.spent + self._held + most <= self.limit + ROUNDING
            if batch and not fits and not self.refusal:
                raise StoppedError(BUDGET, self._leave_out(most))
            if not self.refusal and self.spent + most > self.limit + ROUNDING:
                self.refusal = (
                    f"{money(self.spent)} of --max-cost {money(self.limit)} spent, and the next "
                    f"call of {model.spec} could cost {money(most)}; raise --max-cost and run "
                    "again to go on"
                )
            if self.refusal:
                self._wake()
                raise StoppedError(BUDGET, self.refusal)
            if fits and (urgent or not self._urgent):
                self._held += most
                self._in_flight += 1
                return most
            changed = asyncio.get_running_loop().create_future()
            (self._urgent if urgent else self._waiting).append(changed)
            await changed

    def settle(self, reserved: float, spec: str, reply: Reply | None) -> None:
        """Give back what was set aside for a request and book what its reply, if any, cost.

        A reply that names no tokens is booked at what was set aside.
        """
        self._held = max(0.0, self._held - reserved)
        if reserved > 0.0:
            self._in_flight -= 1
        if reply is not None:
            cost = self._models[spec][1].of(reply)
            paid = reserved if cost is None else cost
            self.spent += paid
            self._most_paid = max(self._most_paid, paid)
            self._longest[spec] = max(self._longest.get(spec, 0), reply.output_tokens)
            self._dearest[spec] = max(self._dearest.get(spec, 0.0), reply.cost or 0.0)
        self._wake()

    def _leave_out(self, most: float) -> str:
        """Return why a batch takes no more calls, for all that it left out so far."""
        self._left_out = calls, usd = self._left_out[0] + 1, self._left_out[1] + most
        needed = math.ceil(100 * (self.spent + self._held + usd)) / 100
        return (
            f"--max-cost {money(self.limit)} has no room for {calls:,} calls: with them the "
            f"batches could cost {money(needed)}; give --max-cost {needed:.2f}, or a smaller "
            "max_tokens in the models file, and run again to go on"
        )

    def _wake(self) -> None:
        queue = (*self._urgent, *self._waiting)
        self._urgent, self._waiting = [], []
        for changed in queue:
            if not changed.done():
                changed.set_result(None)


def most_input_tokens(request: Request) -> int:
    """Return a number of input tokens that no tokenizer exceeds: it makes one of a byte at most.

    For usual text it is 2 to 5 times too high, but set aside for seconds only, and small.
    """
    framing = _PER_MESSAGE * (len(request.messages) + 1) + (
        _PER_TOOL if request.tool else 0
    )
    return text_bytes(request) + framing


def text_bytes(request: Request) -> int:
    """Return how many bytes of UTF-8 the text of a request has, its tool included."""
    parts = [message.content for message in request.messages]
    if request.tool is not None:
        parts += [
            request.tool.name,
            request.tool.description,
            str(dict(request.tool.schema)),
        ]
    return sum(len(part.encode("utf-8", "surrogatepass")) for part in parts)


def longest_reply(
    spec: Spec, request: Request, seen: int = 0, *, batch: bool = False
) -> int:
    """Return the tokens of the longest reply to expect, where one of ``seen`` tokens has come."""
    limit = output_limit(spec, request)
    longest = max(USUAL_OUTPUT, seen) if limit is None else limit
    is_own = not {"max_tokens", spec.max_tokens_as, *_LIMITS}.isdisjoint(
        spec.parameters
    )
    is_short = batch and request.tool is not None and not is_own
    return min(longest, max(VERDICT_TOKENS, seen)) if is_short else longest


def output_limit(spec: Spec, request: Request) -> int | None:
    """Return the most tokens that a reply to this request may have; None if nothing limits it."""
    sent = spec.merged(request.parameters)
    limits = [sent[name] for name in (spec.max_tokens_as, *_LIMITS) if name in sent]
    whole = [limit for limit in limits if isinstance(limit, int)]
    return min(whole) if whole else None


def part_of_cost(known: float) -> str:
    """Return what is known of a cost of which some price is missing."""
    return f"partly known: {money(known)}" if known > 0 else "unknown"


def money(amount: float) -> str:
    """Return an amount in USD: to the cent, or to two digits below ten cents."""
    if amount == 0 or amount >= 0.1:
        return f"${amount:,.2f}"
    return f"${amount:.6f}" if amount < 0.001 else f"${amount:.4f}"

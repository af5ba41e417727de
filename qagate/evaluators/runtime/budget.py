"""The money of a run: what a call costs, and a limit that always holds.

Prices come from models.yaml, or else from the installed genai-prices; an unknown price is
never 0. ``pricing_of`` finds them, and a ``Pricing`` says what a reply cost.

A ``Budget`` keeps to ``--max-cost``: the most that a call can cost is set aside before it
starts, and settled after. Processes of one run that share a ledger note there what they
have spent, so that a repeated task goes on with what it has left.
"""

import asyncio
import math
from collections.abc import Mapping, Sequence
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
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.spec import Prices, Spec, parse

TOKENS_PRICED = 1_000_000
"""Prices are for so many tokens."""

GENAI_PRICES = "genai-prices"
"""Names that library as the source of prices."""

IN_BATCHES: Mapping[str, str] = MappingProxyType({"processing": "batch"})
"""What genai-prices calls the prices of calls in batches."""

BUDGET = "budget"
"""The kind of a StoppedError for a run whose money is used up."""

BATCH = "batch"
"""The ledger's kind of document, and of items whose calls are still with a provider."""

ROUNDING_USD = 1e-9
"""Sums of prices are not exact."""

USUAL_OUTPUT = 4096
"""Tokens taken as the longest reply where neither prompt, judge nor models.yaml limits it."""

VERDICT_TOKENS = 512
"""Tokens taken as a judge's longest reply in a batch, where the models file does not limit it
and no longer one has come: its function asks for a sentence or two. A wave holds the sum for
hours."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
"""The parameters by which requests of different APIs limit the tokens of a reply."""

_TOKENS_PER_MESSAGE = 16
"""Role and separators."""

_TOKENS_PER_TOOL = 700
"""What a provider writes around a tool; Anthropic documents up to 530."""


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


class Budget:
    """Keeps a run's spending within ``limit`` USD. Used from one event loop.

    Before a call, ``reserve`` sets aside the most that it can cost; ``settle`` gives that
    back and books what it did cost. So spending stays within the limit whatever the replies
    are. As calls cost less than their most, a call that does not fit yet may fit later: it
    waits until others are settled. Once a call would not fit even if nothing were in flight,
    this and every later call is refused. Not even a cheaper one is made then: which items
    are asked must not depend on their length.

    ``models`` are those that may be asked, by SPEC.

    Attributes::

    :spent: USD that all processes of the run have spent, as far as this one knows.

    :refusal: Why every call is refused; empty while calls may be made.

    :_held: USD set aside for calls in flight.

    :_in_flight: The number of calls in flight for which money is set aside.

    :_others: USD of ``spent`` that other processes have spent.

    :_most_paid: The USD of the dearest reply so far.

    :_longest_reply: The most tokens of a reply so far, by the model's SPEC.

    :_dearest_reply: The most USD of a reply that says itself what it cost, likewise.

    :_left_out_calls: Calls that did not fit into a batch, and their most in USD
       (``_left_out_usd``).

    :_urgent, _waiting: Futures of the calls that wait until something is settled.
    """

    def __init__(
        self, limit: float, models: Mapping[str, tuple[Spec, Pricing]]
    ) -> None:
        self.limit = limit
        self.spent = 0.0
        self.refusal = ""
        self._models = models
        self._name = uuid4().hex
        self._held = 0.0
        self._in_flight = 0
        self._others = 0.0
        self._most_paid = 0.0
        self._longest_reply: dict[str, int] = {}
        self._dearest_reply: dict[str, float] = {}
        self._left_out_calls = 0
        self._left_out_usd = 0.0
        self._urgent: list[asyncio.Future[None]] = []
        self._waiting: list[asyncio.Future[None]] = []

    def join(self, ledger: Ledger, run: str) -> None:
        """Count what this run has spent on a ledger in other processes, and note it there."""
        kind = f"spent {run}"
        others = 0.0
        for name, amount in ledger.documents(kind).items():
            if name != self._name:
                others += float(amount)
        self.spent = self.spent - self._others + others
        self._others = others

        def account() -> Document:
            # If this process is killed now, its calls in flight may cost about so much.
            in_flight = min(self._held, self._in_flight * self._most_paid)
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

        Waits while the request would fit if calls in flight cost less than was set aside for
        them. An ``urgent`` request goes before others. Raises StoppedError ("budget") once it
        cannot fit; nothing is started after that. A request in a ``batch`` has its own price
        and does not wait, as a wave takes hours: what does not fit is left out.
        """
        input_tokens = most_input_tokens(request)
        while True:
            most = self._most_cost(model.spec, request, input_tokens, batch=batch)
            fits = self._fits(self.spent + self._held + most)
            if not self.refusal:
                if batch and not fits:
                    raise StoppedError(BUDGET, self._leave_out(most))
                if not self._fits(self.spent + most):
                    self.refusal = self._refusal_of(model.spec, most)
            if self.refusal:
                self._wake()
                raise StoppedError(BUDGET, self.refusal)
            if fits and (urgent or not self._urgent):
                self._held += most
                if most > 0.0:
                    self._in_flight += 1
                return most
            settled = asyncio.get_running_loop().create_future()
            if urgent:
                self._urgent.append(settled)
            else:
                self._waiting.append(settled)
            await settled

    def settle(self, reserved: float, spec: str, reply: Reply | None) -> None:
        """Give back what was set aside for a request and book what its reply, if any, cost.

        A reply that names no tokens is booked at what was set aside. ``reserved`` is 0 for a
        free call, and for a batch's reply that no call of this process waits for.
        """
        self._held = max(0.0, self._held - reserved)
        if reserved > 0.0:
            self._in_flight -= 1
        if reply is not None:
            self._book(reserved, spec, reply)
        self._wake()

    def _book(self, reserved: float, spec: str, reply: Reply) -> None:
        """Count what a reply cost, and learn what the next ones may cost."""
        _, pricing = self._models[spec]
        cost = pricing.of_reply(reply)
        if cost is None:
            cost = reserved
        self.spent += cost
        self._most_paid = max(self._most_paid, cost)
        longest = self._longest_reply.get(spec, 0)
        self._longest_reply[spec] = max(longest, reply.output_tokens)
        dearest = self._dearest_reply.get(spec, 0.0)
        self._dearest_reply[spec] = max(dearest, reply.cost or 0.0)

    def _most_cost(
        self, name: str, request: Request, input_tokens: int, *, batch: bool
    ) -> float:
        """Return the most that a request can cost in USD, as far as replies have shown."""
        spec, pricing = self._models[name]
        seen = self._longest_reply.get(name, 0)
        output_tokens = longest_reply(spec, request, seen, batch=batch)
        most = pricing.of_calls(batch=batch).most(input_tokens, output_tokens)
        return max(most, self._dearest_reply.get(name, 0.0))

    def _fits(self, amount: float) -> bool:
        return amount <= self.limit + ROUNDING_USD

    def _refusal_of(self, name: str, most: float) -> str:
        """Return why a call, and every later one, is not made."""
        return (
            f"{money(self.spent)} of --max-cost {money(self.limit)} spent, and the next "
            f"call of {name} could cost {money(most)}; raise --max-cost and run "
            "again to go on"
        )

    def _leave_out(self, most: float) -> str:
        """Count a call for which a batch has no room; return why, for all such calls so far."""
        self._left_out_calls += 1
        self._left_out_usd += most
        needed = self.spent + self._held + self._left_out_usd
        needed = math.ceil(100 * needed) / 100
        return (
            f"--max-cost {money(self.limit)} has no room for {self._left_out_calls:,} calls: "
            f"with them the batches could cost {money(needed)}; give --max-cost {needed:.2f}, "
            "or a smaller max_tokens in the models file, and run again to go on"
        )

    def _wake(self) -> None:
        """Let all that wait look again, the urgent ones first."""
        waiting = [*self._urgent, *self._waiting]
        self._urgent = []
        self._waiting = []
        for settled in waiting:
            if not settled.done():
                settled.set_result(None)


def most_input_tokens(request: Request) -> int:
    """Return a number of input tokens that no tokenizer exceeds: it makes one of a byte at most.

    For usual text it is 2 to 5 times too high, but set aside for seconds only, and small.
    """
    tokens = text_bytes(request)
    tokens += _TOKENS_PER_MESSAGE * (len(request.messages) + 1)
    if request.tool is not None:
        tokens += _TOKENS_PER_TOOL
    return tokens


def text_bytes(request: Request) -> int:
    """Return how many bytes of UTF-8 the text of a request has, its tool included."""
    texts = [message.content for message in request.messages]
    if request.tool is not None:
        texts.append(request.tool.name)
        texts.append(request.tool.description)
        texts.append(str(dict(request.tool.schema)))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def longest_reply(
    spec: Spec, request: Request, seen: int = 0, *, batch: bool = False
) -> int:
    """Return the tokens of the longest reply to expect, where one of ``seen`` tokens has come."""
    limit = output_limit(spec, request)
    longest = max(USUAL_OUTPUT, seen) if limit is None else limit
    limits_of_models_file = {"max_tokens", spec.max_tokens_as, *_LIMITS}
    if limits_of_models_file.isdisjoint(spec.parameters):
        is_verdict = request.tool is not None
        if batch and is_verdict:
            return min(longest, max(VERDICT_TOKENS, seen))
    return longest


def output_limit(spec: Spec, request: Request) -> int | None:
    """Return the most tokens that a reply to this request may have; None if nothing limits it."""
    parameters = spec.merged(request.parameters)
    limits = []
    for name in (spec.max_tokens_as, *_LIMITS):
        limit = parameters.get(name)
        if isinstance(limit, int):
            limits.append(limit)
    return min(limits, default=None)


def part_of_cost(known: float) -> str:
    """Return what is known of a cost of which some price is missing."""
    return f"partly known: {money(known)}" if known > 0 else "unknown"


def money(amount: float) -> str:
    """Return an amount in USD: to the cent, or to two digits below ten cents."""
    if amount == 0 or amount >= 0.1:
        return f"${amount:,.2f}"
    return f"${amount:.6f}" if amount < 0.001 else f"${amount:.4f}"

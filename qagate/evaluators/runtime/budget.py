"""A limit in USD that a run always holds.

A ``Budget`` keeps to ``--max-cost``: the most that a call can cost is set aside before it
starts, and settled after. Processes of one run that share a ledger note there what they
have spent, so that a repeated task goes on with what it has left.

The most that a call can cost follows from the most tokens that it can take: for the request
``most_input_tokens``, for the reply ``longest_reply``.
"""

import asyncio
import math
from collections.abc import Mapping
from uuid import uuid4

from qagate.evaluators.core import Model, Reply, Request, StoppedError
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models.pricing import Pricing
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.number_text import money

# Reports import it from here, too.
from qagate.evaluators.number_text import part_of_cost as part_of_cost  # noqa: PLC0414
from qagate.evaluators.typed_data import Usd

BUDGET = "budget"
"""The kind of a StoppedError for a run whose money is used up."""

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
        for name, amount in ledger.documents_as(kind, Usd).items():
            if name != self._name:
                others += amount
        self.spent = self.spent - self._others + others
        self._others = others

        def account() -> Document:
            # If this process is killed now, its calls in flight may cost about so much.
            in_flight = min(self._held, self._in_flight * self._most_paid)
            # Of a difference rounding may leave less than nothing.
            of_this_process = max(0.0, self.spent - self._others)
            return Document(kind, self._name, repr(of_this_process + in_flight))

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

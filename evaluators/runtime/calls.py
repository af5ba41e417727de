"""One call, asked once: ledger first, then the network within all limits, then the ledger.

A judge that could not be read is asked up to three times. Three unreadable replies are final: a
verdict must not be fished for.
"""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

from evaluators.core import Ask, CallError, Model, Reply, Request, StoppedError, Usage
from evaluators.ledger import Ledger, PaidReply
from evaluators.models import LazyModel
from evaluators.runtime.batch_landing import Parked
from evaluators.runtime.batches import Batches
from evaluators.runtime.budget import Budget
from evaluators.runtime.sender import CallSettings, ItemDeadline, Sender
from evaluators.sent import Document, documents_of
from evaluators.text import fresh_key, request_key

Price = Callable[[str, Reply], float | None]
"""What a reply of the model with this SPEC cost in USD; None if no price is known."""


@dataclass(slots=True)
class Meter:
    """Adds up what the replies behind one item took; the item's own, never shared.

    ``models`` maps the SPECs of the models that were asked to the names that providers returned.
    ``deadline`` is the time that the item may still take; ``phase`` is 0 while it is answered, and
    1 from then on, and ``answering`` what was taken until then. ``waiting`` counts the replies that
    it waits for now.
    """

    price: Price
    usage: Usage = field(default_factory=Usage)
    models: dict[str, str] = field(default_factory=dict)
    phase: int = 0
    answering: Usage = field(default_factory=Usage)
    _asked: dict[str, tuple[object, ...]] = field(default_factory=dict)
    deadline: ItemDeadline = field(default_factory=ItemDeadline)
    waiting: int = 0

    @property
    def calls(self) -> tuple[str, ...]:
        """The ledger keys of all that was asked, in vain too; the order is that of any run."""
        return tuple(sorted(self._asked, key=self._asked.__getitem__))

    def end_answer(self) -> None:
        """Note that the answer is there, and what it took; what is asked from now on judges it."""
        self.phase, self.answering = 1, self.usage

    def note(self, key: str, model: Model, request: Request) -> None:
        """Note what was asked."""
        told = (model.spec, request.version, request.repeat, request.attempt)
        self._asked.setdefault(key, (self.phase, *told, key))

    def add(self, model: Model, reply: Reply, *, sent: int, earlier: bool, imported: bool) -> None:
        """Count one reply; ``sent`` is the number of requests that this run made for it.

        ``earlier`` says that an earlier run paid for it, ``imported`` that an import brought it.
        """
        cost = self.price(model.spec, reply)
        self.usage += Usage(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            seconds=reply.seconds,
            cost=cost,
            requests=sent,
            spent=(cost or 0.0) if sent else 0.0,
            earlier=earlier,
            imported=imported,
            cache_read_tokens=reply.cache_read_tokens,
        )
        self.models[model.spec] = reply.model or model.spec


class Caller:
    """Puts requests to models, in one event loop, with one ledger, sender and set of prices.

    An identical request is sent once even when two items ask it at the same time. A reply that is
    being committed is no longer in flight.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: CallSettings,
        price: Price,
        budget: Budget | None = None,
    ) -> None:
        self.ledger = ledger
        self.sender = Sender(settings, budget)
        self.price = price
        self.batches = Batches(ledger, self.sender, settings.batch, price)
        self._fresh = settings.fresh
        self._replay = settings.replay
        self._transcripts = settings.transcripts
        self._under_way: dict[str, asyncio.Task[tuple[Reply, int]]] = {}

    def halt(self, error: StoppedError) -> None:
        """Start no further call; what is in flight goes on."""
        self.sender.halt(error)
        self.batches.halt(error)

    def describe(self, now: float) -> str:
        """Return in a few words what calls wait for; empty if nothing is held back."""
        waits = self.batches.describe(), self.sender.admission.describe(now)
        return "; ".join(filter(None, waits))

    async def close(self) -> None:
        """Return once all that was paid for is kept; the ledger is left open."""
        await self.batches.close()
        await self.ledger.flush()

    def metered(self, meter: Meter) -> Ask:
        """Return an ``ask`` that adds every reply to this meter."""

        async def ask(model: Model, request: Request) -> Reply:
            key = self._key(model, request)
            meter.waiting += 1
            try:
                reply, sent = await self._ask(model, request, key, meter)
            except CallError as error:
                if not isinstance(error, StoppedError):
                    meter.note(key, model, request)
                raise
            finally:
                meter.waiting -= 1
            meter.note(key, model, request)
            earlier = self.ledger.is_earlier(key)
            imported = earlier and self.ledger.is_imported(key)
            meter.add(model, reply, sent=sent, earlier=earlier, imported=imported)
            return reply

        return ask

    def _key(self, model: Model, request: Request) -> str:
        return fresh_key(request_key(model.identity, request), self._fresh)

    async def _ask(
        self, model: Model, request: Request, key: str, meter: Meter
    ) -> tuple[Reply, int]:
        kept = await self.ledger.find(key)
        if kept is not None:
            return kept, 0
        if self._replay:
            kind = "not_in_ledger"
            raise CallError(kind, f"{model.spec}: this request is not in the ledger (--replay)")
        task = self._under_way.get(key)
        if task is not None:
            reply, _ = await asyncio.shield(task)
            return reply, 0
        task = asyncio.create_task(self._fetch(model, request, key, meter))
        self._under_way[key] = task
        task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await task

    async def _fetch(
        self, model: Model, request: Request, key: str, meter: Meter
    ) -> tuple[Reply, int]:
        documents = self._documents(model, request, key)
        row = partial(PaidReply, key=key, spec=model.spec, documents=documents)
        try:
            await self.batches.refresh()
            if self.batches.holds(key) or self.batches.takes(model):
                reply = await self._in_batch(model, request, row, meter)
                if reply is not None:
                    return reply, 1
            async with AsyncExitStack() as stack:
                claimed = stack.enter_async_context(self.ledger.claim(key))
                kept = await self.sender.before_the_end(claimed)
                if kept is not None:  # another run asked it meanwhile
                    return kept, 0
                reply = await self.sender.send(model, request, meter.deadline)
                await self.ledger.put(row(reply=reply))
                return reply, 1
        except StoppedError:
            raise
        except CallError:
            for document in documents:  # what was asked in vain is shown as well
                await self.ledger.keep(*document)
            raise

    async def _in_batch(
        self, model: Model, request: Request, row: partial[PaidReply], meter: Meter
    ) -> Reply | None:
        """Return the reply that came in a batch and is kept; None if it is to be asked directly."""
        assert isinstance(model, LazyModel)  # no other has batches
        future = asyncio.get_running_loop().create_future()
        parked = Parked(model=model, request=request, row=row, sender=self.sender, future=future)
        return await self.batches.reply(parked, urgent=bool(meter.models))

    def _documents(self, model: Model, request: Request, key: str) -> tuple[Document, ...]:
        return documents_of(model, request, key, self._fresh) if self._transcripts else ()

"""One call, asked once: ledger first, then the network with bounded retries, then the ledger."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from evaluators.core import (
    Ask,
    CallError,
    FatalError,
    Model,
    Reply,
    Request,
    TransientError,
    Usage,
    request_key,
)
from evaluators.ledger import Ledger, Row

LONGEST_WAIT = 120.0  # seconds; a server that asks for more is not waited for

Price = Callable[[str, Reply], float | None]
"""What a reply of the model with this spec cost in USD; None where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often a transient failure is tried again, and how long is waited in between.

    ``attempts`` counts the first one; waits grow from ``first`` to ``longest`` seconds, with
    jitter, and are never shorter than what the server announced.
    """

    attempts: int = 5
    first: float = 0.5
    longest: float = 20.0


@dataclass(slots=True)
class Meter:
    """Adds up what the replies behind one item took; the item's own, never shared."""

    price: Price
    usage: Usage = field(default_factory=Usage)
    models: dict[str, str] = field(default_factory=dict)

    def add(self, model: Model, reply: Reply, *, sent: int) -> None:
        """Count one reply; ``sent`` is the number of requests that this run made for it."""
        cost = self.price(model.spec, reply)
        so_far = self.usage
        self.usage = Usage(
            input_tokens=so_far.input_tokens + reply.input_tokens,
            output_tokens=so_far.output_tokens + reply.output_tokens,
            seconds=so_far.seconds + reply.seconds,
            cost=None if cost is None or so_far.cost is None else so_far.cost + cost,
            requests=so_far.requests + sent,
            spent=so_far.spent + ((cost or 0.0) if sent else 0.0),
        )
        self.models[model.spec] = reply.model or model.spec


class Caller:
    """Puts requests to models for the whole run.

    An identical request is sent once even when two items ask it at the same time. The first call
    of each model goes alone: a wrong key costs one request, not one a worker. After a FatalError
    nothing more is sent to that model. At most ``concurrency`` requests are in flight; a reply that
    is being committed is not.
    """

    def __init__(
        self, ledger: Ledger, patience: Patience, *, concurrency: int = 16, replay: bool = False
    ) -> None:
        self.requests = 0
        self._slots = asyncio.Semaphore(concurrency)
        self._ledger = ledger
        self._patience = patience
        self._replay = replay
        self._under_way: dict[str, asyncio.Task[Reply]] = {}
        self._probes: dict[str, asyncio.Lock] = {}
        self._proven: set[str] = set()
        self._dead: dict[str, FatalError] = {}

    def metered(self, meter: Meter) -> Ask:
        """Return an ``ask`` that adds every reply to this meter."""

        async def ask(model: Model, request: Request) -> Reply:
            reply, sent = await self._ask(model, request)
            meter.add(model, reply, sent=sent)
            return reply

        return ask

    async def _ask(self, model: Model, request: Request) -> tuple[Reply, int]:
        key = request_key(model.identity, request)
        kept = self._ledger.get(key)
        if kept is not None:
            return kept, 0
        if self._replay:
            kind = "not_in_ledger"
            raise CallError(kind, f"{model.spec}: this request is not in the ledger (--replay)")
        task = self._under_way.get(key)
        if task is not None:
            return await asyncio.shield(task), 0
        task = asyncio.create_task(self._fetch(model, request, key))
        self._under_way[key] = task
        task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await task, 1

    async def _fetch(self, model: Model, request: Request, key: str) -> Reply:
        reply = await self._retried(model, request)
        await self._ledger.put(Row(key=key, spec=model.spec, reply=reply))
        return reply

    async def _retried(self, model: Model, request: Request) -> Reply:
        from tenacity import (  # noqa: PLC0415  # only the process that calls models needs it
            AsyncRetrying,
            retry_if_exception,
            stop_after_attempt,
            wait_random_exponential,
        )

        backoff = wait_random_exponential(self._patience.first, self._patience.longest)
        retrying = AsyncRetrying(
            retry=retry_if_exception(_worth_another),
            stop=stop_after_attempt(self._patience.attempts),
            wait=lambda state: max(backoff(state), _announced(state.outcome)),
            reraise=True,
        )
        reply: Reply = await retrying(self._once, model, request)
        return reply

    async def _once(self, model: Model, request: Request) -> Reply:
        spec = model.spec
        if spec not in self._proven:
            async with self._probes.setdefault(spec, asyncio.Lock()):
                if spec not in self._proven:
                    try:
                        return await self._send(model, request)
                    finally:
                        self._proven.add(spec)
        return await self._send(model, request)

    async def _send(self, model: Model, request: Request) -> Reply:
        async with self._slots:
            if model.spec in self._dead:
                raise self._dead[model.spec]
            self.requests += 1
            try:
                return await model.complete(request)
            except FatalError as error:
                self._dead[model.spec] = error
                raise


def _worth_another(error: BaseException) -> bool:
    return isinstance(error, TransientError) and (error.retry_after or 0.0) <= LONGEST_WAIT


def _announced(outcome: object) -> float:
    failed = getattr(outcome, "exception", lambda: None)()
    return getattr(failed, "retry_after", None) or 0.0

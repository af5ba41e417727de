"""When a judge that could not be read may be asked once more.

Attempts go in rounds of three. The first round is final: a verdict must not be fished for. Only
``--reask-invalid`` opens a further round, whose replies are found again by every later run.
"""

from collections.abc import Awaitable, Callable

from evaluators.core import Message, Model, Reply, Request

ATTEMPTS = 3

CountedAsk = Callable[[Model, Request], Awaitable[tuple[Reply, int]]]
"""Put a request to a model; the number is how many requests this run sent for the reply."""


class ItemAsk:
    """The ``ask`` of one item: it knows which of its requests this run has already sent.

    ``kept`` says whether the ledger has the reply to a request.
    """

    def __init__(
        self, ask: CountedAsk, kept: Callable[[Model, Request], bool], *, reask: bool
    ) -> None:
        self._ask = ask
        self._kept = kept
        self._reask = reask
        self._sent: set[tuple[str, tuple[Message, ...]]] = set()

    async def __call__(self, model: Model, request: Request) -> Reply:
        """Return the reply, from the ledger or the model."""
        reply, sent = await self._ask(model, request)
        if sent:
            self._sent.add((model.spec, request.messages))
        return reply

    def opens_round(self, model: Model, request: Request) -> bool:
        """Return whether this request, the first of a further round, may be put.

        It may where an earlier run has put it, or where the user wants it and all replies so far
        are an earlier run's.
        """
        fresh = (model.spec, request.messages) in self._sent
        return self._kept(model, request) or (self._reask and not fresh)

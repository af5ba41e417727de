"""What a run learns of its models' servers, and keeps in the ledger for later runs.

A ``Negotiations`` knows how each model is written to. The caller asks it before each call,
and tells it of refusals and replies. Whatever is learned changes the model at once. What a
reply teaches is kept under the model's identity; what a refusal teaches is kept once the call
that was refused succeeds, and undone where it does not. So a run sends, and keys, what the run
before it has found out; where nothing is refused, nothing is sent twice.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from qagate.evaluators.core import CallError, Model, RefusedError, Reply, Request
from qagate.evaluators.kept_requests import judge_identity
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.negotiation import (
    AS_MOST,
    Negotiable,
    Negotiated,
    after_refusal,
    after_reply,
    read_document,
    stands,
)
from qagate.evaluators.text import digest

NEGOTIATED = "negotiated"
"""The kind of a document that says how a model is written to."""

REFUSED = "bad_request"
"""The kind of a refusal that may be due to what was sent, and not to what was asked."""
TOO_LONG = "context_length"
"""The kind of a refusal that may be due to our limit: room for the reply is reserved."""


def negotiated_key(model: Model) -> str:
    """Return the key of the document about a model."""
    return digest(dict(judge_identity(model.identity)))


def read_negotiated(ledger: Ledger, model: Model) -> Negotiated | None:
    """Return how a ledger says that a model is written to; None if it says nothing."""
    key = negotiated_key(model)
    text = ledger.documents(NEGOTIATED, [key]).get(key)
    return None if text is None else read_document(text)


class Negotiations:
    """How the models of a run are written to.

    Attributes::

    :by_spec: What is known of each model that was asked, by SPEC.
    """

    def __init__(
        self,
        ledger: Ledger,
        begin_with: Mapping[str, Negotiated],
        *,
        keeps: bool = True,
    ) -> None:
        """``begin_with`` is used where the ledger knows nothing of a model, by SPEC.

        A replay ``keeps`` nothing of what it learns.
        """
        self.by_spec: dict[str, Negotiated] = {}
        self._proven: dict[str, Negotiated] = {}
        """The same without lessons of refusals that no success has shown to be right."""
        self._ledger = ledger
        self._begin_with = begin_with
        self._keeps = keeps

    def of(self, model: Model) -> Negotiated:
        """Return how a model is written to; the first time the ledger is asked."""
        known = self.by_spec.get(model.spec)
        if known is not None:
            return known
        if not isinstance(model, Negotiable) or model.limits.takes_case:
            return AS_MOST
        try:
            known = read_negotiated(self._ledger, model)
        except LedgerError:  # the call itself will say so
            known = None
        if known is None:
            known = self._begin_with.get(model.spec, AS_MOST)
        self._proven[model.spec] = known
        self._use(model, known)
        return known

    def learn_from_refusal(
        self,
        model: Model,
        request: Request,
        then: Negotiated,
        error: CallError,
        refused: Collection[Negotiated] = (),
    ) -> bool:
        """Return whether a refused call should be made again, written in another way.

        ``request`` is what was sent, and ``then`` how the model was written to. In the ways of
        ``refused`` the same call was refused before: it is made in none of them again.
        """
        kinds = (REFUSED,) if request.own_limit is None else (REFUSED, TOO_LONG)
        is_refusal = isinstance(error, RefusedError) and error.kind in kinds
        if not is_refusal or not isinstance(model, Negotiable):
            return False
        now = self.of(model)
        if now != then:  # another call has learned meanwhile
            return now not in refused
        learned = after_refusal(now, request, str(error))
        if learned is None or learned in refused:
            return False
        self._use(model, learned)
        return True

    async def keep_lesson(self, model: Model, then: Negotiated) -> None:
        """Keep what a refusal taught: the refused call succeeded as the model was written to."""
        now = self.by_spec[model.spec]
        if _writes_alike(now, then) and not _writes_alike(now, self._proven_of(model)):
            await self._keep(model, now)

    def unlearn(self, model: Model, then: Negotiated) -> None:
        """Undo what a refusal taught: the refused call failed in the other way too."""
        if _writes_alike(self.by_spec[model.spec], then):
            self._use(model, self._proven_of(model))

    async def learn_from_reply(
        self, model: Model, request: Request, then: Negotiated, reply: Reply
    ) -> bool:
        """Return whether a call should be made in another form: this one was ignored, or did harm.

        ``then`` says how the model was written to.
        """
        has_one_form = request.tool is None and request.own_limit is None
        if has_one_form or not isinstance(model, Negotiable):
            return False
        now = self.of(model)
        if now.forms != then.forms:  # another call has learned meanwhile
            return not reply.calls
        learned = after_reply(now, request, reply)
        if learned != now:
            proven = after_reply(self._proven_of(model), request, reply)
            await self._keep(model, proven)
            self._use(model, learned)
        return not stands(then, request, reply)

    def forget(self, model: Model) -> None:
        """Find out anew how a model is to be written to."""
        self._proven[model.spec] = AS_MOST
        self._use(model, AS_MOST)

    def _proven_of(self, model: Model) -> Negotiated:
        return self._proven.get(model.spec, AS_MOST)

    async def _keep(self, model: Model, learned: Negotiated) -> None:
        self._proven[model.spec] = learned
        if not self._keeps:
            return
        await self._ledger.keep(NEGOTIATED, negotiated_key(model), learned.document)

    def _use(self, model: Model, known: Negotiated) -> None:
        self.by_spec[model.spec] = known
        if isinstance(model, Negotiable):
            model.negotiated = known


def _writes_alike(left: Negotiated, right: Negotiated) -> bool:
    """Return whether both write to a model in one way, whatever is proven of it."""
    return replace(left, proven=()) == replace(right, proven=())

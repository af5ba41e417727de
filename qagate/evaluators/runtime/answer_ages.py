"""Which kept answers of the model under test may stand for new ones.

A kept answer saves a call, but a run is about what the model says now. Behind one name the
weights may have changed, so answers that another run asked for count only while they are young.
A dated version is another matter: where the provider names it again, its weights are the same.
One call tells that, and meanwhile the other items with such an answer wait.

``kept_answer`` decides, and is pure; ``AnswerAges`` looks up, asks and remembers.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from qagate.evaluators import core
from qagate.evaluators.core import Model, Reply, Request
from qagate.evaluators.ledger import KeptReply
from qagate.evaluators.ledger.kept import Kept
from qagate.evaluators.models.targets import HTTP, PYTHON
from qagate.evaluators.models.versions import version_of
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.caller import Caller, Meter
from qagate.evaluators.text import digest

MOST_SECONDS_AHEAD = 86_400.0
"""How far after the beginning of a run another one may have kept an answer that counts.

An answer that seems to come from next year was kept while the clock was wrong: nobody knows how old
it is.
"""
VERSIONS = "versions"
"""The kind of a document with the versions that a provider named in a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAge:
    """How old a kept answer may be that another run asked for."""

    seconds: float = math.inf
    """Before the run began."""
    dated_may_be_older: bool = False
    """Whether an older one counts of a version that the provider names again."""


ANY_AGE = AnswerAge()
"""All kept answers count."""
THIS_RUN = AnswerAge(seconds=-math.inf)
"""Only answers that this run asked for count."""

Decision = Literal["use", "ask", "find out"]
"""``find out``: use it if the provider names its version again, which no call has told yet."""


def kept_answer(
    kept: KeptReply,
    age: AnswerAge,
    run: RunIdentity,
    asked_name: str,
    named: Set[str],
) -> Decision:
    """Return what to do where a reply with the answer is kept.

    ``asked_name`` is the model's name in the request, ``named`` the versions that the provider
    named in this run so far.
    """
    if run.id and kept.run == run.id:
        return "use"
    if age == ANY_AGE:
        return "use"
    seconds_before = run.started - kept.at
    if -MOST_SECONDS_AHEAD <= seconds_before <= age.seconds:
        return "use"
    version = version_of(kept.reply.model, asked_name)
    if not age.dated_may_be_older or not version:
        return "ask"
    if not named:
        return "find out"
    return "use" if version in named else "ask"


@dataclass(slots=True)
class _ModelNow:
    """What is known of a model in this run."""

    named: set[str] = field(default_factory=set)
    """The versions that the provider named, with the empty name for a reply without one."""
    finding_out: asyncio.Lock = field(default_factory=asyncio.Lock)


class AnswerAges:
    """Answers items in one run, in the loop of its engine."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._models: dict[str, _ModelNow] = {}

    def asking(self, meter: Meter, age: AnswerAge) -> core.Ask:
        """Return the ``ask`` of an answerer, which takes kept replies of this age."""
        if age == ANY_AGE:
            return self._caller.metered(meter)

        async def ask(model: Model, request: Request) -> Reply:
            return await self._ask(meter, age, model, request)

        return ask

    async def _ask(
        self, meter: Meter, age: AnswerAge, model: Model, request: Request
    ) -> Reply:
        found = await self._caller.find_kept(meter, model, request)
        kept = None if found is None else found.reply
        now = self._model_now(model)
        decision = self._decide(kept, age, model, now)
        if decision == "find out" and not meter.kept_only:
            async with _while_waiting(meter, now.finding_out):
                decision = self._decide(kept, age, model, now)
                if decision == "find out":
                    return await self._answer(meter, age, model, request)
        if found is not None and decision == "use":
            return self._caller.use_kept(meter, found)
        return await self._answer(meter, age, model, request)

    def _decide(
        self, kept: KeptReply | None, age: AnswerAge, model: Model, now: _ModelNow
    ) -> Decision:
        if kept is None:
            return "ask"
        if model.identity.get("provider") in (PYTHON, HTTP):
            # The user's own function or service names itself, and no code behind it.
            age = replace(age, dated_may_be_older=False)
        return kept_answer(kept, age, self._caller.run, _name_of(model), now.named)

    async def _answer(
        self, meter: Meter, age: AnswerAge, model: Model, request: Request
    ) -> Reply:
        """Return a new answer, and remember which version gave it.

        A run at the same time may have asked for it meanwhile: it counts while it is young.
        """
        run = self._caller.run
        young = Kept(run=run.id, since=run.started - age.seconds)
        reply = await self._caller.metered(meter, answers=young)(model, request)
        now = self._model_now(model)
        version = version_of(reply.model, _name_of(model))
        if version not in now.named:
            now.named.add(version)
            await self._keep(model, now)
        return reply

    def _model_now(self, model: Model) -> _ModelNow:
        """Return what this run knows of a model, from an earlier attempt of it too."""
        if model.spec not in self._models:
            key = self._key(model)
            kept = self._caller.ledger.documents_as(VERSIONS, list[str], [key])
            self._models[model.spec] = _ModelNow(named=set(kept.get(key, ())))
        return self._models[model.spec]

    async def _keep(self, model: Model, now: _ModelNow) -> None:
        """Keep the versions, for a replay and for another attempt of this run."""
        if self._caller.run.id and not self._caller.is_replay:
            text = json.dumps(sorted(now.named))
            await self._caller.ledger.keep(VERSIONS, self._key(model), text)

    def _key(self, model: Model) -> str:
        return digest([self._caller.run.id, model.spec])


@asynccontextmanager
async def _while_waiting(meter: Meter, lock: asyncio.Lock) -> AsyncIterator[None]:
    """Hold a lock; until it is free the item counts as one that waits."""
    meter.waiting += 1
    try:
        await lock.acquire()
    finally:
        meter.waiting -= 1
    try:
        yield
    finally:
        lock.release()


def _name_of(model: Model) -> str:
    return str(model.identity.get("name", ""))

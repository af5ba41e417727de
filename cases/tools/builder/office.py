"""The suite's machinery for calls, set up for one command: ledger, limits, budget, models."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from cases.tools.builder.asking import Desk
from cases.tools.builder.options import Calling
from cases.tools.builder.sources import Say
from evaluators.core import Model
from evaluators.ledger import Ledger
from evaluators.models import connect
from evaluators.models.secrets import require_key
from evaluators.models.spec import Spec
from evaluators.runtime.budget import budget_of
from evaluators.runtime.calls import Caller
from evaluators.runtime.prices import cost_of, pricing_of
from evaluators.runtime.sender import RetryPolicy, RunLimits, Sender

T = TypeVar("T")


class ModelOffice:
    """Models and money of one command. Raises UsageError for a missing key or an unkept budget.

    ``specs`` are all models that may be asked. The deadline and the budget hold for all steps
    together, the ledger is the suite's.
    """

    def __init__(self, calling: Calling, specs: Sequence[Spec], say: Say) -> None:
        self._calling = calling
        self._say = say
        self._began = time.monotonic()
        self._keys = {
            spec.text: None if calling.replay else require_key(spec, os.environ) for spec in specs
        }
        today = datetime.now(UTC).date()
        self._tariffs = {spec.text: pricing_of(spec, today) for spec in specs}
        self._budget = budget_of(calling.max_cost, specs, self._tariffs)

    def run(self, name: str, spec: Spec, work: Callable[[Model, Desk], Awaitable[T]]) -> T:
        """Return what ``work`` makes of a model; whatever was paid for is in the ledger then."""
        with Ledger(self._calling.ledger, read_only=self._calling.replay) as ledger:
            return asyncio.run(self._run(name, spec, work, ledger))

    async def _run(
        self, name: str, spec: Spec, work: Callable[[Model, Desk], Awaitable[T]], ledger: Ledger
    ) -> T:
        model = connect(spec, self._keys[spec.text])
        sender = Sender(RetryPolicy(), self._bounds(), random.random)
        sender.begin()
        caller = Caller(ledger, sender, replay=self._calling.replay)
        price = partial(cost_of, self._tariffs)
        desk = Desk(caller=caller, sender=sender, price=price, say=self._say)
        try:
            return await work(model, desk)
        finally:
            await ledger.flush()
            await model.close()
            for line in (f"{name}: {desk.spent}", *ledger.notes):
                self._say(line)

    def _bounds(self) -> RunLimits:
        calling = self._calling
        deadline = calling.deadline
        if deadline is not None:
            deadline = max(0.0, deadline - (time.monotonic() - self._began))
        return RunLimits(
            concurrency=calling.concurrency,
            rpm=calling.rpm,
            deadline=deadline,
            budget=self._budget,
        )

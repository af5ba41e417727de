"""Putting questions to a model through the suite's own caller: ledger, limits, retries, budget."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from cases.tools.builder.sources import Say
from evaluators.core import Ask, CallError, StoppedError
from evaluators.output import ProgressLines
from evaluators.runtime.budget import money
from evaluators.runtime.calls import Caller, Meter, Price
from evaluators.runtime.sender import Sender

GRACE_SECONDS = 3.0  # what is in flight when the user stops a step may still arrive
MANY = 50  # jobs
T = TypeVar("T")
Job = Callable[[Ask], Awaitable[T]]
"""One piece of work that asks; its result must follow from the replies alone."""


@dataclass(slots=True, kw_only=True)
class Desk:
    """Where one step's calls go. ``usage`` adds up what they took."""

    caller: Caller
    sender: Sender
    price: Price
    say: Say
    meters: list[Meter] = field(default_factory=list)

    @property
    def spent(self) -> str:
        """What the calls took, in a few words."""
        usage = [meter.usage for meter in self.meters]
        sent, tokens = (
            self.sender.requests,
            sum(one.input_tokens + one.output_tokens for one in usage),
        )
        costs = [one.cost for one in usage if one.cost is not None]
        if len(costs) < len(usage):
            return f"{sent} requests sent; all replies: {tokens:,} tokens, at an unknown price"
        paid = money(sum(one.spent for one in usage))
        return (
            f"{sent} requests sent for {paid}; all replies: {tokens:,} tokens, {money(sum(costs))}"
        )

    async def work(self, name: str, jobs: Sequence[Job[T]]) -> list[T | CallError]:
        """Return each job's result, or the CallError that ended it, in the order of the jobs.

        Cancelled, it lets nothing more be sent, and waits a moment for what is in flight: that is
        paid for, and the ledger is to have it.
        """
        progress = ProgressLines(self.say, 10 if len(jobs) >= MANY else 1)
        done = itertools.count(1)

        def step() -> None:
            number = next(done)
            progress.show(f"{name}: {number} of {len(jobs)}", number, len(jobs))

        tasks = [asyncio.create_task(self._ended(job, step)) for job in jobs]
        if not tasks:
            return []
        try:
            await asyncio.wait(tasks)  # which, unlike gather, leaves them alone when cancelled
        except asyncio.CancelledError:
            kind = "stopped"
            self.sender.halt(StoppedError(kind, "stopped before this was asked"))
            await asyncio.wait(tasks, timeout=GRACE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        return [task.result() for task in tasks]

    async def _ended(self, job: Job[T], step: Callable[[], None]) -> T | CallError:
        meter = Meter(price=self.price)
        self.meters.append(meter)
        try:
            return await job(self.caller.metered(meter))
        except CallError as error:
            return error
        finally:
            step()

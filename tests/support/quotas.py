"""Runs that share a quota, in one event loop of virtual time: the database is a Python object."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from evaluators.runtime.budget import Budget
from evaluators.runtime.quota import Quota
from evaluators.runtime.quota_messages import Grant, Report
from evaluators.runtime.quota_state import QuotaState
from evaluators.runtime.sender import CallSettings
from tests.support.simulated import Ended, Server, call_all, now

SKEW = 1e9  # what the database's clock is ahead of the loop's


class Shared:
    """The database's side: the state passes through JSON between two reports, as it does there.

    ``delay`` is the way there and back in seconds; while it is ``down`` it cannot be reached.
    ``dead`` are runs whose reports do not arrive any more.
    """

    def __init__(self, delay: float = 0.004) -> None:
        self.kept = "{}"
        self.reports = 0
        self.delay = delay
        self.down = False
        self.dead: set[str] = set()

    @property
    def state(self) -> QuotaState:
        return QuotaState.of_json(json.loads(self.kept))

    async def exchange(self, report: Report) -> Grant:
        await asyncio.sleep(self.delay / 2)
        if report.run in self.dead:
            await asyncio.get_running_loop().create_future()
        if self.down:
            raise OSError("connection refused")
        state = self.state
        grant = state.report(report, now() + SKEW)
        self.kept = json.dumps(state.as_json())
        self.reports += 1
        await asyncio.sleep(self.delay / 2)
        return grant


@dataclass
class Run:
    """One run: its calls, and the way to kill it."""

    shared: Shared
    quota: Quota
    work: asyncio.Task[Ended]

    def kill(self) -> None:
        """End it as kill -9 does: nothing is given back."""
        self.shared.dead.add(self.quota.run)
        self.work.cancel()


def begin(
    shared: Shared,
    server: Server,
    count: int,
    settings: CallSettings,
    budget: Budget | None = None,
) -> Run:
    """Let a run put so many requests to a server."""
    quota = Quota("q", shared.exchange, budget)
    work = asyncio.create_task(call_all(server, count, settings, budget, quota))
    return Run(shared, quota, work)


def most_within(seconds: float, at: Sequence[float]) -> int:
    """Return how many of these times lie at most within any stretch of so many seconds."""
    times, first, most = sorted(at), 0, 0
    for index, time in enumerate(times):
        while times[first] <= time - seconds:
            first += 1
        most = max(most, index - first + 1)
    return most

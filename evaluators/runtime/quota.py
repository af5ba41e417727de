"""A run's part in a quota: limits that all runs which name it share by way of one ledger.

The governor of the run stays as it is; its buckets, its room for calls in flight and its budget get
what is granted when the run reports, twice a second. A run whose report gets no answer may do
nothing once its lease has ended: others count on that.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from evaluators.core import StoppedError
from evaluators.ledger.stores import open_quota_store
from evaluators.ledger_place import Place
from evaluators.runtime.budget import Budget
from evaluators.runtime.leases import BookedBucket, Room, SharedRate, SharedRoom
from evaluators.runtime.quota_messages import MONEY, Grant, MoneyNeed, Report, interval, lease
from evaluators.runtime.quota_state import QuotaState
from evaluators.runtime.server_state import ServerState

QUOTA = "quota"
FIRST_PAUSE = 0.05  # seconds after the first report that wants something; then twice as many
SAMPLES = 16  # answers, of which the fastest one tells best what the database's clock says

Exchange = Callable[[Report], Awaitable[Grant]]
"""Give the database a report; return what it grants."""


class Quota:
    """The limits that the runs of one quota share, as one of them sees them. For one event loop.

    ``notes`` say which limits another run has set lower.
    """

    def __init__(self, name: str, exchange: Exchange, budget: Budget | None = None) -> None:
        self.name = name
        self._exchange = exchange
        self._budget = budget
        self._spent_before = 0.0
        self.run = uuid4().hex
        self._rates: dict[str, SharedRate] = {}
        self._rooms: dict[str, SharedRoom] = {}
        self._servers: dict[str, tuple[ServerState, Callable[[], int]]] = {}
        self._lower: dict[str, tuple[float, float | None]] = {}
        self._changed: Callable[[], None] = lambda: None
        self._halt: Callable[[StoppedError], None] = lambda error: None
        self._reporting: asyncio.Task[None] | None = None
        self._poked = asyncio.Event()
        self._is_idle = True
        self._is_over = False
        self._runs = 1
        self._reported: float | None = None
        self._clocks: deque[tuple[float, float]] = deque(maxlen=SAMPLES)
        self._expiry: asyncio.TimerHandle | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report should say of the quota."""
        return tuple(
            f"--quota {self.name}: another of its runs had {key} {least:,g}, which held for all "
            f"(here: {'none' if here is None else format(here, ',g')})"
            for key, (least, here) in self._lower.items()
        )

    def describe(self) -> str:
        """Return in a few words what is shared with whom; empty for a run that is alone."""
        return f"--quota {self.name}: one of {self._runs} runs" if self._runs > 1 else ""

    def begin(self, changed: Callable[[], None], halt: Callable[[StoppedError], None]) -> None:
        """Start to report, unless it goes on already.

        ``changed`` is called when more calls may go, ``halt`` when none may any more.
        """
        if self._reporting is not None:
            return
        self._changed, self._halt = changed, halt
        if self._budget is not None:
            self._spent_before = self._budget.spent
            self._budget.lease(0.0, 0.0, self._budget.limit)
        self._reporting = asyncio.create_task(self._keep_reporting())

    def rate(
        self, key: str, per_minute: float | None, seconds: float, waiting: Callable[[], float]
    ) -> BookedBucket:
        """Return the bucket of a shared rate, of which ``seconds`` worth may go at once."""
        bucket = BookedBucket(seconds)
        self._rates[key] = SharedRate(most=per_minute, bucket=bucket, waiting=waiting)
        self._poked.set()
        return bucket

    def room(
        self, key: str, most: int | None, own: int, load: Callable[[], tuple[int, int]]
    ) -> Room:
        """Return the room for calls in flight; ``own`` is the most that this run can use."""
        room = Room(0)
        self._rooms[key] = SharedRoom(most=most, own=own, room=room, load=load)
        self._poked.set()
        return room

    def watch(self, server: ServerState, waiting: Callable[[], int]) -> None:
        """Tell others of a server's pauses and outages, and keep to what they tell."""
        self._servers[server.name] = server, waiting

    def want(self) -> None:
        """Report soon if nothing was wanted by the last report: a call is about to wait."""
        if self._is_idle:
            self._poked.set()

    async def close(self) -> None:
        """Give everything back; what was spent stays counted."""
        if self._reporting is None or self._is_over:
            return
        self._is_over = True
        self._poked.set()
        await self._reporting  # what is on its way must not come after the last report
        self._expire()
        spent = self._money_need()
        need = MoneyNeed(most=spent.most, spent=spent.spent)
        with suppress(Exception):  # unheard of, it is taken as dead: no limit is passed for that
            await self._exchange(Report(run=self.run, money=need, leaves=True))

    async def _keep_reporting(self) -> None:
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while not self._is_over:
            await asyncio.sleep(0)  # whoever poked is to wait for what it wants by now
            self._poked.clear()
            sent = loop.time()
            try:
                said = self._report(sent)
                grant = await self._exchange(said)
            except Exception as error:  # noqa: BLE001  # whatever it is, no limit could be kept
                why = str(error).strip() or type(error).__name__
                self._fail(f"the database cannot be asked: {why}")
                return
            if grant.refusal:
                self._fail(grant.refusal)
                return
            self._apply(grant, said, sent, loop.time())
            # What a run wants shows within its first calls: a few reports follow soon.
            pause = FIRST_PAUSE if self._is_idle else min(2 * pause, interval(grant.runs))
            with suppress(TimeoutError):
                async with asyncio.timeout(interval(grant.runs) if self._is_idle else pause):
                    await self._poked.wait()

    def _fail(self, why: str) -> None:
        self._expire()
        message = f"--quota {self.name}: {why}; no more calls are made, what is done is kept"
        self._halt(StoppedError(QUOTA, message))
        if self._budget is not None:  # what waits for money is to learn that it is over
            self._budget.lease(self._budget.limit, 0.0, self._budget.limit)

    def _report(self, now: float) -> Report:
        since = now - self._reported if self._reported is not None else 0.0
        self._reported = now
        rates = {key: one.need(since) for key, one in self._rates.items()}
        calls = {key: one.need() for key, one in self._rooms.items()}
        money_need = self._money_need()
        self._is_idle = not (any(one.wanted for one in calls.values()) or money_need.wanted)
        servers = {
            name: state.news(now, is_wanted=state.window.in_flight + waiting() > 0)
            for name, (state, waiting) in self._servers.items()
        }
        return Report(run=self.run, rates=rates, calls=calls, money=money_need, servers=servers)

    def _money_need(self) -> MoneyNeed:
        if self._budget is None:
            return MoneyNeed()
        kept, wanted, first = self._budget.need()
        return MoneyNeed(
            most=self._budget.limit,
            spent=self._budget.spent - self._spent_before,
            kept=kept,
            wanted=wanted,
            first=first,
        )

    def _apply(self, grant: Grant, said: Report, sent: float, now: float) -> None:
        """Use what was granted to a report that was sent at a time of the loop."""
        self._clocks.append((now - sent, now - grant.now))
        _, ahead = min(self._clocks)
        self._runs = grant.runs
        for key in said.rates:
            self._rates[key].bucket.book(now, grant.rates.get(key), ahead, grant.runs)
        for key in said.calls:
            self._rooms[key].lease(grant.calls.get(key))
        for name, news in grant.servers.items():
            self._servers[name][0].hear(news, now)
        if self._budget is not None:
            allowed = self._spent_before + said.money.spent + grant.money
            cap = grant.most.get(MONEY, self._budget.limit)
            self._budget.lease(allowed, grant.elsewhere - self._spent_before, cap)
        self._note(grant, said)
        if self._expiry is not None:
            self._expiry.cancel()
        loop = asyncio.get_running_loop()
        self._expiry = loop.call_at(sent + lease(grant.runs), self._expire)
        self._changed()

    def _note(self, grant: Grant, said: Report) -> None:
        """Remember which limits another run has set lower, or has alone."""
        own = {key: need.most for key, need in {**said.rates, **said.calls}.items()}
        for key, least in grant.most.items():
            here = {**own, MONEY: said.money.most}.get(key)
            if here is None or here > least:
                self._lower[key] = min(least, self._lower.get(key, (least, here))[0]), here

    def _expire(self) -> None:
        """Do nothing more with what was granted: by now others may have it."""
        if self._expiry is not None:
            self._expiry.cancel()
        for rate in self._rates.values():
            rate.bucket.expire()
        for room in self._rooms.values():
            room.room.size = 0
        if self._budget is not None:
            self._budget.lease(0.0, 0.0, self._budget.limit)


def open_quota(place: Place, name: str, budget: Budget | None) -> Quota:
    """Return a run's part in the quota with this name.

    Raises UsageError where the ledger is a file, which machines do not share.
    """
    store = open_quota_store(place, name)

    def work(report: Report, kept: Mapping[str, Any], now: float) -> tuple[dict[str, Any], Grant]:
        state = QuotaState.of_json(kept)
        grant = state.report(report, now)
        return state.as_json(), grant

    async def exchange(report: Report) -> Grant:
        try:
            return await asyncio.to_thread(store.change, partial(work, report), last=report.leaves)
        finally:
            if report.leaves:
                store.close()

    return Quota(name, exchange, budget)

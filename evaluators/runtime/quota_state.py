"""What the runs of one quota may do at the same time: one pure function of a state and a report.

Rates are calendars: each second has slots, evenly spaced, and each slot is booked by one run. So
all runs together are as even as one, whatever their number, and what a dead run had booked lapses
by itself. Calls in flight and money are leased; a run that is not heard of loses its lease.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import ceil, floor
from typing import Any, Self

from evaluators.runtime.quota_messages import (
    MONEY,
    ROUNDING,
    Grant,
    MoneyNeed,
    Report,
    ServerNews,
    Slots,
    interval,
    lease,
)

EVEN = 0.98  # of a rate is booked: calls that come a moment late must not exceed it
SLOT_SECONDS = 0.02  # the shortest slot; one of a high rate holds several calls
FOREVER = 3600.0  # seconds, longer than any lease


@dataclass(slots=True, kw_only=True)
class RunState:
    """One live run, by its latest report; ``until`` then it may use what it was granted."""

    until: float
    most: dict[str, float | None] = field(default_factory=dict)
    wants: dict[str, float] = field(default_factory=dict)
    slots: dict[str, list[int]] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    spent: float = 0.0
    held: float = 0.0


@dataclass(slots=True, kw_only=True)
class ServerPause:
    """Until when a server is left alone, and which run alone tries one that is down ``since``."""

    resume: float = 0.0
    announced: float = 0.0
    prober: str = ""
    since: float = 0.0


@dataclass(slots=True, kw_only=True)
class QuotaState:
    """All that the database keeps of a quota.

    ``spent`` is of runs that have ended, ``dead`` what others may have spent until they died.
    ``calendars`` are the length of a slot and the time that its first one may have.
    """

    spent: float = 0.0
    dead: dict[str, float] = field(default_factory=dict)
    runs: dict[str, RunState] = field(default_factory=dict)
    servers: dict[str, ServerPause] = field(default_factory=dict)
    calendars: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of_json(cls, kept: Mapping[str, Any]) -> Self:
        """Return the state that ``as_json`` gave, or a new one for an empty mapping."""
        runs = {name: RunState(**one) for name, one in kept.get("runs", {}).items()}
        servers = {name: ServerPause(**one) for name, one in kept.get("servers", {}).items()}
        calendars = {key: (one[0], one[1]) for key, one in kept.get("calendars", {}).items()}
        return cls(**{**kept, "runs": runs, "servers": servers, "calendars": calendars})

    def as_json(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        runs = {name: _fields(one) for name, one in self.runs.items()}
        servers = {name: _fields(one) for name, one in self.servers.items()}
        return {**_fields(self), "runs": runs, "servers": servers}

    def report(self, said: Report, now: float) -> Grant:
        """Take note of what a run says at this time of the database; return what it may do."""
        self._bury(now)
        is_new = said.run not in self.runs
        if is_new and (refusal := self._refusal(said.money)):
            return Grant(now=now, refusal=refusal)
        self.dead.pop(said.run, None)  # it lives: what was counted for it is in its own report
        run = self.runs.setdefault(said.run, RunState(until=now))
        run.until = now + lease(len(self.runs))
        run.spent, run.held = said.money.spent, said.money.kept
        needs = {**said.rates, **said.calls}
        run.most = {key: need.most for key, need in needs.items()} | {MONEY: said.money.most}
        run.wants = {key: need.wanted for key, need in needs.items()}
        run.calls = {key: need.kept for key, need in said.calls.items()}
        self._hear(said, now)
        if said.leaves:
            self.spent += run.spent
            del self.runs[said.run]
            return Grant(now=now)
        return self._grant(said, run, now)

    def _grant(self, said: Report, run: RunState, now: float) -> Grant:
        most = {key: least for key in run.most if (least := self._most(key)) is not None}
        rates = {key: self._book(key, run, most[key], now) for key in said.rates if key in most}
        calls = {key: self._lease(key, run, most[key]) for key in said.calls if key in most}
        elsewhere = self.spent + sum(self.dead.values())
        elsewhere += sum(one.spent for one in self.runs.values() if one is not run)
        if MONEY in most:
            held = sum(one.held for one in self.runs.values())
            room = most[MONEY] - elsewhere - run.spent - held
            run.held += min(said.money.wanted, room) if room >= said.money.first - ROUNDING else 0.0
        return Grant(
            now=now,
            rates=rates,
            calls=calls,
            money=run.held,
            elsewhere=elsewhere,
            servers=self._tell(said, now),
            most=most,
            runs=len(self.runs),
        )

    def _bury(self, now: float) -> None:
        """Take out runs whose lease has ended; the money that they held may be spent."""
        for name, run in list(self.runs.items()):
            if now > run.until or now < run.until - FOREVER:  # the clock was put back
                if run.spent + run.held:
                    self.dead[name] = run.spent + run.held
                del self.runs[name]

    def _refusal(self, money: MoneyNeed) -> str:
        """Return why a new run may not join: a limit of money must hold for all runs, or none."""
        capped = self._most(MONEY)
        if not self.runs or (capped is None) == (money.most is None):
            return ""
        if capped is None:
            return "other runs of it go on without --max-cost; wait for their end, or take another"
        return f"other runs of it keep to --max-cost {capped:g}; give this one the same"

    def _most(self, key: str) -> float | None:
        """Return the smallest limit that any run knows, None if there is none."""
        known = [run.most.get(key) for run in self.runs.values()]
        return min((one for one in known if one is not None), default=None)

    def _wants(self, key: str) -> list[float]:
        return [run.wants.get(key, 0.0) for run in self.runs.values()]

    def _book(self, key: str, run: RunState, per_minute: float, now: float) -> Slots:
        """Book the next seconds' slots that are a run's share; give back what it needs no more."""
        rate = EVEN * per_minute / 60
        width = max(SLOT_SECONDS, 1 / rate)
        wants = self._wants(key)
        old, begin = self.calendars.get(key, (width, 0.0))
        ahead = max(2 * interval(len(self.runs)), sum(map(bool, wants)) * max(width, old))
        if old != width:  # the limit is another one: what was booked by the old one runs out first
            begin = now + ahead
            for one in self.runs.values():
                one.slots.pop(key, None)
        begin = min(begin, now + ahead)  # the database's clock may have been put back
        self.calendars[key] = width, begin
        first = max(floor(now / width) + 1, ceil(begin / width))
        spare = max(0.0, rate - sum(wants)) / len(wants)
        share = fair(rate, wants, run.wants[key]) + spare
        count = ceil(share * ahead / (rate * width) - 1e-9)
        mine = [slot for slot in run.slots.get(key, ()) if slot >= first][:count]
        run.slots[key] = mine
        taken = {slot for one in self.runs.values() for slot in one.slots.get(key, ())}
        free = [slot for slot in range(first, first + round(ahead / width)) if slot not in taken]
        run.slots[key] = sorted([*mine, *_spread(free, count - len(mine))])
        times = tuple(slot * width for slot in run.slots[key])
        return Slots(rate=rate, amount=rate * width, times=times)

    def _lease(self, key: str, run: RunState, most: float) -> tuple[int, int]:
        """Return how many calls a run may have in flight, and how many are its share."""
        share = ceil(fair(most, self._wants(key), run.wants[key]))
        others = sum(one.calls.get(key, 0) for one in self.runs.values() if one is not run)
        run.calls[key] = max(run.calls[key], min(share, most - others))
        return int(run.calls[key]), share

    def _hear(self, said: Report, now: float) -> None:
        """Take note of what a run says of servers. One run at a time tries a server that fails."""
        for name, news in said.servers.items():
            server = self.servers.setdefault(name, ServerPause())
            server.resume = max(server.resume, now + news.pause)
            server.announced = max(server.announced, now + news.announced)
            if server.prober in (said.run, "") or server.prober not in self.runs:
                is_down = news.down is not None and not said.leaves
                server.prober = said.run if is_down else ""
                server.since = now - (news.down or 0.0)

    def _tell(self, said: Report, now: float) -> dict[str, ServerNews]:
        """Return what a run must know of its servers."""
        return {
            name: ServerNews(
                pause=max(0.0, server.resume - now),
                announced=max(0.0, server.announced - now),
                down=now - server.since if server.prober not in (said.run, "") else None,
            )
            for name, server in self.servers.items()
            if name in said.servers
        }


def _fields(one: "QuotaState | RunState | ServerPause") -> dict[str, Any]:
    return {field.name: getattr(one, field.name) for field in fields(one)}  # asdict copies all


def fair(whole: float, wants: Iterable[float], mine: float) -> float:
    """Return the max-min fair share of one that wants ``mine``, which is one of the ``wants``."""
    left, rest = whole, sorted(wants)
    for index, want in enumerate(rest):
        share = left / (len(rest) - index)
        if want >= share:
            return min(mine, share)
        left -= want
    return mine


def _spread(free: list[int], count: int) -> list[int]:
    """Return so many of the free slots, evenly spread from the first one on."""
    count = max(0, min(count, len(free)))
    return [free[index * len(free) // count] for index in range(count)]

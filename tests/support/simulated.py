"""Servers of virtual time: they count what reaches them, and refuse as real ones do."""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

from qagate.evaluators.core import (
    CallError,
    Limits,
    Reply,
    Request,
    StoppedError,
    TransientError,
)
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import CallSettings, ItemClock, Sender
from tests.support.scripted import ask_for

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Never waits: what the loop would have waited for is added to its clock."""

    now = 0.0

    def select(
        self, timeout: float | None = None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        events: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        if not events:
            assert timeout is not None, "everything waits and no timer is set"
            self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """For code that waits by timers only: neither threads nor sockets keep its time."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Server:
    """A model whose answers come after ``latency`` seconds; ``refuse`` may raise on arrival.

    ``at`` holds when each request came, ``most`` how many there were at once.
    """

    refuse: Callable[[float], None] = lambda at: None
    latency: float = 0.2
    spec: str = "openai:simulated"
    limits: Limits = field(default_factory=lambda: Limits(host="host"))
    at: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    in_flight: int = 0
    most: int = 0
    reply: Reply = field(default_factory=lambda: Reply(text="ok"))

    @property
    def identity(self) -> Mapping[str, object]:
        return {"name": self.spec}

    async def complete(self, request: Request) -> Reply:
        self.at.append(now())
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            self.refuse(now())
            await asyncio.sleep(self.latency)
            self.ended.append(now())
            return self.reply
        finally:
            self.in_flight -= 1

    async def close(self) -> None:
        return


@dataclass
class Metered:
    """A server's limit of ``rate`` requests a second, ``burst`` at once; says when to come back."""

    rate: float
    burst: float
    retry_after: float | None = 1.0
    _level: float = -1.0
    _at: float = 0.0

    def __call__(self, at: float) -> None:
        level = (
            self.burst if self._level < 0 else self._level + (at - self._at) * self.rate
        )
        self._level, self._at = min(self.burst, level), at
        if self._level >= 1:
            self._level -= 1
            return
        raise TransientError("rate_limit", "too many requests", self.retry_after)


@dataclass
class Down:
    begin: float
    end: float
    kind: str = "overloaded"

    def __call__(self, at: float) -> None:
        if self.begin <= at < self.end:
            raise TransientError(self.kind, "busy")


@dataclass
class Ended:
    """How a number of calls ended, in virtual seconds."""

    results: Sequence[Reply | BaseException]
    seconds: float
    sender: Sender

    @property
    def replies(self) -> int:
        return sum(isinstance(one, Reply) for one in self.results)

    @property
    def stopped(self) -> int:
        return sum(isinstance(one, StoppedError) for one in self.results)

    @property
    def errors(self) -> list[BaseException]:
        return [
            one
            for one in self.results
            if isinstance(one, BaseException) and not isinstance(one, StoppedError)
        ]


async def call_all(
    server: Server, count: int, settings: CallSettings, budget: Budget | None = None
) -> Ended:
    """Put ``count`` requests, twice as many at a time as may be in flight, as the engine does."""
    sender = Sender(replace(settings, random=Random(0).random), budget)
    sender.begin()
    left = iter(range(count))
    results: list[Reply | BaseException] = []

    async def work() -> None:
        for number in left:
            try:
                results.append(
                    await sender.send(server, ask_for(str(number)), ItemClock())
                )
            except CallError as error:
                results.append(error)

    begun = now()
    await asyncio.gather(*(work() for _ in range(2 * settings.concurrency)))
    return Ended(results, now() - begun, sender)


def asked(server: Server, count: int = 1000, **bounds: Any) -> Ended:
    return run(call_all(server, count, CallSettings(**bounds)))

"""Judging outside a run: a ledger, a set of limits and an event loop of its own.

Whoever asks may have an event loop running, have none, or have several in turn: the calls are made
in one thread, whose connections no other loop ever sees.
"""

import asyncio
import concurrent.futures
import os
import random
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

from evaluators.core import Case, Judge, Model, Reply, Request, Usage, UsageError, Verdict
from evaluators.judges.factory import JudgeFactory, connect_judges
from evaluators.judges.judge_spec import PanelSpec
from evaluators.ledger import Ledger
from evaluators.models.secrets import Key, require_key
from evaluators.models.spec import Spec
from evaluators.runtime.budget import Budget
from evaluators.runtime.calls import Caller, Meter
from evaluators.runtime.prices import Pricing, cost_of, pricing_of
from evaluators.runtime.sender import RetryPolicy, RunLimits, Sender

CLOSING_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """How models are asked: the ledger that keeps every call, and what is allowed at most.

    ``concurrency`` bounds the calls in flight, ``rpm`` the requests a minute, ``max_cost`` the USD;
    None means no bound. ``replay`` sends nothing.
    """

    ledger: Path = Path(".qa/ledger.sqlite3")
    concurrency: int = 16
    rpm: int | None = None
    max_cost: float | None = None
    replay: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict, and what the replies behind it took."""

    verdict: Verdict
    usage: Usage


class CallSession:
    """Where one judge, named by its SPEC, is asked; several metrics may share it.

    A process that was forked makes connections of its own. Raises UsageError for a SPEC that
    names nothing, a key that is not set, or a cost limit that could not be kept.
    """

    def __init__(self, judge: str, terms: SessionSettings | None = None) -> None:
        self.name = judge
        self.terms = terms or SessionSettings()
        self.judges = connect_judges(PanelSpec.parse(judge), _no_key if self.terms.replay else _key)
        self._tariffs = _tariffs(self.judges, self.terms, datetime.now(UTC).date())
        self._lock = threading.Lock()
        self._room: _Room | None = None
        self._left: list[_Room] = []  # a parent's: its files are not to be closed here
        self._closing: weakref.finalize[..., CallSession] | None = None

    def ask(self, judge: Judge, case: Case, answer: str) -> concurrent.futures.Future[Judged]:
        """Return what will hold the verdict, or raise what the judge or the call raised."""
        with self._lock:
            room = self._here()
        return asyncio.run_coroutine_threadsafe(room.judged(judge, case, answer), room.loop)

    def close(self) -> None:
        """Give connections and files back; asked again, the desk opens anew."""
        with self._lock:
            if self._closing is not None:
                self._closing()
            self._room = None

    def _here(self) -> "_Room":
        if self._room is not None and self._room.process == os.getpid():
            return self._room
        if self._room is not None and self._closing is not None:
            self._closing.detach()
            self._left.append(self._room)
        self._room = _Room(self.judges, self.terms, self._tariffs)
        self._closing = weakref.finalize(self, self._room.close)
        return self._room


class _Room:
    """A thread with its loop, and all that may be used from that loop alone."""

    def __init__(
        self, judges: JudgeFactory, terms: SessionSettings, tariffs: Mapping[str, Pricing | None]
    ) -> None:
        self.process = os.getpid()
        self._models = tuple(judges.models.values())
        self._price = partial(cost_of, tariffs)
        self._ledger = Ledger(terms.ledger, read_only=terms.replay) if judges.models else None
        bounds = RunLimits(
            concurrency=terms.concurrency,
            rpm=terms.rpm,
            budget=_budget(tuple(judges.specs.values()), tariffs, terms.max_cost),
        )
        sender = Sender(RetryPolicy(), bounds, random.random)
        self._caller = Caller(self._ledger, sender, replay=terms.replay) if self._ledger else None
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="qa-desk", daemon=True)
        self._thread.start()

    async def judged(self, judge: Judge, case: Case, answer: str) -> Judged:
        """Return the verdict on an answer."""
        meter = Meter(price=self._price)
        ask = self._caller.metered(meter) if self._caller else nobody
        verdict = await judge.judge(case, answer, ask)
        return Judged(verdict=verdict, usage=meter.usage)

    def close(self) -> None:
        """End the thread once its connections are closed; what is in flight is given up."""
        with suppress(RuntimeError):  # closed before
            self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join(CLOSING_SECONDS)

    def _run(self) -> None:
        self.loop.run_forever()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for model in self._models:
            await model.close()
        if self._ledger is not None:
            await self._ledger.flush()
            self._ledger.close()
        await asyncio.get_running_loop().shutdown_default_executor()


def _tariffs(judges: JudgeFactory, terms: SessionSettings, day: date) -> dict[str, Pricing | None]:
    tariffs = {spec.text: pricing_of(spec, day) for spec in judges.specs.values()}
    unknown = [text for text, tariff in tariffs.items() if tariff is None]
    if terms.max_cost is not None and unknown:
        msg = (
            f"max_cost: no price is known for {', '.join(unknown)}, so that no limit could be "
            "kept; give prices: {input: , output: } in evaluators/models.yaml and name that entry"
        )
        raise UsageError(msg)
    return tariffs


def _budget(
    specs: tuple[Spec, ...], tariffs: Mapping[str, Pricing | None], most: float | None
) -> Budget | None:
    known = {one.text: (one, tariff) for one in specs if (tariff := tariffs[one.text]) is not None}
    return None if most is None else Budget(most, known)


def _key(spec: Spec) -> Key | None:
    return require_key(spec, os.environ)


def _no_key(spec: Spec) -> Key | None:
    return None


async def nobody(model: Model, request: Request) -> Reply:
    """Refuse to ask: for judges that never do."""
    msg = f"{model.spec}: nobody is asked here"
    raise UsageError(msg)

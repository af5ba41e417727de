"""Runs in batches against a server of our own, without pytest: some calls asked at once."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from evaluators.batches.batches import find_batches
from evaluators.batches.waves import BatchSettings, Wave, waves_in
from evaluators.core import CallError, Place, Reply
from evaluators.ledger import Ledger
from evaluators.models import connect
from evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from evaluators.text import Key
from tests.support.batch_server import BatchServer
from tests.support.model_calls import SECRET, asked, spec_of

QUICK = BatchSettings(settle=0.3, quiet=0.02, pause=0.02, first=0.01, longest=0.05)
RETRY = RetryPolicy(attempts=2, first=0.0, longest=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of some calls, in their order, and what the run says of itself."""

    results: Sequence[Reply | CallError]
    stops: dict[str, str]
    retried: dict[str, int]
    sent: int

    @property
    def texts(self) -> list[str]:
        """The replies' texts; for a call without one the kind of its error."""
        return [one.text if isinstance(one, Reply) else one.kind for one in self.results]


@dataclass
class BatchRuns:
    """Runs on one ledger, each of which asks one model for replies to some texts."""

    folder: Path
    server: BatchServer
    provider: str
    ledger: Place | None = None  # in place of a file in the folder

    @property
    def place(self) -> Place:
        return self.ledger or self.folder / "ledger"

    def run(
        self,
        texts: Sequence[str],
        settings: BatchSettings | None = QUICK,
        seconds: float | None = None,
        **spec: Any,
    ) -> Asked:
        """Ask for all texts at once, for so many ``seconds`` at most, then for nothing more."""
        calls = CallSettings(retry=RETRY, deadline=seconds)
        with Ledger(self.place) as ledger:
            return asyncio.run(self._run(ledger, texts, calls, settings, spec))

    def run_killed(self, texts: Sequence[str], arm: Callable[[Callable[[], object]], None]) -> None:
        """Ask for all texts; ``arm`` is given what kills the run, to be called by any thread.

        Nothing of the run is carried on or tidied up then; its locks are the system's to give back.
        """
        ledger = Ledger(self.place)
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda _, context: None)
        arm(lambda: loop.call_soon_threadsafe(loop.stop))
        task = loop.create_task(self._run(ledger, texts, CallSettings(retry=RETRY), QUICK, {}))
        task.add_done_callback(lambda _: loop.stop())
        loop.run_forever()
        assert not task.done(), "the run was over before it was killed"
        _ABANDONED.append((loop, task))
        ledger.close()

    @property
    def waves(self) -> list[Wave]:
        """What the ledger remembers of batches, in the order they were begun."""
        with Ledger(self.place, read_only=True) as ledger:
            return sorted(waves_in(ledger).values(), key=lambda wave: wave.at)

    async def _run(
        self,
        ledger: Ledger,
        texts: Sequence[str],
        settings: CallSettings,
        batch: BatchSettings | None,
        changes: dict[str, Any],
    ) -> Asked:
        spec = spec_of(self.provider, self.server.loopback, **changes)
        model = connect(spec, Key(SECRET))
        find = partial(find_batches, batch)
        caller = Caller(ledger, settings, lambda spec, reply: 0.01, None, find)
        caller.open()
        caller.sender.begin()

        async def ask(text: str) -> Reply | CallError:
            meter = Meter(price=caller.price)
            with caller.detour.item(meter):
                try:
                    return await caller.metered(meter)(model, asked(text))
                except CallError as error:
                    return error

        try:
            results = await asyncio.gather(*map(ask, texts))
        finally:
            await caller.close()
            await model.close()
        sender = caller.sender
        return Asked(
            results=results,
            stops=dict(sender.stops),
            retried=dict(sender.retried),
            sent=sender.requests,
        )


_ABANDONED: list[object] = []  # a loop that is collected would tidy up after itself

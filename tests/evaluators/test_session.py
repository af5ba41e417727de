"""Calls outside a pytest run: many at once, from a thread, interrupted."""

import asyncio
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.core import (
    Ask,
    CallError,
    FatalError,
    RefusedError,
    Reply,
    Request,
    StoppedError,
    Usage,
    UsageError,
)
from evaluators.runtime.caller import Caller, CallSettings, RetryPolicy
from evaluators.runtime.session import CallSession, CallThread, ask_each
from tests.support.scripted import Scripted, ask_for


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt, as in a terminal; a shell may have it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


class Interrupting(Scripted):
    """A model whose user presses Ctrl-C while the first call is under way."""

    async def complete(self, request: Request) -> Reply:
        if not self.requests:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        return await super().complete(request)


def session_of(model: Scripted, folder: Path, **changes: object) -> CallSession:
    """Return a session with one model whose price is not known."""
    settings = CallSettings(ledger=folder / "ledger", concurrency=1, retry=RetryPolicy(attempts=1))
    return CallSession({model.spec: model}, {}, replace(settings, **changes))  # type: ignore[arg-type]


def test_each_job_has_its_result_in_order(tmp_path: Path) -> None:
    """A refused call is that job's result; what the calls took is told for each."""

    def handler(request: Request) -> Reply:
        if request.messages[0].content == "1":
            raise RefusedError(*["too_long", "too long"])
        return Reply(text=request.messages[0].content, input_tokens=3)

    model, usages = Scripted(handler), list[Usage]()

    async def job(ask: Ask, number: int) -> str:
        return (await ask(model, ask_for(str(number)))).text

    async def work(caller: Caller) -> list[object]:
        jobs = [lambda ask, number=number: job(ask, number) for number in range(3)]
        assert await ask_each(caller, [], usages.append) == []
        return list(await ask_each(caller, jobs, usages.append))

    first, second, third = session_of(model, tmp_path).run(work)
    assert (first, third) == ("0", "2")
    assert isinstance(second, RefusedError)
    assert sorted(one.input_tokens for one in usages) == [0, 3, 3]
    assert model.closed


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_wave_keeps_what_was_paid(tmp_path: Path) -> None:
    """Ctrl-C lets nothing more be sent; the reply on its way is in the ledger."""
    model = Interrupting(lambda request: Reply(text="paid"))

    async def work(caller: Caller) -> list[Reply | CallError]:
        jobs = [lambda ask, n=n: ask(model, ask_for(str(n))) for n in range(3)]
        return await ask_each(caller, jobs, lambda usage: None)

    with pytest.raises(KeyboardInterrupt):
        session_of(model, tmp_path).run(work)
    assert len(model.requests) == 1

    async def again(caller: Caller) -> list[Reply | CallError]:
        return await ask_each(caller, [lambda ask: ask(model, ask_for("0"))], lambda usage: None)

    (kept,) = session_of(model, tmp_path, replay=True).run(again)
    assert isinstance(kept, Reply)
    assert kept.text == "paid"


def test_the_deadline_holds_for_all_runs_together(tmp_path: Path) -> None:
    """A step that begins when the time is used up sends nothing."""
    model = Scripted(lambda request: Reply(text="late"))
    session = session_of(model, tmp_path, deadline=1e-9)

    async def work(caller: Caller) -> list[Reply | CallError]:
        return await ask_each(caller, [lambda ask: ask(model, ask_for("x"))], lambda usage: None)

    (found,) = session.run(work)
    assert isinstance(found, StoppedError)
    assert model.requests == []


def test_a_ledger_that_cannot_be_opened_is_the_askers_error(tmp_path: Path) -> None:
    """The thread that would make the calls hands the error to whoever wanted to ask."""
    (tmp_path / "ledger").write_bytes(b"no ledger at all" * 99)
    with pytest.raises(UsageError, match="ledger"):
        CallThread(session_of(Scripted(lambda request: Reply()), tmp_path))


def test_a_fatal_error_stops_all_jobs(tmp_path: Path) -> None:
    """After a wrong key no further call is made: the others are stopped."""

    def handler(request: Request) -> Reply:
        raise FatalError(*["auth", "wrong key"])

    model = Scripted(handler)

    async def work(caller: Caller) -> list[object]:
        jobs = [lambda ask, n=n: ask(model, ask_for(str(n))) for n in range(4)]
        return list(await ask_each(caller, jobs, lambda usage: None))

    kinds = [type(one) for one in session_of(model, tmp_path).run(work)]
    assert sorted(kind.__name__ for kind in kinds) == ["FatalError", *["StoppedError"] * 3]
    assert len(model.requests) == 1

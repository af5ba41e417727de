"""A call is looked up, sent once, retried where that helps, and kept with what was asked."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.kept_requests import (
    REQUEST,
    TEXT,
    documents_of,
    request_key,
    texts_named,
    whole,
)
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from qagate.evaluators.runtime.session import CallSession, CallThread, ask_each
from qagate.evaluators.text import digest
from qagate.evaluators.typed_data import decode
from tests.support.scripted import Scripted, ask_for

OVERLOADED = ("overloaded", "busy")
QUICK = RetryPolicy(attempts=3, first=0.0, longest=0.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as opened:
        yield opened


def free(spec: str, reply: core.Reply) -> float | None:
    return 0.0


def one_cent(spec: str, reply: core.Reply) -> float | None:
    return 0.01


def patient(
    ledger: Ledger, patience: RetryPolicy = QUICK, *, replay: bool = False
) -> Caller:
    return Caller(ledger, CallSettings(retry=patience, replay=replay), free)


def call(
    caller: Caller, model: Scripted, text: str = "q", meter: Meter | None = None
) -> core.Reply:
    async def one() -> core.Reply:
        return await caller.metered(meter or Meter(price=free))(model, ask_for(text))

    return asyncio.run(one())


def failing(*errors: core.CallError) -> Scripted:
    left = list(errors)

    def handler(request: core.Request) -> core.Reply:
        if left:
            raise left.pop(0)
        return core.Reply(text="at last", model="m-2026")

    return Scripted(handler)


def test_the_key_of_a_request_never_changes() -> None:
    """What is in a ledger is found again: the key is the digest of the request's every field."""
    tool = core.Tool(name="grade", description="d", schema={"type": "object"})
    request = core.Request(
        messages=(
            core.Message(role="system", content="s"),
            core.Message(role="user", content="Ą?"),
        ),
        tool=tool,
        parameters={"temperature": 0.0, "stop": ["x"]},
        version="judge@3",
        repeat=2,
        attempt=1,
    )
    for asked in (request, replace(request, tool=None)):
        fields = asdict(asked)
        del fields["case"], fields["as_json"]  # in the key of few requests only
        del fields["own_limit"]  # what is sent of it stands in the parameters
        assert request_key({"name": "m"}, asked) == digest(
            {"model": {"name": "m"}, "request": fields}
        )
    asked = replace(
        request, case=core.AskedCase(question="?", messages=request.messages)
    )
    fields = asdict(asked)
    del fields["as_json"], fields["own_limit"]
    assert request_key({"name": "m"}, asked) == digest(
        {"model": {"name": "m"}, "request": fields}
    )
    assert request_key({"name": "m"}, request).startswith("7a582e96eaad")


def test_a_kept_reply_costs_no_request(ledger: Ledger) -> None:
    """The second run sends and spends nothing; under --replay a call not there is an error."""
    model, meter = failing(), Meter(price=one_cent)
    with pytest.raises(core.CallError, match="not in the ledger") as caught:
        call(patient(ledger, replay=True), model)
    assert (caught.value.kind, model.requests) == ("not_in_ledger", [])
    assert call(patient(ledger), model) == call(patient(ledger), model, meter=meter)
    assert len(model.requests) == 1
    assert (meter.usage.requests, meter.usage.spent, meter.usage.cost) == (0, 0.0, 0.01)


def test_equal_requests_at_the_same_time_are_sent_once(ledger: Ledger) -> None:
    """Two items that ask the same thing share one reply; only one of them paid for it."""
    model, meters = failing(), [Meter(price=one_cent) for _ in range(5)]
    caller = patient(ledger)

    async def all_at_once() -> None:
        await asyncio.gather(
            *(caller.metered(one)(model, ask_for("q")) for one in meters)
        )

    asyncio.run(all_at_once())
    assert len(model.requests) == 1
    assert sum(one.usage.requests for one in meters) == 1


def test_what_may_pass_is_retried(ledger: Ledger) -> None:
    """Three times at most; then the error itself comes out, and nothing is kept."""
    busy, long = (
        core.TransientError(*OVERLOADED),
        core.RefusedError("too_long", "context"),
    )
    for error, times, sent in ((busy, 9, 3), (long, 1, 1)):
        model = failing(*[error] * times)
        with pytest.raises(type(error), match=str(error)):
            call(patient(ledger), model)
        assert ledger.get(request_key(model.identity, ask_for("q"))) is None
        assert len(model.requests) == sent
    model = failing(busy, core.TransientError("timeout", "slow"))
    assert call(patient(ledger), model).text == "at last"
    assert len(model.requests) == 3


def test_a_failed_first_call_does_not_hold_up_the_others(ledger: Ledger) -> None:
    """Once the first call came back, with or without a reply, the rest go out side by side."""
    under_way = 0
    most = 0

    class Slow(Scripted):
        async def complete(self, request: core.Request) -> core.Reply:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            if len(self.requests) == 0:
                self.requests.append(request)
                raise core.TransientError(*OVERLOADED)
            return await super().complete(request)

    model = Slow(lambda request: core.Reply(text="ok"))
    ask = patient(ledger).metered(Meter(price=free))

    async def many() -> None:
        await asyncio.gather(
            *(ask(model, ask_for(str(number))) for number in range(10))
        )

    asyncio.run(many())
    assert most > 1


def test_an_unknown_price_makes_the_cost_unknown(ledger: Ledger) -> None:
    """One reply without a price makes the item's cost None, never an understated sum."""
    prices = iter([0.5, None, 0.5])
    meter = Meter(price=lambda spec, reply: next(prices))
    caller, model = patient(ledger), failing()
    for text in ("a", "b", "c"):
        call(caller, model, text, meter)
    assert meter.usage.cost is None
    assert meter.usage.spent == 1.0
    assert meter.models == {"openai:scripted": "m-2026"}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let SIGINT interrupt, as in a terminal; a shell may have it ignored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


class Interrupting(Scripted):
    """A model whose user presses Ctrl-C while the first call is under way."""

    async def complete(self, request: core.Request) -> core.Reply:
        if not self.requests:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
        return await super().complete(request)


def session_of(model: Scripted, folder: Path, **changes: object) -> CallSession:
    settings = CallSettings(
        ledger=folder / "ledger", concurrency=1, retry=RetryPolicy(attempts=1)
    )
    return CallSession({model.spec: model}, {}, replace(settings, **changes))  # type: ignore[arg-type]


def test_each_job_has_its_result_in_order(tmp_path: Path) -> None:
    """A refused call is that job's result; what the calls took is told for each."""

    def handler(request: core.Request) -> core.Reply:
        if request.messages[0].content == "1":
            raise core.RefusedError(*["too_long", "too long"])
        return core.Reply(text=request.messages[0].content, input_tokens=3)

    model, usages = Scripted(handler), list[core.Usage]()

    async def job(ask: core.Ask, number: int) -> str:
        return (await ask(model, ask_for(str(number)))).text

    async def work(caller: Caller) -> list[object]:
        jobs = [lambda ask, number=number: job(ask, number) for number in range(3)]
        assert await ask_each(caller, [], usages.append) == []
        return list(await ask_each(caller, jobs, usages.append))

    first, second, third = session_of(model, tmp_path).run(work)
    assert (first, third) == ("0", "2")
    assert isinstance(second, core.RefusedError)
    assert sorted(one.input_tokens for one in usages) == [0, 3, 3]
    assert model.closed


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_wave_keeps_what_was_paid(tmp_path: Path) -> None:
    """Ctrl-C lets nothing more be sent; the reply on its way is in the ledger."""
    model = Interrupting(lambda request: core.Reply(text="paid"))

    async def work(caller: Caller) -> list[core.Reply | core.CallError]:
        jobs = [lambda ask, n=n: ask(model, ask_for(str(n))) for n in range(3)]
        return await ask_each(caller, jobs, lambda usage: None)

    with pytest.raises(KeyboardInterrupt):
        session_of(model, tmp_path).run(work)
    assert len(model.requests) == 1

    async def again(caller: Caller) -> list[core.Reply | core.CallError]:
        return await ask_each(
            caller, [lambda ask: ask(model, ask_for("0"))], lambda usage: None
        )

    (kept,) = session_of(model, tmp_path, replay=True).run(again)
    assert isinstance(kept, core.Reply)
    assert kept.text == "paid"


def test_the_deadline_holds_for_all_runs_together(tmp_path: Path) -> None:
    """A step that begins when the time is used up sends nothing."""
    model = Scripted(lambda request: core.Reply(text="late"))
    session = session_of(model, tmp_path, deadline=1e-9)

    async def work(caller: Caller) -> list[core.Reply | core.CallError]:
        return await ask_each(
            caller, [lambda ask: ask(model, ask_for("x"))], lambda usage: None
        )

    (found,) = session.run(work)
    assert isinstance(found, core.StoppedError)
    assert model.requests == []


def test_a_ledger_that_cannot_be_opened_is_the_askers_error(tmp_path: Path) -> None:
    """The thread that would make the calls hands the error to whoever wanted to ask."""
    (tmp_path / "ledger").write_bytes(b"no ledger at all" * 99)
    thread = CallThread(session_of(Scripted(lambda request: core.Reply()), tmp_path))
    with pytest.raises(core.UsageError, match="ledger"):
        thread.submit(lambda caller: asyncio.sleep(0))


def test_a_fatal_error_stops_all_jobs(tmp_path: Path) -> None:
    """After a wrong key no further call is made: the others are stopped."""

    def handler(request: core.Request) -> core.Reply:
        raise core.FatalError(*["auth", "wrong key"])

    model = Scripted(handler)

    async def work(caller: Caller) -> list[object]:
        jobs = [lambda ask, n=n: ask(model, ask_for(str(n))) for n in range(4)]
        return list(await ask_each(caller, jobs, lambda usage: None))

    kinds = [type(one) for one in session_of(model, tmp_path).run(work)]
    assert sorted(kind.__name__ for kind in kinds) == [
        "FatalError",
        *["StoppedError"] * 3,
    ]
    assert len(model.requests) == 1


TOOL = core.Tool(
    name="grade", description="Grade it.", schema={"type": "object", "required": ["x"]}
)
TEXTS = st.text(st.characters(codec=None), max_size=30)


def answering(text: str = "Sofia") -> Scripted:
    return Scripted(lambda request: core.Reply(text=text, model="m"))


def no_cost(spec: str, reply: core.Reply) -> float:
    return 0.0


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=3),
    times=st.integers(1, 400),
    tool=st.booleans(),
)
def test_a_request_comes_back_as_it_was_asked(
    texts: list[str], times: int, tool: bool
) -> None:
    """For any texts of any length; and its key is the hash of what comes back."""
    model = answering()
    messages = tuple(core.Message(role="user", content=text * times) for text in texts)
    case = (
        core.AskedCase(question="?", metadata={"n": [1, None]}, messages=messages)
        if tool
        else None
    )
    tools = TOOL if tool else None
    request = core.Request(
        messages=messages, tool=tools, parameters={"n": 1}, case=case
    )
    key = request_key(model.identity, request)
    *apart, kept = documents_of(model.spec, model.identity, request, key, "")
    sent = json.loads(kept.text)
    assert (kept.kind, kept.key) == (REQUEST, key)
    assert {one.key for one in apart} == set(texts_named(sent))
    frame, fields = whole(
        sent, {one.key: json.loads(one.text) for one in apart}.__getitem__
    )
    back = decode(core.Request, fields)
    assert (back, frame["spec"]) == (request, model.spec)
    assert request_key(frame["model"], back) == key


def test_a_rubric_is_kept_once(tmp_path: Path) -> None:
    """A hundred requests with one long text and one tool name the same two documents."""
    rubric = core.Message(role="system", content="Grade it. " * 500)
    with Ledger(tmp_path / "l") as ledger:
        caller = Caller(ledger, CallSettings(), no_cost)

        async def ask_all() -> None:
            ask = caller.metered(Meter(price=no_cost))
            requests = (replace(ask_for(f"q{n}"), tool=TOOL) for n in range(100))
            asked = (replace(one, messages=(rubric, *one.messages)) for one in requests)
            await asyncio.gather(*(ask(answering(), one) for one in asked))

        asyncio.run(ask_all())
        assert len(ledger.documents(REQUEST)) == 100
        assert json.dumps(rubric.content) in ledger.documents(TEXT).values()
        assert len(ledger.documents(TEXT)) == 2
        assert sum(map(len, ledger.documents(REQUEST).values())) < 100 * 300


def ask_once(caller: Caller, model: Scripted) -> tuple[str, ...]:
    """Put one request through a caller and return the keys of what was asked, answered or not."""
    meter = Meter(price=no_cost)

    async def one() -> None:
        with suppress(core.CallError):
            await caller.metered(meter)(model, ask_for("q"))

    asyncio.run(one())
    return meter.calls


def test_what_was_asked_is_on_the_disk_with_its_reply(tmp_path: Path) -> None:
    """One commit has both, and a second run, which asks nothing, finds both by the same key."""
    path = tmp_path / "l"
    with Ledger(path) as ledger:
        (key,) = ask_once(Caller(ledger, CallSettings(), no_cost), answering())
    silent = Scripted(lambda request: pytest.fail("asked again"))
    with Ledger(path) as ledger:
        assert ask_once(Caller(ledger, CallSettings(), no_cost), silent) == (key,)
        assert ledger.replies([key])[key].text == "Sofia"
        assert '"content":"q"' in ledger.documents(REQUEST, [key, "unknown"])[key]


def test_what_was_asked_in_vain_is_kept_as_well(tmp_path: Path) -> None:
    """A refused call has its prompt and no reply; one that was never made has neither."""

    def refuse(request: core.Request) -> core.Reply:
        raise core.RefusedError("refused", "too long")

    settings = CallSettings(retry=RetryPolicy(attempts=1))
    with Ledger(tmp_path / "l") as ledger:
        (key,) = ask_once(Caller(ledger, settings, no_cost), Scripted(refuse))
        assert list(ledger.documents(REQUEST, [key])) == [key]
        assert ledger.replies([key]) == {}
        halted = Caller(ledger, settings, no_cost)
        halted.sender.halt(core.StoppedError("stopped", "the user stopped it"))
        assert ask_once(halted, answering()) == ()
    with Ledger(tmp_path / "without transcripts") as ledger:
        (key,) = ask_once(
            Caller(ledger, CallSettings(transcripts=False), no_cost), answering()
        )
        assert ledger.replies([key])
        assert ledger.documents(REQUEST) == {}

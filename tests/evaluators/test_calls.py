"""A call is looked up, sent once, tried again where that can help, and kept before it is used."""

import asyncio
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from evaluators.core import (
    AskedCase,
    CallError,
    FatalError,
    Message,
    RefusedError,
    Reply,
    Request,
    StoppedError,
    Tool,
    TransientError,
)
from evaluators.ledger import Ledger
from evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from evaluators.text import digest, request_key
from tests.support.scripted import Scripted, ask_for

OVERLOADED = ("overloaded", "busy")
QUICK = RetryPolicy(attempts=3, first=0.0, longest=0.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger") as opened:
        yield opened


def free(spec: str, reply: Reply) -> float | None:
    return 0.0


def one_cent(spec: str, reply: Reply) -> float | None:
    return 0.01


def patient(ledger: Ledger, patience: RetryPolicy = QUICK, *, replay: bool = False) -> Caller:
    """Return a caller that tries as often as said."""
    return Caller(ledger, CallSettings(retry=patience, replay=replay), free)


def call(caller: Caller, model: Scripted, text: str = "q", meter: Meter | None = None) -> Reply:
    """Put one request through a caller and return its reply."""

    async def one() -> Reply:
        return await caller.metered(meter or Meter(price=free))(model, ask_for(text))

    return asyncio.run(one())


def failing(*errors: CallError) -> Scripted:
    """Return a model that raises these one after the other, then answers."""
    left = list(errors)

    def handler(request: Request) -> Reply:
        if left:
            raise left.pop(0)
        return Reply(text="at last", model="m-2026")

    return Scripted(handler)


def test_the_key_of_a_request_never_changes() -> None:
    """What is in a ledger is found again: the key is the digest of the request's every field."""
    tool = Tool(name="grade", description="d", schema={"type": "object"})
    request = Request(
        messages=(Message(role="system", content="s"), Message(role="user", content="Ą?")),
        tool=tool,
        parameters={"temperature": 0.0, "stop": ["x"]},
        version="judge@3",
        repeat=2,
        attempt=1,
    )
    for asked in (request, replace(request, tool=None)):
        fields = {name: value for name, value in asdict(asked).items() if name != "case"}
        assert request_key({"name": "m"}, asked) == digest(
            {"model": {"name": "m"}, "request": fields}
        )
    case = AskedCase(question="?", messages=request.messages)
    asked = replace(request, case=case)
    assert request_key({"name": "m"}, asked) == digest(
        {"model": {"name": "m"}, "request": asdict(asked)}
    )
    assert request_key({"name": "m"}, request).startswith("7a582e96eaad")


def test_a_kept_reply_costs_no_request(ledger: Ledger) -> None:
    """The second run finds the reply in the ledger: nothing is sent, nothing is spent now."""
    model, meter = failing(), Meter(price=one_cent)
    first = call(patient(ledger), model)
    again = call(patient(ledger), model, meter=meter)
    assert again == first
    assert len(model.requests) == 1
    assert (meter.usage.requests, meter.usage.spent, meter.usage.cost) == (0, 0.0, 0.01)


def test_equal_requests_at_the_same_time_are_sent_once(ledger: Ledger) -> None:
    """Two items that ask the same thing share one reply; only one of them paid for it."""
    model, meters = failing(), [Meter(price=one_cent) for _ in range(5)]
    caller = patient(ledger)

    async def all_at_once() -> None:
        await asyncio.gather(*(caller.metered(one)(model, ask_for("q")) for one in meters))

    asyncio.run(all_at_once())
    assert len(model.requests) == 1
    assert sum(one.usage.requests for one in meters) == 1


def test_a_transient_error_is_tried_again(ledger: Ledger) -> None:
    """Overload passes: the reply that comes at last is the reply."""
    model = failing(TransientError("overloaded", "busy"), TransientError("timeout", "slow"))
    reply = call(patient(ledger), model)
    assert reply.text == "at last"
    assert len(model.requests) == 3


def test_patience_ends(ledger: Ledger) -> None:
    """After the last attempt the error itself comes out, and nothing is kept."""
    model = failing(*[TransientError("overloaded", "busy")] * 9)
    with pytest.raises(TransientError, match="busy"):
        call(patient(ledger), model)
    assert len(model.requests) == 3
    assert ledger.get(request_key(model.identity, ask_for("q"))) is None


def test_a_server_that_asks_for_hours_is_not_waited_for(ledger: Ledger) -> None:
    """A Retry-After beyond two minutes ends the call at once: no server may park a run."""
    model = failing(TransientError("rate_limited", "later", retry_after=3600))
    with pytest.raises(TransientError, match="later"):
        call(patient(ledger), model)
    assert len(model.requests) == 1


def test_an_announced_wait_is_kept(ledger: Ledger) -> None:
    """The next attempt comes no sooner than the server said."""
    model = failing(TransientError("rate_limited", "wait", retry_after=0.05))

    async def timed() -> float:
        loop = asyncio.get_running_loop()
        start = loop.time()
        await patient(ledger).metered(Meter(price=free))(model, ask_for("q"))
        return loop.time() - start

    assert asyncio.run(timed()) >= 0.05


def test_a_refused_request_is_not_repeated(ledger: Ledger) -> None:
    """A request that is too long stays too long."""
    model = failing(RefusedError("too_long", "context"))
    with pytest.raises(RefusedError):
        call(patient(ledger), model)
    assert len(model.requests) == 1


def test_a_wrong_key_costs_one_request(ledger: Ledger) -> None:
    """The first call of a model goes alone; after its FatalError nobody else is even asked."""
    model = failing(*[FatalError("auth", "wrong key")] * 50)
    caller = patient(ledger)

    async def many() -> list[BaseException | Reply]:
        ask = caller.metered(Meter(price=free))
        calls = (ask(model, ask_for(str(number))) for number in range(20))
        return list(await asyncio.gather(*calls, return_exceptions=True))

    errors = asyncio.run(many())
    assert [type(error) for error in errors] == [FatalError, *[StoppedError] * 19]
    assert {(error.kind, str(error)) for error in errors if isinstance(error, CallError)} == {
        ("auth", "wrong key")
    }
    assert len(model.requests) == 1


def test_a_failed_first_call_does_not_hold_up_the_others(ledger: Ledger) -> None:
    """Once the first call came back, whatever it brought, the rest go out side by side."""
    under_way = 0
    most = 0

    class Slow(Scripted):
        async def complete(self, request: Request) -> Reply:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.01)
            under_way -= 1
            if len(self.requests) == 0:
                self.requests.append(request)
                raise TransientError(*OVERLOADED)
            return await super().complete(request)

    model = Slow(lambda request: Reply(text="ok"))
    ask = patient(ledger).metered(Meter(price=free))

    async def many() -> None:
        await asyncio.gather(*(ask(model, ask_for(str(number))) for number in range(10)))

    asyncio.run(many())
    assert most > 1


def test_replay_asks_nobody(ledger: Ledger) -> None:
    """Under --replay a call that is not in the ledger is an error, not a request."""
    model = failing()
    with pytest.raises(CallError, match="not in the ledger") as caught:
        call(patient(ledger, replay=True), model)
    assert caught.value.kind == "not_in_ledger"
    assert model.requests == []


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

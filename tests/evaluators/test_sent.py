"""What was sent is kept once, beside the reply, and comes back as it was asked."""

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import (
    AskedCase,
    CallError,
    Message,
    RefusedError,
    Reply,
    Request,
    StoppedError,
    Tool,
)
from evaluators.ledger import Ledger
from evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from evaluators.text import REQUEST, TEXT, documents_of, request_key, texts_named, whole
from reports.run.json_data import decode
from tests.support.scripted import Scripted, ask_for

TOOL = Tool(name="grade", description="Grade it.", schema={"type": "object", "required": ["x"]})
TEXTS = st.text(st.characters(codec=None), max_size=30)


def answering(text: str = "Sofia") -> Scripted:
    return Scripted(lambda request: Reply(text=text, model="m"))


def free(spec: str, reply: Reply) -> float:
    return 0.0


@given(texts=st.lists(TEXTS, min_size=1, max_size=3), times=st.integers(1, 400), tool=st.booleans())
def test_a_request_comes_back_as_it_was_asked(texts: list[str], times: int, tool: bool) -> None:
    """Whatever its texts and their lengths; and its key is the hash of what comes back."""
    model = answering()
    messages = tuple(Message(role="user", content=text * times) for text in texts)
    case = AskedCase(question="?", metadata={"n": [1, None]}, messages=messages) if tool else None
    tools = TOOL if tool else None
    request = Request(messages=messages, tool=tools, parameters={"n": 1}, case=case)
    key = request_key(model.identity, request)
    *apart, kept = documents_of(model, request, key, "")
    sent = json.loads(kept.text)
    assert (kept.kind, kept.key) == (REQUEST, key)
    assert {one.key for one in apart} == set(texts_named(sent))
    frame, fields = whole(sent, {one.key: json.loads(one.text) for one in apart}.__getitem__)
    back = decode(Request, fields)
    assert (back, frame["spec"]) == (request, model.spec)
    assert request_key(frame["model"], back) == key


def test_a_rubric_is_kept_once(tmp_path: Path) -> None:
    """A hundred requests with one long text and one tool name the same two documents."""
    rubric = Message(role="system", content="Grade it. " * 500)
    with Ledger(tmp_path / "l") as ledger:
        caller = Caller(ledger, CallSettings(), free)

        async def ask_all() -> None:
            ask = caller.metered(Meter(price=free))
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
    meter = Meter(price=free)

    async def one() -> None:
        with suppress(CallError):
            await caller.metered(meter)(model, ask_for("q"))

    asyncio.run(one())
    return meter.calls


def test_what_was_asked_is_on_the_disk_with_its_reply(tmp_path: Path) -> None:
    """One commit has both, and a second run, which asks nothing, finds both by the same key."""
    path = tmp_path / "l"
    with Ledger(path) as ledger:
        (key,) = ask_once(Caller(ledger, CallSettings(), free), answering())
    silent = Scripted(lambda request: pytest.fail("asked again"))
    with Ledger(path) as ledger:
        assert ask_once(Caller(ledger, CallSettings(), free), silent) == (key,)
        assert ledger.replies([key])[key].text == "Sofia"
        assert '"content":"q"' in ledger.documents(REQUEST, [key, "unknown"])[key]


def test_what_was_asked_in_vain_is_kept_as_well(tmp_path: Path) -> None:
    """A refused call has its prompt and no reply; one that was never made has neither.

    Without transcripts the ledger has replies alone.
    """

    def refuse(request: Request) -> Reply:
        raise RefusedError("refused", "too long")

    settings = CallSettings(retry=RetryPolicy(attempts=1))
    with Ledger(tmp_path / "l") as ledger:
        (key,) = ask_once(Caller(ledger, settings, free), Scripted(refuse))
        assert list(ledger.documents(REQUEST, [key])) == [key]
        assert ledger.replies([key]) == {}
        halted = Caller(ledger, settings, free)
        halted.sender.halt(StoppedError("stopped", "the user stopped it"))
        assert ask_once(halted, answering()) == ()
    with Ledger(tmp_path / "without transcripts") as ledger:
        (key,) = ask_once(Caller(ledger, CallSettings(transcripts=False), free), answering())
        assert ledger.replies([key])
        assert ledger.documents(REQUEST) == {}

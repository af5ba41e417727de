"""What is sent to both APIs, and over which connections."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from evaluators.core import Message, Request
from evaluators.models import connect
from evaluators.models.spec import parse
from evaluators.secrets import Key
from tests.support.loopback import loopback, reply
from tests.support.model_calls import SECRET, TOOL, ask, asked, both, spec_of
from tests.support.projects import ROOT
from tests.support.tables import tabled


@both
def test_an_answer(provider: str) -> None:
    """A plain call gives the text, the finish, the model, the tokens and the time."""
    with loopback() as server:
        got = ask(spec_of(provider, server), asked("Capital? [[answer=София]]"))
    assert (got.text, got.calls, got.finish, got.model) == ("София", (), "stop", "model-1")
    assert got.input_tokens > 0
    assert got.output_tokens == 5
    assert got.seconds > 0


@both
def test_a_forced_call(provider: str) -> None:
    """A tool is forced by name, and its arguments come back as JSON text."""
    with loopback() as server:
        got = ask(spec_of(provider, server), asked("[[grade=INCORRECT]]", tool=TOOL))
        assert server.requests[0].tool == ("grade", TOOL.schema)
    (call,) = got.calls
    assert call.name == "grade"
    assert json.loads(call.arguments)["grade"] == "INCORRECT"
    assert got.text == ""


@both
def test_a_base_url_without_a_path(provider: str) -> None:
    """A server may stand at the root of its host; the SDK's URL then ends without a slash."""
    paths = {
        "openai": "/chat/completions",
        "openai-responses": "/responses",
        "anthropic": "/v1/messages",
    }
    with loopback() as server:
        ask(spec_of(provider, server, base_url=server.url), asked())
        assert [seen.path for seen in server.requests] == [paths[provider]]


@both
def test_another_server_is_told_nothing_of_the_account(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Organisation, project and custom headers of the environment stay with their own host."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-canary")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "x-internal: header-canary")
    with loopback() as server:
        ask(spec_of(provider, server), asked())
        sent = {name.lower(): value for name, value in server.requests[0].headers.items()}
    assert "canary" not in "".join([*sent, *sent.values()])
    assert SECRET in sent.get("x-api-key", "") + sent.get("authorization", "")


@both
def test_a_key_that_is_echoed_is_not_in_the_reply(provider: str) -> None:
    """A server that repeats the key of no known shape finds it hidden wherever text is kept."""
    key = "0123456789abcdef0123456789abcdef"
    with loopback() as server:
        spec = spec_of(provider, server)
        said = ask(spec, asked(f"[[answer=Hello, {key}]]"), key)
        called = ask(spec, asked(f"[[grade=CORRECT]] [[reason={key}]]", tool=TOOL), key)
    assert said.text == "Hello, ***"
    assert key not in repr(called)


@tabled("provider", "settings", "parameters", "path", "body")
def test_the_body_of_a_request(
    provider: str, settings: dict[str, Any], parameters: dict[str, Any], path: str, body: str
) -> None:
    """Chat: roles stay, max_tokens may be renamed. Responses: a flat tool, its own names.

    Anthropic: the system text stands apart and may be kept in a cache, max_tokens is always there.
    """
    with loopback() as server:
        ask(spec_of(provider, server, **settings), asked(parameters=parameters, tool=TOOL))
        seen = server.requests[0]
    assert (seen.method, seen.path) == ("POST", path)
    key = seen.headers.get("x-api-key") or seen.headers["authorization"].removeprefix("Bearer ")
    assert (key, seen.body) == (
        SECRET,
        json.loads(body.replace('"SCHEMA"', json.dumps(TOOL.schema))),
    )


def test_anthropic_keeps_max_tokens_against_an_omission() -> None:
    """The API requires max_tokens, so an entry cannot leave it out; no system, no field."""
    with loopback() as server:
        spec = spec_of("anthropic", server, omit=("max_tokens",))
        ask(spec, Request(messages=(Message(role="user", content="Who?"),)))
        assert server.requests[0].body == {
            "model": "model-1",
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": "Who?"}],
        }


@both
def test_a_lone_surrogate_does_not_stop_a_call(provider: str) -> None:
    """What no HTTP body can hold is replaced on the way out, and kept on the way in."""
    with loopback(handler=lambda seen: reply(seen, text="x\ud800y")) as server:
        got = ask(spec_of(provider, server), asked("a\ud800b \ud83d\ude00"))
        assert "a\ufffdb 😀" in server.requests[0].prompt
    assert got.text == "x\ud800y"


@both
def test_each_event_loop_has_its_own_connections(provider: str) -> None:
    """One model serves several calls, event loops and closings."""
    with loopback() as server, asyncio.Runner() as first, asyncio.Runner() as second:
        model = connect(spec_of(provider, server), Key(SECRET))
        for runner in (first, second, first, second):
            runner.run(model.complete(asked()))
        for runner in (first, second, first):
            runner.run(model.close())
        first.run(model.complete(asked()))
        first.run(model.close())
        assert server.count == 5


def test_the_loopback_server_by_hand() -> None:
    """Run as a module it prints its URL and serves other processes."""
    command = [sys.executable, "-m", "tests.support.loopback", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert ask(parse(f"openai:m@{url}", {}), asked("[[answer=x]]")).text == "x"
        finally:
            process.terminate()

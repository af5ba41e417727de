"""What is sent, over which connections and proxies; and the shipped entries of models.yaml."""

import asyncio
import json
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import Any

import pytest

from qagate.cases.tasks import PromptedAnswer
from qagate.evaluators import core
from qagate.evaluators.answers.reader import read_reply
from qagate.evaluators.models import connect
from qagate.evaluators.models.catalogue import load_catalogue
from qagate.evaluators.models.keys import require_key
from qagate.evaluators.models.spec import Spec, parse
from qagate.evaluators.text import Key
from tests.support.fixtures import Patch
from tests.support.loopback import (
    Answer,
    Loopback,
    Seen,
    completion,
    loopback,
    reply,
    response,
)
from tests.support.model_calls import SECRET, TOOL, ask, asked, both, spec_of
from tests.support.scripted import PROMPT, complete, make_case
from tests.support.tables import kept, tabled


@both
def test_an_answer(provider: str) -> None:
    """Text, finish, model, tokens, time; echoed keys are hidden; lone surrogates stop nothing."""
    with loopback() as server:
        got = ask(spec_of(provider, server), asked("Capital? [[answer=София]]"))
    assert (got.text, got.calls, got.finish, got.model) == (
        "София",
        (),
        "stop",
        "model-1",
    )
    assert got.input_tokens > 0
    assert got.output_tokens == 5
    assert got.seconds > 0
    key, spelled = "0123456789abcdef/0123456789", r"0123456789abcdef\/0123456789"
    with loopback() as server:
        spec = spec_of(provider, server)
        said = ask(spec, asked(f"[[answer=Hello, {key}, {spelled}]]"), key)
        called = ask(spec, asked(f"[[grade=CORRECT]] [[reason={key}]]", tool=TOOL), key)
    assert said.text == "Hello, ***, ***"
    assert key not in repr(called)
    with loopback(handler=lambda seen: reply(seen, text="x\ud800y")) as server:
        got = ask(spec_of(provider, server), asked("a\ud800b \ud83d\ude00"))
        assert "a\ufffdb 😀" in server.requests[0].prompt
    assert got.text == "x\ud800y"


@both
def test_a_forced_call_and_a_base_url_without_a_path(provider: str) -> None:
    """A tool is forced by name, its arguments come back as JSON text; a URL may have no slash."""
    paths = {
        "openai": "/chat/completions",
        "openai-responses": "/responses",
        "anthropic": "/v1/messages",
    }
    with loopback() as server:
        ask(spec_of(provider, server, base_url=server.url), asked())
        assert [seen.path for seen in server.requests] == [paths[provider]]
        got = ask(spec_of(provider, server), asked("[[grade=INCORRECT]]", tool=TOOL))
        assert server.requests[1].tool == ("grade", TOOL.schema)
    (call,) = got.calls
    assert call.name == "grade"
    assert json.loads(call.arguments)["grade"] == "INCORRECT"
    assert got.text == ""


@both
def test_another_server_is_told_nothing_of_the_account(
    provider: str, monkeypatch: Patch
) -> None:
    """Organisation, project and custom headers of the environment stay with their own host."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-canary")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "x-internal: header-canary")
    with loopback() as server:
        ask(spec_of(provider, server), asked())
        sent = {
            name.lower(): value for name, value in server.requests[0].headers.items()
        }
    assert "canary" not in "".join([*sent, *sent.values()])
    assert SECRET in sent.get("x-api-key", "") + sent.get("authorization", "")


@tabled("provider", "settings", "parameters", "path", "body")
def test_the_body_of_a_request(
    provider: str,
    settings: dict[str, Any],
    parameters: dict[str, Any],
    path: str,
    body: str,
) -> None:
    """Chat: roles stay, max_tokens may be renamed. Responses: a flat tool, its own names.
    Anthropic: the system text stands apart and may be kept in a cache, max_tokens is always
    there."""
    with loopback() as server:
        ask(
            spec_of(provider, server, **settings),
            asked(parameters=parameters, tool=TOOL),
        )
        seen = server.requests[0]
    assert (seen.method, seen.path) == ("POST", path)
    key = seen.headers.get("x-api-key") or seen.headers["authorization"].removeprefix(
        "Bearer "
    )
    assert (key, seen.body) == (
        SECRET,
        json.loads(body.replace('"SCHEMA"', json.dumps(TOOL.schema))),
    )


def test_anthropic_keeps_max_tokens_against_an_omission() -> None:
    """The API requires max_tokens, so an entry cannot leave it out; no system, no field."""
    with loopback() as server:
        spec = spec_of("anthropic", server, omit=("max_tokens",))
        ask(spec, core.Request(messages=(core.Message(role="user", content="Who?"),)))
        assert server.requests[0].body == {
            "model": "model-1",
            "max_tokens": 4096,
            "messages": [{"role": "user", "content": "Who?"}],
        }


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


CATALOGUE = load_catalogue()


@dataclass(frozen=True)
class Documented:
    """What a provider documents: the URL's path and query, and the header that holds the key."""

    path: str
    header: str
    key: str
    variable: str
    returned: str


ENTRIES = {name: Documented(**row) for name, row in kept(__file__, "entries").items()}
each = pytest.mark.parametrize("name", ENTRIES)


def here(name: str, server: Loopback) -> Spec:
    spec = CATALOGUE[name]
    return replace(spec, base_url=server.url + "/" + spec.base_url.split("/", 3)[3])


@each
def test_a_documented_request(name: str) -> None:
    """Path, query and the key's header are those of the provider's documentation."""
    documented = ENTRIES[name]

    def handle(seen: Seen) -> Answer:
        return Answer(body=completion(seen, "София") | {"model": documented.returned})

    with loopback(handler=handle) as server:
        got = ask(here(name, server), asked("Capital?"))
        (seen,) = server.requests
    assert (seen.method, seen.path) == ("POST", documented.path)
    assert seen.headers[documented.header] == documented.key.replace("SECRET", SECRET)
    assert [one for one, value in seen.headers.items() if SECRET in value] == [
        documented.header
    ]
    assert seen.body["model"] == CATALOGUE[name].name
    assert (got.text, got.model) == ("София", documented.returned)


@each
def test_the_key_is_its_own(name: str, monkeypatch: Patch) -> None:
    """Each reads a variable of its own, and never OpenAI's."""
    spec = CATALOGUE[name]
    assert spec.batching is None or not spec.headers, (
        "a batch would carry the key another way"
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    variable = ENTRIES[name].variable
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(
        core.UsageError, match=f"set the environment variable {variable}"
    ):
        require_key(spec)
    monkeypatch.setenv(variable, "k-1")
    assert require_key(spec).reveal() == "k-1"


def test_gemini_ends_a_forced_call_with_stop_and_may_filter() -> None:
    """Its finish reasons are read as what they say; its errors come as a list."""

    def forced(seen: Seen) -> Answer:
        return Answer(body=completion(seen, "", {"grade": "CORRECT"}))

    def filtered(seen: Seen) -> Answer:
        body = completion(seen, "")
        body["choices"][0] |= {"finish_reason": "content_filter: SAFETY"}
        body["choices"][0]["message"] = {"role": "assistant"}
        return Answer(body=body)

    with loopback(handler=forced) as server:
        got = ask(here("gemini-2.5-flash", server), asked(tool=TOOL))
    assert [call.name for call in got.calls] == ["grade"]
    with loopback(handler=filtered) as server:
        assert ask(here("gemini-2.5-flash", server), asked()).finish == "content_filter"
    wrong = [
        {
            "error": {
                "code": 400,
                "message": "no such thing",
                "status": "INVALID_ARGUMENT",
            }
        }
    ]
    with (
        loopback(Answer(status=400, body=wrong)) as server,
        pytest.raises(core.RefusedError) as caught,
    ):
        ask(here("gemini-2.5-flash", server), asked())
    assert "HTTP 400 (bad_request): no such thing" in str(caught.value)


@pytest.mark.parametrize("text", ["Sof", ""])
def test_an_incomplete_response_is_cut_like_any_other(text: str) -> None:
    """The Responses API has a word of its own for the limit of tokens."""

    def handle(seen: Seen) -> Answer:
        incomplete = {"incomplete_details": {"reason": "max_output_tokens"}}
        return Answer(body=response(seen, text) | {"status": "incomplete"} | incomplete)

    async def answer(spec: Spec) -> str:
        model = connect(spec, Key(SECRET))
        asking = PromptedAnswer(model=model, prompt=PROMPT)
        try:
            answer = await asking.answer(make_case(), 1, complete)
            return answer.state
        finally:
            await model.close()

    with loopback(handler=handle) as server:
        state = asyncio.run(answer(spec_of("openai-responses", server)))
    assert state == ("cut" if text else "thought_only")


@pytest.mark.parametrize("text", ["", "\n\n"])
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_white_space_beside_thoughts_is_no_answer(provider: str, text: str) -> None:
    def handle(seen: Seen) -> Answer:
        if provider == "openai":
            body = completion(seen, text)
            body["choices"][0]["message"]["reasoning_content"] = "Sofia?"
        else:
            body = response(seen, text)
            body["output"].insert(0, {"type": "reasoning", "summary": []})
        return Answer(body=body)

    with loopback(handler=handle) as server:
        reply = ask(spec_of(provider, server), asked())
    assert read_reply(reply).state == "thought_only"


OPENAI = "https://models.invalid/v1"
ELSEWHERE = {
    "openai": OPENAI,
    "openai-responses": OPENAI,
    "anthropic": "https://models.invalid",
}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: Patch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def called(provider: str = "openai") -> core.Reply:
    return ask(parse(f"{provider}:m@{ELSEWHERE[provider]}", {}), asked())


def seen_by(proxy: Loopback, provider: str = "openai") -> list[Seen]:
    """The requests of one call that reach a proxy, which refuses to serve."""
    with pytest.raises(core.CallError):
        called(provider)
    return proxy.requests


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_proxies_are_not_for_loopback(monkeypatch: Patch, name: str, host: str) -> None:
    """A local server is reached past a proxy that is set for the rest of the world."""
    with loopback() as server, loopback(Answer(status=502)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        spec = parse(f"openai:m@{server.url.replace('127.0.0.1', host)}/v1", {})
        assert ask(spec, asked("[[answer=ok]]")).text == "ok"
        assert proxy.count == 0


@both
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_serves_other_hosts(
    monkeypatch: Patch, provider: str, name: str
) -> None:
    """Requests to other machines go through it; the key stays in the tunnel, unseen by it."""
    with loopback(Answer(status=407)) as proxy:
        monkeypatch.setenv(name, proxy.url)
        (seen,) = seen_by(proxy, provider)
    assert (seen.method, seen.path) == ("CONNECT", "models.invalid:443")
    assert SECRET not in str(seen)
    assert not {"authorization", "proxy-authorization", "x-api-key"} & set(seen.headers)


def test_a_proxy_may_ask_for_a_password(monkeypatch: Patch) -> None:
    """User and password of a proxy's URL are sent to it, and stand in no message (F18)."""
    with loopback(Answer(status=407)) as proxy:
        address = proxy.url.removeprefix("http://")
        monkeypatch.setenv("HTTPS_PROXY", f"us%40er:pass5ord@{address}")
        with pytest.raises(core.CallError) as caught:
            called()
        (seen,) = proxy.requests
    assert (
        seen.headers["proxy-authorization"]
        == f"Basic {b64encode(b'us@er:pass5ord').decode()}"
    )
    assert "pass5ord" not in str(caught.value)


@pytest.mark.parametrize(
    "listed", ["models.invalid", ".invalid", "a.example, models.invalid", "*"]
)
def test_no_proxy(monkeypatch: Patch, listed: str) -> None:
    """Hosts that NO_PROXY lists are called past the proxy."""
    with loopback() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", listed)
        assert seen_by(proxy) == []


@pytest.mark.parametrize(
    "value", ["socks5://u:pw5ecret@127.0.0.1:9", "http://h:99999", "//x"]
)
def test_a_proxy_that_cannot_be_one(monkeypatch: Patch, value: str) -> None:
    """A proxy that speaks no HTTP, or no URL at all, ends the run and is not shown."""
    monkeypatch.setenv("HTTPS_PROXY", value)
    with pytest.raises(
        core.FatalError, match="HTTPS_PROXY or ALL_PROXY is not"
    ) as caught:
        called()
    assert caught.value.kind == "environment"
    assert "pw5ecret" not in str(caught.value)


def test_nobody_listens_at_the_proxy(monkeypatch: Patch) -> None:
    """A proxy that is not there is like a server that is not there (F18)."""
    with loopback() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
    with pytest.raises(core.CallError, match="no connection") as caught:
        called()
    assert caught.value.kind == "unreachable"


def test_no_netrc_is_read(
    monkeypatch: Patch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A password of .netrc, even its default one, takes the place of no API key."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("default login someone password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with loopback() as server, loopback(Answer(status=407)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        ask(spec_of("openai", server), asked())
        assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        assert "proxy-authorization" not in seen_by(proxy)[0].headers


def test_certificates_that_are_not_there(monkeypatch: Patch) -> None:
    """They end the run, and the variable is named; a server without TLS is called all the same."""
    monkeypatch.setenv("SSL_CERT_FILE", "no-such-file.pem")
    with pytest.raises(
        core.FatalError, match="SSL_CERT_FILE or SSL_CERT_DIR"
    ) as caught:
        called()
    assert caught.value.kind == "environment"
    with loopback() as server:
        assert ask(spec_of("openai", server), asked("[[answer=ok]]")).text == "ok"


def test_a_model_opens_its_line_once_it_can(monkeypatch: Patch) -> None:
    """A setting that was wrong is looked at again at the next call."""
    monkeypatch.setenv("HTTPS_PROXY", "ftp://h")
    model = connect(parse(f"openai:m@{OPENAI}", {}), Key(SECRET))

    async def twice() -> None:
        with pytest.raises(core.FatalError):
            await model.complete(asked())
        with loopback(Answer(status=407)) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            with pytest.raises(core.CallError):
                await model.complete(asked())
            assert proxy.count == 1
        await model.close()

    asyncio.run(twice())

"""Failures of calls: statuses, echoed keys, announced waits; and services of the user's own."""

import asyncio
import json
import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evaluators.core import AskedCase, CallError, FatalError, RefusedError, Reply, UsageError
from evaluators.models import connect
from evaluators.models.api import open_endpoint
from evaluators.models.catalogue import load_catalogue
from evaluators.models.failures import MAX_RESET_S, message_of, reset_after, retry_after
from evaluators.models.http_target import PLACES, check_path, places
from evaluators.models.spec import Spec, parse, require_key
from evaluators.text import Key
from tests.support.loopback import Answer, Loopback, Seen, loopback
from tests.support.model_calls import SECRET, ask, asked, both, error_body, failure, spec_of
from tests.support.tables import kept, tabled


@tabled("headers", "seconds")
def test_retry_after_headers(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read; the negative and the unreadable are None."""
    assert retry_after(CIMultiDict(headers)) == seconds


def test_a_date_without_the_server_s_clock_counts_from_ours() -> None:
    """Where the server gives no Date, our own time serves."""
    wait = retry_after({"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"})
    assert wait is not None
    assert 0 < wait < 4_100_000_000 - time.time()


REQUESTS, TOKENS = "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"
ANTHROPIC = "anthropic-ratelimit-requests-reset"


@tabled("headers", "seconds")
def test_headers_that_say_when_a_limit_is_free_again(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Durations and time stamps; the limit that is used up counts, and none of a whole day."""
    assert reset_after(CIMultiDict(headers)) == (
        None if seconds is None else pytest.approx(seconds)
    )


@given(st.text(max_size=30))
def test_no_header_breaks_its_reading(value: str) -> None:
    """Whatever a server writes there is a bounded pause, or none."""
    assert retry_after({"retry-after": "9" * 400}) is None
    for name in (REQUESTS, ANTHROPIC):
        seconds = reset_after({name: value})
        assert seconds is None or 0 <= seconds <= MAX_RESET_S


@tabled("content", "said")
def test_the_message_of_an_error_body(content: str, said: str) -> None:
    """The provider's words are found in the forms that servers use."""
    assert message_of(content.encode())[0] == said


@given(st.binary(max_size=200))
def test_any_error_body_has_a_message(content: bytes) -> None:
    """No body, however broken, stops its own reporting; both texts are bounded."""
    said, words = message_of(content)
    assert isinstance(said, str)
    assert len(words) <= 4000


@both
@tabled("status", "body", "sort", "kind")
def test_every_status_has_its_sort(
    provider: str, status: int, body: object, sort: str, kind: str
) -> None:
    """What may pass is transient, what concerns one request is refused, the rest is fatal."""
    error = failure(provider, Answer(status=status, body=body))
    assert (type(error).__name__, error.kind) == (sort, kind)
    assert f"HTTP {status}" in str(error)


@both
def test_the_provider_s_message_is_shown_clean(provider: str) -> None:
    """Control characters go, the rest is cut at 300 characters."""
    error = failure(provider, Answer(status=400, body=error_body("no\x1b[2J\r\nway\u202e " * 99)))
    assert ": no [2J way no" in str(error)
    assert str(error).endswith("…")


@both
@pytest.mark.parametrize("echo", [SECRET, "sk-other-12345678", "Bearer abcdef0123456789"])
def test_a_key_that_the_api_echoes_is_masked(
    provider: str, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither our key nor a word of its shape is repeated from a 401, in no debug log (F23)."""
    answer = Answer(status=401, body=error_body(f"Incorrect API key: {echo}."))
    with caplog.at_level(logging.DEBUG):
        error = failure(provider, answer)
    assert SECRET not in caplog.text
    assert echo.removeprefix("Bearer ") not in str(error)
    assert "***" in str(error)


@both
def test_the_model_shows_no_key(provider: str) -> None:
    """Its repr, SPEC and identity are free of it, before and after a call."""
    with loopback() as server:
        model = connect(spec_of(provider, server), Key(SECRET))
        with asyncio.Runner() as runner:
            runner.run(model.complete(asked()))
            runner.run(model.close())
    shown = f"{model!r} {model} {model.spec} {model.identity} {vars(model)}"
    assert SECRET not in shown
    assert repr(model) == f"LazyModel('{provider}:model-1')"


@both
def test_an_endpoint_shows_no_key(provider: str) -> None:
    """The headers that it holds are left out where it is printed."""

    async def run() -> None:
        opened = open_endpoint(spec, Key(SECRET))
        assert opened.headers.get("x-api-key", "") + opened.headers.get("authorization", "")
        assert SECRET not in repr(opened)
        await opened.session.close()

    with loopback() as server:
        spec = spec_of(provider, server)
    asyncio.run(run())


@both
def test_without_a_key_no_call_is_made(provider: str) -> None:
    """A model that was connected for a replay refuses to call."""
    with loopback() as server:
        model = connect(spec_of(provider, server))
        with pytest.raises(FatalError, match="no API key") as caught:
            asyncio.run(model.complete(asked()))
        assert server.count == 0
    assert caught.value.kind == "no_key"
    asyncio.run(model.close())


@both
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(provider: str, status: int) -> None:
    """No request, and so no key, goes to where a server points (F24)."""
    with loopback() as other:
        place = {"location": f"{other.url}/v1/chat/completions"}
        error = failure(provider, Answer(status=status, headers=place))
        assert other.count == 0
    assert (type(error), error.kind) == (FatalError, "redirect")


ENTRY = kept(__file__, "entry")
GET = kept(__file__, "get")
CASE = AskedCase(
    question="Столица {context}?", context="c", language="bg", metadata={"topic": "geo"}
)
GOOD = {"out": [{"text": "Sofia"}], "usage": {"in": 7, "out": 2, "usd": 0.5}}


def entry(tmp_path: Path, text: str, url: str = "http://127.0.0.1:1/ask") -> Spec:
    path = tmp_path / "models.yaml"
    path.write_text(text.format(url=url), encoding="utf-8")
    return parse("http:rag", load_catalogue(path))


def asked_of(spec: Spec, case: AskedCase | None = CASE) -> Reply:
    return ask(spec, replace(asked(), case=case), require_key(spec).reveal())


def seen_by(server: Loopback) -> Seen:
    (seen,) = server.requests
    return seen


def test_the_template_is_filled_and_the_reply_read(tmp_path: Path) -> None:
    """In one pass: what a question holds in braces stays; a place alone keeps its type."""
    with loopback(Answer(body=GOOD)) as server:
        reply = asked_of(entry(tmp_path, ENTRY, f"{server.url}/ask"))
        seen = seen_by(server)
    assert (seen.method, seen.path) == ("POST", "/ask")
    assert "authorization" not in seen.headers
    assert seen.body == {
        "q": "Q: Столица {context}? (bg)",
        "top_k": 3,
        "of": {
            "about": {"topic": "geo"},
            "deep": [
                "c",
                [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}],
            ],
        },
        "prompt": "Be brief.\n\nWho?",
    }
    assert (reply.text, reply.model, reply.cost) == ("Sofia", "rag@5", 0.5)
    assert (reply.input_tokens, reply.output_tokens) == (7, 2)


def test_a_get_has_its_body_as_query(tmp_path: Path) -> None:
    """Beside the query of the entry itself."""
    with loopback(Answer(body={"answer": 42})) as server:
        reply = asked_of(entry(tmp_path, GET, server.url), replace(CASE, question="a&b=ж ?"))
        seen = seen_by(server)
    assert seen.method == "GET"
    query = dict(parse_qsl(seen.path.partition("?")[2]))
    assert query == {"v": "1", "q": "a&b=ж ?", "of": '{"topic": "geo"}'}
    assert reply.text == "42"


def test_keys_come_from_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several headers, each by its variable; a reply that echoes one does not keep it."""
    headers = "  headers: {{Authorization: RAG_TOKEN, X-Tenant: RAG_TENANT}}\n"
    monkeypatch.setenv("RAG_TOKEN", "Token 0123456789ab")
    monkeypatch.delenv("RAG_TENANT", raising=False)
    with pytest.raises(UsageError, match="set the environment variable RAG_TENANT"):
        require_key(entry(tmp_path, ENTRY + headers))
    monkeypatch.setenv("RAG_TENANT", "tenant-77")

    def echo(seen: Seen) -> Answer:
        sent = f"{seen.headers['authorization']} of {seen.headers['x-tenant']}"
        return Answer(body=GOOD | {"out": [{"text": sent}]})

    with loopback(handler=echo) as server:
        reply = asked_of(entry(tmp_path, ENTRY + headers, server.url))
        assert seen_by(server).headers["authorization"] == "Token 0123456789ab"
    assert reply.text == "Token *** of ***"
    bearer = "  api_key_env: RAG_KEY\n"
    monkeypatch.setenv("RAG_KEY", "k-123456")
    with loopback(Answer(body=GOOD)) as server:
        asked_of(entry(tmp_path, ENTRY + bearer, server.url))
        assert seen_by(server).headers["authorization"] == "Bearer k-123456"


def test_a_providers_own_key_is_not_for_a_service(tmp_path: Path) -> None:
    """Neither as the key nor in a header."""
    for line in ("api_key_env: OPENAI_API_KEY", "headers: {{X-Key: ANTHROPIC_API_KEY}}"):
        with pytest.raises(UsageError, match="goes to https://api"):
            entry(tmp_path, f"{ENTRY}  {line}\n", "https://rag.example/ask")


@tabled("body", "said")
def test_a_reply_of_another_form_is_no_answer(
    tmp_path: Path, body: dict[str, Any], said: str
) -> None:
    """It is an error that says which path led nowhere, and what there was."""
    with loopback(Answer(body=GOOD | body)) as server, pytest.raises(CallError) as caught:
        asked_of(entry(tmp_path, ENTRY, server.url))
    assert said in str(caught.value)


def test_several_values_are_no_answer(tmp_path: Path) -> None:
    """The first of two would be a choice that nobody made."""
    text = ENTRY.replace("$.out[0].text", "$.out[*].text")
    body = GOOD | {"out": [{"text": "a"}, {"text": "b"}]}
    with loopback(Answer(body=body)) as server, pytest.raises(RefusedError, match="to 2 values"):
        asked_of(entry(tmp_path, text, server.url))


def test_it_answers_items_alone(tmp_path: Path) -> None:
    """Without an item there is no question to send; a body of the prompt alone may be a judge."""
    with loopback() as server:
        spec = entry(tmp_path, ENTRY, server.url)
        with pytest.raises(RefusedError, match="only answer items"):
            asked_of(spec, None)
        assert server.count == 0
    assert spec.limits.takes_case
    plain = ENTRY.replace("{{question}} ({{language}})", "{{prompt}}")
    plain = plain.replace('"{{metadata}}"', "1").replace('"{{context}}"', "2")
    assert not entry(tmp_path, plain).limits.takes_case


def test_the_identity_is_version_and_form(tmp_path: Path) -> None:
    """Another version, or another way to ask, is another model to the ledger."""
    one = entry(tmp_path, ENTRY).identity
    assert json.dumps(one, sort_keys=True)
    for old, new in (('"5"', '"6"'), ("top_k: 3", "top_k: 4"), ("[0].text", "[0].alt")):
        assert entry(tmp_path, ENTRY.replace(old, new)).identity != one


@tabled("old", "new", "said")
def test_a_wrong_entry_is_said_in_one_line(tmp_path: Path, old: str, new: str, said: str) -> None:
    """File, line, key, what was got and what to do."""
    assert old in ENTRY
    with pytest.raises(UsageError) as caught:
        entry(tmp_path, ENTRY.replace(old, new, 1))
    assert said in str(caught.value)
    assert "models.yaml:" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_name_is_guessed(tmp_path: Path) -> None:
    """``http:`` stands before an entry's name, which works alone too."""
    entry(tmp_path, ENTRY)
    catalogue = load_catalogue(tmp_path / "models.yaml")
    assert parse("rag", catalogue).identity == parse("http:rag", catalogue).identity
    with pytest.raises(UsageError, match=r"did you mean 'http:rag'\?"):
        parse("http:rga", catalogue)


@given(st.text(max_size=30))
def test_any_path_is_read_or_refused(path: str) -> None:
    """No text raises out of the check."""
    assert isinstance(check_path(path), str)


@given(st.recursive(st.text(max_size=8), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_places_are_found_at_any_depth(template: object) -> None:
    """A name in braces is a place wherever it stands."""
    assert "question" in set(places({"a": [template, {"b": "x {question} y"}]}))
    assert "question" in PLACES

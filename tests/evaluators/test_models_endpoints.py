"""The shipped entries for Azure, Bedrock and Gemini, in the wire formats that these document."""

import asyncio
from dataclasses import dataclass, replace

import pytest

from evaluators.answerers import PromptedAnswer
from evaluators.core import CallError, Case, Model, RefusedError, Reply, Request, UsageError
from evaluators.models import connect
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, require_key
from evaluators.rubric import Prompt
from evaluators.secrets import Key
from tests.support.loopback import Answer, Loopback, Seen, completion, loopback, response
from tests.support.model_calls import SECRET, TOOL, ask, asked, spec_of
from tests.support.tables import kept

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
    """The shipped entry, its host alone put on this machine."""
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
    assert [one for one, value in seen.headers.items() if SECRET in value] == [documented.header]
    assert seen.body["model"] == CATALOGUE[name].name
    assert (got.text, got.model) == ("София", documented.returned)


@each
def test_the_key_is_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads a variable of its own, and never OpenAI's."""
    spec = CATALOGUE[name]
    assert spec.batching is None or not spec.headers, "a batch would carry the key another way"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    variable = ENTRIES[name].variable
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(UsageError, match=f"set the environment variable {variable}"):
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
    wrong = [{"error": {"code": 400, "message": "no such thing", "status": "INVALID_ARGUMENT"}}]
    with loopback(Answer(status=400, body=wrong)) as server, pytest.raises(RefusedError) as caught:
        ask(here("gemini-2.5-flash", server), asked())
    assert "HTTP 400 (bad_request): no such thing" in str(caught.value)


@pytest.mark.parametrize("text", ["Sof", ""])
def test_an_incomplete_response_is_an_error_and_no_answer(text: str) -> None:
    """Half an answer is nothing to grade, whatever is there of it."""

    def handle(seen: Seen) -> Answer:
        incomplete = {"incomplete_details": {"reason": "max_output_tokens"}}
        return Answer(body=response(seen, text) | {"status": "incomplete"} | incomplete)

    async def put(model: Model, request: Request) -> Reply:
        return await model.complete(request)

    async def answer(spec: Spec) -> str:
        model = connect(spec, Key(SECRET))
        asking = PromptedAnswer(model=model, prompt=PROMPT)
        try:
            return await asking.answer(CASE, 1, put)
        finally:
            await model.close()

    with loopback(handler=handle) as server, pytest.raises(CallError) as caught:
        asyncio.run(answer(spec_of("openai-responses", server)))
    assert caught.value.kind == "cut"


PROMPT = Prompt(name="answer", language="en", version="1", system="", user="{question}")
CASE = Case(
    id="1", dataset="d", language="en", row=1, question="Capital of Bulgaria?", golds=("Sofia",)
)

"""The limit that short answers get where the user gives none, and when it is given up."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.tasks import OWN_LIMIT, PromptedAnswer
from qagate.evaluators import core
from qagate.evaluators.core import Reply
from qagate.evaluators.finishes import THOUGHT
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models import connect
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.negotiation import described, shows_thoughts
from qagate.evaluators.rubric import Prompt
from qagate.evaluators.runtime.answer_ages import AnswerAge, AnswerAges
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter, RetryPolicy
from qagate.evaluators.runtime.forecast import KeptReplies
from qagate.evaluators.runtime.negotiations import read_negotiated
from qagate.evaluators.text import Key
from tests.support.loopback import Answer, Handler, Seen, completion, loopback
from tests.support.model_calls import PROVIDERS, SECRET, spec_of
from tests.support.quirky import refusal
from tests.support.scripted import make_case

PROMPT = Prompt(name="p", language="bg", system="", user="{question}", version="1")
LIMIT_NAMES = {
    "openai": "max_tokens",
    "openai-responses": "max_output_tokens",
    "anthropic": "max_tokens",
}


@dataclass
class AnswerRuns:
    """Runs on one ledger that answer questions with one model."""

    folder: Path
    spec: Spec
    caller: Caller | None = None

    def run(self, number: int = 1, *, limited: bool = True) -> core.ReadAnswer:
        """Answer one question in a run of its own."""
        settings = CallSettings(retry=RetryPolicy(attempts=2, first=0, longest=0))
        with Ledger(self.folder / "ledger") as ledger:
            self.caller = Caller(ledger, settings, lambda spec, reply: 0.5)
            return asyncio.run(self._answer(self.caller, number, limited=limited))

    async def _answer(
        self, caller: Caller, number: int, *, limited: bool
    ) -> core.ReadAnswer:
        model = connect(self.spec, Key(SECRET))
        answering = PromptedAnswer(model=model, prompt=PROMPT, limits_length=limited)
        meter = Meter(price=caller.price)
        young = AnswerAge(seconds=3600.0)
        ask = AnswerAges(caller).asking(meter, young)
        try:
            return await answering.answer(make_case(number), 1, ask)
        finally:
            await model.close()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the latest run says of how its model is written to."""
        assert self.caller is not None
        return described(self.caller.negotiations.by_spec)

    def is_kept(self) -> bool:
        """Whether a dry run would find the answer."""
        model = connect(self.spec, Key(SECRET))
        answering = PromptedAnswer(model=model, prompt=PROMPT, limits_length=True)
        found = []
        with Ledger(self.folder / "ledger") as ledger:
            kept = KeptReplies(
                find=lambda key: asyncio.run(ledger.find(key)),
                negotiated=lambda model: read_negotiated(ledger, model),
            )

            async def ask(model: core.Model, request: core.Request) -> Reply:
                found.append(request)
                return Reply(text="placeholder")

            asyncio.run(answering.answer(make_case(1), 1, ask))
            (request,) = found
            return kept.answer(model, request, AnswerAge()) is not None


def limit_in(seen: Seen) -> object:
    """Return the limit of tokens in a request, by whatever name."""
    limits = [value for name, value in seen.body.items() if "tokens" in name]
    return limits[0] if limits else None


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_short_answer_is_limited(tmp_path: Path, provider: str) -> None:
    with loopback() as server:
        AnswerRuns(tmp_path, spec_of(provider, server)).run()
        assert server.requests[0].body[LIMIT_NAMES[provider]] == OWN_LIMIT


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"parameters": {"max_tokens": 77}}, 77),
        ({"omit": ("max_tokens",)}, None),
        (
            {"max_tokens_as": "max_new_tokens", "parameters": {"max_new_tokens": 9}},
            9,
        ),
    ],
)
def test_the_models_file_has_the_say(
    tmp_path: Path, settings: Mapping[str, Any], limit: int | None
) -> None:
    with loopback() as server:
        AnswerRuns(tmp_path, spec_of("openai", server, **settings)).run()
        assert limit_in(server.requests[0]) == limit


def test_other_answers_are_not_limited(tmp_path: Path) -> None:
    with loopback() as server:
        AnswerRuns(tmp_path, spec_of("openai", server)).run(limited=False)
        assert limit_in(server.requests[0]) is None


def test_what_was_kept_without_a_limit_is_not_paid_for_again(tmp_path: Path) -> None:
    """Its key is another one, and stays what it was."""
    with loopback() as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        first = runs.run(limited=False)
        assert runs.is_kept()
        assert runs.run() == first
        assert server.count == 1


def thinker(seen: Seen) -> Answer:
    """Think more than fits into the limit, if there is one."""
    if limit_in(seen) is None:
        body = completion(seen, "Sofia")
        body["usage"]["completion_tokens"] = 6_000
    else:
        body = completion(seen, "")
        body["choices"][0]["message"]["reasoning_content"] = "Sofia? Or Varna?"
        body["choices"][0]["finish_reason"] = "length"
        body["usage"]["completion_tokens"] = OWN_LIMIT
    return Answer(body=body)


def test_a_model_whose_thoughts_are_cut_is_asked_anew_without_a_limit(
    tmp_path: Path,
) -> None:
    with loopback(handler=thinker) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        answer = runs.run()
        assert (answer.text, answer.state) == ("Sofia", "answered")
        assert [limit_in(seen) for seen in server.requests] == [OWN_LIMIT, None]


def test_a_later_run_sends_no_limit_to_a_model_that_thinks(tmp_path: Path) -> None:
    with loopback(handler=thinker) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        runs.run(1)
        runs.run(2)
        assert [limit_in(seen) for seen in server.requests] == [OWN_LIMIT, None, None]
        assert runs.notes == (
            "openai:model-1: sent without a limit of our own on the length of its replies, as "
            "its server wants it",
        )


def test_both_replies_to_a_model_that_thinks_are_kept(tmp_path: Path) -> None:
    """The same run again sends nothing, and never takes the one that was cut."""
    with loopback(handler=thinker) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        first = runs.run()
        assert runs.is_kept()
        assert runs.run() == first
        assert server.count == 2


def test_an_answer_whose_thoughts_had_room_counts(tmp_path: Path) -> None:
    def handle(seen: Seen) -> Answer:
        return Answer(body=completion(seen, "<think>Varna? No.</think>Sofia"))

    with loopback(handler=handle) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        assert runs.run(1).text == "Sofia"
        runs.run(2)
        assert [limit_in(seen) for seen in server.requests] == [OWN_LIMIT, None]
        assert runs.run(1).text == "Sofia"
        assert server.count == 2


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_an_answer_without_end_is_cut_and_stays_so(tmp_path: Path, finish: str) -> None:
    """Whatever the server calls its end; nobody asks for it a second time."""

    def handle(seen: Seen) -> Answer:
        text = " ".join(f"Plovdiv {number}" for number in range(1_000))
        body = completion(seen, text)
        body["choices"][0]["finish_reason"] = finish
        body["usage"]["completion_tokens"] = OWN_LIMIT
        return Answer(body=body)

    with loopback(handler=handle) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        assert runs.run().state == "cut"
        assert runs.run().state == "cut"
        assert server.count == 1


def refusing(message: str) -> Handler:
    """Return a server that takes no limit, and says so in these words."""

    def handle(seen: Seen) -> Answer:
        if limit_in(seen) is not None:
            return refusal(message)
        return Answer(body=completion(seen, "Sofia"))

    return handle


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 4096. This model supports at most 2048 completion tokens.",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum "
        "context length is 4096 tokens and your request has 300 input tokens.",
        "This model's maximum context length is 2048 tokens. However, you requested 4396 "
        "tokens (300 in the messages, 4096 in the completion).",
        "Extra inputs are not permitted: max_tokens",
    ],
)
def test_a_server_that_refuses_the_limit_is_asked_without_it(
    tmp_path: Path, message: str
) -> None:
    with loopback(handler=refusing(message)) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        assert runs.run(1).text == "Sofia"
        before = server.count
        assert runs.run(2).text == "Sofia"
        assert server.count == before + 1


def test_a_question_too_long_for_its_model_is_refused_twice_and_teaches_nothing(
    tmp_path: Path,
) -> None:
    """With our limit and without it: then the limit was not to blame."""

    message = "This model's maximum context length is 2048 tokens."
    with loopback(handler=lambda seen: refusal(message)) as server:
        runs = AnswerRuns(tmp_path, spec_of("openai", server))
        with pytest.raises(core.RefusedError):
            runs.run()
        assert [limit_in(seen) for seen in server.requests] == [OWN_LIMIT, None]
        assert runs.notes == ()


@given(text=st.text(max_size=60), marks=st.integers(0, 16))
def test_no_tokenizer_makes_a_text_look_like_thoughts(text: str, marks: int) -> None:
    """A token has a byte at least."""
    size = len(text.encode("utf-8", "surrogatepass"))
    plain = Reply(text=f"a{text}", output_tokens=size + marks)
    assert not shows_thoughts(plain)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text="Sofia", output_tokens=300),
        Reply(text="", finish="length"),
        Reply(text="<think>Varna</think>Sofia"),
        Reply(text="", finish=THOUGHT),
    ],
    ids=["hidden", "cut", "shown", "alone"],
)
def test_thoughts_are_seen(reply: Reply) -> None:
    assert shows_thoughts(reply)

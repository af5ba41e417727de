"""Content that comes as a list of parts, over HTTP and through a whole run's calls.

Servers of reasoning models send their thoughts as parts of their own, before the text or
between its pieces. The text parts are the answer, in one call; in a judge's reply too.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from qagate.cases.tasks import PromptedAnswer
from qagate.evaluators import core
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.models import connect
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter
from qagate.evaluators.text import Key
from tests.support.loopback import Answer, Seen, completion, loopback, message, response
from tests.support.model_calls import PROVIDERS, SECRET, spec_of
from tests.support.scripted import PROMPT, make_case, make_rubric

Part = Mapping[str, object]
Wire = Callable[[Seen, Sequence[str]], Mapping[str, object]]
"""Returns a body with a thought and these pieces of text, each a part of its own."""


def chat_parts(seen: Seen, texts: Sequence[str]) -> Mapping[str, object]:
    """Mistral's reasoning models: a thought is a list of parts itself."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Varna?"}]}
    parts: list[Part] = [thought]
    parts += [{"type": "text", "text": text} for text in texts]
    body = completion(seen, "")
    body["choices"][0]["message"]["content"] = parts
    return body


def message_parts(seen: Seen, texts: Sequence[str]) -> Mapping[str, object]:
    """Extended thinking, of which the API may have made a part unreadable."""
    parts: list[Part] = [
        {"type": "thinking", "thinking": "Varna?", "signature": "x"},
        {"type": "redacted_thinking", "data": "eA=="},
    ]
    parts += [{"type": "text", "text": text} for text in texts]
    return message(seen, "") | {"content": parts}


def response_parts(seen: Seen, texts: Sequence[str]) -> Mapping[str, object]:
    """A thought is an item of its own, and the message has the pieces."""
    summary = [{"type": "summary_text", "text": "Varna?"}]
    parts = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    items = [
        {"type": "reasoning", "id": "rs_1", "summary": summary},
        {"type": "message", "role": "assistant", "content": parts},
    ]
    return response(seen, "") | {"output": items}


WIRES: Mapping[str, Wire] = {
    "openai": chat_parts,
    "anthropic": message_parts,
    "openai-responses": response_parts,
}


def sending(provider: str, *texts: str) -> Callable[[Seen], Answer]:
    """Return a server whose every reply has these pieces of text beside a thought."""
    return lambda seen: Answer(body=WIRES[provider](seen, texts))


def caller_on(ledger: Ledger) -> Caller:
    return Caller(ledger, CallSettings(), lambda spec, reply: None)


async def answer(caller: Caller, spec: Spec) -> core.ReadAnswer:
    model = connect(spec, Key(SECRET))
    ask = caller.metered(Meter(price=caller.price))
    try:
        return await PromptedAnswer(model=model, prompt=PROMPT).answer(
            make_case(), 1, ask
        )
    finally:
        await model.close()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_text_parts_are_the_answer_in_one_call(
    tmp_path: Path, provider: str
) -> None:
    with (
        loopback(handler=sending(provider, "София", " е", " столицата.")) as server,
        Ledger(tmp_path / "ledger") as ledger,
    ):
        spec = spec_of(provider, server)
        answered = asyncio.run(answer(caller_on(ledger), spec))
        assert (answered.text, answered.state) == ("София е столицата.", "answered")
        assert server.count == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_such_an_answer_is_kept(tmp_path: Path, provider: str) -> None:
    """A later run reads the same, and sends nothing."""
    with loopback(handler=sending(provider, "София", "!")) as server:
        spec = spec_of(provider, server)
        texts = []
        for _ in range(2):
            with Ledger(tmp_path / "ledger") as ledger:
                texts.append(asyncio.run(answer(caller_on(ledger), spec)).text)
        assert texts == ["София!", "София!"]
        assert server.count == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_parts_without_a_text_are_a_thought_alone(
    tmp_path: Path, provider: str
) -> None:
    with (
        loopback(handler=sending(provider)) as server,
        Ledger(tmp_path / "ledger") as ledger,
    ):
        answered = asyncio.run(answer(caller_on(ledger), spec_of(provider, server)))
        assert (answered.text, answered.state) == ("", "thought_only")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_judge_may_send_parts(tmp_path: Path, provider: str) -> None:
    """Its verdict stands in the text parts; what it thinks is no verdict."""
    verdict = json.dumps({"reason": "because", "grade": "CORRECT"})

    async def judged(caller: Caller, spec: Spec) -> core.Verdict:
        model = connect(spec, Key(SECRET))
        meter = Meter(price=caller.price)
        meter.end_answer()
        judge = RubricJudge(model=model, rubric=make_rubric("json"))
        try:
            return await judge.judge(make_case(), "София", caller.metered(meter))
        finally:
            await model.close()

    with (
        loopback(handler=sending(provider, verdict[:9], verdict[9:])) as server,
        Ledger(tmp_path / "ledger") as ledger,
    ):
        result = asyncio.run(judged(caller_on(ledger), spec_of(provider, server)))
        assert result.grade == "CORRECT"
        assert server.count == 1

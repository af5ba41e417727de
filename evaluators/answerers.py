"""Where an answer comes from: the data file, or a model asked with a prompt."""

import json
from contextlib import suppress
from dataclasses import dataclass

from evaluators.core import Ask, AskedCase, CallError, Case, Message, Model, Reply, Request
from evaluators.models.adapter import INCOMPLETE
from evaluators.reading import parse_json
from evaluators.rubric import Prompt, chat_messages, fill

RECORDED = "recorded"


def answer_messages(prompt: Prompt, case: Case) -> tuple[Message, ...]:
    """Return what the model under test is asked; the case's text goes in as it is."""
    values = {"question": case.question, "context": case.context}
    return chat_messages(fill(prompt.system, values), fill(prompt.user, values))


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """Gives the answer recorded in the data file."""

    spec: str = RECORDED

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return the recorded text unchanged. Raises CallError if the file has none."""
        if case.recorded is None:
            kind = "no_recorded_answer"
            raise CallError(kind, "the data file has no recorded answer; name a --model")
        return case.recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptedAnswer:
    """Gives a model's answer to a prompt."""

    model: Model
    prompt: Prompt | None
    """None for a model that takes the case itself."""
    whole: bool = False
    """Refuse an answer cut at its token limit: the start of a word may be another word."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return the reply's text, perhaps empty. Raises CallError for a filtered or cut one."""
        messages = answer_messages(self.prompt, case) if self.prompt else ()
        asked = AskedCase(
            question=case.question,
            context=case.context,
            language=case.language,
            metadata=case.metadata,
            messages=messages,
        )
        taken = asked if self.model.limits.takes_case else None
        version = self.prompt.version if self.prompt else ""
        request = Request(messages=messages, version=version, repeat=repeat, case=taken)
        reply = await ask(self.model, request)
        if reply.finish == "content_filter":
            raise CallError("filtered", f"{self.spec}: the provider filtered the answer")
        cut = reply.finish == "length" and (self.whole or not reply.text.strip())
        if cut or reply.finish == INCOMPLETE:
            raise CallError("cut", f"{self.spec}: the answer was cut at the token limit; raise it")
        return answer_of(reply)


def answer_of(reply: Reply) -> str:
    """Return the text of a reply; if it has only tool calls, these as JSON."""
    if reply.text.strip() or not reply.calls:
        return reply.text
    calls = []
    for call in reply.calls:
        arguments: object = call.arguments
        with suppress(ValueError):  # it stays text where it is no JSON
            arguments = parse_json(call.arguments)
        calls.append({"name": call.name, "arguments": arguments})
    return json.dumps(calls, ensure_ascii=False)

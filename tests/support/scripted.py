"""A model played by a function, and small cases."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qagate.evaluators.core import Case, Limits, Message, Model, Reply, Request
from qagate.evaluators.ledger import KeptReply
from qagate.evaluators.rubric import Prompt, Protocol, Rubric
from qagate.evaluators.runtime.forecast import KeptReplies

PROMPT = Prompt(
    name="answer", language="bg", system="", user="{question}", version="answer.bg@1"
)


@dataclass
class Scripted:
    """A model without a network: ``handler`` answers or raises; every request is kept."""

    handler: Callable[[Request], Reply]
    spec: str = "openai:scripted"
    requests: list[Request] = field(default_factory=list)
    closed: bool = False
    limits: Limits = field(default_factory=Limits)
    base_url: str = ""
    provider: str = "scripted"

    @property
    def identity(self) -> Mapping[str, object]:
        if not self.base_url:
            return {"provider": self.provider, "name": self.spec}
        return {
            "provider": self.provider,
            "base_url": self.base_url,
            "name": self.spec,
        }

    async def complete(self, request: Request) -> Reply:
        self.requests.append(request)
        return self.handler(request)

    async def close(self) -> None:
        self.closed = True


def make_case(number: int = 1, **changes: object) -> Case:
    """Return a graded Bulgarian item with a recorded answer, changed as asked."""
    values: dict[str, object] = {
        "id": f"q{number}",
        "dataset": "simpleqa",
        "language": "bg",
        "row": number,
        "question": f"Въпрос {number}?",
        "golds": ("София",),
        "recorded": "София",
        "digest": f"d{number}",
    }
    return Case(**{**values, **changes})  # type: ignore[arg-type]


def make_rubric(protocol: Protocol = "tool", **fields: Any) -> Rubric:
    texts = {"system": "s", "user": "{question} {target} {predicted_answer}", **fields}
    return Rubric(
        name="r", language="bg", protocol=protocol, version="r.bg@1#abc", **texts
    )


async def complete(model: Model, request: Request) -> Reply:
    """Ask the model itself: the ``ask`` of a judge that is tested without a run."""
    return await model.complete(request)


def kept_in(replies: Mapping[str, Reply]) -> KeptReplies:
    """Return kept replies by their keys, of a run long ago."""

    def find(key: str) -> KeptReply | None:
        reply = replies.get(key)
        if reply is None:
            return None
        return KeptReply(reply=reply, at=1.0, run="earlier")

    return KeptReplies(find=find)


def ask_for(text: str) -> Request:
    return Request(messages=(Message(role="user", content=text),))

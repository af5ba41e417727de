"""What a request is made of: messages, a tool, and the case itself for models that take it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message. ``role`` is ``system`` or ``user``."""

    role: Literal["system", "user"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that the model is forced to call. ``schema`` is JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCase:
    """What an application under test is given of a case: never its golds, label or id.

    ``metadata`` are the columns of its row that mean nothing to this suite. ``messages`` are the
    filled answer prompt, none where the data set has no prompt: an application has its own.
    All of it is part of the key by which the ledger knows the call.
    """

    question: str = ""
    context: str = ""
    language: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    messages: tuple[Message, ...] = ()

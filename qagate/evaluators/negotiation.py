"""What a server takes of what we send, as its own refusals and replies show.

Servers of one protocol differ: one refuses ``temperature: 0``, one wants the limit of tokens
by another name, one knows no system message, one no function calls. A run begins with what
most take. Where a server refuses a part by name, that part is left out or written in another
way, once, and what was learned is kept for later runs.

How a verdict is asked for has three forms: a forced function *call*, JSON by a *schema* that
the server enforces, and JSON as *text*, which it is only asked for. A call comes first, or
the schema where a request wants JSON. A form is given up where it is refused, or where its
first reply shows that the server ignored it.

A limit of our own on the length of a reply is another part of the form. It is given up where it
is refused, and for a model that thinks: its thoughts count, and would leave no room for an
answer.

The form changes the request, and so its ledger key. The rest changes only how the same request
is written: it never changes a key.

Nothing here sends or keeps anything; ``runtime/negotiations.py`` does.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, Protocol, get_args, runtime_checkable

from qagate.evaluators.core import Message, Reply, Request, Tool
from qagate.evaluators.finishes import CUT, INCOMPLETE, LENGTH, THOUGHT
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.said import said_of

Form = Literal["call", "schema", "text"]
"""How the arguments of a function are asked for."""

MAX_TOKENS = "max_tokens"
OTHER_MAX_TOKENS = "max_completion_tokens"
"""What OpenAI calls the limit for its reasoning models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """How one model is written to, where that differs from what most servers take."""

    omit: tuple[str, ...] = ()
    """Parameters of ours that it refuses."""
    max_tokens_as: str = ""
    """Its name for ``max_tokens``; empty for that name."""
    takes_system: bool = True
    """Whether it takes a system message; otherwise that stands before the user's."""
    takes_calls: bool = True
    """Whether it can be made to call a function."""
    takes_schema: bool = True
    """Whether it can be made to write JSON by a schema."""
    takes_limit: bool = True
    """Whether a limit of our own is put on its replies."""
    proven: tuple[Form, ...] = ()
    """The forms in which a reply has come: then a single other one changes nothing."""

    @property
    def forms(self) -> tuple[bool, bool]:
        """Which forms the server takes: calls, and JSON by a schema."""
        return self.takes_calls, self.takes_schema

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs, each in a few words; empty for what most servers take."""
        differences = [f"without {name}" for name in self.omit]
        if self.max_tokens_as:
            differences.append(f"with {MAX_TOKENS} as {self.max_tokens_as}")
        if not self.takes_system:
            differences.append("with the system message before the user's")
        if not self.takes_calls and self.takes_schema:
            differences.append("with JSON by a schema in place of a function call")
        elif not self.takes_calls:
            differences.append("with JSON as text in place of a function call")
        elif not self.takes_schema:
            differences.append("with a function call in place of JSON by a schema")
        if not self.takes_limit:
            differences.append(
                "without a limit of our own on the length of its replies"
            )
        return tuple(differences)

    @property
    def as_data(self) -> Mapping[str, object]:
        """What JSON can hold of it."""
        return {
            **asdict(self),
            "omit": list(self.omit),
            "proven": list(self.proven),
        }

    @property
    def document(self) -> str:
        """The JSON that is kept of it."""
        return json.dumps(self.as_data, sort_keys=True)


def negotiated_of(data: object) -> Negotiated:
    """Return what ``Negotiated.as_data`` holds; a field of another shape is as most have it."""
    if not isinstance(data, Mapping):
        return AS_MOST
    omit = data.get("omit")
    proven = data.get("proven")
    return Negotiated(
        omit=tuple(map(str, omit)) if isinstance(omit, list) else (),
        max_tokens_as=str(data.get("max_tokens_as") or ""),
        takes_system=data.get("takes_system") is not False,
        takes_calls=data.get("takes_calls") is not False,
        takes_schema=data.get("takes_schema") is not False,
        takes_limit=data.get("takes_limit") is not False,
        proven=_forms_in(proven) if isinstance(proven, list) else (),
    )


def read_document(text: str) -> Negotiated:
    """Return what ``Negotiated.document`` holds."""
    try:
        return negotiated_of(parse_json(text))
    except ValueError:
        return AS_MOST


def _forms_in(names: Sequence[object]) -> tuple[Form, ...]:
    return tuple(form for form in get_args(Form) if form in names)


AS_MOST = Negotiated()
"""What most servers take."""


@runtime_checkable
class Negotiable(Protocol):
    """A model that can be written to in another way than most."""

    negotiated: Negotiated


IN_PLACE_OF_A_CALL = (
    "\n\nNo function can be called here. In place of calling {name}, reply with its "
    "arguments as one JSON object, and with nothing else."
)
"""Added to a message that asks for a function call."""
BY_THIS_SCHEMA = " The object meets this JSON Schema:\n{schema}"
"""Added where the server does not know the schema."""


def other_forms(request: Request, negotiated: Negotiated) -> tuple[Negotiated, ...]:
    """Return in which other ways the same may have been asked: its reply may be kept under each.

    Those are the forms that were given up, the first form first; and with or without a limit
    of our own, whichever is not the case now.
    """
    ways = list(_earlier_forms(request, negotiated))
    if request.own_limit is not None:
        ways.append(replace(negotiated, takes_limit=not negotiated.takes_limit))
    return tuple(ways)


_SETTINGS_OF_FORMS = (
    AS_MOST,
    replace(AS_MOST, takes_calls=False),
    replace(AS_MOST, takes_schema=False),
)
"""One way of writing to a model for each form but the last one, which all can take."""


def _earlier_forms(request: Request, negotiated: Negotiated) -> Sequence[Negotiated]:
    if request.tool is None:
        return ()
    present = _form_of(request, negotiated)
    earlier: dict[Form, Negotiated] = {}
    for settings in _SETTINGS_OF_FORMS:
        gives_up_more = (negotiated.takes_calls and not settings.takes_calls) or (
            negotiated.takes_schema and not settings.takes_schema
        )
        form = _form_of(request, settings)
        if form != present and not gives_up_more:
            earlier.setdefault(form, settings)
    return tuple(earlier.values())


def stands(negotiated: Negotiated, request: Request, reply: Reply) -> bool:
    """Return whether a reply may be used: it keeps to its form, and its limit was no harm.

    ``request`` is what was sent, and ``negotiated`` how the model was written to.
    """
    if after_reply(negotiated, request, reply).forms != negotiated.forms:
        return False
    limit = request.own_limit if negotiated.takes_limit else None
    if limit is None or not shows_thoughts(reply):
        return True
    return reply.finish not in (LENGTH, INCOMPLETE) and reply.output_tokens < limit


def formed(request: Request, negotiated: Negotiated) -> Request:
    """Return the request in the form that its server takes, and with our limit if it takes that."""
    if request.own_limit is not None and negotiated.takes_limit:
        parameters = {MAX_TOKENS: request.own_limit, **request.parameters}
        request = replace(request, parameters=parameters)
    tool = request.tool
    if tool is None:
        return request
    form = _form_of(request, negotiated)
    if form == "call":
        return replace(request, as_json=False)
    if request.as_json and form == "schema":
        return request
    addition = IN_PLACE_OF_A_CALL.format(name=tool.name)
    if form == "schema":
        return replace(
            request, messages=_with_addition(request.messages, addition), as_json=True
        )
    addition += BY_THIS_SCHEMA.format(schema=_schema_text(tool))
    messages = _with_addition(request.messages, addition)
    return replace(request, messages=messages, tool=None, as_json=False)


def _form_of(request: Request, negotiated: Negotiated) -> Form:
    """Return the form of a request: the one that it wants itself, if its server takes it."""
    if request.as_json and negotiated.takes_schema:
        return "schema"
    if negotiated.takes_calls:
        return "call"
    return "schema" if negotiated.takes_schema else "text"


def _schema_text(tool: Tool) -> str:
    return json.dumps(tool.schema, ensure_ascii=False)


def _with_addition(messages: Sequence[Message], addition: str) -> tuple[Message, ...]:
    *others, last = messages
    return *others, replace(last, content=f"{last.content}{addition}")


def without_system(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages with those of the system in front of the user's, in one."""
    system = [message.content for message in messages if message.role == "system"]
    user = [message.content for message in messages if message.role != "system"]
    return (Message(role="user", content="\n\n".join([*system, *user])),)


_REFUSAL = re.compile(
    r"unsupported|not (?:\w+ )?support|not (?:\w+ )?allowed|not (?:\w+ )?permitted|unknown"
    r"|unrecogni[sz]ed|unexpected|deprecated|invalid|unavailable|requires|only the default"
    r"|no endpoints|not implemented|cannot be used",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"\b(?:system|developer)['\"`]?[ _-](?:roles?|messages?|instructions?)\b"
    r"|\broles?\b.{0,40}['\"`](?:system|developer)['\"`]"
    r"|['\"`](?:system|developer)['\"`].{0,40}\broles?\b"
    r"|\b(?:roles?|messages?|instructions?)\W{1,3}(?:system|developer)\b",
    re.IGNORECASE,
)
"""The system message; not any system, such as that of files."""
_VALUE = re.compile(
    r"above|exceed|greater|larger|at most|maximum|minimum|too (?:large|high|big|long)"
    r"|out of range|must be",
    re.IGNORECASE,
)
"""Of a number that is refused for its size, and not for its name."""
_LENGTH = re.compile(
    r"\bmax_(?:\w+_)?tokens\b|context (?:length|size|window)|maximum.{0,20}tokens",
    re.IGNORECASE,
)
"""How a server says that so long a reply is more than it can give."""
_TOOLS = re.compile(r"\btools?\b|tool[_ ]choice|function", re.IGNORECASE)
_SCHEMA = re.compile(
    r"response[_ ]format|json[_ ]schema|text\.format|structured output|grammar",
    re.IGNORECASE,
)


def after_refusal(
    negotiated: Negotiated, request: Request, message: str
) -> Negotiated | None:
    """Return what to do after a request was refused with this message; None if nothing helps.

    ``request`` is what was sent, in its form. Each step gives something up that was sent, so
    there are few of them.
    """
    learned = None
    if _REFUSAL.search(message):
        learned = _without_refused_part(negotiated, request, message)
    sends_own_limit = request.own_limit is not None and negotiated.takes_limit
    if learned is None and sends_own_limit and _LENGTH.search(message):
        return replace(negotiated, takes_limit=False)
    return learned


def _without_refused_part(
    negotiated: Negotiated, request: Request, message: str
) -> Negotiated | None:
    for name in request.parameters:
        if name in negotiated.omit or not re.search(rf"\b{name}\b", message):
            continue
        if name != MAX_TOKENS:
            return replace(negotiated, omit=(*negotiated.omit, name))
        is_refused_by_name = OTHER_MAX_TOKENS in message or not _VALUE.search(message)
        if is_refused_by_name and not negotiated.max_tokens_as:
            return replace(negotiated, max_tokens_as=OTHER_MAX_TOKENS)
    roles = {message.role for message in request.messages}
    if "system" in roles and negotiated.takes_system and _SYSTEM.search(message):
        return replace(negotiated, takes_system=False)
    if request.as_json and _SCHEMA.search(message):
        return replace(negotiated, takes_schema=False)
    if request.tool is not None and not request.as_json and _TOOLS.search(message):
        return replace(negotiated, takes_calls=False)
    return None


def after_reply(negotiated: Negotiated, request: Request, reply: Reply) -> Negotiated:
    """Return what a reply shows of how its model is to be written to.

    Its form is taken, or ignored; a reply that was cut does not show which. And the model
    thinks, or does not.
    """
    if request.own_limit is not None and shows_thoughts(reply):
        negotiated = replace(negotiated, takes_limit=False)
    if request.tool is None:
        return negotiated
    form: Form = "schema" if request.as_json else "call"
    if form in negotiated.proven:
        return negotiated
    if reply.calls or (request.as_json and _is_json_object(reply.text)):
        return replace(negotiated, proven=(*negotiated.proven, form))
    if reply.finish in CUT:
        return negotiated
    if request.as_json:
        return replace(negotiated, takes_schema=False)
    return replace(negotiated, takes_calls=False)


_MARKS = 16
"""Tokens of a reply, at most, that are no part of its text: its beginning and end."""


def shows_thoughts(reply: Reply) -> bool:
    """Return whether a reply holds thoughts, or took tokens that it does not show.

    Each token of a text has one byte at least.
    """
    if reply.finish == THOUGHT or said_of(reply.text).has_thoughts:
        return True
    if reply.finish == LENGTH and not reply.text.strip():
        return True
    shown = reply.text + "".join(call.name + call.arguments for call in reply.calls)
    size = len(shown.encode("utf-8", "surrogatepass"))
    return reply.output_tokens > size + _MARKS


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict)
    except ValueError:
        return False


def described(negotiated: Mapping[str, Negotiated]) -> tuple[str, ...]:
    """Return a line for each model, by SPEC, that is written to in another way than most."""
    lines = []
    for spec, settings in negotiated.items():
        if settings.differences:
            lines.append(
                f"{spec}: sent {', '.join(settings.differences)}, as its server wants it"
            )
    return tuple(lines)

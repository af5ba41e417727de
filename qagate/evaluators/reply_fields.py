"""A reply that comes from elsewhere, checked field by field before anybody uses it.

A row of a ledger and the reply of a user's function are foreign data: each field may hold
anything. Both pass this one reader, so what is refused is refused before it is paid for or
counted, and never at the end of a run, when its report is written.
"""

import json
from typing import Annotated

import msgspec

from qagate.evaluators.core import Reply, ToolCall
from qagate.evaluators.typed_data import Seconds, Tokens, Usd

MOST_CALLS = 10_000
"""Of one reply. No provider comes near it; what is beyond is damage."""


class CallFields(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A ToolCall as foreign data hold it."""

    name: str
    arguments: str


class ReplyFields(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A Reply as foreign data hold it: all fields, of these types, within these limits."""

    text: str
    calls: Annotated[tuple[CallFields, ...], msgspec.Meta(max_length=MOST_CALLS)]
    finish: str
    model: str
    input_tokens: Tokens
    output_tokens: Tokens
    seconds: Seconds
    cost: Usd | None
    cache_read_tokens: Tokens
    cache_write_tokens: Tokens
    batch: bool


def read_reply(text: str) -> Reply:
    """Return the reply of a JSON text. Raises ValueError, or RecursionError for deep nesting."""
    return _reply_of(msgspec.convert(json.loads(text), ReplyFields))


def checked_reply(reply: Reply) -> Reply:
    """Return a reply that code of others made, of plain types. Raises ValueError."""
    try:
        fields = msgspec.convert(reply, ReplyFields, from_attributes=True)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at ")
        name = place.strip("`").removeprefix("$.") or "a field"
        raise ValueError(
            f"returned a Reply whose {name} does not fit: {reason}"
        ) from None
    return _reply_of(fields)


def _reply_of(fields: ReplyFields) -> Reply:
    calls = []
    for call in fields.calls:
        calls.append(ToolCall(name=_plain(call.name), arguments=_plain(call.arguments)))
    return Reply(
        text=_plain(fields.text),
        calls=tuple(calls),
        finish=_plain(fields.finish),
        model=_plain(fields.model),
        input_tokens=fields.input_tokens,
        output_tokens=fields.output_tokens,
        seconds=fields.seconds,
        cost=None if fields.cost is None else float(fields.cost),
        cache_read_tokens=fields.cache_read_tokens,
        cache_write_tokens=fields.cache_write_tokens,
        batch=fields.batch,
    )


def _plain(text: str) -> str:
    """Return a text as no more than a text: an object of a subclass may not be pickled."""
    return str.__str__(text)

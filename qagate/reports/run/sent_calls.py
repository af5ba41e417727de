"""The calls of an item as people read them: who was asked, in what words, and what came back."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from qagate.evaluators.core import Reply, Request
from qagate.evaluators.kept_requests import fresh_key, request_key, whole
from qagate.evaluators.output import plural
from qagate.evaluators.text import flat
from qagate.evaluators.typed_data import decode
from qagate.reports.run.transcripts import ODD_LINE, Line, Source

NOT_KEPT: Mapping[str, str] = {"content": "(not kept)"}
"""The line of a long text that is not in the file."""
_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One call as people read it: what a model was sent, and what came back."""

    key: str
    spec: str
    """The SPEC of the model."""
    reply: Reply | None
    """None where the call failed."""
    request: Request | None = None
    """None where none is kept."""
    is_damaged: bool = False
    """Whether the ledger's copy of the request is damaged."""
    is_exact: bool = False
    """Whether the key, the hash of all that was asked, fits the request."""


def calls_of(source: Source, keys: Sequence[str]) -> dict[str, SentCall]:
    """Return these calls by key, as far as they are kept.

    One that is not as a run writes it is damaged: a report shows the others, and is not lost
    for it. Raises UsageError where the file itself is damaged.
    """
    texts: dict[str, Any] = {}
    calls: dict[str, Any] = {}
    for line in source(keys):
        lines = calls if line.is_call else texts
        lines[line.key] = _data_of(line)
    sent_calls = {}
    for key in keys:
        if key not in calls:
            continue
        try:
            sent_calls[key] = _sent_call(calls[key], texts)
        except (RecursionError, *ODD_LINE):
            sent_calls[key] = SentCall(key=key, spec="", reply=None, is_damaged=True)
    return sent_calls


def _data_of(line: Line) -> Any:
    """Return what a line holds; None for JSON that cannot be read."""
    try:
        return json.loads(line.json)
    except (RecursionError, ValueError):
        return None


def _sent_call(data: Mapping[str, Any], texts: Mapping[str, Any]) -> SentCall:
    """Return the call of a line, its request with the long ``texts``. Raises one of ODD_LINE."""

    def text_of(digest: str) -> str:
        line: Mapping[str, str] = texts.get(digest, NOT_KEPT)
        return line["content"]

    key = data["call"]
    reply: Reply | None = None
    if data["reply"]:
        reply = decode(Reply, data["reply"])
    if data["sent"] is None:
        return SentCall(
            key=key,
            spec=reply.model if reply else "",
            reply=reply,
            is_damaged=bool(data.get("damaged")),
        )
    frame, fields = whole(data["sent"], text_of)
    request = decode(Request, fields)
    # Counted again: it is the call's own key only if nothing of the request was changed since.
    key_of_request = fresh_key(request_key(frame["model"], request), frame["fresh"])
    return SentCall(
        key=key,
        spec=str(frame["spec"]),
        reply=reply,
        request=request,
        is_exact=key_of_request == key,
    )


def title(call: SentCall) -> str:
    """Return who was asked: the SPEC, the prompt's or rubric's version, and which time it was."""
    request = call.request
    if request is None:
        return call.spec
    words = [call.spec]
    if request.version:
        words.append(request.version)
    if request.repeat > 1:
        words.append(f"repeat {request.repeat}")
    if request.attempt:
        words.append(f"attempt {request.attempt + 1}")
    return ", ".join(words)


def parts(call: SentCall) -> Iterator[tuple[str, str]]:
    """Yield the name and the exact text of each part, in the order in which they were said."""
    if call.request is None:
        why = "damaged" if call.is_damaged else "the ledger has only the reply"
        yield "sent", f"not kept ({why})"
    else:
        yield from _request_parts(call.request)
        if not call.is_exact:
            yield (
                "note",
                "(this is not exactly what was sent: keys are masked, or it was altered)",
            )
    if call.reply is None:
        yield "reply", "(none: the call failed)"
    else:
        yield from _reply_parts(call.reply)


def _request_parts(request: Request) -> Iterator[tuple[str, str]]:
    case = request.case
    messages = list(request.messages)
    if case:
        fields = {}
        for name, value in flat(case).items():
            if name != "messages" and value:
                fields[name] = value
        yield "case", _JSON.encode(fields)
        messages += case.messages
    for message in messages:
        yield message.role, message.content
    tool = request.tool
    if tool:
        schema = _JSON.encode(tool.schema)
        yield f"function {tool.name}", f"{tool.description}\n{schema}"
    if request.parameters:
        yield "parameters", _JSON.encode(request.parameters)


def _reply_parts(reply: Reply) -> Iterator[tuple[str, str]]:
    if reply.text or not reply.calls:
        yield "reply", reply.text
    for call in reply.calls:
        yield f"reply calls {call.name}", call.arguments
    tokens_in = f"{reply.input_tokens:,} tokens in"
    tokens_out = f"{plural(reply.output_tokens, 'token')} out"
    yield (
        "about",
        f"{reply.model}: finish {reply.finish}, {tokens_in}, {tokens_out}, "
        f"{reply.seconds:.3f} s",
    )

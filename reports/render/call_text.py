"""A call to a model in words: who was asked what, and what came back, part by part."""

import json
from collections.abc import Iterator

from evaluators.core import Reply, Request
from evaluators.output import plural
from evaluators.text import flat
from reports.run.transcripts import Call

_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)


def title(call: Call) -> str:
    """Return who was asked: the SPEC, the prompt's or rubric's version, and which time it was."""
    request = call.request
    if request is None:
        return call.spec
    again = [f"repeat {request.repeat}"] if request.repeat > 1 else []
    again += [f"attempt {request.attempt + 1}"] if request.attempt else []
    return ", ".join([call.spec, *filter(None, [request.version]), *again])


def parts(call: Call) -> Iterator[tuple[str, str]]:
    """Yield the name and the exact text of each part, in the order in which they were said."""
    if call.request is None:
        yield "sent", "(not in this ledger: an earlier version kept only the reply)"
    else:
        yield from _asked(call.request)
        if not call.is_exact:
            yield "note", "(this is not exactly what was sent: keys are masked, or it was altered)"
    if call.reply is None:
        yield "reply", "(none: the call failed)"
    else:
        yield from _returned(call.reply)


def _asked(request: Request) -> Iterator[tuple[str, str]]:
    if case := request.case:
        given = {name: value for name, value in flat(case).items() if name != "messages" and value}
        yield "case", _JSON.encode(given)
    for message in (*request.messages, *(case.messages if case else ())):
        yield message.role, message.content
    if tool := request.tool:
        yield f"function {tool.name}", f"{tool.description}\n{_JSON.encode(tool.schema)}"
    if request.parameters:
        yield "parameters", _JSON.encode(request.parameters)


def _returned(reply: Reply) -> Iterator[tuple[str, str]]:
    if reply.text or not reply.calls:
        yield "reply", reply.text
    for call in reply.calls:
        yield f"reply calls {call.name}", call.arguments
    tokens = f"{reply.input_tokens:,} tokens in, {plural(reply.output_tokens, 'token')} out"
    yield "about", f"{reply.model}: finish {reply.finish}, {tokens}, {reply.seconds:.3f} s"

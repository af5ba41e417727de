"""The one reader of answers: what a reply says, and what it is.

Every reply of a tested model passes ``read_reply``, and every kept or recorded answer
``read_text``, before rules, judges, checks, metrics or reports see it.
"""

import json
from contextlib import suppress

from qagate.evaluators.core import AnswerState, ReadAnswer, Reply
from qagate.evaluators.reading import parse_json
from qagate.evaluators.text import travelling


def read_reply(reply: Reply) -> ReadAnswer:
    """Return what a reply of a tested model says."""
    return read_text(text_of(reply), reply.finish)


def read_text(reply: str, finish: str = "") -> ReadAnswer:
    """Return what a reply says that is known as text: recorded, or kept by an earlier run."""
    text = travelling(reply)
    return ReadAnswer(
        text=text,
        state=_state(text),
        finish=finish,
        reply=reply if reply != text else None,
    )


def _state(text: str) -> AnswerState:
    return "answered" if text.strip() else "empty"


def text_of(reply: Reply) -> str:
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

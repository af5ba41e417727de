"""The way into the reader of answers: from a reply to what it says, and what it is.

Every reply of a tested model passes ``read_reply``, and every kept or recorded answer
``read_text``, before rules, judges, checks, metrics or reports see it. Both know what was
``Asked``, as an echo is told by the words of the prompt.
"""

import json
from contextlib import suppress
from dataclasses import dataclass

from qagate.evaluators.answers.refusals import is_bare_refusal
from qagate.evaluators.answers.states import is_blank, is_echo, is_empty, is_repetition
from qagate.evaluators.core import AnswerState, ReadAnswer, Reply
from qagate.evaluators.finishes import CUT, FILTERED, INCOMPLETE, LENGTH, THOUGHT
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.said import Said, said_of
from qagate.evaluators.text import travelling

CUT_BY_LIMIT = frozenset({LENGTH, INCOMPLETE})
"""The finishes of a reply that would have gone on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a reply is held against, to see whether it says anything of its own."""

    language: str = "en"
    question: str = ""
    texts: tuple[str, ...] = ()
    """The template's texts with the question, and the question. ``BREAK`` stands where an echo
    ends: in place of the context, and before the options that a question lists."""
    golds: tuple[str, ...] = ()


NOT_KNOWN = Asked()
"""Where nobody knows what was asked: no text is an echo."""


def read_reply(
    reply: Reply, asked: Asked = NOT_KNOWN, limit: int | None = None
) -> ReadAnswer:
    """Return what a reply of a tested model says, and what it is.

    ``limit`` is the number of tokens that it might have. A reply of so many was cut, whatever
    its server calls the end.
    """
    finish = reply.finish
    if limit is not None and reply.output_tokens >= limit and finish not in CUT:
        finish = LENGTH
    return read_text(text_of(reply), finish, asked)


def read_text(reply: str, finish: str = "", asked: Asked = NOT_KNOWN) -> ReadAnswer:
    """Return what a reply says that is known as text: recorded, or kept by an earlier run."""
    said = said_of(reply)
    text = travelling(said.text)
    return ReadAnswer(
        text=text,
        state=_state(text, said, finish, asked),
        finish=finish,
        reply=None if text == reply else travelling(reply),
    )


def _state(text: str, said: Said, finish: str, asked: Asked) -> AnswerState:
    """Return what a reply is; the first rule that fits decides."""
    if finish == FILTERED:
        return "declined"
    if said.is_open or finish == THOUGHT:
        return "thought_only"
    if is_blank(text) and (said.has_thoughts or finish in CUT_BY_LIMIT):
        return "thought_only"  # what is not shown has used up the limit
    if is_empty(text, asked.golds):
        return "empty"
    if is_echo(text, asked.texts, asked.golds):
        return "echo"
    if is_repetition(text, asked.golds):
        return "repetition"
    if finish in CUT_BY_LIMIT:
        return "cut"
    if is_bare_refusal(
        text, language=asked.language, question=asked.question, golds=asked.golds
    ):
        return "declined"
    return "answered"


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

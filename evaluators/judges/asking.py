"""Asking a judge until its reply has one reading, and never again after that."""

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import TypeVar

from evaluators.core import Ask, JudgeError, Model, Reply, Request
from evaluators.replies import Invalid
from evaluators.runtime.rounds import ATTEMPTS, ItemAsk

PARAMETERS = {"temperature": 0, "max_tokens": 2048}
"""The least random reply, with room for a reason."""

T = TypeVar("T", str, int)


async def ask_until_read(
    model: Model, request: Request, ask: Ask, read: Callable[[Reply], T | Invalid]
) -> tuple[T, Reply]:
    """Return the first reading and its reply; the same request is put at most three times.

    Three more where the run may open a further round. Raises JudgeError that names what was wrong
    with each of the last three replies.
    """
    problems: list[str] = []
    for attempt in count():
        put = replace(request, attempt=attempt)
        if attempt >= ATTEMPTS and attempt % ATTEMPTS == 0 and not _opens_round(ask, model, put):
            break
        reply = await ask(model, put)
        result = read(reply)
        if not isinstance(result, Invalid):
            return result, reply
        problems.append(result.reason)
    said = "; ".join(problems[-ATTEMPTS:])
    msg = f"{model.spec}: {len(problems)} replies without a verdict: {said}"
    raise JudgeError(msg)


def _opens_round(ask: Ask, model: Model, request: Request) -> bool:
    return isinstance(ask, ItemAsk) and ask.opens_round(model, request)

"""Asking a judge until its reply has one reading, and never again after that."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from evaluators.core import Ask, JudgeError, Model, Reply, Request
from evaluators.replies import Invalid

ATTEMPTS = 3
PARAMETERS = {"temperature": 0, "max_tokens": 2048}
"""The least random reply, with room for a reason."""

T = TypeVar("T", str, int)


async def ask_until_read(
    model: Model, request: Request, ask: Ask, read: Callable[[Reply], T | Invalid]
) -> tuple[T, Reply]:
    """Return the first reading and its reply; the same request is put at most three times.

    Raises JudgeError that names what was wrong with each reply.
    """
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        reply = await ask(model, replace(request, attempt=attempt))
        result = read(reply)
        if not isinstance(result, Invalid):
            return result, reply
        problems.append(result.reason)
    msg = f"{model.spec}: {ATTEMPTS} replies without a verdict: {'; '.join(problems)}"
    raise JudgeError(msg)

"""Putting one answer to several judges: what each says, or why it says nothing."""

import asyncio
from collections.abc import Sequence

from evaluators.core import Ask, CallError, Case, Judge, JudgeError, Verdict, Vote

JudgeResult = Verdict | CallError | JudgeError


async def ask_all(judges: Sequence[Judge], case: Case, answer: str, ask: Ask) -> list[JudgeResult]:
    """Return what each judge came to, all of them asked at once.

    A judge that cannot be reached or read silences no other; any other error is raised.
    """
    asked = [judge.judge(case, answer, ask) for judge in judges]
    results = await asyncio.gather(*asked, return_exceptions=True)
    return [_heard(result) for result in results]


def _heard(result: Verdict | BaseException) -> JudgeResult:
    if isinstance(result, Verdict | CallError | JudgeError):
        return result
    raise result


def vote_of(judge: Judge, heard: JudgeResult) -> Vote:
    """Return what was heard of a judge as its vote."""
    if isinstance(heard, Verdict):
        return Vote(judge=judge.spec, grade=heard.grade, rating=heard.rating, reason=heard.reason)
    return Vote(judge=judge.spec, error=f"{heard.kind}: {heard}")

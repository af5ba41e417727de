"""The votes of judges that are asked together."""

import asyncio
from collections.abc import Sequence

from qagate.evaluators import core

JudgeResult = core.Verdict | core.CallError | core.JudgeError


async def ask_all(
    judges: Sequence[core.Judge], case: core.Case, answer: str, ask: core.Ask
) -> list[JudgeResult]:
    """Ask all judges at once; return the verdict, CallError or JudgeError of each; raise others."""
    asked = [judge.judge(case, answer, ask) for judge in judges]
    results: list[JudgeResult] = []
    for result in await asyncio.gather(*asked, return_exceptions=True):
        if not isinstance(result, core.Verdict | core.CallError | core.JudgeError):
            raise result
        results.append(result)
    return results


def vote_of(judge: core.Judge, result: JudgeResult) -> core.Vote:
    """Return a judge's verdict, or why it gave none, as its vote."""
    if not isinstance(result, core.Verdict):
        return core.Vote(judge=judge.spec, error=f"{result.kind}: {result}")
    return core.Vote(
        judge=judge.spec, grade=result.grade, rating=result.rating, reason=result.reason
    )

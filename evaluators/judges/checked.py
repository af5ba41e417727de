"""Answers that code checks: beside whatever judges them, or in its place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaluators.answer_checks import score
from evaluators.core import Ask, Case, Judge, Verdict
from evaluators.extra_metrics import CheckSpec
from evaluators.statistics.metrics import FAILED, PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJudge:
    """Runs the checks of a data set, then its judge, whose verdict stands beside their scores.

    Without a judge the verdict is PASS where every check gives 1, else FAIL.
    """

    checks: Sequence[CheckSpec]
    behind: Judge | None = None

    @property
    def spec(self) -> str:
        """The judge's SPEC; without one, what it is."""
        return self.behind.spec if self.behind else "checks"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict with all scores. Raises JudgeError where a check or the judge fails.

        Checks come first: an answer that one of them cannot take costs no judge's call.
        """
        found = {check.measure: await score(check, case, answer, ask) for check in self.checks}
        scores = {name: one.value for name, one in found.items()}
        if self.behind:
            return replace(await self.behind.judge(case, answer, ask), scores=scores)
        below = [f"{name}: {one.reason}" for name, one in found.items() if one.value < 1]
        reason = "; ".join(below) or "every check holds"
        return Verdict(grade=FAILED if below else PASSED, reason=reason, scores=scores)

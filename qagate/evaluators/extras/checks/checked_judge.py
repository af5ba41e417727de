"""A judge that runs a data set's checks by code too."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.extras.checks.answer_checks import score, why_unscored
from qagate.evaluators.metric_specs import CheckSpec, Score
from qagate.evaluators.statistics.metrics import FAILED, PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJudge:
    """Runs the checks of a data set, then its judge; the verdict carries the checks' scores."""

    checks: Sequence[CheckSpec]
    behind: core.Judge | None = None
    """The judge; without one the verdict is PASS if every check gives 1, else FAIL."""

    @property
    def spec(self) -> str:
        """The judge's SPEC, or ``checks`` without a judge."""
        return self.behind.spec if self.behind else "checks"

    @property
    def asks(self) -> tuple[core.Judge, ...]:
        """The judge behind the checks, if there is one."""
        return (self.behind,) if self.behind else ()

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Run the checks, then the judge. Raises JudgeError if one fails, or nothing can tell.

        A check that an item can have no score of holds up neither the judge nor other checks.
        Without a judge the answer then fails where another check does, and has no grade else.
        """
        results: dict[str, Score] = {}
        unscored: dict[str, str] = {}
        for check in self.checks:
            reason = why_unscored(check, case)
            if reason:
                unscored[check.metric] = reason
            else:
                results[check.metric] = await score(check, case, answer, ask)
        scores = {
            name: result.value
            for name, result in results.items()
            if result.value is not None
        }
        if self.behind:
            verdict = await self.behind.judge(case, answer, ask)
            return replace(verdict, scores=scores, unscored=unscored)
        failures = [
            f"{name}: {results[name].reason}"
            for name, value in scores.items()
            if value < 1
        ]
        if failures:
            reason = "; ".join(failures)
            return core.Verdict(
                grade=FAILED, reason=reason, scores=scores, unscored=unscored
            )
        if unscored or not scores:
            untold = [result.reason for result in results.values()]
            reasons = "; ".join([*unscored.values(), *untold])
            raise core.JudgeError(f"no check can tell: {reasons}", kind="check_failed")
        return core.Verdict(grade=PASSED, reason="every check holds", scores=scores)

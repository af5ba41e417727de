"""Judges that combine others: a panel, rules before a model, checks before a judge."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from qagate.evaluators import core
from qagate.evaluators.extras.checks.answer_checks import score
from qagate.evaluators.metric_specs import CheckSpec
from qagate.evaluators.replies.labels import content_free
from qagate.evaluators.statistics.metrics import FAILED, PASSED

LOWEST, HIGHEST = 1, 10
"""The ends of the scale, between which a missing rating may be anything."""


def majority(grades: Sequence[str], missing: int = 0) -> str | None:
    """Return the grade with most votes; None if tied, or if ``missing`` votes could overturn it."""
    counts = Counter(grades).most_common(2)
    first = counts[0] if counts else ("", 0)
    second = counts[1][1] if len(counts) > 1 else 0
    return first[0] if first[1] > second + missing else None


def middle(ratings: Sequence[int], missing: int = 0) -> int | None:
    """Return the (lower) median rating; None if ``missing`` further ratings could change it."""
    every = [[*ratings, *[end] * missing] for end in (LOWEST, HIGHEST)]
    found = {median_low(some) for some in every if ratings}
    return found.pop() if len(found) == 1 else None


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


TIE = "panel_tie"
UNDECIDED = "panel_undecided"

Spared = Callable[[core.Case, str], core.Verdict | None]
"""Return the verdict on an answer that needs no judge, else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """Judges that vote: most votes for a grade, a tie is an error; or the median rating.

    A vote that cannot be got or read is an error if it could change the verdict. After Verga et al.
    2024, "Replacing Judges with Juries", arXiv 2404.18796.
    """

    judges: tuple[core.Judge, ...]
    """All of them grade, or all of them rate."""
    spared: Spared | None = None

    @property
    def spec(self) -> str:
        """The members' SPECs, one space between them."""
        return " ".join(judge.spec for judge in self.judges)

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the verdict of the votes, with the votes.

        Raises JudgeError, which carries the votes, for a tie or if a missing vote could decide;
        StoppedError if that vote is missing because the run makes no further calls.
        """
        if self.spared and (verdict := self.spared(case, answer)):
            return verdict
        results = await ask_all(self.judges, case, answer, ask)
        votes = tuple(map(vote_of, self.judges, results))
        missing = sum(bool(vote.error) for vote in votes)
        said = "; ".join(f"{vote.judge}: {vote.label or vote.error}" for vote in votes)
        if rating := middle([vote.rating for vote in votes if vote.rating], missing):
            return core.Verdict(rating=rating, reason=said, votes=votes)
        if grade := majority([vote.grade for vote in votes if vote.grade], missing):
            return core.Verdict(grade=grade, reason=said, votes=votes)
        for result in results:
            if isinstance(result, core.StoppedError):
                raise result
        why = (
            "what is missing could decide"
            if missing
            else "a tie; name an odd number of judges"
        )
        raise core.JudgeError(
            f"{said}: {why}", kind=UNDECIDED if missing else TIE, votes=votes
        )


AUDIT = 0.05
"""The share of items settled by rules that the model judges too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeJudge:
    """Lets ``rules`` settle the items they are sure of, and ``model`` judge the rest."""

    rules: core.Judge
    model: core.Judge
    audit: float = AUDIT
    """The share, 0 to 1, of settled items that the model judges too. Its vote goes to ``votes``;
    the verdict stays that of the rules, so that no figure depends on the draw."""
    seed: int = 0
    """The seed of the draw."""

    @property
    def spec(self) -> str:
        """Both SPECs, for instance ``lexical+openai:NAME``."""
        return f"{self.rules.spec}{core.CASCADE_SIGN}{self.model.spec}"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the rules' verdict if sure, else the model's; ``votes`` has who decided first."""
        ruled = await self.rules.judge(case, answer, ask)
        if not ruled.sure:
            judged = await self.model.judge(case, answer, ask)
            return replace(judged, votes=(vote_of(self.model, judged),))
        votes = [vote_of(self.rules, ruled)]
        if self.audits(case) and not content_free(answer, case.golds):
            (audited,) = await ask_all([self.model], case, answer, ask)
            votes.append(vote_of(self.model, audited))
        return replace(ruled, votes=tuple(votes))

    def audits(self, case: core.Case) -> bool:
        """Return whether the model judges this item if the rules settle it; same on every run."""
        name = f"audit:{self.seed}:{case.dataset}:{case.language}:{case.id}"
        return (
            int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
            < self.audit * 2**64
        )


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

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Run the checks, then the judge. Raises JudgeError if one fails, or nothing can tell."""
        found = {
            check.metric: await score(check, case, answer, ask) for check in self.checks
        }
        scores = {
            name: one.value for name, one in found.items() if one.value is not None
        }
        if self.behind:
            return replace(await self.behind.judge(case, answer, ask), scores=scores)
        if not scores:
            said = "; ".join(one.reason for one in found.values())
            raise core.JudgeError(f"no check can tell: {said}", kind="check_failed")
        below = [
            f"{name}: {found[name].reason}"
            for name, value in scores.items()
            if value < 1
        ]
        reason = "; ".join(below) or "every check holds"
        return core.Verdict(
            grade=FAILED if below else PASSED, reason=reason, scores=scores
        )

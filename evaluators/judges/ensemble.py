"""Judges that combine others: a panel that votes, rules before a model, checks before a judge."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from evaluators.answer_checks import score
from evaluators.core import Ask, CallError, Case, Judge, JudgeError, StoppedError, Verdict, Vote
from evaluators.extra_metrics import CheckSpec
from evaluators.judge_spec import BEFORE
from evaluators.replies.labels import content_free
from evaluators.statistics.metrics import FAILED, PASSED

LOWEST, HIGHEST = 1, 10
"""The ends of the scale, between which a missing rating may be anything."""


def majority(grades: Sequence[str], missing: int = 0) -> str | None:
    """Return the grade with more votes than any other; None for a tie.

    None too if ``missing`` further votes could overturn it or make a tie.
    """
    counts = Counter(grades).most_common(2)
    first = counts[0] if counts else ("", 0)
    second = counts[1][1] if len(counts) > 1 else 0
    return first[0] if first[1] > second + missing else None


def middle(ratings: Sequence[int], missing: int = 0) -> int | None:
    """Return the median rating; of an even number the lower of the two in the middle.

    None if ``missing`` further ratings could change it.
    """
    if not ratings:
        return None
    every = [[*ratings, *[end] * missing] for end in (LOWEST, HIGHEST)]
    found = {median_low(some) for some in every}
    return found.pop() if len(found) == 1 else None


JudgeResult = Verdict | CallError | JudgeError


async def ask_all(judges: Sequence[Judge], case: Case, answer: str, ask: Ask) -> list[JudgeResult]:
    """Ask all judges at once; return the verdict, CallError or JudgeError of each.

    Raises any other error.
    """
    asked = [judge.judge(case, answer, ask) for judge in judges]
    results: list[JudgeResult] = []
    for result in await asyncio.gather(*asked, return_exceptions=True):
        if not isinstance(result, Verdict | CallError | JudgeError):
            raise result
        results.append(result)
    return results


def vote_of(judge: Judge, result: JudgeResult) -> Vote:
    """Return a judge's verdict, or why it gave none, as its vote."""
    if isinstance(result, Verdict):
        return Vote(
            judge=judge.spec, grade=result.grade, rating=result.rating, reason=result.reason
        )
    return Vote(judge=judge.spec, error=f"{result.kind}: {result}")


TIE = "panel_tie"
UNDECIDED = "panel_undecided"

Spared = Callable[[Case, str], Verdict | None]
"""Return the verdict on an answer that needs no judge, else None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelJudge:
    """Judges that vote on every answer.

    The verdict is the grade with the most votes (Verga et al. 2024, "Replacing Judges with Juries",
    arXiv 2404.18796), where a tie is an error; or the median rating (``middle``). The vote of a
    judge that cannot be reached or read is missing: it is an error if it could change the verdict.
    """

    judges: tuple[Judge, ...]
    rating: bool = False
    """Whether the judges rate; else they grade."""
    spared: Spared | None = None

    @property
    def spec(self) -> str:
        """The members' SPECs, one space between them."""
        return " ".join(judge.spec for judge in self.judges)

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
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
        if self.rating:
            if rating := middle([vote.rating for vote in votes if vote.rating], missing):
                return Verdict(rating=rating, reason=said, votes=votes)
        elif grade := majority([vote.grade for vote in votes if vote.grade], missing):
            return Verdict(grade=grade, reason=said, votes=votes)
        for result in results:
            if isinstance(result, StoppedError):
                raise result
        why = "what is missing could decide" if missing else "a tie; name an odd number of judges"
        raise JudgeError(f"{said}: {why}", kind=UNDECIDED if missing else TIE, votes=votes)


AUDIT = 0.05
"""The share of items settled by rules that the model judges too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeJudge:
    """Lets ``rules`` settle the items they are sure of, and ``model`` judge the rest."""

    rules: Judge
    model: Judge
    audit: float = AUDIT
    """The share, 0 to 1, of settled items that the model judges too. Its vote goes to ``votes``;
    the verdict stays that of the rules, so that no figure depends on the draw."""
    seed: int = 0
    """Of the draw."""

    @property
    def spec(self) -> str:
        """Both SPECs, for instance ``lexical+openai:NAME``."""
        return f"{self.rules.spec}{BEFORE}{self.model.spec}"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict of the rules if they are sure, else the model's.

        ``votes`` has the judge that decided first, then the audit's vote. Raises JudgeError or
        CallError if the model gives no verdict on an unsettled item; a failed audit is only noted.
        """
        ruled = await self.rules.judge(case, answer, ask)
        if not ruled.sure:
            judged = await self.model.judge(case, answer, ask)
            return replace(judged, votes=(vote_of(self.model, judged),))
        votes = [vote_of(self.rules, ruled)]
        if self.audits(case) and not content_free(answer, case.golds):
            (audited,) = await ask_all([self.model], case, answer, ask)
            votes.append(vote_of(self.model, audited))
        return replace(ruled, votes=tuple(votes))

    def audits(self, case: Case) -> bool:
        """Return whether the model judges this item if the rules settle it; same on every run."""
        name = f"audit:{self.seed}:{case.dataset}:{case.language}:{case.id}"
        drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        return drawn < self.audit * 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJudge:
    """Runs the checks of a data set, then its judge; the verdict carries the checks' scores."""

    checks: Sequence[CheckSpec]
    behind: Judge | None = None
    """The judge; without one the verdict is PASS if every check gives 1, else FAIL."""

    @property
    def spec(self) -> str:
        """The judge's SPEC, or ``checks`` without a judge."""
        return self.behind.spec if self.behind else "checks"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict with all scores. Raises JudgeError if a check or the judge fails.

        Checks run first, so that a check that fails saves the judge's call.
        """
        found = {check.metric: await score(check, case, answer, ask) for check in self.checks}
        scores = {name: one.value for name, one in found.items() if one.value is not None}
        if self.behind:
            return replace(await self.behind.judge(case, answer, ask), scores=scores)
        below = [f"{name}: {found[name].reason}" for name, value in scores.items() if value < 1]
        reason = "; ".join(below) or "every check holds"
        return Verdict(grade=FAILED if below else PASSED, reason=reason, scores=scores)

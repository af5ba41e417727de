"""Rules before a model: what the rules are sure of needs no call, apart from a random check."""

import hashlib
from dataclasses import dataclass, replace

from evaluators.content import content_free
from evaluators.core import Ask, Case, Judge, Verdict
from evaluators.judges.hearing import ask_all, vote_of
from evaluators.judges.naming import BEFORE

AUDIT = 0.05
"""The share of settled items that the model judges as well, unless another is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeJudge:
    """Lets ``rules`` settle what they are sure of, and ``model`` judge the rest.

    A share of the settled items, ``audit`` (0 to 1), is put to the model as well. The verdict of
    the rules stands all the same, so that no figure depends on which items were drawn; what the
    model said stands beside it, in ``votes``.
    """

    rules: Judge
    model: Judge
    audit: float = AUDIT
    seed: int = 0

    @property
    def spec(self) -> str:
        """Both SPECs, for instance ``lexical+openai:NAME``."""
        return f"{self.rules.spec}{BEFORE}{self.model.spec}"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the verdict of the rules where they are sure, otherwise the model's.

        ``votes`` names who gave it; a second vote is that of an audit. Raises JudgeError or
        CallError where an item that is not settled brings no verdict; a failed audit is only noted.
        """
        ruled = await self.rules.judge(case, answer, ask)
        if not ruled.sure:
            judged = await self.model.judge(case, answer, ask)
            return replace(judged, votes=(vote_of(self.model, judged),))
        votes = [vote_of(self.rules, ruled)]
        if self.audits(case) and not content_free(answer, case.golds):
            (heard,) = await ask_all([self.model], case, answer, ask)
            votes.append(vote_of(self.model, heard))
        return replace(ruled, votes=tuple(votes))

    def audits(self, case: Case) -> bool:
        """Return whether this item is checked if the rules settle it: the same in every process."""
        name = f"audit:{self.seed}:{case.dataset}:{case.language}:{case.id}"
        drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        return drawn < self.audit * 2**64

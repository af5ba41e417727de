"""A cascade: rules settle what they are sure of, and a model judges the rest."""

import hashlib
from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.extras.panel.votes import ask_all, vote_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeJudge:
    """Lets ``rules`` settle the items they are sure of, and ``model`` judge the rest."""

    rules: core.Judge
    model: core.Judge
    audit: float
    """The share, 0 to 1, of settled items that the model judges too. Its vote goes to ``votes``;
    the verdict stays that of the rules, so that no figure depends on the draw."""
    seed: int = 0
    """The seed of the draw."""

    @property
    def spec(self) -> str:
        """Both SPECs, for instance ``lexical+openai:NAME``."""
        return f"{self.rules.spec}{core.CASCADE_SIGN}{self.model.spec}"

    @property
    def asks(self) -> tuple[core.Judge, ...]:
        """The model; rules cost nothing."""
        return (self.model,)

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the rules' verdict if sure, else the model's; ``votes`` has who decided first."""
        ruled = await self.rules.judge(case, answer, ask)
        if not ruled.sure:
            judged = await self.model.judge(case, answer, ask)
            return replace(judged, votes=(vote_of(self.model, judged),))
        votes = [vote_of(self.rules, ruled)]
        if self.audits(case):
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

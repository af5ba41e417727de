"""A cascade: rules settle what they are sure of, and a model judges the rest."""

from dataclasses import dataclass, replace

from qagate.evaluators import core
from qagate.evaluators.extras.panel.votes import vote_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CascadeJudge:
    """Lets ``rules`` settle the items they are sure of, and ``model`` judge the rest."""

    rules: core.Judge
    model: core.Judge
    rules_settle: bool = True
    """False where labelled answers measure the model, which then judges all of them."""

    @property
    def spec(self) -> str:
        """Both SPECs, for instance ``lexical+openai:NAME``."""
        return f"{self.rules.spec}{core.CASCADE_SIGN}{self.model.spec}"

    @property
    def asks(self) -> tuple[core.Judge, ...]:
        """The model; rules cost nothing."""
        return (self.model,)

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the rules' verdict if sure, else the model's; the one vote says who decided."""
        if self.rules_settle:
            ruled = await self.rules.judge(case, answer, ask)
            if ruled.sure:
                return replace(ruled, votes=(vote_of(self.rules, ruled),))
        judged = await self.model.judge(case, answer, ask)
        return replace(judged, votes=(vote_of(self.model, judged),))

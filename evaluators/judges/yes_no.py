"""The rule for yes/no answers; no model is asked."""

from dataclasses import dataclass

from evaluators.core import UNANSWERED, Ask, Case, Verdict
from evaluators.replies import Invalid, read_yes_no


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNoJudge:
    """Reads an answer as one of the language's words for yes or for no."""

    yes: tuple[str, ...]
    no: tuple[str, ...]

    @property
    def spec(self) -> str:
        """A rule, not a model."""
        return "rule:yes_no"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return YES, NO or UNANSWERED; the case's own label is compared elsewhere."""
        found = read_yes_no(answer, "stop", self.yes, self.no)
        if isinstance(found, Invalid):
            return Verdict(grade=UNANSWERED, reason=found.reason)
        return Verdict(grade=found, reason="the answer's own label")

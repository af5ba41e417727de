"""The rater: an integer from 1 to 10 by a forced function call."""

from dataclasses import dataclass

from evaluators.content import blank
from evaluators.core import Ask, Case, Model, Request, Tool, Verdict
from evaluators.judges.asking import PARAMETERS, ask_until_read
from evaluators.prompting import judge_messages
from evaluators.replies import read_rating, read_reason
from evaluators.rubric import Rubric

RATE_TOOL = Tool(
    name="rate",
    description="Rate the submission from 1 (worst) to 10 (best), after a short reason.",
    schema={
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "One or two sentences, before the rating."},
            "rating": {"type": "integer", "minimum": 1, "maximum": 10},
        },
        "required": ["reason", "rating"],
        "additionalProperties": False,
    },
)


def empty_answer_rating(case: Case, answer: str) -> Verdict | None:
    """Return 1 for a blank answer, about which no judge is asked."""
    if not blank(answer):
        return None
    return Verdict(rating=1, reason="an empty answer; the judge was not asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingJudge:
    """A model that rates by a rubric of protocol ``rate``.

    ``repeat`` counts from 1; asked with another one, the model judges the same answer once more.
    """

    model: Model
    rubric: Rubric
    repeat: int = 1

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rating, 1 to 10; a blank answer is rated 1 and costs no call.

        Raises JudgeError after three replies without a single reading.
        """
        spared = empty_answer_rating(case, answer)
        if spared:
            return spared
        request = Request(
            messages=judge_messages(self.rubric, case, answer),
            tool=RATE_TOOL,
            parameters=PARAMETERS,
            version=self.rubric.version,
            repeat=self.repeat,
        )
        rating, reply = await ask_until_read(self.model, request, ask, read_rating)
        return Verdict(rating=rating, reason=read_reason(reply))

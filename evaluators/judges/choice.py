"""The judge of three labels: CORRECT, INCORRECT or NOT_ATTEMPTED."""

from dataclasses import dataclass

from evaluators.content import content_free
from evaluators.core import GRADES, NOT_ATTEMPTED, Ask, Case, Model, Request, Tool, Verdict
from evaluators.judges.asking import PARAMETERS, ask_until_read
from evaluators.prompting import judge_messages
from evaluators.replies import read_grade, read_reason
from evaluators.rubric import Rubric

GRADE_TOOL = Tool(
    name="grade",
    description="Give the grade of the submission, after a short reason.",
    schema={
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "One or two sentences, before the grade."},
            "grade": {"type": "string", "enum": list(GRADES)},
        },
        "required": ["reason", "grade"],
        "additionalProperties": False,
    },
)


def empty_answer_verdict(case: Case, answer: str) -> Verdict | None:
    """Return NOT_ATTEMPTED for an answer without content, about which no judge is asked."""
    if not content_free(answer, case.golds):
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="no content; the judge was not asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge:
    """A model that grades by a rubric: a forced call, or a letter or JSON if it asks so.

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
        """Return the grade; an answer without content is NOT_ATTEMPTED and costs no call.

        Raises JudgeError after three replies without a single reading.
        """
        spared = empty_answer_verdict(case, answer)
        if spared:
            return spared
        request = Request(
            messages=judge_messages(self.rubric, case, answer),
            tool=GRADE_TOOL if self.rubric.protocol == "tool" else None,
            parameters=PARAMETERS,
            version=self.rubric.version,
            repeat=self.repeat,
        )
        grade, reply = await ask_until_read(self.model, request, ask, read_grade)
        return Verdict(grade=grade, reason=read_reason(reply))

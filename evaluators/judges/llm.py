"""Judges that are models: asked by a rubric until a reply has one reading, never after that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from evaluators.core import (
    NOT_ATTEMPTED,
    Ask,
    Case,
    JudgeError,
    Message,
    Model,
    Reply,
    Request,
    Tool,
    Verdict,
)
from evaluators.replies import Invalid, read_grade, read_rating, read_reason, read_scores
from evaluators.replies.labels import blank, content_free
from evaluators.rubric import Caps, Rubric, combined
from evaluators.template import chat_messages, encode, fill, shortened

PARAMETERS = {"temperature": 0, "max_tokens": 2048}
"""The least random reply, with room for a reason."""

ATTEMPTS = 3
"""How often an unreadable judge is asked."""

NO_EXPERT_ANSWER = "(none was given: judge by the context and by the law alone)"
"""What a rater is told where an item has no expert answer."""

T = TypeVar("T", str, int, dict[str, int])


async def ask_until_read(
    model: Model, request: Request, ask: Ask, read: Callable[[Reply], T | Invalid]
) -> tuple[T, Reply]:
    """Return the first reading and its reply; the same request is put at most three times.

    Raises JudgeError that names what was wrong with each of the three replies.
    """
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        reply = await ask(model, replace(request, attempt=attempt))
        result = read(reply)
        if not isinstance(result, Invalid):
            return result, reply
        problems.append(result.reason)
    said = "; ".join(problems)
    raise JudgeError(f"{model.spec}: {len(problems)} replies without a verdict: {said}")


def judge_messages(rubric: Rubric, case: Case, answer: str) -> tuple[Message, ...]:
    """Return what a judge is asked about an answer.

    The judged text is hostile: every value goes JSON-encoded into its slot, and all around the
    slots is the same, byte by byte, for every answer. Several gold forms become a JSON list.
    """
    golds = list(case.golds) if case.expected.strip() else [NO_EXPERT_ANSWER]
    values = {
        "question": encode(case.question),
        "context": encode(case.context),
        "target": encode(golds[0] if len(golds) == 1 else golds),
        "predicted_answer": encode(shortened(answer)),
    }
    return chat_messages(rubric.system, fill(rubric.user, values))


def grade_tool(labels: Sequence[str], *, bare: bool = False) -> Tool:
    """Return the function that a judge of these labels is forced to call.

    ``bare`` leaves out the reason before the grade.
    """
    grade = {"type": "string", "enum": list(labels)}
    said = "Give the grade of the submission"
    return _tool(
        "grade", f"{said}." if bare else f"{said}, after a short reason.", bare, grade=grade
    )


def _tool(
    name: str, description: str, bare: bool = False, /, **verdict: Mapping[str, object]
) -> Tool:
    """Return a function that takes the verdict's fields, after a reason unless it is ``bare``."""
    before = next(iter(verdict)) if len(verdict) == 1 else "scores"
    reason = {"type": "string", "description": f"One or two sentences, before the {before}."}
    fields = verdict if bare else {"reason": reason, **verdict}
    return Tool(
        name=name,
        description=description,
        schema={
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        },
    )


_RATING: Mapping[str, object] = {"type": "integer", "minimum": 1, "maximum": 10}
_RATE = "Rate the submission from 1 (worst) to 10 (best)"
RATE_TOOL = _tool("rate", f"{_RATE}, after a short reason.", rating=_RATING)
BARE_RATE_TOOL = _tool("rate", f"{_RATE}.", True, rating=_RATING)


def parts_tool(caps: Caps) -> Tool:
    """Return the function that a judge of a rating in parts is forced to call."""
    scores = {
        name: {"type": "integer", "minimum": 0, "maximum": len(levels) - 1}
        for name, levels in caps.items()
    }
    said = "Score each part of the submission, 0 the worst, after the reasons for all scores."
    return _tool("rate", said, **scores)


def empty_answer_verdict(case: Case, answer: str) -> Verdict | None:
    """Return NOT_ATTEMPTED for an answer without content, about which no judge is asked."""
    if not content_free(answer, case.golds):
        return None
    return Verdict(grade=NOT_ATTEMPTED, reason="no content; the judge was not asked")


def empty_answer_rating(case: Case, answer: str) -> Verdict | None:
    """Return 1 for a blank answer, about which no judge is asked."""
    if not blank(answer):
        return None
    return Verdict(rating=1, reason="an empty answer; the judge was not asked")


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricJudge:
    """A model that is asked by a rubric.

    ``repeat`` counts from 1; asked with another one, the model judges the same answer once more.
    """

    model: Model
    rubric: Rubric
    repeat: int = 1

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    def request(self, case: Case, answer: str, tool: Tool | None) -> Request:
        """Return what the model is asked about an answer."""
        return Request(
            messages=judge_messages(self.rubric, case, answer),
            tool=tool,
            parameters=PARAMETERS,
            version=self.rubric.version,
            repeat=self.repeat,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge(RubricJudge):
    """A model that grades by a rubric: a forced call, or a letter or JSON if it asks so."""

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the grade, one of the rubric's labels.

        An answer without content is NOT_ATTEMPTED and costs no call; a rubric with labels of its
        own has no such grade, and its judge is asked. Raises JudgeError after three replies
        without a single reading.
        """
        spared = empty_answer_verdict(case, answer)
        if spared and not self.rubric.has_own_labels:
            return spared
        labels = self.rubric.labels
        tool = grade_tool(labels, bare=self.rubric.bare) if self.rubric.protocol == "tool" else None
        request = self.request(case, answer, tool)
        read = partial(read_grade, labels=labels)
        grade, reply = await ask_until_read(self.model, request, ask, read)
        return Verdict(grade=grade, reason=read_reason(reply))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingJudge(RubricJudge):
    """A model that rates by a rubric of protocol ``rate``."""

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rating, 1 to 10; a blank answer is rated 1 and costs no call.

        Raises JudgeError after three replies without a single reading.
        """
        if spared := empty_answer_rating(case, answer):
            return spared
        if self.rubric.parts:
            return await self._in_parts(case, answer, ask)
        tool = BARE_RATE_TOOL if self.rubric.bare else RATE_TOOL
        request = self.request(case, answer, tool)
        rating, reply = await ask_until_read(self.model, request, ask, read_rating)
        return Verdict(rating=rating, reason=read_reason(reply))

    async def _in_parts(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rating that the rubric's table makes of the model's scores, and these."""
        caps = self.rubric.parts
        request = self.request(case, answer, parts_tool(caps))
        read = partial(read_scores, highest={name: len(caps[name]) - 1 for name in caps})
        scores, reply = await ask_until_read(self.model, request, ask, read)
        said = ", ".join(f"{name.replace('_', ' ')} {score}" for name, score in scores.items())
        reason = f"{said}: {read_reason(reply)}"
        return Verdict(rating=combined(caps, scores), reason=reason, parts=scores)

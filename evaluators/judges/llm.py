"""Judges that are models: asked by a rubric until a reply can be read, and never after that."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from evaluators import core
from evaluators.replies.labels import blank, content_free
from evaluators.replies.readers import Invalid, read_grade, read_rating, read_reason, read_scores
from evaluators.rubric import BEST, Rubric, chat_messages, combined, encode, fill, shortened

PARAMETERS = {"temperature": 0, "max_tokens": 2048}
"""The least random reply, with room for a reason."""

ATTEMPTS = 3
"""How often a judge is asked at most for a readable reply."""

NO_EXPERT_ANSWER = "(none was given: judge by the context and by the law alone)"
"""Sent to a rater in place of a missing expert answer."""

T = TypeVar("T", str, int, dict[str, int])


async def ask_until_read(
    model: core.Model,
    request: core.Request,
    ask: core.Ask,
    read: Callable[[core.Reply], T | Invalid],
) -> tuple[T, core.Reply]:
    """Return the first readable reply of three. Raises JudgeError, which names the faults."""
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        reply = await ask(model, replace(request, attempt=attempt))
        result = read(reply)
        if not isinstance(result, Invalid):
            return result, reply
        problems.append(result.reason)
    said = "; ".join(problems)
    raise core.JudgeError(f"{model.spec}: {len(problems)} replies without a verdict: {said}")


def judge_messages(rubric: Rubric, case: core.Case, answer: str) -> tuple[core.Message, ...]:
    """Return the messages that ask a judge about an answer.

    The judged text is hostile: every value is JSON-encoded, and the text around the slots is the
    same, byte by byte, for every answer. Several golds become a JSON list.
    """
    golds = list(case.golds) if case.expected.strip() else [NO_EXPERT_ANSWER]
    values = {
        "question": encode(case.question),
        "context": encode(case.context),
        "target": encode(golds[0] if len(golds) == 1 else golds),
        "predicted_answer": encode(shortened(answer)),
    }
    return chat_messages(rubric.system, fill(rubric.user, values))


def tool_of(rubric: Rubric) -> core.Tool:
    """Return the function that a judge must call: a reason, unless ``bare``, and its verdict."""

    def whole(low: int, high: int) -> dict[str, object]:
        return {"type": "integer", "minimum": low, "maximum": high}

    name, said = "rate", "Rate the submission from 1 (worst) to 10 (best)"
    fields: dict[str, object] = {"rating": whole(1, BEST)}
    if rubric.protocol != "rate":
        name, said = "grade", "Give the grade of the submission"
        fields = {"grade": {"type": "string", "enum": list(rubric.labels)}}
    elif rubric.parts:
        said = "Score each part of the submission, 0 the worst, after the reasons for all scores."
        fields = {part: whole(0, len(levels) - 1) for part, levels in rubric.parts.items()}
    if not rubric.parts:
        said += "." if rubric.bare else ", after a short reason."
    if not rubric.bare:
        before = "scores" if rubric.parts else next(iter(fields))
        reason = {"type": "string", "description": f"One or two sentences, before the {before}."}
        fields = {"reason": reason, **fields}
    schema = {"type": "object", "properties": fields, "required": list(fields),
              "additionalProperties": False}  # fmt: skip
    return core.Tool(name=name, description=rubric.function or said, schema=schema)


def empty_answer_verdict(case: core.Case, answer: str) -> core.Verdict | None:
    """Return NOT_ATTEMPTED for an answer without content, else None; no judge is asked."""
    made = core.Verdict(grade=core.NOT_ATTEMPTED, reason="no content; the judge was not asked")
    return made if content_free(answer, case.golds) else None


def empty_answer_rating(case: core.Case, answer: str) -> core.Verdict | None:
    """Return the rating 1 for a blank answer, else None; no judge is asked."""
    made = core.Verdict(rating=1, reason="an empty answer; the judge was not asked")
    return made if blank(answer) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricJudge:
    """A model that is asked by a rubric."""

    model: core.Model
    rubric: Rubric
    repeat: int = 1
    """Counts from 1; a new number has the model judge the same answer again."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    def request(self, case: core.Case, answer: str, tool: core.Tool | None) -> core.Request:
        """Return the request that asks the model about an answer."""
        return core.Request(
            messages=judge_messages(self.rubric, case, answer),
            tool=tool,
            parameters=PARAMETERS,
            version=self.rubric.version,
            repeat=self.repeat,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge(RubricJudge):
    """A model that grades by a rubric, with a forced call, a letter or JSON."""

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the grade, one of the rubric's labels.

        An answer without content is NOT_ATTEMPTED without a call, unless the rubric has labels of
        its own. Raises JudgeError after three unreadable replies.
        """
        spared = empty_answer_verdict(case, answer)
        if spared and self.rubric.labels == core.GRADES:
            return spared
        tool = tool_of(self.rubric) if self.rubric.protocol == "tool" else None
        request = self.request(case, answer, tool)
        read = partial(read_grade, labels=self.rubric.labels)
        grade, reply = await ask_until_read(self.model, request, ask, read)
        return core.Verdict(grade=grade, reason=read_reason(reply))


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingJudge(RubricJudge):
    """A model that rates by a rubric of protocol ``rate``."""

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the rating; 1, without a call, for a blank answer. Raises JudgeError."""
        if spared := empty_answer_rating(case, answer):
            return spared
        caps, request = self.rubric.parts, self.request(case, answer, tool_of(self.rubric))
        if not caps:
            rating, reply = await ask_until_read(self.model, request, ask, read_rating)
            return core.Verdict(rating=rating, reason=read_reason(reply))
        read = partial(read_scores, highest={name: len(caps[name]) - 1 for name in caps})
        scores, reply = await ask_until_read(self.model, request, ask, read)
        said = ", ".join(f"{name.replace('_', ' ')} {score}" for name, score in scores.items())
        reason = f"{said}: {read_reason(reply)}"
        return core.Verdict(rating=combined(caps, scores), reason=reason, parts=scores)

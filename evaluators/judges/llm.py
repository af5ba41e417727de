"""Judges that are models: asked by a rubric until a reply can be read, and never after that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from evaluators import core
from evaluators import rubric as rubrics
from evaluators.replies.labels import blank, content_free
from evaluators.replies.readers import Invalid, read_grade, read_rating, read_reason, read_scores

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


def judge_messages(
    rubric: rubrics.Rubric, case: core.Case, answer: str
) -> tuple[core.Message, ...]:
    """Return the messages that ask a judge about an answer.

    The judged text is hostile: every value is JSON-encoded, and the text around the slots is the
    same, byte by byte, for every answer. Several golds become a JSON list.
    """
    golds = list(case.golds) if case.expected.strip() else [NO_EXPERT_ANSWER]
    values = {
        "question": rubrics.encode(case.question),
        "context": rubrics.encode(case.context),
        "target": rubrics.encode(golds[0] if len(golds) == 1 else golds),
        "predicted_answer": rubrics.encode(rubrics.shortened(answer)),
    }
    return rubrics.chat_messages(rubric.system, rubrics.fill(rubric.user, values))


def tool_of(rubric: rubrics.Rubric) -> core.Tool:
    """Return the function that a judge must call: a reason, unless ``bare``, and its verdict."""
    name, said = "rate", "Rate the submission from 1 (worst) to 10 (best)"
    spans = {part: (0, len(levels) - 1) for part, levels in rubric.parts.items()}
    fields: dict[str, object] = {
        field: {"type": "integer", "minimum": low, "maximum": high}
        for field, (low, high) in (spans or {"rating": (1, rubrics.BEST)}).items()
    }
    if rubric.protocol != "rate":
        name, said = "grade", "Give the grade of the submission"
        fields = {"grade": {"type": "string", "enum": list(rubric.labels)}}
    elif rubric.parts:
        said = "Score each part of the submission, 0 the worst, after the reasons for all scores."
    if not rubric.parts:
        said += "." if rubric.bare else ", after a short reason."
    if not rubric.bare:
        before = "scores" if rubric.parts else next(iter(fields))
        reason = {"type": "string", "description": f"One or two sentences, before the {before}."}
        fields = {"reason": reason, **fields}
    schema = {"type": "object", "properties": fields, "required": list(fields),
              "additionalProperties": False}  # fmt: skip
    return core.Tool(name=name, description=rubric.function or said, schema=schema)


def spared(
    case: core.Case,
    answer: str,
    style: rubrics.Style = "graded",
    labels: Sequence[str] = core.GRADES,
) -> core.Verdict | None:
    """Return the verdict on an answer without content, which needs no judge, else None.

    A blank one is rated 1; the grade is NOT_ATTEMPTED, unless the labels are a rubric's own.
    """
    if style == "rated":
        made = core.Verdict(rating=1, reason="an empty answer; the judge was not asked")
        return made if blank(answer) else None
    made = core.Verdict(grade=core.NOT_ATTEMPTED, reason="no content; the judge was not asked")
    return made if labels == core.GRADES and content_free(answer, case.golds) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricJudge:
    """A model that grades or rates by a rubric: by a forced call, a letter or JSON."""

    model: core.Model
    rubric: rubrics.Rubric
    repeat: int = 1
    """Counts from 1; a new number has the model judge the same answer again."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the grade, one of the rubric's labels, or the rating; ``spared`` without a call.

        Raises JudgeError after three unreadable replies.
        """
        model, rubric, caps = self.model, self.rubric, self.rubric.parts
        if verdict := spared(case, answer, rubric.style, rubric.labels):
            return verdict
        request = core.Request(
            messages=judge_messages(rubric, case, answer),
            tool=tool_of(rubric) if rubric.protocol in rubrics.CALLED else None,
            parameters=PARAMETERS,
            version=rubric.version,
            repeat=self.repeat,
        )
        if rubric.style == "graded":
            choose = partial(read_grade, labels=rubric.labels)
            grade, reply = await ask_until_read(model, request, ask, choose)
            return core.Verdict(grade=grade, reason=read_reason(reply))
        if not caps:
            rating, reply = await ask_until_read(model, request, ask, read_rating)
            return core.Verdict(rating=rating, reason=read_reason(reply))
        read = partial(read_scores, highest={name: len(caps[name]) - 1 for name in caps})
        scores, reply = await ask_until_read(model, request, ask, read)
        said = ", ".join(f"{name.replace('_', ' ')} {score}" for name, score in scores.items())
        reason = f"{said}: {read_reason(reply)}"
        return core.Verdict(rating=rubrics.combined(caps, scores), reason=reason, parts=scores)

"""The judge that is a model: it grades or rates an answer by a rubric.

``RubricJudge.judge`` puts question, gold and answer into the rubric's messages, asks the model, and
reads a grade, a rating or the scores of a rating's parts. A reply that cannot be read is asked for
again: once at temperature 0, as a third reply would be the same, and twice otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from qagate.evaluators import core
from qagate.evaluators import rubric as rubrics
from qagate.evaluators.finishes import LENGTH
from qagate.evaluators.replies import readers

PARAMETERS = {"temperature": 0, "max_tokens": 2048}
"""The least random reply, with room for a reason."""

ATTEMPTS = 2
"""How often a judge is asked at most for a readable reply at temperature 0."""

ATTEMPTS_AT_RANDOM = 3
"""The same of a model whose replies differ from one another."""

NO_EXPERT_ANSWER = "(none was given: judge by the context and by the law alone)"
"""Sent to a rater in place of a missing expert answer."""

T = TypeVar("T", str, int, dict[str, int])


async def ask_until_read(
    model: core.Model,
    request: core.Request,
    ask: core.Ask,
    read: Callable[[core.Reply], T | readers.Invalid],
) -> tuple[T, core.Reply]:
    """Return what the first readable reply says, and that reply.

    Raises JudgeError, which names the faults, after ATTEMPTS unreadable replies, or
    ATTEMPTS_AT_RANDOM.
    """
    problems: list[str] = []
    are_cut = True
    for attempt in range(attempts_of(model, request)):
        reply = await ask(model, replace(request, attempt=attempt))
        result = read(reply)
        if not isinstance(result, readers.Invalid):
            return result, reply
        problems.append(result.reason)
        are_cut = are_cut and reply.finish == LENGTH
    message = f"{model.spec}: {len(problems)} replies without a verdict: {'; '.join(problems)}"
    if are_cut:
        message += "; raise the judge's max_tokens in a models file"
    raise core.JudgeError(message)


def attempts_of(model: core.Model, request: core.Request) -> int:
    """Return how often a model is asked at most for a readable reply to a request."""
    if model.limits.is_random or request.parameters.get("temperature") != 0:
        return ATTEMPTS_AT_RANDOM
    return ATTEMPTS


def judge_messages(
    rubric: rubrics.Rubric, case: core.Case, answer: str
) -> tuple[core.Message, ...]:
    """Return the messages that ask a judge about an answer.

    The judged text is hostile: every value is JSON-encoded, and the text around the slots is the
    same, byte by byte, for every answer.
    """
    values = {
        "question": rubrics.encode(case.question),
        "context": rubrics.encode(case.context),
        "target": rubrics.encode(_target(case)),
        "predicted_answer": rubrics.encode(rubrics.shortened(answer)),
    }
    return rubrics.chat_messages(rubric.system, rubrics.fill(rubric.user, values))


def _target(case: core.Case) -> str | list[str]:
    """Return what the answer is held against: the gold, or a list of several golds."""
    if not case.expected.strip():
        return NO_EXPERT_ANSWER
    if len(case.golds) == 1:
        return case.expected
    return list(case.golds)


def tool_of(rubric: rubrics.Rubric) -> core.Tool:
    """Return the function that a judge must call: a reason, unless ``bare``, and its verdict."""
    verdict_fields: dict[str, object]
    if rubric.protocol != "rate":
        name = "grade"
        task = "Give the grade of the submission"
        verdict_noun = "grade"
        verdict_fields = {"grade": {"type": "string", "enum": list(rubric.labels)}}
    elif rubric.parts:
        name = "rate"
        task = "Score each part of the submission, 0 the worst, after the reasons for all scores."
        verdict_noun = "scores"
        verdict_fields = {
            part: _whole_number(0, len(caps) - 1) for part, caps in rubric.parts.items()
        }
    else:
        name = "rate"
        task = "Rate the submission from 1 (worst) to 10 (best)"
        verdict_noun = "rating"
        verdict_fields = {"rating": _whole_number(1, rubrics.BEST)}
    if not rubric.parts:
        task += "." if rubric.bare else ", after a short reason."
    fields: dict[str, object] = {}
    if not rubric.bare:
        fields["reason"] = {
            "type": "string",
            "description": f"One or two sentences, before the {verdict_noun}.",
        }
    fields |= verdict_fields
    schema = {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
    return core.Tool(name=name, description=rubric.function or task, schema=schema)


def _whole_number(low: int, high: int) -> dict[str, object]:
    return {"type": "integer", "minimum": low, "maximum": high}


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricJudge:
    """A model that grades or rates by a rubric: by a forced call, JSON, or a letter."""

    model: core.Model
    rubric: rubrics.Rubric
    repeat: int = 1
    """Counts from 1; a new number has the model judge the same answer again."""

    @property
    def spec(self) -> str:
        """The model's SPEC."""
        return self.model.spec

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the grade, one of the rubric's labels, or the rating.

        Raises JudgeError after two or three unreadable replies, see ``ask_until_read``.
        """
        rubric = self.rubric
        request = self._request(case, answer)
        if rubric.style == "graded":
            return await self._grade(request, ask)
        if rubric.parts:
            return await self._rate_parts(request, ask)
        return await self._rate(request, ask)

    def _request(self, case: core.Case, answer: str) -> core.Request:
        protocol = self.rubric.protocol
        return core.Request(
            messages=judge_messages(self.rubric, case, answer),
            tool=tool_of(self.rubric) if protocol in rubrics.WITH_SCHEMA else None,
            as_json=protocol == "json_schema",
            parameters=PARAMETERS,
            version=self.rubric.version,
            repeat=self.repeat,
        )

    async def _grade(self, request: core.Request, ask: core.Ask) -> core.Verdict:
        read = partial(readers.read_grade, labels=self.rubric.labels)
        grade, reply = await ask_until_read(self.model, request, ask, read)
        return core.Verdict(grade=grade, reason=readers.read_reason(reply))

    async def _rate(self, request: core.Request, ask: core.Ask) -> core.Verdict:
        rating, reply = await ask_until_read(
            self.model, request, ask, readers.read_rating
        )
        return core.Verdict(rating=rating, reason=readers.read_reason(reply))

    async def _rate_parts(self, request: core.Request, ask: core.Ask) -> core.Verdict:
        """Return the rating that the scores of all parts make; its reason names the scores."""
        caps = self.rubric.parts
        highest = {part: len(ratings) - 1 for part, ratings in caps.items()}
        read = partial(readers.read_scores, highest=highest)
        scores, reply = await ask_until_read(self.model, request, ask, read)
        shown_scores = ", ".join(
            f"{part.replace('_', ' ')} {score}" for part, score in scores.items()
        )
        return core.Verdict(
            rating=rubrics.combined(caps, scores),
            reason=f"{shown_scores}: {readers.read_reason(reply)}",
            parts=scores,
        )

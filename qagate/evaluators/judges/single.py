"""Judges that decide alone: a model by a rubric, a user's own class, and yes or no.

``--judge python:MODULE:CLASS`` names a class. It takes no arguments and has ``async def judge(self,
case, answer, ask) -> Verdict``. Graded data needs a ``grade`` that is one of the rubric's labels,
rated data a ``rating``; a verdict may hold both. ``sure`` says that no model need be asked.
"""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import ClassVar, TypeVar

from qagate.evaluators import core, doors
from qagate.evaluators import rubric as rubrics
from qagate.evaluators.replies import readers
from qagate.evaluators.replies.labels import blank, content_free
from qagate.evaluators.text import mask, one_line
from qagate.evaluators.user_code import load_named, off_the_loop

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
    read: Callable[[core.Reply], T | readers.Invalid],
) -> tuple[T, core.Reply]:
    """Return the first readable reply of three. Raises JudgeError, which names the faults."""
    problems: list[str] = []
    for attempt in range(ATTEMPTS):
        reply = await ask(model, replace(request, attempt=attempt))
        result = read(reply)
        if not isinstance(result, readers.Invalid):
            return result, reply
        problems.append(result.reason)
    said = "; ".join(problems)
    raise core.JudgeError(
        f"{model.spec}: {len(problems)} replies without a verdict: {said}"
    )


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
        reason = {
            "type": "string",
            "description": f"One or two sentences, before the {before}.",
        }
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
    made = core.Verdict(
        grade=core.NOT_ATTEMPTED, reason="no content; the judge was not asked"
    )
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
            choose = partial(readers.read_grade, labels=rubric.labels)
            grade, reply = await ask_until_read(model, request, ask, choose)
            return core.Verdict(grade=grade, reason=readers.read_reason(reply))
        if not caps:
            rating, reply = await ask_until_read(
                model, request, ask, readers.read_rating
            )
            return core.Verdict(rating=rating, reason=readers.read_reason(reply))
        read = partial(
            readers.read_scores, highest={name: len(caps[name]) - 1 for name in caps}
        )
        scores, reply = await ask_until_read(model, request, ask, read)
        said = ", ".join(
            f"{name.replace('_', ' ')} {score}" for name, score in scores.items()
        )
        reason = f"{said}: {readers.read_reason(reply)}"
        return core.Verdict(
            rating=rubrics.combined(caps, scores), reason=reason, parts=scores
        )


def offline_judge(
    name: str, style: rubrics.Style, labels: tuple[str, ...] = core.GRADES
) -> core.Judge:
    """Return the judge that ``--judge`` knows by this name, which asks no model."""
    if name != core.LEXICAL:
        return PythonJudge(spec=name, style=style, labels=labels)
    make_lexical_judge = doors.load_lexical_judge()
    return make_lexical_judge(style)


@cache
def load_class(name: str) -> type:
    """Return the class of ``python:MODULE:CLASS``. Raises UsageError for one that cannot judge."""
    _, found = load_named(name.removeprefix(core.PYTHON), f"--judge {name}", "class")
    if not inspect.isclass(found):
        raise core.UsageError(
            f"--judge {name}: no class, and a judge is one; give its name"
        )
    if not inspect.iscoroutinefunction(getattr(found, "judge", None)):
        wanted = "`async def judge(self, case, answer, ask)`"
        raise core.UsageError(
            f"--judge {name}: {found.__name__} has no {wanted}; add it"
        )
    return found


@cache
def _instance(name: str) -> core.Judge:
    return load_class(name)()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonJudge:
    """A user's own judge, created in the process where it judges."""

    spec: str
    style: rubrics.Style
    labels: tuple[str, ...]

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return its verdict. Raises JudgeError if it fails; after 10 s it is ``judge_timeout``."""
        try:
            rules = _instance(self.spec)
            verdict = await off_the_loop(
                self.spec,
                lambda there: asyncio.run(rules.judge(case, answer, there)),
                ask,
            )
            if not isinstance(verdict, core.Verdict):
                said = f"{self.spec}: want a Verdict, got {verdict!r:.60}"
                raise core.JudgeError(said, kind="judge_failed")
        except core.QAError:
            raise
        except Exception as error:  # the user's code may raise anything
            msg = f"{self.spec}: {one_line(mask(f'{type(error).__name__}: {error}'))}"
            raise core.JudgeError(msg, kind="judge_failed") from error
        # Nothing else in it is for a judge of the user's to say.
        read = core.Verdict(reason=str(verdict.reason), sure=bool(verdict.sure))
        if (
            self.style == "rated"
            and type(verdict.rating) is int
            and 1 <= verdict.rating <= 10
        ):
            return replace(read, rating=verdict.rating)
        if self.style == "graded" and verdict.grade in self.labels:
            return replace(read, grade=verdict.grade)
        wanted = (
            ", ".join(self.labels) if self.style == "graded" else "a rating of 1 to 10"
        )
        said = f"got grade {verdict.grade!r}, rating {verdict.rating!r}"
        raise core.JudgeError(f"{self.spec}: want {wanted}; {said}")


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNoJudge:
    """Reads an answer as one of the language's words for yes or no."""

    yes: tuple[str, ...]
    no: tuple[str, ...]

    spec: ClassVar = "rule:yes_no"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return YES, NO or UNANSWERED. The gold label is compared elsewhere."""
        found = readers.read_yes_no(answer, "stop", self.yes, self.no)
        if isinstance(found, readers.Invalid):
            return core.Verdict(grade=core.UNANSWERED, reason=found.reason)
        return core.Verdict(grade=found, reason="the answer's own label")

"""Judges that ask no model: a user's own class, and the reading of a choice among options.

``--judge python:MODULE:CLASS`` names a class. It takes no arguments and has ``async def judge(self,
case, answer, ask) -> Verdict``. Graded data needs a ``grade`` that is one of the rubric's labels,
rated data a ``rating``; a verdict may hold both. ``sure`` says that no model need be asked.
"""

import asyncio
import inspect
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from qagate.evaluators import core, doors
from qagate.evaluators import rubric as rubrics
from qagate.evaluators.replies import choices, readers
from qagate.evaluators.text import mask, one_line
from qagate.evaluators.user_code import load_named, off_the_loop


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
    path = name.removeprefix(core.PYTHON)
    _, judge_class = load_named(path, f"--judge {name}", "class")
    if not inspect.isclass(judge_class):
        raise core.UsageError(
            f"--judge {name}: no class, and a judge is one; give its name"
        )
    if not inspect.iscoroutinefunction(getattr(judge_class, "judge", None)):
        wanted = "`async def judge(self, case, answer, ask)`"
        raise core.UsageError(
            f"--judge {name}: {judge_class.__name__} has no {wanted}; add it"
        )
    return judge_class


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
        verdict = await self._verdict_of_class(case, answer, ask)
        # Nothing else in it is for a judge of the user's to say.
        kept = core.Verdict(reason=str(verdict.reason), sure=bool(verdict.sure))
        if self.style == "graded":
            if verdict.grade in self.labels:
                return replace(kept, grade=verdict.grade)
            wanted = ", ".join(self.labels)
        else:
            if type(verdict.rating) is int and 1 <= verdict.rating <= 10:
                return replace(kept, rating=verdict.rating)
            wanted = "a rating of 1 to 10"
        raise core.JudgeError(
            f"{self.spec}: want {wanted}; got grade {verdict.grade!r}, rating {verdict.rating!r}"
        )

    async def _verdict_of_class(
        self, case: core.Case, answer: str, ask: core.Ask
    ) -> core.Verdict:
        """Return the verdict of the user's class, which judges in another thread.

        Raises JudgeError for any fault of the class, ``judge_timeout`` if it takes too long, and
        what a call to a model raises.
        """
        try:
            judge = _instance(self.spec)
            verdict = await off_the_loop(
                self.spec,
                lambda ask_there: asyncio.run(judge.judge(case, answer, ask_there)),
                ask,
            )
            if not isinstance(verdict, core.Verdict):
                message = f"{self.spec}: want a Verdict, got {verdict!r:.60}"
                raise core.JudgeError(message, kind="judge_failed")
        except core.QAError:
            raise
        except Exception as error:  # the user's code may raise anything
            description = one_line(mask(f"{type(error).__name__}: {error}"))
            message = f"{self.spec}: {description}"
            raise core.JudgeError(message, kind="judge_failed") from error
        return verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class YesNoJudge:
    """Reads an answer as one of the language's words for yes or no."""

    yes: str
    no: str

    spec: ClassVar = "rule:yes_no"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return YES, NO or UNANSWERED. The gold label is compared elsewhere."""
        options = choices.yes_or_no(self.yes, self.no)
        return _verdict(choices.read_choice(answer, options))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge:
    """Reads which of an item's options an answer chooses, or in which order it puts them."""

    spec: ClassVar = "rule:choice"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the chosen letter, for an order all letters, or UNANSWERED."""
        return _verdict(choice_of(case, answer))


def choice_of(case: core.Case, answer: str) -> str | readers.Invalid:
    """Return the letter that an answer chooses, or all letters if the case asks for an order."""
    options = choices.lettered(case.options, case.language)
    asks_for_order = len(case.label or "") > 1
    if asks_for_order:
        return choices.read_order(answer, options)
    return choices.read_choice(answer, options)


def _verdict(label: str | readers.Invalid) -> core.Verdict:
    if isinstance(label, readers.Invalid):
        return core.Verdict(grade=core.UNANSWERED, reason=label.reason)
    return core.Verdict(grade=label, reason="the answer's own label")

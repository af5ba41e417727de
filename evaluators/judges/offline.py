"""Judges that ask no model: the yes/no rule, the overlap rater, and a user's own Python class.

``--judge python:MODULE:CLASS`` names a class. It takes no arguments and has ``async def judge(self,
case, answer, ask) -> Verdict``. Graded data needs a ``grade`` that is one of the rubric's labels,
rated data a ``rating``; a verdict may hold both. ``sure`` says that no model need be asked.
"""

import asyncio
import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from evaluators import core
from evaluators.judges.lexical.judge import LexicalJudge
from evaluators.judges.lexical.tables import read, tables, within_limit
from evaluators.replies.readers import Invalid, read_yes_no
from evaluators.rubric import Style
from evaluators.text import mask, one_line
from evaluators.user_code import load_named, off_the_loop


def offline_judge(name: str, style: Style, labels: Sequence[str] = core.GRADES) -> core.Judge:
    """Return the judge that ``--judge`` knows by this name. Raises UsageError."""
    if name != core.LEXICAL:
        load_class(name)
        return PythonJudge(spec=name, style=style, labels=tuple(labels))
    if style == "rated":
        return OverlapRater()
    return LexicalJudge()


def can_settle(name: str, style: Style, labels: Sequence[str]) -> bool:
    """Return whether rules may decide before a model: not ratings, and ``lexical`` only grades."""
    return style == "graded" and (name != core.LEXICAL or tuple(labels) == core.GRADES)


@cache
def load_class(name: str) -> type:
    """Return the class of ``python:MODULE:CLASS``. Raises UsageError for one that cannot judge."""
    _, found = load_named(name.removeprefix(core.PYTHON), f"--judge {name}", "class")
    if not inspect.isclass(found):
        raise core.UsageError(f"--judge {name}: no class, and a judge is one; give its name")
    if not inspect.iscoroutinefunction(getattr(found, "judge", None)):
        wanted = "`async def judge(self, case, answer, ask)`"
        raise core.UsageError(f"--judge {name}: {found.__name__} has no {wanted}; add it")
    return found


@cache
def _instance(name: str) -> core.Judge:
    return load_class(name)()  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonJudge:
    """A user's own judge, created in the process where it judges."""

    spec: str
    style: Style
    labels: tuple[str, ...]

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return its verdict. Raises JudgeError if it fails; after 10 s it is ``judge_timeout``."""
        try:
            rules = _instance(self.spec)
            verdict = await off_the_loop(
                self.spec, lambda there: asyncio.run(rules.judge(case, answer, there)), ask
            )
            if not isinstance(verdict, core.Verdict):
                said = f"{self.spec}: want a Verdict, got {verdict!r:.60}"
                raise core.JudgeError(said, kind="judge_failed")
        except core.QAError:
            raise
        except Exception as error:  # the user's code may raise anything
            msg = f"{self.spec}: {one_line(mask(f'{type(error).__name__}: {error}'))}"
            raise core.JudgeError(msg, kind="judge_failed") from error
        if self.style == "rated" and verdict.rating in range(1, 11):
            return replace(verdict, grade=None)
        if self.style == "graded" and verdict.grade in self.labels:
            return replace(verdict, rating=None)
        wanted = ", ".join(self.labels) if self.style == "graded" else "a rating of 1 to 10"
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
        found = read_yes_no(answer, "stop", self.yes, self.no)
        if isinstance(found, Invalid):
            return core.Verdict(grade=core.UNANSWERED, reason=found.reason)
        return core.Verdict(grade=found, reason="the answer's own label")


_STEM = 6  # letters by which two forms of one word are taken for the same
_ECHO = 0.75  # weight of a word that the question contains


class OverlapRater:
    """Rates 1 to 10 by shared words and numbers; never asks a model."""

    spec = "lexical"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the answer's rating. Raises JudgeError for an item without an expert answer."""
        if not case.expected.strip():
            msg = "no expert answer to compare with; only a model can rate this item"
            raise core.JudgeError(msg, kind="no_expert_answer")
        return rate(case, answer)


def rate(case: core.Case, answer: str) -> core.Verdict:
    """Return a rating of 1 (nothing shared) to 10 (the same words and numbers).

    It is the harmonic mean of precision and recall over content words and numbers, and measures
    similar wording, not truth.
    """
    known = tables(case.language)
    light = known.words["function"] | known.words["articles"]
    asked, expected, said = (
        {word if word.isdecimal() else word[:_STEM]
         for word in read(within_limit(text)).words if word not in light}
        for text in (case.question, case.expected, answer)
    )  # fmt: skip
    shared, *both = (
        len(stems - asked) + _ECHO * len(stems & asked)
        for stems in (expected & said, expected, said)
    )
    score = 2 * shared / sum(both) if sum(both) else 0.0
    reason = f"shared words and numbers {score:.2f} (placeholder judge)"
    return core.Verdict(rating=1 + round(9 * score), reason=reason)

"""From planned items to the engine's tasks: who answers, who judges, and what passes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from cases.plan import Item
from cases.slices import Slice
from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import CORRECT, Answerer, Case, Judge, Model, UsageProblem, Verdict
from evaluators.engine import Task
from evaluators.judges.choice import ChoiceJudge
from evaluators.judges.lexical import LexicalJudge
from evaluators.judges.overlap import OverlapRater
from evaluators.judges.rating import RatingJudge
from evaluators.judges.yes_no import YesNoJudge
from evaluators.rubric import Rubric

Passes = Callable[[Case, Verdict], bool]


@dataclass(frozen=True, slots=True)
class Rules:
    """A judge that needs no model: how it grades, and how it rates."""

    grader: Callable[[], Judge]
    rater: Callable[[], Judge]


RULES: Mapping[str, Rules] = {
    "lexical": Rules(grader=LexicalJudge, rater=OverlapRater),
}
"""Judges by the name that ``--judge`` knows them by; anything else is a model's SPEC."""


def make_tasks(items: Iterable[Item], model: Model | None, judge: Model | Rules) -> dict[str, Task]:
    """Return the task of each item, by key. ``model`` None means the recorded answers.

    Raises UsageProblem where a slice lacks what the choice needs: recorded answers, a prompt, a
    rubric.
    """
    items = list(items)
    slices = {item.slice.name: item.slice for item in items}
    answered = {item.slice.name for item in items if item.case.recorded is not None}
    rated = {item.slice.name for item in items if (item.case.label or "").isdigit()}
    answerers: dict[str, Answerer] = {}
    judges: dict[str, Judge] = {}
    for name, slice_ in slices.items():
        answerers[name] = _answerer(slice_, model, recorded=name in answered)
        judges[name] = _judge(slice_, judge, rating=slice_.kind == "rated" or name in rated)
    return {
        item.key: Task(
            key=item.key,
            case=item.case,
            repeat=item.repeat,
            answerer=answerers[item.slice.name],
            judge=judges[item.slice.name],
            passes=_passes(item.slice),
        )
        for item in items
    }


def calls_of(task: Task) -> int:
    """Return how many calls an item takes when nothing is in the ledger and no reply is unreadable.

    A judge is counted even where an answer without content would spare its call.
    """
    judged = isinstance(task.judge, ChoiceJudge | RatingJudge)
    return isinstance(task.answerer, PromptedAnswer) + judged


def _answerer(slice_: Slice, model: Model | None, *, recorded: bool) -> Answerer:
    if model is not None and slice_.kind != "judged":
        if slice_.prompt is None:
            msg = (
                f"{slice_.name}: no answer prompt for {slice_.language!r}; add "
                f"answer.{slice_.language}.yaml beside its dataset.yaml or give --prompt"
            )
            raise UsageProblem(msg)
        return PromptedAnswer(model=model, prompt=slice_.prompt, whole=slice_.kind == "yes_no")
    if not recorded:
        msg = (
            f"{slice_.path}: no item has a recorded answer, so there is nothing to judge; "
            "name a --model"
        )
        raise UsageProblem(msg)
    return RecordedAnswer()


def _judge(slice_: Slice, judge: Model | Rules, *, rating: bool) -> Judge:
    if slice_.kind == "yes_no":
        return YesNoJudge(yes=(slice_.yes,), no=(slice_.no,))
    if isinstance(judge, Rules):
        return judge.rater() if rating else judge.grader()
    rubric = _rubric(slice_)
    if rating:
        return RatingJudge(model=judge, rubric=rubric)
    return ChoiceJudge(model=judge, rubric=rubric)


def _rubric(slice_: Slice) -> Rubric:
    if slice_.rubric is None:
        msg = f"{slice_.name}: an LLM judge needs a rubric; name one in its dataset.yaml"
        raise UsageProblem(msg)
    return slice_.rubric


def _passes(slice_: Slice) -> Passes:
    if slice_.kind == "graded":
        return _is_correct
    if slice_.kind == "rated":
        return partial(_reaches, slice_.pass_bar)
    return _is_label


def _is_correct(case: Case, verdict: Verdict) -> bool:
    return verdict.grade == CORRECT


def _reaches(bar: int, case: Case, verdict: Verdict) -> bool:
    return verdict.rating is not None and verdict.rating >= bar


def _is_label(case: Case, verdict: Verdict) -> bool:
    given = verdict.grade if verdict.rating is None else str(verdict.rating)
    return given == case.label

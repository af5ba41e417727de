"""From planned items to the engine's tasks: who answers, who judges, and what passes."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from cases.metrics import measurers
from cases.plan import Item
from cases.slices import Slice
from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import (
    CORRECT,
    GRADES,
    NO,
    UNANSWERED,
    YES,
    Answerer,
    Case,
    Judge,
    Model,
    UsageError,
    Verdict,
)
from evaluators.extras import Measurer
from evaluators.judges.adjudicated import AdjudicatedJudge, Adjudications
from evaluators.judges.cascade import AUDIT, CascadeJudge
from evaluators.judges.choice import ChoiceJudge, empty_answer_verdict
from evaluators.judges.lexical.lexical_judge import LexicalJudge
from evaluators.judges.overlap import OverlapRater
from evaluators.judges.panel import PanelJudge
from evaluators.judges.rating import RatingJudge, empty_answer_rating
from evaluators.judges.voting import HIGHEST, LOWEST
from evaluators.judges.yes_no import YesNoJudge
from evaluators.rubric import Rubric
from evaluators.runtime.engine import Task

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cascade:
    """Rules that settle what they are sure of before a model. ``audit`` is a share, 0 to 1."""

    rules: Rules
    model: Model
    audit: float = AUDIT
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Judges that vote; ``tie_breaker`` is asked where they tie."""

    members: tuple[Model | Rules, ...]
    tie_breaker: Model | Rules | None = None


Judging = Model | Rules | Cascade | Panel
"""Who judges a run: a model, rules, rules before a model, or several of them."""


def make_tasks(
    items: Iterable[Item],
    model: Model | None,
    judge: Judging,
    adjudications: Adjudications | None = None,
) -> dict[str, Task]:
    """Return the task of each item, by key. ``model`` None means the recorded answers.

    ``adjudications`` stand before every judge but one that is itself the thing tested.
    Raises UsageError where a slice lacks what the choice needs: recorded answers, a prompt, a
    rubric.
    """
    items = list(items)
    slices = {item.slice.name: item.slice for item in items}
    answered = {item.slice.name for item in items if item.case.recorded is not None}
    rated = {item.slice.name for item in items if (item.case.label or "").isdigit()}
    answerers = {
        name: _answerer(slice_, model, recorded=name in answered) for name, slice_ in slices.items()
    }
    judges: dict[tuple[str, int], Judge] = {}
    extras = _extras(items, judge)
    for item in items:
        place = _place(item, rated)
        at = (item.slice.name, place.repeat)
        if at not in judges:
            judges[at] = _adjudicated(place, _judge(place, judge), adjudications)
    return {
        item.key: Task(
            key=item.key,
            case=item.case,
            repeat=item.repeat,
            answerer=answerers[item.slice.name],
            judge=judges[item.slice.name, _judging_repeat(item)],
            passes=_passes(item.slice),
            measurers=extras[item.slice.name],
        )
        for item in items
    }


def _place(item: Item, rated: Collection[str]) -> "_Place":
    return _Place(
        slice=item.slice,
        rating=item.slice.kind == "rated" or item.slice.name in rated,
        repeat=_judging_repeat(item),
    )


def _extras(items: Iterable[Item], judge: Judging) -> dict[str, tuple[Measurer, ...]]:
    """Return what takes the extra measures of each slice, by the model of the judge."""
    cases: dict[str, list[Case]] = defaultdict(list)
    slices = {}
    for item in items:
        slices[item.slice.name] = item.slice
        cases[item.slice.name].append(item.case)
    model = first_model(judge)
    return {name: measurers(slice_, cases[name], model) for name, slice_ in slices.items()}


def first_model(judge: Judging) -> Model | None:
    """Return the first model that a judge may ask, None for rules alone."""
    if isinstance(judge, Panel):
        return next((one for one in map(first_model, judge.members) if one), None)
    if isinstance(judge, Cascade):
        return judge.model
    return None if isinstance(judge, Rules) else judge


def asks_model(judge: Judging) -> bool:
    """Return whether some verdict may come from a model."""
    return first_model(judge) is not None


def _answerer(slice_: Slice, model: Model | None, *, recorded: bool) -> Answerer:
    if model is not None and slice_.kind != "judged":
        if slice_.prompt is None:
            msg = (
                f"{slice_.name}: no answer prompt for {slice_.language!r}; add "
                f"answer.{slice_.language}.yaml beside its dataset.yaml or give --prompt"
            )
            raise UsageError(msg)
        return PromptedAnswer(model=model, prompt=slice_.prompt, whole=slice_.kind == "yes_no")
    if not recorded:
        msg = (
            f"{slice_.path}: no item has a recorded answer, so there is nothing to judge; "
            "name a --model"
        )
        raise UsageError(msg)
    return RecordedAnswer()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where a judge is to sit: a slice, what it gives there, and for which time it judges."""

    slice: Slice
    rating: bool
    repeat: int


def _judging_repeat(item: Item) -> int:
    """Return which time an answer is judged: only a recorded one comes to the judge again."""
    return item.repeat if item.slice.kind == "judged" else 1


def _adjudicated(place: _Place, judge: Judge, adjudications: Adjudications | None) -> Judge:
    if not adjudications or place.slice.kind == "judged":
        return judge
    labels = (YES, NO, UNANSWERED) if place.slice.kind == "yes_no" else GRADES
    ratings = tuple(map(str, range(LOWEST, HIGHEST + 1)))
    return AdjudicatedJudge(
        behind=judge, adjudications=adjudications, labels=ratings if place.rating else labels
    )


def _judge(place: _Place, judge: Judging) -> Judge:
    if place.slice.kind == "yes_no":
        return YesNoJudge(yes=(place.slice.yes,), no=(place.slice.no,))
    if isinstance(judge, Panel):
        return _panel(place, judge)
    if isinstance(judge, Cascade):
        return _cascade(place, judge)
    return _single(place, judge)


def _panel(place: _Place, panel: Panel) -> Judge:
    breaker = panel.tie_breaker
    return PanelJudge(
        judges=tuple(_single(place, member) for member in panel.members),
        tie_breaker=_single(place, breaker) if breaker else None,
        rating=place.rating,
        spared=empty_answer_rating if place.rating else empty_answer_verdict,
    )


def _cascade(place: _Place, cascade: Cascade) -> Judge:
    """Return the model alone for ratings: shared words settle none.

    Where the judge itself is tested no item is audited: the given labels tell more.
    """
    model = _single(place, cascade.model)
    if place.rating:
        return model
    audit = 0.0 if place.slice.kind == "judged" else cascade.audit
    rules = cascade.rules.grader()
    return CascadeJudge(rules=rules, model=model, audit=audit, seed=cascade.seed)


def _single(place: _Place, judge: Model | Rules) -> Judge:
    if isinstance(judge, Rules):
        return judge.rater() if place.rating else judge.grader()
    rubric = _rubric(place.slice)
    if place.rating:
        return RatingJudge(model=judge, rubric=rubric, repeat=place.repeat)
    return ChoiceJudge(model=judge, rubric=rubric, repeat=place.repeat)


def _rubric(slice_: Slice) -> Rubric:
    if slice_.rubric is None:
        msg = f"{slice_.name}: an LLM judge needs a rubric; name one in its dataset.yaml"
        raise UsageError(msg)
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
